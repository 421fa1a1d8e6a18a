// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/mariadb"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// sqlStore is a database of MariaDB in which Hadoop's scripts ran.
type sqlStore struct {
	*sql.DB
	url   string      // for creel
	login hadoop.Conf // of creel
	conf  hadoop.Conf // of Hadoop's daemons
}

func startSQLStore(t *testing.T) *sqlStore {
	t.Helper()
	server := mariadb.Start(t)
	database, db := server.Database(t)
	mariadb.CreateHadoopStore(t, db)
	password := filepath.Join(tempDir(t, "password"), "store")
	if err := os.WriteFile(password, []byte(mariadb.Password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return &sqlStore{
		DB: db, url: "mysql://" + mariadb.User + "@" + server.Address + "/" + database,
		login: hadoop.Conf{"creel.store.password-file": password},
		conf:  hadoop.FederationInMariaDB(server.Address, database, mariadb.User, mariadb.Password),
	}
}

// home is the home in Hadoop's table.
func (s *sqlStore) home(t *testing.T, app string) (home string, err error) {
	err = s.QueryRowContext(t.Context(), "SELECT homeSubCluster FROM applicationsHomeSubCluster WHERE applicationId = ?",
		app).Scan(&home)
	return home, err
}

// TestHadoopsRouterSharesTheStore over MariaDB, in Hadoop's tables, and submissions through both routers.
func TestHadoopsRouterSharesStoreInMariaDB(t *testing.T) {
	store := startSQLStore(t)
	s := startSharing(t, store.url, store.conf, store.login)
	s.run(t)
	t.Run("claims_of_both_routers", func(t *testing.T) { s.claimsOfBothRouters(t, store) })
}

// Hadoop's AMRMProxies have their members, homes and policies from MariaDB. A ResourceManager, then the router become
// creel's while jobs run in both members.
func TestHadoopsAMRMProxySharesStoreInMariaDB(t *testing.T) {
	_, zooKeeper := hadoop.StartZooKeeper(t)
	store := startSQLStore(t)
	m := startHadoopFederationOver(t, zooKeeper, store.conf)
	m.record = store.home
	for _, step := range []struct {
		name   string
		change func(t *testing.T)
	}{
		{"second_resourcemanager_is_creels", func(t *testing.T) { m.toCreel(t, m.Subclusters[1]) }},
		{"router_is_creels", m.toCreelsRouter},
	} {
		if !t.Run(step.name, func(t *testing.T) {
			jobs := m.begin(t, 40000)
			step.change(t)
			m.end(t, jobs, false)
		}) {
			t.FailNow()
		}
	}
}

// claimsOfBothRouters submits each application through both routers, in turns through the one or the other first. Each
// has one home, which both report. Hadoop's Router ignores a home that the store has: after a lost claim it submits to
// the member of its own choice. creel's router submits to the home alone, and its kill reaches the surplus application.
// Submissions at the same moment are left out: Hadoop's ResourceManager rejects one that overtakes itself, and Hadoop's
// Router then moves the home in the table. TestHadoopsProceduresShareTheStore has claims at the same moment.
func (s *sharing) claimsOfBothRouters(t *testing.T, store *sqlStore) {
	const apps = 12
	document := fmt.Sprintf(`{"type":%q,"params":{"routerPolicyWeights":{"sc-1":0.5,"sc-hadoop":0.5},`+
		`"amrmPolicyWeights":{"sc-1":1},"headroomAlpha":"0.0"}}`, weightedManager)
	s.setPolicy(t, document, "sc-hadoop:0.5")
	rpc := hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})
	defer rpc.Close()
	ctx, cancel := context.WithTimeout(t.Context(), process.Guard)
	defer cancel()
	at := func(router hadoop.Addresses) yarnrpc.ApplicationClientProtocolClient {
		return yarnrpc.NewApplicationClientProtocolClient(rpc, router.Client, hrpc.Login{User: hadoop.OSUser(t)})
	}
	for i := range apps {
		made, err := at(s.own).GetNewApplication(ctx, &pb.GetNewApplicationRequestProto{})
		if err != nil {
			t.Fatal(err)
		}
		id, routers := pb.ToApplicationID(made.GetApplicationId()).String(), []hadoop.Addresses{s.own, s.router.Addresses}
		if i%2 == 1 {
			slices.Reverse(routers)
		}
		for _, router := range routers {
			if _, err := at(router).SubmitApplication(ctx, &pb.SubmitApplicationRequestProto{
				ApplicationSubmissionContext: sleeper(made.GetApplicationId()),
			}); err != nil {
				t.Fatalf("%s: %v", id, err)
			}
		}
		s.hasOneHome(t, id, store)
	}
}

// hasOneHome expects that the row of the application, both routers and the members agree about its home.
func (s *sharing) hasOneHome(t *testing.T, id string, store *sqlStore) {
	t.Helper()
	row, err := store.home(t, id)
	if err != nil {
		t.Fatal(err)
	}
	home := s.Home(t, id)
	if home.ID != row {
		t.Errorf("the home of %s is %s at creel's router, and %s in Hadoop's table", id, home.ID, row)
	}
	for _, router := range []string{s.own.Web, s.router.Web, home.Addresses.Web} {
		AwaitState(t, router, id, "ACCEPTED")
	}
	other := s.Other(home)
	_, code, err := Report(t, other.Addresses.Web, id)
	hadoops := strings.Contains(s.router.Output(), "submitApplication appId "+id+" try #0 on SubCluster "+other.ID+".")
	if surplus := code == http.StatusOK; surplus != hadoops {
		t.Errorf("%s of home %s is at %s: %v (%v), by Hadoop's Router: %v", id, home.ID, other.ID, surplus, err, hadoops)
	}
	KillApp(t, s.own.Web, id)
	AwaitState(t, s.router.Web, id, "KILLED")
	if hadoops {
		AwaitState(t, other.Addresses.Web, id, "KILLED")
	}
}

// sleeper is an application whose AM does not register.
func sleeper(id *pb.ApplicationIdProto) *pb.ApplicationSubmissionContextProto {
	return &pb.ApplicationSubmissionContextProto{
		ApplicationId: id, ApplicationName: proto.String("sleeper"), Queue: proto.String("root.default"),
		MaxAppAttempts:  proto.Int32(1),
		Resource:        pb.FromResource(creel.Resource{MemoryMB: 128, VCores: 1}),
		AmContainerSpec: &pb.ContainerLaunchContextProto{Command: []string{"sleep 1000"}},
	}
}

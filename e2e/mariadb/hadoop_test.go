// SPDX-License-Identifier: Apache-2.0

package mariadb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/mariadb"
	"github.com/creelrm/creel/statestore/nodes"
	"github.com/creelrm/creel/statestore/storetest"
	"github.com/creelrm/creel/subcluster"
)

const weighted = "org.apache.hadoop.yarn.server.federation.policies.manager.WeightedLocalityPolicyManager"

func value(t *testing.T, db *sql.DB, query string) string {
	t.Helper()
	var v string
	if err := db.QueryRowContext(t.Context(), query).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

// hadoopClaims calls Hadoop's procedure, as its Router does, and returns the home.
func hadoopClaims(ctx context.Context, db *sql.DB, app creel.ApplicationID, home string) (is string, err error) {
	c, err := db.Conn(ctx) // the results are variables of the connection
	if err != nil {
		return "", err
	}
	defer c.Close()
	if _, err = c.ExecContext(ctx, "CALL sp_addApplicationHomeSubCluster(?, ?, NULL, @home, @rows)", app.String(),
		home); err == nil {
		err = c.QueryRowContext(ctx, "SELECT @home").Scan(&is)
	}
	return is, err
}

// prepare creates the tables, for which a busy machine may need longer than a call waits by itself.
func prepare(t *testing.T, s *nodes.Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	must(t, s.CheckSchema(ctx))
}

// Hadoop's tables and procedures are there before creel's daemons.
func TestHadoopsProceduresShareTheStore(t *testing.T) {
	server := Start(t, relaxed)
	t.Run("policies", func(t *testing.T) { hadoopsPolicies(t, server) })
	for name, test := range map[string]func(t *testing.T, s *nodes.Store, db *sql.DB){
		"homes": hadoopsHomes, "members": hadoopsMembers, "claims": claimsOfBoth, "replacements": replacedProcedures,
	} {
		t.Run(name, func(t *testing.T) {
			database, db := server.Database(t)
			CreateHadoopStore(t, db)
			s := openStore(t, configOf(server.Address, database))
			prepare(t, s)
			test(t, s, db)
		})
	}
}

func hadoopsHomes(t *testing.T, s *nodes.Store, db *sql.DB) {
	ctx, app := t.Context(), storetest.App(1)
	if home, err := hadoopClaims(ctx, db, app, "sc-1"); err != nil || home != "sc-1" {
		t.Fatalf("Hadoop's claim is answered %s, %v", home, err)
	}
	home, number, err := s.Claim(ctx, app, "sc-2", nil)
	if err != nil || home != "sc-1" || number != 2 {
		t.Errorf("a claim after Hadoop's is answered %s, %d, %v", home, number, err)
	}
	must(t, s.Accept(ctx, app, "sc-1", 7))
	Exec(t, db, "CALL sp_updateApplicationHomeSubCluster('"+app.String()+"', 'sc-3', 'x', @rows)")
	if home, _, err = s.Claim(ctx, app, "sc-2", nil); err != nil || home != "sc-3" {
		t.Errorf("a claim after Hadoop's move is answered %s, %v", home, err)
	}
	if _, err := s.Move(ctx, app, "sc-3", "sc-4", 0, nil); err != nil {
		t.Fatal(err)
	}
	const row = "SELECT CONCAT(homeSubCluster, ' ', applicationContext) FROM applicationsHomeSubCluster"
	if is := value(t, db, row); is != "sc-4 x" {
		t.Errorf("Hadoop's row is %s", is)
	}
	must(t, s.Accept(ctx, app, "sc-4", 9))
	Exec(t, db, "CALL sp_deleteApplicationHomeSubCluster('"+app.String()+"', @rows)")
	if home, err := s.Home(ctx, app); !errors.Is(err, creel.ErrApplicationNotFound) {
		t.Errorf("the home that Hadoop deleted is %s, %v", home, err)
	}
	time.Sleep(1100 * time.Millisecond) // createTime has seconds
	if _, err := hadoopClaims(ctx, db, app, "sc-4"); err != nil {
		t.Fatal(err)
	}
	if life, err := s.AcceptedIn(ctx, app); err != nil || life != 0 {
		t.Errorf("a home that was claimed again accepted it in life %d (%v)", life, err)
	}
}

// Claims of Hadoop's Router and of creel's for the same applications, at the same time, have one winner each.
func claimsOfBoth(t *testing.T, s *nodes.Store, db *sql.DB) {
	const apps = 200
	failed := make(chan error, 2)
	var theirs, ours [apps]string
	go func() {
		var first error
		for i := 0; i < apps && first == nil; i++ {
			theirs[i], first = hadoopClaims(context.Background(), db, storetest.App(i), "sc-hadoop")
		}
		failed <- first
	}()
	go func() {
		var first error
		for i := 0; i < apps && first == nil; i++ {
			var home creel.SubclusterID
			home, _, first = s.Claim(context.Background(), storetest.App(i), "sc-creel", nil)
			ours[i] = string(home)
		}
		failed <- first
	}()
	must(t, <-failed)
	must(t, <-failed)
	if theirs != ours {
		t.Errorf("homes differ:\n%v\n%v", theirs, ours)
	}
}

func memberOf(t *testing.T, s *nodes.Store, id creel.SubclusterID) *subcluster.Status {
	t.Helper()
	r, err := s.Records(t.Context())
	must(t, err)
	if len(r.Problems) > 0 {
		t.Errorf("problems: %v", r.Problems)
	}
	m, _ := subcluster.Build(nil, r, r.Now).Member(id)
	return m
}

func hadoopsMembers(t *testing.T, s *nodes.Store, db *sql.DB) {
	ctx := t.Context()
	Exec(t, db, `CALL sp_registerSubCluster('sc-h', 'rm:8030', 'rm:8032', 'rm:8033', 'rm:8088', 'SC_NEW', 17, '', @rows)`,
		`CALL sp_subClusterHeartbeat('sc-h', 'SC_RUNNING', '{"clusterMetrics":{"totalNodes":3}}', @rows)`)
	m := memberOf(t, s, "sc-h")
	if m == nil || m.State != subcluster.StateActive || m.Epoch != 17 || m.Addresses.Client != "rm:8032" ||
		m.Load.Metrics.TotalNodes != 3 {
		t.Fatalf("Hadoop's member is %+v", m)
	}
	must(t, s.Drain(ctx, "sc-h", "new disks"))
	Exec(t, db, "UPDATE membership SET lastHeartBeat = NOW() - INTERVAL 16 MINUTE, state = 'SC_RUNNING'")
	if m := memberOf(t, s, "sc-h"); m.State != subcluster.StateDraining && m.State != subcluster.StateSuspect {
		t.Errorf("the drained member without a heartbeat is %v", m.State)
	}
	own := subcluster.Member{ID: "sc-1", Epoch: 17, Addresses: subcluster.Addresses{
		Client: "rm1:8032,rm2:8032", Scheduler: "rm1:8030", Admin: "rm1:8033", Web: "rm1:8088",
	}}
	must(t, s.Register(ctx, own)) // the table has each start time once
	load := `{"clusterMetrics":{"availableMB":9},"creel":{"queues":[{"queue":"root.a"}]}}`
	must(t, s.Heartbeat(ctx, subcluster.Heartbeat{ID: "sc-1", Epoch: 17, Load: []byte(load)}))
	const row = " FROM membership WHERE subClusterId = 'sc-1'"
	if is := value(t, db, "SELECT CONCAT_WS(' ', clientRMServiceAddress, state, capability)"+row); is !=
		`rm1:8032 SC_RUNNING {"clusterMetrics":{"availableMB":9}}` {
		t.Errorf("Hadoop reads creel's member as %s", is)
	}
	if age := value(t, db, "SELECT ABS(TIMESTAMPDIFF(SECOND, lastHeartBeat, NOW())) < 30"+row); age != "1" {
		t.Error("the heartbeat is not the server's time")
	}
	must(t, s.Deregister(ctx, "sc-1", 17))
	if is := value(t, db, "SELECT state"+row); is != "SC_UNREGISTERED" {
		t.Errorf("the member that left is %s", is)
	}
}

// replacedProcedures are those of Hadoop's that fail on MariaDB. The page for operators has others.
func replacedProcedures(t *testing.T, s *nodes.Store, db *sql.DB) {
	ctx := t.Context()
	for i, home := range []creel.SubclusterID{"sc-1", "sc-2", "sc-1"} {
		_, _, err := s.Claim(ctx, storetest.App(i), home, nil)
		must(t, err)
	}
	listed := func(most int, home string) (apps int) {
		t.Helper()
		rows, err := db.QueryContext(ctx, "CALL sp_getApplicationsHomeSubCluster(?, ?)", most, home)
		must(t, err)
		defer rows.Close()
		for ; rows.Next(); apps++ {
			var app, is string
			var at []byte
			must(t, rows.Scan(&app, &is, &at))
			if home != "" && is != home {
				t.Errorf("%s of %s is listed for %s", app, is, home)
			}
		}
		must(t, rows.Err())
		return apps
	}
	if all, some, first := listed(9, ""), listed(9, "sc-1"), listed(1, "sc-1"); all != 3 || some != 2 || first != 1 {
		t.Errorf("applications listed: %d of all members, %d of sc-1, %d at most 1", all, some, first)
	}
	reserve := func(home string) string {
		t.Helper()
		c, err := db.Conn(ctx)
		must(t, err)
		defer c.Close()
		_, err = c.ExecContext(ctx, "CALL sp_addReservationHomeSubCluster('reservation_1_1', ?, @home, @rows)", home)
		must(t, err)
		var is string
		must(t, c.QueryRowContext(ctx, "SELECT CONCAT(@home, ' ', @rows)").Scan(&is))
		return is
	}
	if first, second := reserve("sc-1"), reserve("sc-2"); first != "sc-1 1" || second != "sc-1 0" {
		t.Errorf("reservations of Hadoop's Router: %q, then %q", first, second)
	}
}

func hadoopsPolicies(t *testing.T, server *Server) {
	ctx := t.Context()
	database, db := server.Database(t)
	CreateHadoopStore(t, db)
	cfg, insert := configOf(server.Address, database), ""
	cfg.Replacing = func(context.Context) { Exec(t, db, insert) } // the second statement of Hadoop's procedure
	s := openStore(t, cfg)
	prepare(t, s)
	newest := func() subcluster.Policy {
		t.Helper()
		r, err := s.Records(ctx)
		must(t, err)
		if len(r.Policies) != 1 {
			t.Fatalf("policies are %v, problems %v", r.Policies, r.Problems)
		}
		return r.Policies[0]
	}
	set := func(call, weight, end string) string {
		return fmt.Sprintf(`%s ('root.default', '%s', '{"routerPolicyWeights":`+
			`{"entry":{"key":{"id":"sc-1"},"value":"%s"}},"headroomAlpha":"0.0"}'%s)`, call, weighted, weight, end)
	}
	Exec(t, db, set("CALL sp_setPolicyConfiguration", "1.0", ", @rows"))
	first := newest()
	if first.Queue != "root.default" || !strings.Contains(string(first.Document), weighted) {
		t.Errorf("Hadoop's policy is %+v", first)
	}
	insert = set("INSERT INTO policies VALUES", "0.5", "")
	Exec(t, db, "DELETE FROM policies WHERE queue = 'root.default'")
	second := newest()
	if len(second.Document) == 0 || second.Version == first.Version {
		t.Errorf("a policy that is being replaced is %+v", second)
	}
	if h, err := s.PolicyHistory(ctx, "root.default", 0, 10); err != nil || len(h) != 2 {
		t.Errorf("its versions are %v (%v)", h, err)
	}
	_, err := s.PutPolicy(ctx, statestore.PolicyWrite{
		Queue: "root.default", Expect: second.Version,
		Document: []byte(`{"type":"` + weighted + `","params":{"routerPolicyWeights":{"sc-2":0.25}}}`),
	})
	must(t, err)
	if is := value(t, db, "SELECT params FROM policies"); !strings.Contains(is, `"sc-2"`) {
		t.Errorf("Hadoop reads creel's policy as %s", is)
	}
}

func TestUnfitServersAreRejected(t *testing.T) {
	server := Start(t, relaxed)
	database, db := server.Database(t)
	cfg := configOf(server.Address, database)
	s := openStore(t, cfg)
	ctx := t.Context()
	findings, err := s.Health(ctx)
	if err != nil || len(findings) != 1 || findings[0].Name != statestore.LosesWrites {
		t.Errorf("a server that does not flush: %v, %v", findings, err)
	}
	Exec(t, db, "SET GLOBAL innodb_flush_log_at_trx_commit = 1")
	if findings, err := s.Health(ctx); err != nil || len(findings) != 0 {
		t.Errorf("a server that flushes: %v, %v", findings, err)
	}
	refused := func(what string, cfg mariadb.Config, want string) {
		t.Helper()
		err := openStore(t, cfg).CheckSchema(ctx)
		if !errors.Is(err, creel.ErrNotPermitted) || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "wrong-word") {
			t.Errorf("%s: %v", what, err)
		}
	}
	wrong := cfg
	wrong.Password = "wrong-word"
	refused("a wrong password", wrong, "refuses the user creel")
	wrong = cfg
	wrong.Database = "nowhere"
	refused("a missing database", wrong, "create the database")
	Exec(t, db, "ALTER TABLE policies ENGINE=MyISAM")
	refused("a table without transactions", cfg, "engine MyISAM")
	Exec(t, db, "ALTER TABLE policies ENGINE=InnoDB", "ALTER TABLE applicationsHomeSubCluster DROP createTime")
	refused("tables of Hadoop 3.3", cfg, "before 3.4")
	// a view that lets Hadoop's procedure find its table
	Exec(t, db, "CREATE VIEW applicationshomesubcluster AS SELECT * FROM applicationsHomeSubCluster")
	Exec(t, db, "SET GLOBAL max_allowed_packet = 1048576")
	refused("a server for small packets", cfg, "max_allowed_packet is 1048576")
	Exec(t, db, "SET GLOBAL max_allowed_packet = 16777216",
		"ALTER TABLE applicationsHomeSubCluster ADD createTime datetime NOT NULL")
	must(t, openStore(t, cfg).CheckSchema(ctx))
	_, _, err = s.Claim(ctx, storetest.App(1), "sc-1", nil)
	must(t, err)
	must(t, s.Register(ctx, subcluster.Member{ID: "sc-1", Epoch: 1, Addresses: subcluster.Addresses{
		Client: "rm1:8032", Scheduler: "rm1:8030", Admin: "rm1:8033", Web: "rm1:8088",
	}}))
	other := subcluster.Member{ID: "SC-1", Epoch: 2, Addresses: subcluster.Addresses{
		Client: "rm1:8032", Scheduler: "rm1:8030", Admin: "rm1:8033", Web: "rm1:8088",
	}}
	if err := s.Register(ctx, other); !errors.Is(err, creel.ErrInvalidRequest) || !strings.Contains(err.Error(), "case") {
		t.Errorf("a member whose name differs by case: %v", err)
	}
}

// A transaction that expects an older row changes nothing.
func TestChangedRowsAreConflicts(t *testing.T) {
	server := Start(t, relaxed)
	database, db := server.Database(t)
	s := openStore(t, configOf(server.Address, database))
	prepare(t, s)
	ctx := t.Context()
	_, _, err := s.Claim(ctx, storetest.App(1), "sc-1", nil)
	must(t, err)
	tx, err := db.BeginTx(ctx, nil)
	must(t, err)
	_, err = tx.ExecContext(ctx, "UPDATE applicationsHomeSubCluster SET homeSubCluster = 'sc-2'")
	must(t, err)
	moved := make(chan error, 1)
	go func() { // reads sc-1, and waits for the row
		_, err := s.Move(context.Background(), storetest.App(1), "sc-1", "sc-3", 0, nil)
		moved <- err
	}()
	// INNODB_TRX would never change here: the server renews that table only when nothing read it for 0.1 s.
	const waiting = "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS" +
		" WHERE VARIABLE_NAME = 'INNODB_ROW_LOCK_CURRENT_WAITS'"
	server.Await(t, "the move to wait", func() bool { return value(t, db, waiting) != "0" })
	must(t, tx.Commit())
	if err := <-moved; !errors.Is(err, creel.ErrConflict) {
		t.Errorf("a move from a home that changed meanwhile: %v", err)
	}
	if home, err := s.Home(ctx, storetest.App(1)); err != nil || home != "sc-2" {
		t.Errorf("the home is %s, %v", home, err)
	}
}

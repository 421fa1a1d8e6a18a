// SPDX-License-Identifier: Apache-2.0

package zookeeper

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm/hadoopstate"
	"github.com/creelrm/creel/subcluster/rm/zkstate"
)

// apps is the number of applications of a state: CREEL_APPS, or 300.
func apps(t *testing.T) int32 {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("CREEL_APPS"))
	if err != nil {
		return 300
	}
	return int32(n)
}

// The records of Hadoop's ResourceManager are written to a real server, in several transactions, and read again.
func TestServerHasHadoopsState(t *testing.T) {
	_, address := hadoop.StartZooKeeper(t)
	session, err := zkstate.Connect(t.Context(), zkstate.Servers{Addresses: []string{address}})
	must(t, err)
	defer session.Close()
	s := &hadoopstate.State{Epoch: 3, AMRM: token.KeyState{Current: token.Key{ID: 1, Secret: []byte("key")}}}
	for n := range apps(t) {
		id := creel.ApplicationID{ClusterTimestamp: 1_700_000_000_000, ID: n + 1}
		s.Apps = append(s.Apps, hadoopstate.App{
			ID: id,
			Data: &pb.ApplicationStateDataProto{
				User:                         new("ann"),
				ApplicationSubmissionContext: &pb.ApplicationSubmissionContextProto{ApplicationId: pb.FromApplicationID(id)},
			},
			Attempts: []*pb.ApplicationAttemptStateDataProto{
				{AttemptId: pb.FromAttemptID(creel.AttemptID{Application: id, Attempt: 1})},
			},
		})
	}
	began := time.Now()
	must(t, hadoopstate.Write(t.Context(), session, "/a/b", s))
	wrote := time.Now()
	got, err := hadoopstate.Read(t.Context(), session, "/a/b")
	must(t, err)
	t.Logf("%d applications were written in %v and read in %v", len(s.Apps),
		wrote.Sub(began).Round(time.Millisecond), time.Since(wrote).Round(time.Millisecond))
	if len(got.Apps) != len(s.Apps) || got.Epoch != 3 || string(got.AMRM.Current.Secret) != "key" {
		t.Fatalf("read %d applications, epoch %d", len(got.Apps), got.Epoch)
	}
	for i := range got.Apps {
		if a := &got.Apps[i]; a.ID != s.Apps[i].ID || len(a.Attempts) != 1 || a.Data.GetUser() != "ann" {
			t.Fatalf("read %s with %d attempts", a.ID, len(a.Attempts))
		}
	}
	if err := hadoopstate.Write(t.Context(), session, "/a/b", s); fmt.Sprint(err) != "/a/b/ZKRMStateRoot: "+hadoopstate.ErrOccupied.Error() {
		t.Errorf("over a state: %v", err)
	}
}

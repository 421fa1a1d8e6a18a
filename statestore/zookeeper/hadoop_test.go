// SPDX-License-Identifier: Apache-2.0

package zookeeper

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/nodes"
	"github.com/creelrm/creel/statestore/storetest"
	"github.com/creelrm/creel/subcluster"
)

const root = "/federationstore"

func encoded(t *testing.T, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	must(t, err)
	return b
}

// read parses a record of Hadoop's.
func (s *fakeServer) read(t *testing.T, path string, m proto.Message) {
	t.Helper()
	data, _, err := s.Get(t.Context(), path)
	must(t, err)
	must(t, proto.Unmarshal(data, m))
}

func (s *fakeServer) has(t *testing.T, path string) bool {
	t.Helper()
	_, _, err := s.Get(t.Context(), path)
	return err == nil
}

// both returns a server, a store on it, and a home in Hadoop's record.
func both(t *testing.T) (*fakeServer, *nodes.Store, func(app creel.ApplicationID, home string)) {
	t.Helper()
	server := newFake()
	store := open(t, server)
	must(t, store.CheckSchema(t.Context()))
	return server, store, func(app creel.ApplicationID, home string) {
		t.Helper()
		server.write(t, root+"/applications/"+app.String(), encoded(t, &yarnpb.ApplicationHomeSubClusterProto{
			HomeSubCluster: &yarnpb.SubClusterIdProto{Id: &home}, CreateTime: proto.Int64(5),
		}))
	}
}

func homeIs(t *testing.T, s *nodes.Store, app creel.ApplicationID, want creel.SubclusterID) {
	t.Helper()
	home, err := s.Home(t.Context(), app)
	if want == "" && errors.Is(err, creel.ErrApplicationNotFound) {
		return
	}
	if err != nil || home != want {
		t.Errorf("the home is %q (%v), want %q", home, err, want)
	}
}

func TestHadoopsHomesAreClaims(t *testing.T) {
	server, s, write := both(t)
	ctx := t.Context()
	app := storetest.App(1)
	write(app, "sc-1")
	homeIs(t, s, app, "sc-1")
	home, number, err := s.Claim(ctx, app, "sc-2", []byte("why"))
	if err != nil || home != "sc-1" || number != 2 {
		t.Errorf("a claim after Hadoop's is answered %s, %d, %v", home, number, err)
	}
	must(t, s.Accept(ctx, app, "sc-1", 7))
	write(app, "sc-3") // Hadoop's Router tries another member
	if home, number, err = s.Claim(ctx, app, "sc-2", nil); err != nil || home != "sc-3" || number != 4 {
		t.Errorf("a claim after Hadoop's move is answered %s, %d, %v", home, number, err)
	}
	if life, err := s.AcceptedIn(ctx, app); err != nil || life != 0 {
		t.Errorf("the home of Hadoop's move accepted it in life %d (%v)", life, err)
	}
	if _, err := s.Move(ctx, app, "sc-3", "sc-4", 4, nil); err != nil {
		t.Fatal(err)
	}
	var record yarnpb.ApplicationHomeSubClusterProto
	server.read(t, root+"/applications/"+app.String(), &record)
	if record.GetHomeSubCluster().GetId() != "sc-4" || record.GetCreateTime() != 5 {
		t.Errorf("Hadoop's record is %v", &record)
	}
	if list, _, err := s.HomesAt(ctx, "sc-4", "", 10); err != nil || len(list) != 1 || list[0].ID != app {
		t.Errorf("the listing is %v (%v)", list, err)
	}
}

func TestHomeThatHadoopDeletedIsGone(t *testing.T) {
	server, s, write := both(t)
	ctx := t.Context()
	app := storetest.App(1)
	_, _, err := s.Claim(ctx, app, "sc-1", nil)
	must(t, err)
	_, err = s.SaveUAMRecord(ctx, statestore.UAMRecord{Attempt: storetest.Attempt(1, 1), Home: "sc-1"})
	must(t, err)
	_, err = server.Multi(ctx, &zk.DeleteRequest{Path: root + "/applications/" + app.String(), Version: -1})
	must(t, err)
	homeIs(t, s, app, "")
	home, number, err := s.Claim(ctx, app, "sc-2", nil)
	if err != nil || home != "sc-2" || number != 1 {
		t.Errorf("a claim after the deletion is answered %s, %d, %v", home, number, err)
	}
	if list, err := s.UAMRecordsOf(ctx, app); err != nil || len(list) != 0 {
		t.Errorf("UAM records of the deleted application are %v (%v)", list, err)
	}
	must(t, s.Accept(ctx, app, "sc-2", 9))
	_, err = server.Multi(ctx, &zk.DeleteRequest{Path: root + "/applications/" + app.String(), Version: -1})
	must(t, err)
	write(app, "sc-2") // the same home, claimed again
	if life, err := s.AcceptedIn(ctx, app); err != nil || life != 0 {
		t.Errorf("a home that was claimed again accepted it in life %d (%v)", life, err)
	}
}

// Hadoop's Router creates a node, and writes the home into it afterwards.
func TestClaimWaitsForAHomeThatIsBeingWritten(t *testing.T) {
	server, s, write := both(t)
	app := storetest.App(1)
	server.write(t, root+"/applications/"+app.String(), nil)
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if home, _, err := s.Claim(short, app, "sc-2", nil); !errors.Is(err, creel.ErrUnavailable) {
		t.Errorf("a claim of a home that is being written is answered %q, %v", home, err)
	}
	done := make(chan creel.SubclusterID)
	go func() {
		home, _, err := s.Claim(t.Context(), app, "sc-2", nil)
		if err != nil {
			t.Error(err)
		}
		done <- home
	}()
	write(app, "sc-1")
	if home := <-done; home != "sc-1" {
		t.Errorf("the home is %q", home)
	}
	other := storetest.App(2)
	server.write(t, root+"/applications/"+other.String(), nil)
	server.advance(10 * time.Second)
	if home, _, err := s.Claim(t.Context(), other, "sc-2", nil); err != nil || home != "sc-2" {
		t.Errorf("a home that was never written is %q (%v)", home, err)
	}
}

func TestHomesOfHadoop33(t *testing.T) {
	server, s, _ := both(t)
	ctx := t.Context()
	app := storetest.App(1)
	path := root + "/applications/" + app.String()
	server.write(t, path, encoded(t, &yarnpb.SubClusterIdProto{Id: proto.String("sc-1")}))
	homeIs(t, s, app, "sc-1")
	_, err := s.Move(ctx, app, "sc-1", "sc-2", 0, nil)
	must(t, err)
	var id yarnpb.SubClusterIdProto
	if server.read(t, path, &id); id.GetId() != "sc-2" {
		t.Errorf("the moved record is %v", &id)
	}
	server.write(t, root+"/reservation/reservation_5_0001", encoded(t, &yarnpb.SubClusterIdProto{Id: proto.String("sc-1")}))
	booking := creel.ReservationID{ClusterTimestamp: 5, ID: 1}
	home, number, err := s.Reservations().Claim(ctx, booking, "sc-2", nil)
	if err != nil || home != "sc-1" || number == 1 {
		t.Errorf("a reservation of Hadoop's is answered %q, %d, %v", home, number, err)
	}
}

func hadoopInfoOf(state yarnpb.SubClusterStateProto) *yarnpb.SubClusterInfoProto {
	return &yarnpb.SubClusterInfoProto{
		SubClusterId:       &yarnpb.SubClusterIdProto{Id: proto.String("sc-h")},
		AMRMServiceAddress: proto.String("rm:8030"), ClientRMServiceAddress: proto.String("rm:8032"),
		RMAdminServiceAddress: proto.String("rm:8033"), RMWebServiceAddress: proto.String("rm:8088"),
		LastHeartBeat: proto.Int64(1), State: state.Enum(), LastStartTime: proto.Int64(17),
		Capability: proto.String(`{"clusterMetrics":{"totalNodes":3}}`),
	}
}

func statusOf(t *testing.T, s *nodes.Store, id creel.SubclusterID) *subcluster.Status {
	t.Helper()
	r, err := s.Records(t.Context())
	must(t, err)
	m, _ := subcluster.Build(nil, r, r.Now).Member(id)
	return m
}

func TestMembersOfHadoop(t *testing.T) {
	server, s, _ := both(t)
	ctx := t.Context()
	state := func(want subcluster.State) {
		t.Helper()
		m := statusOf(t, s, "sc-h")
		if m == nil || m.State != want {
			t.Fatalf("the member is %+v, want it %v", m, want)
		}
	}
	path := root + "/memberships/sc-h"
	server.write(t, path, encoded(t, hadoopInfoOf(yarnpb.SubClusterStateProto_SC_NEW)))
	state(subcluster.StateDraining)
	server.write(t, path, encoded(t, hadoopInfoOf(yarnpb.SubClusterStateProto_SC_RUNNING)))
	state(subcluster.StateActive)
	m := statusOf(t, s, "sc-h")
	if !m.ByAgent() || m.Epoch != 17 || m.Addresses.Client != "rm:8032" || m.Load.Metrics.TotalNodes != 3 {
		t.Errorf("the member is %+v", m)
	}
	if _, err := s.NextEpoch(ctx, "sc-h", 0, false); !errors.Is(err, creel.ErrConflict) {
		t.Errorf("the name of a live member is given away: %v", err)
	}
	must(t, s.Drain(ctx, "sc-h", "new disks"))
	state(subcluster.StateDraining)
	server.write(t, path, encoded(t, hadoopInfoOf(yarnpb.SubClusterStateProto_SC_RUNNING)))
	state(subcluster.StateDraining) // its heartbeat does not end the drain
	must(t, s.Drain(ctx, "sc-h", ""))
	state(subcluster.StateActive)
	server.advance(16 * time.Minute)
	state(subcluster.StateSuspect)
	server.write(t, path, encoded(t, hadoopInfoOf(yarnpb.SubClusterStateProto_SC_UNREGISTERED)))
	state(subcluster.StateDeregistered)
	must(t, s.RemoveMember(ctx, "sc-h"))
	if m := statusOf(t, s, "sc-h"); m != nil || server.has(t, path) {
		t.Errorf("the removed member is %+v", m)
	}
}

// A member moves back to Hadoop's ResourceManager, which registers at once and does not ask for a free name.
func TestHadoopReplacesSilentMember(t *testing.T) {
	server, s, _ := both(t)
	ctx := t.Context()
	creels := subcluster.Member{ID: "sc-h", Epoch: 4, Addresses: subcluster.Addresses{Client: "creel:8032"}}
	must(t, s.Register(ctx, creels))
	must(t, s.Drain(ctx, "sc-h", "new disks"))
	is := func(epoch int64, state subcluster.State) {
		t.Helper()
		if m := statusOf(t, s, "sc-h"); m == nil || m.Epoch != epoch || m.State != state {
			t.Errorf("the member is %+v, want epoch %d, %v", m, epoch, state)
		}
	}
	hadoops := func() {
		t.Helper()
		info := hadoopInfoOf(yarnpb.SubClusterStateProto_SC_RUNNING)
		server.write(t, root+"/memberships/sc-h", encoded(t, info))
	}
	server.advance(time.Second)
	hadoops()
	is(4, subcluster.StateDraining) // its lease holds
	must(t, s.Heartbeat(ctx, subcluster.Heartbeat{ID: "sc-h", Epoch: 4}))
	is(4, subcluster.StateDraining)
	server.advance(subcluster.DefaultLease + time.Second)
	is(4, subcluster.StateSuspect) // its own heartbeat is the last of both
	hadoops()
	is(17, subcluster.StateDraining)
	if err := s.Heartbeat(ctx, subcluster.Heartbeat{ID: "sc-h", Epoch: 4}); !errors.Is(err, creel.ErrStale) {
		t.Errorf("the former member's heartbeat is answered %v", err)
	}
	if err := s.Register(ctx, creels); err == nil {
		t.Error("the former member registers with its old epoch")
	}
	is(17, subcluster.StateDraining)
	must(t, s.Drain(ctx, "sc-h", ""))
	is(17, subcluster.StateActive)
	if _, err := s.NextEpoch(ctx, "sc-h", 4, false); !errors.Is(err, creel.ErrConflict) {
		t.Errorf("the name of a live member is given away: %v", err)
	}
	server.advance(16 * time.Minute)
	epoch, err := s.NextEpoch(ctx, "sc-h", 4, false)
	must(t, err)
	creels.Epoch = epoch
	must(t, s.Register(ctx, creels))
	is(epoch, subcluster.StateActive)
}

func TestHadoopReadsCreelsMembers(t *testing.T) {
	server, s, _ := both(t)
	ctx := t.Context()
	must(t, s.Register(ctx, subcluster.Member{ID: "sc-1", Epoch: 4, Addresses: subcluster.Addresses{
		Client: "rm1:8032,rm2:8032", Scheduler: "rm1:8030", Admin: "rm1:8033", Web: "rm1:8088",
	}}))
	is := func(want yarnpb.SubClusterStateProto) {
		t.Helper()
		var info yarnpb.SubClusterInfoProto
		if server.read(t, root+"/memberships/sc-1", &info); info.GetState() != want {
			t.Errorf("Hadoop's record is %v, want %v", &info, want)
		}
	}
	is(yarnpb.SubClusterStateProto_SC_RUNNING)
	server.advance(time.Second)
	load := `{"clusterMetrics":{"availableMB":9},"creel":{"queues":[{"queue":"root.a"}]}}`
	must(t, s.Heartbeat(ctx, subcluster.Heartbeat{ID: "sc-1", Epoch: 4, Load: []byte(load)}))
	var info yarnpb.SubClusterInfoProto
	server.read(t, root+"/memberships/sc-1", &info)
	if info.GetClientRMServiceAddress() != "rm1:8032" || info.GetLastStartTime() != 4 ||
		info.GetLastHeartBeat() != server.clock().UnixMilli() ||
		info.GetCapability() != `{"clusterMetrics":{"availableMB":9}}` {
		t.Errorf("Hadoop's record is %v", &info)
	}
	must(t, s.Drain(ctx, "sc-1", "x"))
	is(yarnpb.SubClusterStateProto_SC_DECOMMISSIONING)
	must(t, s.Deregister(ctx, "sc-1", 4))
	is(yarnpb.SubClusterStateProto_SC_UNREGISTERED)
	must(t, s.RemoveMember(ctx, "sc-1"))
	if server.has(t, root+"/memberships/sc-1") {
		t.Error("Hadoop's record of a removed member is there")
	}
}

const weighted = "org.apache.hadoop.yarn.server.federation.policies.manager.WeightedLocalityPolicyManager"

func TestPoliciesOfHadoopAreVersions(t *testing.T) {
	server, s, _ := both(t)
	ctx := t.Context()
	newest := func() subcluster.Policy {
		t.Helper()
		r, err := s.Records(ctx)
		must(t, err)
		if len(r.Policies) != 1 {
			t.Fatalf("policies are %v, problems %v", r.Policies, r.Problems)
		}
		return r.Policies[0]
	}
	const params = `{"routerPolicyWeights":{"entry":{"key":{"id":"sc-1"},"value":"1.0"}},"headroomAlpha":"0.0"}`
	server.write(t, root+"/policies/default", encoded(t, &yarnpb.SubClusterPolicyConfigurationProto{
		Queue: proto.String("default"), Type: proto.String(weighted), Params: []byte(params),
	}))
	first := newest()
	if first.Queue != "root.default" || first.Author != "hadoop" || !strings.Contains(string(first.Document), weighted) {
		t.Errorf("Hadoop's policy is %+v", first)
	}
	if again := newest(); again.Version != first.Version {
		t.Errorf("version %d became %d without a change", first.Version, again.Version)
	}
	made, err := s.PutPolicy(ctx, statestore.PolicyWrite{
		Queue: "root.default", Expect: first.Version, Author: "ann",
		Document: []byte(`{"type":"` + weighted + `","params":{"routerPolicyWeights":{"sc-2":0.25}}}`),
	})
	must(t, err)
	var record yarnpb.SubClusterPolicyConfigurationProto
	server.read(t, root+"/policies/default", &record)
	want := `{"amrmPolicyWeights":{"entry":[]},"headroomAlpha":"0.0","routerPolicyWeights":` +
		`{"entry":[{"key":{"id":"sc-2"},"value":"0.25"}]}}`
	if record.GetType() != weighted || string(record.Params) != want {
		t.Errorf("Hadoop's record is %v", &record)
	}
	if is := newest(); is.Version != made.Version || is.Author != "ann" {
		t.Errorf("creel's own policy became %+v", is)
	}
	own, err := s.PutPolicy(ctx, statestore.PolicyWrite{
		Queue: "root.default", Expect: made.Version, Document: []byte(`{"home":{"policy":"balanced"}}`),
	})
	must(t, err)
	if server.has(t, root+"/policies/default") {
		t.Error("Hadoop's record of a policy that it cannot have is there")
	}
	if is := newest(); is.Version != own.Version {
		t.Errorf("creel's own policy became %+v", is)
	}
}

func TestPolicyThatHadoopDeletedIsRemoved(t *testing.T) {
	server, s, _ := both(t)
	ctx := t.Context()
	made, err := s.PutPolicy(ctx, statestore.PolicyWrite{Queue: "*", Document: []byte(`{"type":"` + weighted + `"}`)})
	must(t, err)
	_, err = server.Multi(ctx, &zk.DeleteRequest{Path: root + "/policies/*", Version: -1})
	must(t, err)
	r, err := s.Records(ctx)
	must(t, err)
	if len(r.Policies) != 1 || len(r.Policies[0].Document) != 0 || r.Policies[0].Version <= made.Version {
		t.Errorf("policies are %+v", r.Policies)
	}
	server.write(t, root+"/policies/*", encoded(t, &yarnpb.SubClusterPolicyConfigurationProto{
		Queue: proto.String("*"), Type: proto.String("bad"), Params: []byte{0xff},
	}))
	if r, err = s.Records(ctx); err != nil || len(r.Policies) != 1 {
		t.Errorf("after a policy that cannot be read: %+v, %v", r, err)
	}
}

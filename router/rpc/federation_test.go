// SPDX-License-Identifier: Apache-2.0

package rpc_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/router/routertest"
)

const weightedLocality = "org.apache.hadoop.yarn.server.federation.policies.manager.WeightedLocalityPolicyManager"

// The seven calls of yarn routeradmin, by an administrator and by another user.
func TestTheFederationsRecordsByHadoopsCalls(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 2})
	ctx := t.Context()
	root, alice := f.AdminOf(f.Routers[0], "root"), f.AdminOf(f.Routers[0], "alice")

	members := must(root.GetFederationSubClusters(ctx, &pb.GetSubClustersRequestProto{}))(t).GetSubClusters()
	if len(members) != 2 || members[0].GetSubClusterState() != "SC_RUNNING" || members[1].GetSubClusterId() != "sc-b" {
		t.Errorf("subclusters: %v", members)
	}
	all := must(root.DeregisterSubCluster(ctx, &pb.DeregisterSubClusterRequestProto{}))(t)
	if n := len(all.GetDeregisterSubClusters()); n != 0 {
		t.Errorf("all that are silent: %d of a federation in which everybody is well", n)
	}
	one := must(root.DeregisterSubCluster(ctx, &pb.DeregisterSubClusterRequestProto{SubClusterId: proto.String("sc-a")}))(t)
	if d := one.GetDeregisterSubClusters(); len(d) != 1 || d[0].GetDeregisterState() != "FAILED" ||
		!strings.Contains(d[0].GetInformation(), "last heartbeat") {
		t.Errorf("one that is well: %v", d)
	}
	for _, id := range []string{"nowhere"} {
		if _, err := root.DeregisterSubCluster(ctx, &pb.DeregisterSubClusterRequestProto{SubClusterId: &id}); err == nil {
			t.Errorf("%s is deregistered", id)
		}
	}

	weights := func(queue, router, manager string) *pb.FederationQueueWeightProto {
		return &pb.FederationQueueWeightProto{
			Queue: &queue, RouterWeight: &router, AmrmWeight: &router, HeadRoomAlpha: proto.String("1.0"),
			PolicyManagerClassName: &manager,
		}
	}
	save := func(queue, router, manager string) *pb.SaveFederationQueuePolicyRequestProto {
		return &pb.SaveFederationQueuePolicyRequestProto{
			Queue: &queue, FederationQueueWeight: weights(queue, router, manager), PolicyManagerClassName: &manager,
		}
	}
	if _, err := alice.SaveFederationQueuePolicy(ctx, save("root.other", "sc-a:1", weightedLocality)); err == nil ||
		!strings.Contains(err.Error(), "yarn.admin.acl") {
		t.Errorf("alice saves a policy: %v", err)
	}
	for _, bad := range []*pb.SaveFederationQueuePolicyRequestProto{
		save("root.other", "sc-a", weightedLocality),
		save("root.other", "nowhere:1", weightedLocality),
		save("root.other", "sc-a:1", "UniformBroadcastPolicyManager"),
	} {
		if m, err := root.SaveFederationQueuePolicy(ctx, bad); err == nil {
			t.Errorf("saved: %v", m)
		}
	}
	said := must(root.SaveFederationQueuePolicy(ctx, save("root.other", "sc-a:0.7,sc-b:0.3", weightedLocality)))(t)
	if !strings.HasPrefix(said.GetMessage(), "saved: root.other is at version ") {
		t.Errorf("save: %s", said.GetMessage())
	}
	if _, err := root.BatchSaveFederationQueuePolicies(ctx, &pb.BatchSaveFederationQueuePoliciesRequestProto{
		FederationQueueWeights: []*pb.FederationQueueWeightProto{
			weights("root.default", "sc-b:1", weightedLocality), weights("other", "sc-b:", weightedLocality),
		},
	}); err == nil {
		t.Error("a batch with one that is wrong is saved")
	}
	must(root.BatchSaveFederationQueuePolicies(ctx, &pb.BatchSaveFederationQueuePoliciesRequestProto{
		FederationQueueWeights: []*pb.FederationQueueWeightProto{
			weights("root.default", "sc-b:1", weightedLocality), weights("other", "sc-b:1", weightedLocality),
		},
	}))(t)
	query := &pb.QueryFederationQueuePoliciesRequestProto{PageSize: proto.Int32(1), CurrentPage: proto.Int32(2)}
	page := must(root.ListFederationQueuePolicies(ctx, query))(t)
	if w := page.GetFederationQueueWeights(); page.GetTotalPage() != 2 || page.GetTotalSize() != 2 || len(w) != 1 ||
		w[0].GetQueue() != "root.other" || w[0].GetRouterWeight() != "sc-b:1" {
		t.Errorf("the second page: %v", page)
	}
	must(root.DeleteFederationPoliciesByQueues(ctx,
		&pb.DeleteFederationQueuePoliciesRequestProto{Queues: []string{"root.other"}}))(t)
	rest := must(root.ListFederationQueuePolicies(ctx, &pb.QueryFederationQueuePoliciesRequestProto{}))(t)
	if rest.GetTotalSize() != 1 {
		t.Errorf("after one is removed: %v", rest)
	}

	id, home := submit(t, f, f.Routers[0], "lives")
	forget := &pb.DeleteFederationApplicationRequestProto{Application: proto.String(id.String())}
	if m, err := root.DeleteFederationApplication(ctx, forget); err == nil || !strings.Contains(err.Error(), string(home.ID)) {
		t.Errorf("the record of an application that lives is deleted: %v, %v", m, err)
	}
}

// The policies of a yarn routeradmin call are checked as a whole before the first is written or removed, and the
// errors are readable.
func TestHadoopPolicyCallsAreCheckedAsWhole(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 2})
	ctx := t.Context()
	root := f.AdminOf(f.Routers[0], "root")
	manager := weightedLocality
	weights := func(queue, router, amrm string) *pb.FederationQueueWeightProto {
		return &pb.FederationQueueWeightProto{
			Queue: &queue, RouterWeight: &router, AmrmWeight: &amrm, HeadRoomAlpha: proto.String("1.0"),
			PolicyManagerClassName: &manager,
		}
	}
	save := func(list ...*pb.FederationQueueWeightProto) error {
		_, err := root.BatchSaveFederationQueuePolicies(ctx,
			&pb.BatchSaveFederationQueuePoliciesRequestProto{FederationQueueWeights: list})
		return err
	}
	remove := func(queues ...string) error {
		_, err := root.DeleteFederationPoliciesByQueues(ctx, &pb.DeleteFederationQueuePoliciesRequestProto{Queues: queues})
		return err
	}
	list := func(queues ...string) int32 {
		l := must(root.ListFederationQueuePolicies(ctx, &pb.QueryFederationQueuePoliciesRequestProto{Queues: queues}))(t)
		return l.GetTotalSize()
	}
	refused := func(what string, err error, words string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), "json") {
			t.Errorf("%s: %v, want one with %q", what, err, words)
		}
	}
	good := weights("root.default", "sc-a:1", "sc-a:1")
	refused("a batch with a member that there is not", save(good, weights("other", "nowhere:1", "sc-a:1")), "nowhere")
	refused("no number", save(good, weights("other", "sc-a:NaN", "sc-a:1")), "sc-a:NaN")
	refused("without end", save(good, weights("other", "sc-a:1", "sc-a:Inf")), "sc-a:Inf")
	refused("below zero", save(good, weights("other", "sc-a:-1", "sc-a:1")), "sc-a:-1")
	refused("twice", save(good, weights("other", "sc-a:0.5,sc-a:0.7", "sc-a:1")), "sc-a twice")
	refused("no weights", save(good, weights("other", " ", "sc-a:1")), "its router weights are missing")
	refused("no weights of AMRM", save(good, weights("other", "sc-a:1", "")), "its AMRM weights are missing")
	refused("an empty batch", save(), "names no queue")
	if n := list(); n != 0 {
		t.Fatalf("%d policies are saved of batches that were refused", n)
	}
	if err := save(good, weights("other", "sc-b:1", "sc-b:1")); err != nil {
		t.Fatal(err)
	}
	if n := list("other"); n != 1 {
		t.Errorf("%d policies of a queue that is named without its root", n)
	}
	refused("one has none", remove("root.default", "root.nosuch"), "root.nosuch has no policy of its own")
	refused("a name of no queue", remove("root.default", "bad name!!"), "bad name!!")
	refused("none is named", remove(), "names no queue")
	if n := list(); n != 2 {
		t.Errorf("%d policies are left of two, though no removal was good", n)
	}
	if err := remove("default", "root.other"); err != nil {
		t.Error(err)
	}
	refused("removed before", remove("root.other"), "has no policy of its own")
}

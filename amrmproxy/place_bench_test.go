// SPDX-License-Identifier: Apache-2.0

package amrmproxy_test

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/amrmproxy"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/subcluster"
)

// signer signs tokens as amrmproxy/keys does.
type signer struct{ nm, container token.Key }

func (s signer) Issues(creel.SubclusterID) (amrmproxy.Signing, bool) {
	return amrmproxy.Signing{NodeKey: s.nm.ID, Epoch: 1}, true
}

func (s signer) Container(_ creel.SubclusterID, c *amrmproxy.PlacedContainer) (*yarnpb.TokenProto, bool) {
	return token.NewMac(s.container).Container(token.Container{
		ID: c.ID, Node: c.Node, User: c.User, Resource: c.Resource, Expires: c.Expires, RMIdentifier: 1,
		Priority: c.Priority, Created: c.Created, Execution: creel.Opportunistic,
	}, c.Node.String()).Proto(), true
}

func (s signer) Node(_ creel.SubclusterID, c *amrmproxy.PlacedContainer) (*yarnpb.TokenProto, bool) {
	return token.NewMac(s.nm).NM(token.NM{Attempt: c.ID.Attempt, Node: c.Node, User: c.User}, c.Node.String()).Proto(), true
}

// BenchmarkPlaceHundred is the processor time of a session for an allocate in which it places 100 opportunistic
// containers, one on each node of the member's list: from the AM's call over the report to the member to the answer.
// Encoding is not included.
func BenchmarkPlaceHundred(b *testing.B) {
	const n = 100
	nodes := make([]*yarnpb.RemoteNodeProto, n)
	for i := range nodes {
		at := creel.NodeID{Host: fmt.Sprintf("worker%03d.example", i), Port: 8041}
		nodes[i] = &yarnpb.RemoteNodeProto{
			NodeId: yarnpb.FromNodeID(at), HttpAddress: proto.String(at.Host + ":8042"), RackName: proto.String("/rack"),
		}
	}
	most := creel.NewResource(8192, 8)
	terms := &yarnpb.RegisterDistributedSchedulingAMResponseProto{
		MinContainerResource: yarnpb.FromResource(creel.NewResource(1024, 1)),
		MaxContainerResource: yarnpb.FromResource(most), ContainerTokenExpiryInterval: proto.Int32(600_000),
		ContainerIdStart: proto.Int64(1 << 41), NodesForScheduling: nodes,
	}
	var ended []*yarnpb.ContainerStatusProto
	answer := func(a amrmproxy.Send) *amrmproxy.Answered {
		out := amrmproxy.Answer(a)
		if out.Register != nil {
			out.Terms = terms
			return out
		}
		out.Loaded, out.Allocate.CompletedContainerStatuses, ended = nodes, ended, nil
		return out
	}
	now := time.Unix(1000, 0)
	s, err := amrmproxy.NewSession(amrmproxy.Options{
		Attempt: creel.AttemptID{Application: creel.ApplicationID{ClusterTimestamp: 7, ID: 1}, Attempt: 1},
		Home:    "sc-a", User: "ann", Rand: rand.New(rand.NewPCG(1, 2)),
		Issuer: signer{token.Key{ID: 1, Secret: make([]byte, 20)}, token.Key{ID: 2, Secret: make([]byte, 20)}},
	})
	if err != nil {
		b.Fatal(err)
	}
	policy, err := policies.Parse([]byte(`{"split":{"policy":"home"}}`))
	if err != nil {
		b.Fatal(err)
	}
	home := free("sc-a", 1<<20)
	step := func(e amrmproxy.Event) []amrmproxy.Reply { return amrmproxy.Settle(b, s, now, e, answer) }
	step(amrmproxy.Saw{View: subcluster.NewView(now, []subcluster.Status{home}, nil), Policy: policy})
	calls, response := uint64(1), int32(0)
	step(amrmproxy.FromAM{Call: calls, Register: &yarnpb.RegisterApplicationMasterRequestProto{}})
	allocate := func(r *yarnpb.AllocateRequestProto) *yarnpb.AllocateResponseProto {
		calls++
		now = now.Add(time.Second)
		r.ResponseId = proto.Int32(response)
		for _, reply := range step(amrmproxy.FromAM{Call: calls, Allocate: r}) {
			if reply.Call == calls && reply.Allocate != nil {
				response = reply.Allocate.GetResponseId()
				return reply.Allocate
			}
		}
		b.Fatal("an allocate has no answer")
		return nil
	}
	ask := &yarnpb.ResourceRequestProto{
		Priority: yarnpb.FromPriority(20), ResourceName: proto.String("*"), RelaxLocality: proto.Bool(true),
		NumContainers: proto.Int32(n), Capability: yarnpb.FromResource(creel.NewResource(1024, 1)),
		ExecutionTypeRequest: &yarnpb.ExecutionTypeRequestProto{
			ExecutionType: yarnpb.ExecutionTypeProto_OPPORTUNISTIC.Enum(),
		},
	}
	spent := time.Duration(0)
	for b.Loop() {
		before := processorTime(b)
		granted := allocate(&yarnpb.AllocateRequestProto{Ask: []*yarnpb.ResourceRequestProto{ask}}).AllocatedContainers
		b.StopTimer()
		spent += processorTime(b) - before
		if len(granted) != n {
			b.Fatalf("%d containers are placed, want %d", len(granted), n)
		}
		release := &yarnpb.AllocateRequestProto{}
		for _, c := range granted {
			release.Release = append(release.Release, c.Id)
			ended = append(ended, &yarnpb.ContainerStatusProto{
				ContainerId: c.Id, State: yarnpb.ContainerStateProto_C_COMPLETE.Enum(), ExitStatus: proto.Int32(-100),
			})
		}
		allocate(release)
		b.StartTimer()
	}
	b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N)/1000, "cpu-us/op")
}

// processorTime is the time that this process has used, with its garbage collection.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// SPDX-License-Identifier: Apache-2.0

package amrmproxy_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/amrmproxy"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/subcluster"
)

// An AM at home in sc-a asks for ten containers. The policy sends seven asks to its home and three to sc-b, where a
// UAM is started for them; the AM receives the grants of both in its next answers. The caller of a session performs
// its actions and passes it their results: here by hand.
func ExampleSession() {
	now := time.Unix(0, 0)
	session, err := amrmproxy.NewSession(amrmproxy.Options{
		Attempt: creel.AttemptID{Application: creel.ApplicationID{ClusterTimestamp: 7, ID: 1}, Attempt: 1},
		Home:    "sc-a",
		User:    "ann",
		Rand:    rand.New(rand.NewPCG(1, 2)),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	step := func(e amrmproxy.Event) {
		for _, a := range session.Step(now, e) {
			fmt.Println("  " + show(a))
		}
	}

	// The federation's members, and a policy that splits asks by free resources.
	policy, err := policies.Parse([]byte(`{"split":{"policy":"locality","headroomAlpha":1}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	step(amrmproxy.Saw{View: subcluster.NewView(now, []subcluster.Status{free("sc-a", 70), free("sc-b", 30)}, nil),
		Policy: policy})

	fmt.Println("the AM registers:")
	step(amrmproxy.FromAM{Call: 1, Register: &yarnpb.RegisterApplicationMasterRequestProto{}})
	step(amrmproxy.Answered{Member: "sc-a", Seq: 1, Register: &yarnpb.RegisterApplicationMasterResponseProto{
		Queue: proto.String("root.a"),
	}})
	step(amrmproxy.Saved{Number: 1})

	fmt.Println("it asks for ten containers:")
	step(amrmproxy.FromAM{Call: 2, Allocate: allocate(0, 10)})
	step(amrmproxy.Saved{Number: 2})
	fmt.Println("sc-b has the UAM:")
	step(amrmproxy.Launched{Member: "sc-b", Attempt: session.Attempt(), Token: &yarnpb.TokenProto{}})
	step(amrmproxy.Saved{Number: 3})
	step(amrmproxy.Answered{Member: "sc-b", Seq: 1, Register: &yarnpb.RegisterApplicationMasterResponseProto{}})

	fmt.Println("both grant:")
	step(amrmproxy.Answered{Member: "sc-b", Seq: 2, Allocate: granted(1, 2, 3)})
	step(amrmproxy.Answered{Member: "sc-a", Seq: 2, Allocate: granted(1, 1, 7)})

	// Output:
	// the AM registers:
	//   register at sc-a
	//   save
	//   answer call 1: registered in root.a
	// it asks for ten containers:
	//   save
	//   ask sc-a for 7
	//   start a UAM in sc-b
	// sc-b has the UAM:
	//   save
	//   register at sc-b
	//   ask sc-b for 3
	// both grant:
	//   answer call 2: 10 containers
}

// show is an action in a few words.
func show(a amrmproxy.Action) string {
	switch a := a.(type) {
	case amrmproxy.Save:
		return "save"
	case amrmproxy.Launch:
		return fmt.Sprintf("start a UAM in %s", a.Member)
	case amrmproxy.Send:
		if a.Allocate == nil {
			return fmt.Sprintf("register at %s", a.Member)
		}
		wanted := int32(0)
		for _, ask := range a.Allocate.Ask {
			wanted += ask.GetNumContainers()
		}
		return fmt.Sprintf("ask %s for %d", a.Member, wanted)
	case amrmproxy.Reply:
		if a.Register != nil {
			return fmt.Sprintf("answer call %d: registered in %s", a.Call, a.Register.GetQueue())
		}
		return fmt.Sprintf("answer call %d: %d containers", a.Call, len(a.Allocate.GetAllocatedContainers()))
	}
	return fmt.Sprintf("%T", a)
}

// free is a live member with room for n containers of 1 GiB and a vcore.
func free(id creel.SubclusterID, n int64) subcluster.Status {
	return subcluster.Status{
		Member: subcluster.Member{ID: id},
		State:  subcluster.StateActive,
		Load: subcluster.Load{Metrics: subcluster.ClusterMetrics{
			AvailableMB: n * 1024, AvailableVirtualCores: n, TotalMB: 1 << 20, TotalVirtualCores: 1 << 10,
		}},
	}
}

// allocate is an AM's heartbeat that asks for n containers of 1 GiB anywhere.
func allocate(responseID, n int32) *yarnpb.AllocateRequestProto {
	return &yarnpb.AllocateRequestProto{
		ResponseId: &responseID,
		Ask: []*yarnpb.ResourceRequestProto{{
			Priority:      yarnpb.FromPriority(1),
			ResourceName:  proto.String("*"),
			Capability:    yarnpb.FromResource(creel.NewResource(1024, 1)),
			NumContainers: &n,
		}},
	}
}

// granted is a member's answer with n containers, numbered in its epoch.
func granted(responseID int32, epoch int64, n int64) *yarnpb.AllocateResponseProto {
	attempt := creel.AttemptID{Application: creel.ApplicationID{ClusterTimestamp: 7, ID: 1}, Attempt: 1}
	answer := &yarnpb.AllocateResponseProto{ResponseId: &responseID}
	for i := range n {
		answer.AllocatedContainers = append(answer.AllocatedContainers, &yarnpb.ContainerProto{
			Id:       yarnpb.FromContainerID(creel.NewContainerID(attempt, epoch, i+1)),
			NodeId:   yarnpb.FromNodeID(creel.NodeID{Host: "n", Port: 1}),
			Priority: yarnpb.FromPriority(1),
			Resource: yarnpb.FromResource(creel.NewResource(1024, 1)),
		})
	}
	return answer
}

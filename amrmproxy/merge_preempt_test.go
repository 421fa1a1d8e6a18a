// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"fmt"
	"slices"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
	"google.golang.org/protobuf/proto"
)

// An AM learns of every container that any of its ResourceManagers wants back, in any contract and order, and of each
// once: a ResourceManager repeats all that are under notice in each of its answers.
func TestPreemptionMessagesOfAllSubclustersReachTheAM(t *testing.T) {
	container := func(subcluster, n int64) *yarnpb.PreemptionContainerProto {
		return &yarnpb.PreemptionContainerProto{Id: yarnpb.FromContainerID(creel.ContainerID{
			Attempt: creel.AttemptID{
				Application: creel.ApplicationID{ClusterTimestamp: 1, ID: 1}, Attempt: 1,
			},
			ID: subcluster<<40 | n,
		})}
	}
	strict := func(c ...*yarnpb.PreemptionContainerProto) *yarnpb.AllocateResponseProto {
		return &yarnpb.AllocateResponseProto{Preempt: &yarnpb.PreemptionMessageProto{
			StrictContract: &yarnpb.StrictPreemptionContractProto{Container: c},
		}}
	}
	negotiable := func(n int32, c ...*yarnpb.PreemptionContainerProto) *yarnpb.AllocateResponseProto {
		return &yarnpb.AllocateResponseProto{Preempt: &yarnpb.PreemptionMessageProto{
			Contract: &yarnpb.PreemptionContractProto{
				Container: c,
				Resource: []*yarnpb.PreemptionResourceRequestProto{{
					Resource: &yarnpb.ResourceRequestProto{NumContainers: &n},
				}},
			},
		}}
	}
	answers := []func() *yarnpb.AllocateResponseProto{
		func() *yarnpb.AllocateResponseProto { return negotiable(2, container(0, 1), container(0, 2)) },
		func() *yarnpb.AllocateResponseProto { return strict(container(1, 1)) },
		func() *yarnpb.AllocateResponseProto { return &yarnpb.AllocateResponseProto{} },
		func() *yarnpb.AllocateResponseProto { return negotiable(1, container(2, 9)) },
		func() *yarnpb.AllocateResponseProto { return strict(container(1, 1), container(1, 3)) },
		func() *yarnpb.AllocateResponseProto { return negotiable(1, container(2, 9)) }, // again
	}
	for turn := range answers {
		out := &yarnpb.AllocateResponseProto{}
		for i := range answers {
			at := (turn + i) % len(answers)
			out = absorb(out, answers[at](), at == 0)
		}
		var got []string
		for _, c := range out.Preempt.GetStrictContract().GetContainer() {
			got = append(got, fmt.Sprintf("strict %d.%d", c.Id.GetId()>>40, c.Id.GetId()&0xff))
		}
		for _, c := range out.Preempt.GetContract().GetContainer() {
			got = append(got, fmt.Sprintf("negotiable %d.%d", c.Id.GetId()>>40, c.Id.GetId()&0xff))
		}
		slices.Sort(got)
		want := []string{"negotiable 0.1", "negotiable 0.2", "negotiable 2.9", "strict 1.1", "strict 1.3"}
		if !slices.Equal(got, want) {
			t.Errorf("beginning with answer %d the AM hears of %q, should of %q", turn, got, want)
		}
		n := int32(0)
		for _, r := range out.Preempt.GetContract().GetResource() {
			n += r.Resource.GetNumContainers()
		}
		if n != 3 {
			t.Errorf("beginning with answer %d the AM is asked for %d containers, should be for 3", turn, n)
		}
		if proto.Size(out.Preempt) == 0 {
			t.Error("an empty message")
		}
	}
}

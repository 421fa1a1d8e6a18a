// SPDX-License-Identifier: Apache-2.0

package opportune

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/nm"
)

func id(n int64) creel.ContainerID {
	t := creel.AttemptID{Application: creel.ApplicationID{ClusterTimestamp: 1, ID: 1}, Attempt: 1}
	return creel.NewContainerID(t, 1, n)
}

func TestQueueReportsStartAfterEnd(t *testing.T) {
	q, m := NewQueue(), nm.New(nm.Config{ID: creel.NodeID{Host: "h", Port: 1}, Total: creel.NewResource(1024, 1)})
	now := time.UnixMilli(1_000)
	q.Arrives(id(1), now)
	if since, broken := q.Starts(m, &nm.Container{ID: id(1)}); broken != "" || !since.Equal(now) {
		t.Errorf("a start breaks %q, arrived at %v", broken, since)
	}
	q.Ends(m, id(1))
	if _, broken := q.Starts(m, &nm.Container{ID: id(1)}); !strings.Contains(broken, "after its end") {
		t.Errorf("a start after the end breaks %q", broken)
	}
}

func TestMixCountsGrantsByType(t *testing.T) {
	x := NewMix(New(0.5, nil, nil, nil), rand.New(rand.NewPCG(1, 1)))
	x.Ask(20, 10)
	parts := x.Parts(20, 10)
	guaranteed, opportunistic := parts[0].Count, parts[1].Count
	if guaranteed+opportunistic != 10 || guaranteed == 0 || opportunistic == 0 {
		t.Fatalf("asks for %d and %d", guaranteed, opportunistic)
	}
	c := &pb.ContainerProto{
		Id: pb.FromContainerID(id(1)), ExecutionType: pb.ExecutionTypeProto_OPPORTUNISTIC.Enum(),
	}
	for range opportunistic {
		if !x.Granted(c, 20) {
			t.Error("a wanted container was not wanted")
		}
	}
	if x.Granted(c, 20) || x.Parts(20, guaranteed)[0].Count != guaranteed {
		t.Error("one more opportunistic container counts as wanted")
	}
}

// An AM repeats the request of a promotion with the ResourceManager's version, until it has the new token.
func TestPromotionIsRepeatedUntilTold(t *testing.T) {
	p := New(0.5, nil, nil, nil)
	p.Promote = 1
	x, now := NewMix(p, rand.New(rand.NewPCG(1, 1))), time.UnixMilli(1_000)
	c := &pb.ContainerProto{
		Id: pb.FromContainerID(id(1)), ExecutionType: pb.ExecutionTypeProto_OPPORTUNISTIC.Enum(),
	}
	x.Started(c)
	first := x.Wants(now)
	if len(first) != 1 || len(x.Wants(now)) != 0 {
		t.Fatalf("requests %v", first)
	}
	x.Answered(&pb.AllocateResponseProto{UpdateErrors: []*pb.UpdateContainerErrorProto{{
		Reason: new("INCORRECT_CONTAINER_VERSION_ERROR"), UpdateRequest: first[0], CurrentContainerVersion: new(int32(3)),
	}}}, now)
	if again := x.Wants(now); len(again) != 1 || again[0].GetContainerVersion() != 3 {
		t.Errorf("after the wrong version it requests %v", again)
	}
	told := &pb.AllocateResponseProto{UpdatedContainers: []*pb.UpdatedContainerProto{{Container: c}}}
	if pass := x.Answered(told, now); len(pass) != 1 || len(x.Wants(now.Add(time.Hour))) != 0 {
		t.Errorf("passes %v on, and asks again", pass)
	}
}

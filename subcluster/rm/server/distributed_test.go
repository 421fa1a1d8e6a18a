// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
)

// While the key of container tokens rolls, some NodeManagers sign with the next one already. The ResourceManager takes
// containers of both, and none of a key that is gone.
func TestPlacedContainersAreTakenWhileKeysRoll(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := newSecrets(now, Config{Machine: rm.Defaults(), KeyRoll: 24 * time.Hour})
	first := s.keys.Load().container
	s.step(now.Add(24 * time.Hour))
	next := s.keys.Load().contTell
	if next.ID == first.ID || s.keys.Load().container.ID != first.ID {
		t.Fatal("no key waits for its use")
	}
	taken := func(key token.Key) bool {
		signed := token.NewMac(key).Container(token.Container{
			ID: creel.ContainerID{ID: 1 << 39}, Node: creel.NodeID{Host: "n", Port: 1}, Execution: creel.Opportunistic,
		}, "")
		list := []*pb.ContainerProto{{ContainerToken: signed.Proto()}}
		return codec.Placed(list, s.keys.Load().containers, 0)[0].Invalid == ""
	}
	if !taken(first) || !taken(next) {
		t.Errorf("taken with the present key %v, with the next %v", taken(first), taken(next))
	}
	s.step(now.Add(25 * time.Hour))
	if taken(first) || !taken(next) {
		t.Errorf("taken with the former key %v, with the present %v", taken(first), taken(next))
	}
}

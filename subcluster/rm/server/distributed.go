// SPDX-License-Identifier: Apache-2.0

package server

import (
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
)

// Distributed serves AMs whose NodeManagers place opportunistic containers.
type Distributed struct{ Server *Server }

// RegisterAM is Server.RegisterAM; the answer also has the terms for the NodeManager.
func (d Distributed) RegisterAM(r *rm.RegisterAM) Op[codec.DistributedAM] {
	register := d.Server.RegisterAM(r).Run
	return Op[codec.DistributedAM]{
		name:   "registerApplicationMasterForDistributedScheduling",
		target: r.Attempt.String(),
		Run: func(m *rm.Machine, now time.Time) func() (codec.DistributedAM, error) {
			registered := register(m, now)
			terms, err := rm.SchedulingTermsOf(m, r.Attempt)
			return func() (codec.DistributedAM, error) {
				a, failed := registered()
				if failed == nil {
					failed = err
				}
				return codec.DistributedAM{AMRegistration: a, Terms: terms}, failed
			}
		},
	}
}

// Placed checks the tokens of containers that an AM's NodeManager placed.
func (d Distributed) Placed(list []*pb.ContainerProto) []rm.PlacedContainer {
	return codec.Placed(list, d.Server.secrets.keys.Load().containers, d.Server.secrets.rm)
}

// Allocate is Server.Allocate; the answer also has the least loaded nodes.
func (d Distributed) Allocate(
	attempt creel.AttemptID, r *rm.AllocateRequest, answer func(*codec.AllocateAnswer, error),
) {
	allocate(d.Server, attempt, r, func(m *rm.Machine, now time.Time, a *rm.Answer) *codec.AllocateAnswer {
		out := codec.CopyAnswer(m, now, a)
		out.LeastLoaded = rm.LeastLoaded(m, attempt)
		return out
	}, answer)
}

// SigningKeys returns the keys that sign tokens for nodes. Proxies that place containers sign with them.
func (d Distributed) SigningKeys() (nm, container token.Key) {
	k := d.Server.secrets.keys.Load()
	return k.nm, k.container
}

// Start returns the identifier of this start, which nodes expect in tokens of containers, and its epoch.
func (d Distributed) Start() (identifier, epoch int64) {
	return d.Server.secrets.rm, d.Server.secrets.epoch
}

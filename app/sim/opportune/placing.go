// SPDX-License-Identifier: Apache-2.0

package opportune

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/amrmproxy"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
)

// DrawDistributed draws whether the proxies of a seed place opportunistic containers: in every second seed.
func DrawDistributed(rnd *rand.Rand) bool { return rnd.IntN(2) == 0 }

// NodeKeys are the keys of a member's nodes that its ResourceManager publishes.
type NodeKeys struct {
	NM, Container *token.Mac
	RM, Epoch     int64 // identifier and epoch of its start
}

// Keys are the published keys of members. A proxy places containers with the keys that it has read.
type Keys map[creel.SubclusterID]NodeKeys

// Issues implements amrmproxy.Issuer.
func (k Keys) Issues(m creel.SubclusterID) (s amrmproxy.Signing, ok bool) {
	if k[m].NM == nil {
		return s, false
	}
	return amrmproxy.Signing{NodeKey: k[m].NM.Key().ID, Epoch: k[m].Epoch}, true
}

// Container implements amrmproxy.Issuer.
func (k Keys) Container(m creel.SubclusterID, c *amrmproxy.PlacedContainer) (*pb.TokenProto, bool) {
	if k[m].Container == nil {
		return nil, false
	}
	return k[m].Container.Container(token.Container{
		ID: c.ID, Node: c.Node, User: c.User, Resource: c.Resource, Expires: c.Expires, RMIdentifier: k[m].RM,
		Priority: c.Priority, Created: c.Created, Label: c.Label, Execution: creel.Opportunistic,
		AllocationRequestID: c.AllocationRequestID,
	}, c.Node.String()).Proto(), true
}

// Node implements amrmproxy.Issuer.
func (k Keys) Node(m creel.SubclusterID, c *amrmproxy.PlacedContainer) (*pb.TokenProto, bool) {
	if k[m].NM == nil {
		return nil, false
	}
	of := token.NM{Attempt: c.ID.Attempt, Node: c.Node, User: c.User}
	return k[m].NM.NM(of, c.Node.String()).Proto(), true
}

// IsPlaced reports whether a proxy placed a container: ResourceManagers count up from 1.
func IsPlaced(id creel.ContainerID) bool { return id.Sequence() >= 1<<39 }

// Places reports whether proxies place containers. p may be nil.
func (p *Play) Places() bool { return p != nil && p.Distributed }

// Placements has the containers that proxies have reported to members.
type Placements map[creel.ContainerID]*placement

type placement struct {
	container *pb.ContainerProto
	taken     bool // a ResourceManager accepted a report of it
}

// Report adds a container that a proxy reports. It returns the broken rule if its id is another container's.
func (p Placements) Report(c *pb.ContainerProto) (broken string) {
	id := pb.ToContainerID(c.GetId())
	first := p[id]
	if first == nil {
		p[id] = &placement{container: c}
		return ""
	}
	if bytes.Equal(first.container.GetContainerToken().GetIdentifier(), c.GetContainerToken().GetIdentifier()) {
		return ""
	}
	return fmt.Sprintf("%s is placed on %s and on %s",
		id, first.container.GetNodeId().GetHost(), c.GetNodeId().GetHost())
}

// Take records that a ResourceManager accepted a report of a container, and reports whether it is the first one.
func (p Placements) Take(id creel.ContainerID) (first bool) {
	k := p[id]
	if k == nil || k.taken {
		return false
	}
	k.taken = true
	return true
}

// Forget drops the placements of applications that do nothing any more. p may be nil.
func (p *Play) Forget(over map[creel.ApplicationID]bool) {
	if p != nil {
		maps.DeleteFunc(p.Placements, func(id creel.ContainerID, _ *placement) bool {
			return over[id.Attempt.Application]
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/server"
)

// tokens writes one application's containers and nodes with their tokens.
type tokens struct {
	mint *server.Mint

	// Of the last container: those of a wave are alike, and an answer in which
	// they share these takes a third less memory (BenchmarkEncodeAllocated).
	resource      creel.Resource
	resourceProto *pb.ResourceProto
	priority      *pb.PriorityProto
}

// newTokens begins to write for an application; the caller calls done when it
// has finished.
func newTokens(s *server.Server, app creel.ApplicationID) (t *tokens, done func()) {
	mint, done := s.Mint(app)
	return &tokens{mint: mint}, done
}

func (t *tokens) resourceOf(r creel.Resource) *pb.ResourceProto {
	if t.resourceProto == nil || !r.Equal(t.resource) {
		t.resource, t.resourceProto = r, pb.FromResource(r)
	}
	return t.resourceProto
}

func (t *tokens) priorityOf(n int32) *pb.PriorityProto {
	if t.priority == nil || t.priority.GetPriority() != n {
		t.priority = pb.FromPriority(n)
	}
	return t.priority
}

func (t *tokens) nm(a creel.AttemptID, node creel.NodeID) *pb.NMTokenProto {
	return &pb.NMTokenProto{NodeId: pb.FromNodeID(node), Token: t.mint.NM(a, node).Proto()}
}

// container returns a grant as its AM gets it. The grant must live as long as
// the message.
func (t *tokens) container(g *rm.Grant) *pb.ContainerProto { return t.fill(new(pb.ContainerProto), g) }

// fill is container in given memory.
func (t *tokens) fill(c *pb.ContainerProto, g *rm.Grant) *pb.ContainerProto {
	c.Id, c.NodeId, c.NodeHttpAddress = pb.FromContainerID(g.ID), pb.FromNodeID(g.Node), &g.HTTPAddress
	c.Resource, c.Priority = t.resourceOf(g.Resource), t.priorityOf(g.Priority)
	c.ContainerToken = t.mint.Container(g).Proto()
	c.ExecutionType = new(pb.ExecutionTypeProto(g.ExecutionType))
	c.AllocationRequestId, c.Version, c.AllocationTags = &g.AllocationRequestID, &g.Version, g.Tags
	return c
}

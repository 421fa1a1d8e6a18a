// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
)

// Mint encodes one application's containers and nodes with their tokens. Its fields are set before use; only one
// goroutine may use it.
type Mint struct {
	NMKey, ContainerKey *token.Mac // for signing

	User    string                         // of the application
	Logs    *pb.LogAggregationContextProto // of its submission, or nil
	Expiry  time.Duration                  // of container tokens, from the grant on
	RM      int64                          // identifier of the ResourceManager: its start, in ms
	Service func(creel.NodeID) string      // of a node, for tokens: its ip:port

	// Values of the last container, for reuse. Many containers are equal, and shared values make a response a third
	// smaller in memory (BenchmarkEncodeAllocated).
	resource      creel.Resource
	resourceProto *pb.ResourceProto
	priority      *pb.PriorityProto
}

// NM returns the token for an AM's calls to a node.
func (t *Mint) NM(a creel.AttemptID, node creel.NodeID) token.Token {
	return t.NMKey.NM(token.NM{Attempt: a, Node: node, User: t.User}, t.Service(node))
}

// Container returns the token with which an AM starts one container at a node.
func (t *Mint) Container(g *rm.Grant) token.Token {
	created := time.UnixMilli(g.Created)
	return t.ContainerKey.Container(token.Container{
		ID:                  g.ID,
		Node:                g.Node,
		User:                t.User,
		Resource:            g.Resource,
		Expires:             created.Add(t.Expiry),
		RMIdentifier:        t.RM,
		Priority:            g.Priority,
		Created:             created,
		Logs:                t.Logs,
		AM:                  g.AM,
		Execution:           g.ExecutionType,
		Version:             g.Version,
		AllocationRequestID: g.AllocationRequestID,
		Tags:                g.Tags,
	}, t.Service(g.Node))
}

func (t *Mint) resourceOf(r creel.Resource) *pb.ResourceProto {
	if t.resourceProto == nil || !r.Equal(t.resource) {
		t.resource, t.resourceProto = r, pb.FromResource(r)
	}
	return t.resourceProto
}

func (t *Mint) priorityOf(n int32) *pb.PriorityProto {
	if t.priority == nil || t.priority.GetPriority() != n {
		t.priority = pb.FromPriority(n)
	}
	return t.priority
}

func (t *Mint) nmToken(a creel.AttemptID, node creel.NodeID) *pb.NMTokenProto {
	return &pb.NMTokenProto{NodeId: pb.FromNodeID(node), Token: t.NM(a, node).Proto()}
}

// granted returns a grant in its AM's form. The grant must live as long as the message.
func (t *Mint) granted(g *rm.Grant) *pb.ContainerProto { return t.fill(new(pb.ContainerProto), g) }

// fill is granted into existing memory.
func (t *Mint) fill(c *pb.ContainerProto, g *rm.Grant) *pb.ContainerProto {
	c.Id, c.NodeId, c.NodeHttpAddress = pb.FromContainerID(g.ID), pb.FromNodeID(g.Node), &g.HTTPAddress
	c.Resource, c.Priority = t.resourceOf(g.Resource), t.priorityOf(g.Priority)
	c.ContainerToken = t.Container(g).Proto()
	c.ExecutionType = new(pb.ExecutionTypeProto(g.ExecutionType))
	c.AllocationRequestId, c.Version, c.AllocationTags = &g.AllocationRequestID, &g.Version, g.Tags
	return c
}

// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"time"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
)

// AllocateAnswer is the answer to an AM's heartbeat, independent of the machine.
type AllocateAnswer struct {
	rm.Answer
	Nodes []rm.NodeView // of Answer.UpdatedNodes, in their order
	Now   time.Time
	// LeastLoaded are the nodes for a NodeManager that places containers; only server.Distributed sets them.
	LeastLoaded []rm.LoadedNode
}

// CopyAnswer copies an answer of the machine, because the machine overwrites it at the next call, while the copy may
// still be sent. The owner of the machine calls it.
func CopyAnswer(m *rm.Machine, now time.Time, a *rm.Answer) *AllocateAnswer {
	out := &AllocateAnswer{Answer: a.Clone(), Now: now}
	for _, u := range out.UpdatedNodes {
		n, _ := m.Node(u.ID)
		out.Nodes = append(out.Nodes, n)
	}
	return out
}

// AllocateResponse encodes the answer to an allocate call and mints its tokens. newer is the AMRM token that replaces
// the caller's, or nil. The answer must live as long as the message, which points into it.
func AllocateResponse(
	a *AllocateAnswer,
	attempt creel.AttemptID,
	t *Mint,
	newer *pb.TokenProto,
) *pb.AllocateResponseProto {
	r := &pb.AllocateResponseProto{
		ResponseId:          &a.ResponseID,
		Limit:               pb.FromResource(a.Headroom),
		NumClusterNodes:     &a.Answer.Nodes,
		ApplicationPriority: pb.FromPriority(a.Priority),
		AmRmToken:           newer,
		EnhancedHeadroom: &pb.EnhancedHeadroomProto{
			TotalPendingCount: &a.PendingContainers,
			TotalActiveCores:  &a.ActiveCores,
		},
	}
	if len(a.Granted) > 0 {
		r.AllocatedContainers = make([]*pb.ContainerProto, len(a.Granted))
		memory := make([]pb.ContainerProto, len(a.Granted))
		for i := range a.Granted {
			r.AllocatedContainers[i] = t.fill(&memory[i], &a.Granted[i])
		}
	}
	if len(a.Completed) > 0 {
		r.CompletedContainerStatuses = make([]*pb.ContainerStatusProto, len(a.Completed))
		for i := range a.Completed {
			r.CompletedContainerStatuses[i] = t.completed(&a.Completed[i])
		}
	}
	for _, at := range a.NMTokens {
		r.NmTokens = append(r.NmTokens, t.nmToken(attempt, at.Node))
	}
	for i := range a.FromPrevious {
		r.ContainersFromPreviousAttempts = append(
			r.ContainersFromPreviousAttempts,
			t.granted(&a.FromPrevious[i]),
		)
	}
	for i := range a.Updated {
		u := &a.Updated[i]
		r.UpdatedContainers = append(
			r.UpdatedContainers,
			&pb.UpdatedContainerProto{
				UpdateType: new(pb.ContainerUpdateTypeProto(u.Kind)),
				Container:  t.granted(&u.Grant),
			},
		)
	}
	for i := range a.UpdateErrors {
		e := &a.UpdateErrors[i]
		request, _ := e.Update.Message.(*pb.UpdateContainerRequestProto)
		r.UpdateErrors = append(
			r.UpdateErrors,
			&pb.UpdateContainerErrorProto{
				Reason:                  &e.Reason,
				UpdateRequest:           request,
				CurrentContainerVersion: &e.Version,
			},
		)
	}
	for i := range a.Rejected {
		r.RejectedSchedulingRequests = append(r.RejectedSchedulingRequests, rejected(&a.Rejected[i]))
	}
	for i, u := range a.UpdatedNodes {
		n := NodeReport(&a.Nodes[i], a.Now)
		n.NodeId = pb.FromNodeID(u.ID)
		n.NodeUpdateType = new(pb.NodeUpdateTypeProto(u.Kind))
		r.UpdatedNodes = append(r.UpdatedNodes, n)
	}
	if len(a.Preempt) > 0 {
		r.Preempt = preemption(a.Answer.Preempt, a.Answer.Negotiable)
	}
	return r
}

// completed returns a container's completion for its AM. If there is a message of the node, it is that message, so
// that unknown fields survive.
func (t *Mint) completed(c *rm.Completion) *pb.ContainerStatusProto {
	if s, ok := c.Message.(*pb.ContainerStatusProto); ok && s.GetExitStatus() == c.ExitStatus &&
		s.GetState() == pb.ContainerStateProto_C_COMPLETE {
		return s
	}
	execution := pb.ExecutionTypeProto(c.Execution)
	if execution == 0 {
		execution = pb.ExecutionTypeProto_GUARANTEED
	}
	return &pb.ContainerStatusProto{
		ContainerId: pb.FromContainerID(
			c.ID,
		),
		State:         pb.ContainerStateProto_C_COMPLETE.Enum(),
		Diagnostics:   &c.Diagnostics,
		ExitStatus:    &c.ExitStatus,
		Capability:    t.resourceOf(c.Resource),
		ExecutionType: &execution,
	}
}

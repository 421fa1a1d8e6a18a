// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/subcluster/remote"
)

// NodeOrder is a caller's change of nodes. I is the part of the change that is about one node, R a member's answer.
type NodeOrder[I, R any] struct {
	Name  string // for errors
	Items []I
	Node  func(I) creel.NodeID
	// Has asks a member for its nodes, and those for which it has data to change.
	Has func(ctx context.Context, m *remote.Member) (func(creel.NodeID) bool, error)
	// Send sends items to a member.
	Send func(ctx context.Context, m *remote.Member, items []I) (R, error)
}

// OrderNodes sends each item of an order to the members that have its node (router.ForNode), and returns their answers;
// none if there are no members. If a member that does not answer may have one of the nodes, no member gets the order,
// and such members are returned as silent, with an error. Every member concerned must carry the order out (CarriedOut).
func OrderNodes[I, R any](
	ctx context.Context, s *Server, o NodeOrder[I, R],
) (answers []router.Part[R], silent []router.MissingMember, err error) {
	has := Ask(ctx, s, o.Has)
	parts := map[creel.SubclusterID][]I{}
	for _, item := range o.Items {
		id := o.Node(item)
		members, silent := router.ForNode(id, havingNode(has, id))
		if len(silent) > 0 {
			return nil, silent, router.NodeUnknown(id.String(), silent)
		}
		for _, m := range members {
			parts[m] = append(parts[m], item)
		}
	}
	concerned := func(id creel.SubclusterID) bool { return len(parts[id]) > 0 }
	answers = AskSome(ctx, s, concerned, func(ctx context.Context, m *remote.Member) (R, error) {
		return o.Send(ctx, m, parts[m.ID])
	})
	return answers, nil, CarriedOut(o.Name, answers)
}

// havingNode converts members' nodes to whether they have one node.
func havingNode(has []router.Part[func(creel.NodeID) bool], id creel.NodeID) []router.Part[bool] {
	out := make([]router.Part[bool], len(has))
	for i, p := range has {
		out[i] = router.Part[bool]{Member: p.Member, Err: p.Err}
		if p.Err == nil {
			out[i].Value = p.Value(id)
		}
	}
	return out
}

// AtNode calls the member that has a node. If none has it, it calls any member, which rejects the call. If a member
// that does not answer may have it, such members are returned as silent, with an error that has the node's name.
func AtNode[R any](
	ctx context.Context,
	s *Server,
	node creel.NodeID,
	name string,
	has func(ctx context.Context, m *remote.Member) (bool, error),
	call func(ctx context.Context, m *remote.Member) (R, error),
) (answer R, silent []router.MissingMember, err error) {
	parts := Ask(ctx, s, has)
	for _, p := range parts {
		if p.Err != nil || !p.Value {
			continue
		}
		m, err := s.Member(p.Member)
		if err != nil {
			return answer, nil, err
		}
		answer, err = call(ctx, m)
		return answer, nil, err
	}
	if _, silent := router.ForNode(node, parts); len(silent) > 0 {
		return answer, silent, router.NodeUnknown(name, silent)
	}
	answer, err = Any(ctx, s, call)
	return answer, nil, err
}

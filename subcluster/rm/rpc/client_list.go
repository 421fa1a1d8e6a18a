// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
	"github.com/creelrm/creel/subcluster/rm/server"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

func (c *clientHandler) GetApplications(
	ctx context.Context,
	req *pb.GetApplicationsRequestProto,
) (*pb.GetApplicationsResponseProto, error) {
	type R = *pb.GetApplicationsResponseProto
	s, who := c.s, callerOf(ctx)
	keep, err := appFilter(req, who)
	if err != nil {
		return nil, err
	}
	limit := math.MaxInt
	if req.Limit != nil {
		if limit = int(req.GetLimit()); limit < 0 {
			return nil, codec.Invalid("the limit of applications is %d; give 0 or more", limit)
		}
	}
	has, routed := yarnrpc.ListKnown(req)
	parts := yarnrpc.Parts(req)
	key := listKey(who, map[bool]string{false: "applications", true: "applications and parts"}[parts], req)
	give := func(doc server.Document) R {
		switch {
		case !routed || doc.Tag == "":
			return pb.Encoded(&pb.GetApplicationsResponseProto{}, doc.Body)
		case doc.Tag == has:
			return yarnrpc.ListHolds(doc.Tag)
		}
		return yarnrpc.TaggedList(doc.Body, doc.Tag)
	}
	if doc := s.Kept(key); doc.Body != nil {
		return give(doc), nil
	}
	return later(ctx, s, server.Op[R]{Run: unlessGone(ctx, func(m *rm.Machine, now time.Time) func() (R, error) {
		stamp := s.Stamp()
		var found []server.ListEntry
		m.EachListed(limit, parts, func(a *rm.AppView, part bool) bool {
			if !keep(a, part) {
				return false
			}
			listed, viewable := s.Lists(m, who, a)
			if !listed || !viewable && req.GetScope() == pb.ApplicationsRequestScopeProto_VIEWABLE {
				return false
			}
			found = append(found, server.ListEntry{View: a, Viewable: viewable})
			return true
		})
		return func() (R, error) {
			body, err := encodeApplications(s, found, now)
			if err != nil {
				return nil, err
			}
			return give(s.Keep(key, stamp, body)), nil
		}
	})})
}

// appFilter returns the conditions of a list request as a function. For a router, parts of other ResourceManagers'
// applications match regardless of name and state.
func appFilter(
	req *pb.GetApplicationsRequestProto, who server.Caller,
) (func(a *rm.AppView, part bool) bool, error) {
	for _, r := range [][2]*int64{{req.StartBegin, req.StartEnd}, {req.FinishBegin, req.FinishEnd}} {
		if r[0] != nil && r[1] != nil && *r[0] > *r[1] {
			return nil, codec.Invalid("begin > end in range (begin, end): (%d, %d)", *r[0], *r[1])
		}
	}
	states := map[creel.ApplicationState]bool{}
	for _, s := range req.GetApplicationStates() {
		states[creel.ApplicationState(s)] = true
	}
	types := map[string]bool{}
	for _, t := range req.GetApplicationTypes() {
		if t = strings.TrimSpace(t); t != "" {
			types[strings.ToLower(t)] = true
		}
	}
	within := func(t time.Time, begin, end *int64) bool {
		ms := codec.Millis(t)
		return (begin == nil || ms >= *begin) && (end == nil || ms <= *end)
	}
	return func(a *rm.AppView, part bool) bool {
		switch {
		case len(req.GetUsers()) > 0 && !slices.Contains(req.GetUsers(), a.User),
			req.GetScope() == pb.ApplicationsRequestScopeProto_OWN && a.User != who.User:
			return false
		case part:
			return true
		case len(states) > 0 && !states[a.State],
			len(types) > 0 && !types[strings.ToLower(a.Type)],
			req.Name != nil && a.Name != req.GetName(),
			!within(a.Submitted, req.StartBegin, req.StartEnd), !within(a.Finished, req.FinishBegin, req.FinishEnd):
			return false
		}
		if q := req.GetQueues(); len(q) > 0 &&
			!slices.ContainsFunc(
				q,
				func(name string) bool { return name == string(a.Queue) || name == a.Queue.Leaf() },
			) {
			return false
		}
		if tags := req.GetApplicationTags(); len(tags) > 0 && !slices.ContainsFunc(tags, func(t string) bool {
			return slices.ContainsFunc(a.Tags, func(tag string) bool { return strings.EqualFold(tag, t) })
		}) {
			return false
		}
		return true
	}, nil
}

func (c *clientHandler) GetClusterNodes(
	ctx context.Context,
	req *pb.GetClusterNodesRequestProto,
) (*pb.GetClusterNodesResponseProto, error) {
	type R = *pb.GetClusterNodesResponseProto
	s := c.s
	key := listKey(server.Caller{}, "nodes", req) // the same for all callers
	if doc := s.Kept(key); doc.Body != nil {
		return pb.Encoded(&pb.GetClusterNodesResponseProto{}, doc.Body), nil
	}
	return later(ctx, s, server.Op[R]{Run: unlessGone(ctx, func(m *rm.Machine, now time.Time) func() (R, error) {
		stamp := s.Stamp()
		var nodes []rm.NodeView
		for n := range m.Nodes {
			if s := req.GetNodeStates(); len(s) == 0 || slices.Contains(s, pb.NodeStateProto(n.State)) {
				nodes = append(nodes, n)
			}
		}
		return func() (R, error) {
			r := &pb.GetClusterNodesResponseProto{NodeReports: make([]*pb.NodeReportProto, len(nodes))}
			for i := range nodes {
				r.NodeReports[i] = codec.NodeReport(&nodes[i], now)
			}
			body, err := r.MarshalVT()
			if err != nil {
				return nil, err
			}
			s.Keep(key, stamp, body)
			return pb.Encoded(&pb.GetClusterNodesResponseProto{}, body), nil
		}
	})})
}

// applicationsField is the number of GetApplicationsResponseProto's field.
const applicationsField protowire.Number = 1

// encodeApplications encodes a GetApplicationsResponseProto: the reports of ended applications are made once and
// joined as bytes.
func encodeApplications(s *server.Server, found []server.ListEntry, now time.Time) ([]byte, error) {
	cluster := s.Cluster()
	reports := make([][]byte, len(found))
	s.KeptEnded(found, reports)
	size := 0
	var fresh []int // indexes of cacheable reports that are not cached yet
	for i, a := range found {
		if reports[i] == nil {
			body, err := cluster.Report(a.View, now, a.Viewable).MarshalVT()
			if err != nil {
				return nil, err
			}
			reports[i] = body
			if a.View.Over {
				fresh = append(fresh, i)
			}
		}
		size += protowire.SizeTag(applicationsField) + protowire.SizeBytes(len(reports[i]))
	}
	body := make([]byte, 0, size)
	for _, r := range reports {
		body = protowire.AppendBytes(protowire.AppendTag(body, applicationsField, protowire.BytesType), r)
	}
	s.KeepEnded(found, reports, fresh)
	return body, nil
}

// listKey names a response by caller and request, for Keep.
func listKey(who server.Caller, method string, req proto.Message) string {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(req)
	if err != nil {
		return "" // nothing is cached under it
	}
	return method + "\x00" + who.User + "\x00" + string(b)
}

// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"fmt"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
)

// Reads are the calls that a load of kind report can make.
var Reads = []string{"report", "list", "metrics", "new-application", "nodes"}

// ReportOptions is a load of reading calls on the client protocol.
type ReportOptions struct {
	Options
	Client       string // host:port of ApplicationClientProtocol
	Call         string // one of Reads
	Applications int    // submitted before and killed afterwards; reports are of these in turn
	Queue        string
}

// Report reads.
func Report(ctx context.Context, o ReportOptions) (*Result, error) {
	if o.Call == "report" && o.Applications < 1 {
		return nil, fmt.Errorf("reports need at least 1 application to report on")
	}
	if err := o.check(o.Client); err != nil {
		return nil, err
	}
	clients, end := o.clients(o.Plan.Connections)
	defer end()
	stubs := o.stubs(clients, o.Client)
	var ids []creel.ApplicationID
	var messages []*pb.GetApplicationReportRequestProto
	call, err := reading(o.Call, stubs, o.peers(clients, o.Client), &messages)
	if err != nil {
		return nil, err
	}
	ids, err = job{queue: o.Queue}.prepare(ctx, stubs, o.Applications)
	defer func() {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		killAll(late, stubs, ids)
	}()
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		messages = append(messages, &pb.GetApplicationReportRequestProto{ApplicationId: pb.FromApplicationID(id)})
	}
	m := newMeter(o.PIDs)
	err = drive(ctx, o.Plan, m, call)
	return m.result("report "+o.Call, o.Client, o.Plan), err
}

// reading is one call of a kind. Requests are shared: nobody writes to them.
// Lists are taken as they come: to decode a thousand reports costs more than to
// send them, and would measure this side.
func reading(kind string, stubs []clientStub, peers []*hrpc.Peer, reports *[]*pb.GetApplicationReportRequestProto) (request, error) {
	at := func(worker int) clientStub { return stubs[worker%len(stubs)] }
	switch kind {
	case "report":
		return func(ctx context.Context, w int, ticket int64, _ time.Time) error {
			_, err := at(w).GetApplicationReport(ctx, (*reports)[ticket%int64(len(*reports))])
			return err
		}, nil
	case "list", "nodes":
		method := map[string]string{"list": "getApplications", "nodes": "getClusterNodes"}[kind]
		return func(ctx context.Context, w int, _ int64, _ time.Time) error {
			_, err := peers[w%len(peers)].CallRaw(ctx, method, nil)
			return err
		}, nil
	case "metrics":
		req := &pb.GetClusterMetricsRequestProto{}
		return func(ctx context.Context, w int, _ int64, _ time.Time) error {
			_, err := at(w).GetClusterMetrics(ctx, req)
			return err
		}, nil
	case "new-application":
		req := &pb.GetNewApplicationRequestProto{}
		return func(ctx context.Context, w int, _ int64, _ time.Time) error {
			_, err := at(w).GetNewApplication(ctx, req)
			return err
		}, nil
	}
	return nil, fmt.Errorf("call %q: give one of %v", kind, Reads)
}

// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
)

// Reads are the calls that a load of kind report can make.
var Reads = []string{"report", "list", "metrics", "new-application", "nodes"}

// ReportOptions is a load of read calls on the client protocol.
type ReportOptions struct {
	Options
	Client       string // host:port of ApplicationClientProtocol
	Call         string // one of Reads
	Applications int    // submitted before and killed afterwards; reports cycle through them
	Queue        string
}

// Report runs the load.
func Report(ctx context.Context, o ReportOptions) (*Result, error) {
	if !slices.Contains(Reads, o.Call) {
		return nil, badOption("call %q: give one of %v", o.Call, Reads)
	}
	if o.Call == "report" && o.Applications < 1 {
		return nil, badOption("reports need at least 1 application")
	}
	if err := o.check(o.Client); err != nil {
		return nil, err
	}
	clients, end := o.clients(o.Plan.Connections)
	defer end()
	stubs := o.stubs(clients, o.Client)
	ids, err := job{queue: o.Queue}.prepare(ctx, stubs, o.Applications)
	defer func() {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		killAll(late, stubs, ids)
	}()
	if err != nil {
		return nil, err
	}
	read, err := reading(o.Call, ids)
	if err != nil {
		return nil, err
	}
	m := newMeter(o.PIDs)
	if o.Plan.Rate == 0 {
		err = drivePiped(ctx, o.Plan, m, clients, pipedRequests{
			target: o.client(o.Client),
			method: read.method,
			slots:  o.Plan.InFlight,
			request: func(b []byte, _ int, ticket int64) ([]byte, error) {
				return append(b, read.request(ticket)...), nil
			},
			answer: func(_ context.Context, _ int, ticket int64, body []byte) error {
				return read.check(ticket, body)
			},
		})
	} else {
		peers := o.peers(clients, o.Client)
		err = drive(ctx, o.Plan, m, func(ctx context.Context, w int, ticket int64, _ time.Time) error {
			body, err := peers[w%len(peers)].CallRaw(ctx, read.method, read.request(ticket))
			if err == nil {
				err = read.check(ticket, body)
			}
			return err
		})
	}
	return m.result("report "+o.Call, o.Client, o.Plan), err
}

// readRequest is one call of a kind. Answers are checked as encoded: decoding a report costs more than sending it,
// and would measure this side.
type readRequest struct {
	method  string
	request func(ticket int64) []byte
	check   func(ticket int64, answer []byte) error
}

// errShort reports a response that lacks the requested content.
var errShort = errors.New("incomplete answer")

func reading(kind string, ids []creel.ApplicationID) (readRequest, error) {
	r := readRequest{request: func(int64) []byte { return nil }, check: func(_ int64, answer []byte) error {
		if len(answer) == 0 {
			return errShort
		}
		return nil
	}}
	switch kind {
	case "report":
		// Both the request and the report start with the id as their first field.
		requests := make([][]byte, len(ids))
		for i, id := range ids {
			b, err := (&pb.GetApplicationReportRequestProto{ApplicationId: pb.FromApplicationID(id)}).MarshalVT()
			if err != nil {
				return r, err
			}
			requests[i] = b
		}
		r.method = "getApplicationReport"
		r.request = func(ticket int64) []byte { return requests[ticket%int64(len(requests))] }
		r.check = func(ticket int64, answer []byte) error {
			if !bytes.Contains(answer, requests[ticket%int64(len(requests))]) {
				return errShort
			}
			return nil
		}
	case "list":
		r.method = "getApplications"
		r.check = func(_ int64, answer []byte) error {
			if entries(answer) < len(ids) {
				return errShort
			}
			return nil
		}
	case "nodes": // there may be none
		r.method, r.check = "getClusterNodes", func(int64, []byte) error { return nil }
	case "metrics":
		r.method = "getClusterMetrics"
	case "new-application":
		r.method = "getNewApplication"
	default:
		return r, badOption("call %q: give one of %v", kind, Reads)
	}
	return r, nil
}

// entries counts the occurrences of the first field in a list's answer.
func entries(answer []byte) (n int) {
	for len(answer) > 0 {
		number, kind, size := protowire.ConsumeTag(answer)
		if size < 0 {
			return 0
		}
		more := protowire.ConsumeFieldValue(number, kind, answer[size:])
		if more < 0 {
			return 0
		}
		answer = answer[size+more:]
		if number == 1 {
			n++
		}
	}
	return n
}

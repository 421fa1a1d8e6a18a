// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "github.com/creelrm/creel/internal/yarnpb"
)

// SubmitOptions is a load of submissions: each requests a new id and submits with it.
type SubmitOptions struct {
	Options
	Client string // host:port of ApplicationClientProtocol, of a ResourceManager or a router
	Queue  string
	// Cycle also reads a report and kills the application, within the same request, so that the server does not fill
	// up.
	Cycle bool
	// Unmanaged submits applications with an unmanaged AM, of which nothing is launched on the nodes.
	Unmanaged bool
}

// Submit runs the load.
func Submit(ctx context.Context, o SubmitOptions) (*Result, error) {
	if err := o.check(o.Client); err != nil {
		return nil, err
	}
	clients, end := o.clients(o.Plan.Connections)
	defer end()
	stubs := o.stubs(clients, o.Client)
	work := job{queue: o.Queue, unmanaged: o.Unmanaged}
	m := newMeter(o.PIDs)
	if !o.Cycle {
		kind, err := work.piped(&o)
		if err != nil {
			return nil, err
		}
		drivePipes := drivePiped
		if o.Plan.Rate > 0 {
			drivePipes = driveOpenPiped
		}
		err = drivePipes(ctx, o.Plan, m, clients, kind)
		return m.result("submit", o.Client, o.Plan), err
	}
	err := drive(ctx, o.Plan, m, func(ctx context.Context, w int, _ int64, _ time.Time) error {
		rm := stubs[w%len(stubs)]
		id, err := work.submit(ctx, rm)
		if err != nil || !o.Cycle {
			return err
		}
		if _, err := rm.GetApplicationReport(
			ctx,
			&pb.GetApplicationReportRequestProto{ApplicationId: pb.FromApplicationID(id)},
		); err != nil {
			return err
		}
		// Hadoop answers a kill with "not yet" until the application has ended.
		for {
			answer, err := rm.ForceKillApplication(
				ctx,
				&pb.KillApplicationRequestProto{ApplicationId: pb.FromApplicationID(id)},
			)
			if err != nil || answer.GetIsKillCompleted() {
				return err
			}
			if err := pause(ctx, time.Millisecond); err != nil {
				return err
			}
		}
	})
	kind := "submit"
	if o.Cycle {
		kind = "submit cycle"
	}
	return m.result(kind, o.Client, o.Plan), err
}

// piped is Submit without a goroutine for each submission: the submission follows the answer with the new id.
func (j job) piped(o *SubmitOptions) (pipedRequests, error) {
	rest, err := proto.Marshal(j.context(nil))
	if err != nil {
		return pipedRequests{}, err
	}
	submitting := make([]bool, o.Plan.InFlight)
	return pipedRequests{
		target: o.client(o.Client), method: "getNewApplication", slots: o.Plan.InFlight,
		request: func(b []byte, slot int, _ int64) ([]byte, error) {
			submitting[slot] = false
			return b, nil
		},
		next: func(b []byte, slot int, _ int64, body []byte) (string, []byte, error) {
			if submitting[slot] {
				return "", nil, nil
			}
			var made pb.GetNewApplicationResponseProto
			if err := made.UnmarshalVT(body); err != nil {
				return "", nil, err
			}
			id, err := proto.Marshal(made.GetApplicationId())
			if err != nil {
				return "", nil, err
			}
			submitting[slot] = true
			b = protowire.AppendTag(b, 1, protowire.BytesType) // of the request: the context
			b = protowire.AppendVarint(b, uint64(protowire.SizeTag(1)+protowire.SizeBytes(len(id))+len(rest)))
			b = protowire.AppendTag(b, 1, protowire.BytesType) // of the context: the id
			b = protowire.AppendBytes(b, id)
			return "submitApplication", append(b, rest...), nil
		},
		answer: func(context.Context, int, int64, []byte) error { return nil },
	}, nil
}

// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"

	"github.com/creelrm/creel/amrmproxy/server"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/failover"
)

// RegisterDistributed implements server.Members.
func (r *Remote) RegisterDistributed(
	ctx context.Context,
	to server.To,
	req *yarnpb.RegisterApplicationMasterRequestProto,
) (out *yarnpb.RegisterDistributedSchedulingAMResponseProto, err error) {
	served, err := r.distributed(ctx, to, func(c yarnrpc.DistributedSchedulingAMProtocolClient) (e error) {
		out, e = c.RegisterApplicationMasterForDistributedScheduling(ctx, req)
		return e
	})
	if served {
		return out, err
	}
	plain, err := r.Register(ctx, to, req)
	return &yarnpb.RegisterDistributedSchedulingAMResponseProto{RegisterResponse: plain}, err
}

// AllocateDistributed implements server.Members.
func (r *Remote) AllocateDistributed(
	ctx context.Context,
	to server.To,
	req *yarnpb.DistributedSchedulingAllocateRequestProto,
) (out *yarnpb.DistributedSchedulingAllocateResponseProto, err error) {
	served, err := r.distributed(ctx, to, func(c yarnrpc.DistributedSchedulingAMProtocolClient) (e error) {
		out, e = c.AllocateForDistributedScheduling(ctx, req)
		return e
	})
	if served {
		return out, err
	}
	// The ResourceManager has restarted without the protocol. It requires another registration.
	plain, err := r.Allocate(ctx, to, req.GetAllocateRequest())
	return &yarnpb.DistributedSchedulingAllocateResponseProto{AllocateResponse: plain}, err
}

// distributed makes a call of DistributedSchedulingAMProtocol. served is false if the member does not serve it.
func (r *Remote) distributed(
	ctx context.Context, to server.To, call func(yarnrpc.DistributedSchedulingAMProtocolClient) error,
) (served bool, err error) {
	p, err := r.to(to)
	if err != nil {
		return true, err
	}
	if len(p.placing) == 0 {
		return false, nil
	}
	err = failover.Each(ctx, p.pair, p.placing, false, call)
	var answer *hrpc.RemoteError
	return !errors.As(err, &answer) || answer.Class != hrpc.ClassNoSuchProtocol, err
}

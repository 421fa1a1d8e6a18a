// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"time"

	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm/codec"
	"github.com/creelrm/creel/subcluster/rm/server"
)

func (c *clientHandler) GetDelegationToken(
	ctx context.Context,
	req *pb.GetDelegationTokenRequestProto,
) (*pb.GetDelegationTokenResponseProto, error) {
	op := c.s.IssueToken(callerOf(ctx), req.GetRenewer())
	return later(ctx, c.s, server.Then(op, func(t server.IssuedToken) *pb.GetDelegationTokenResponseProto {
		return &pb.GetDelegationTokenResponseProto{Token: t.Token.Proto()}
	}))
}

func (c *clientHandler) RenewDelegationToken(
	ctx context.Context,
	req *pb.RenewDelegationTokenRequestProto,
) (*pb.RenewDelegationTokenResponseProto, error) {
	op := c.s.RenewToken(callerOf(ctx), token.FromProto(req.GetToken()))
	return later(ctx, c.s, server.Then(op, func(expires time.Time) *pb.RenewDelegationTokenResponseProto {
		return &pb.RenewDelegationTokenResponseProto{NewExpiryTime: new(uint64(codec.Millis(expires)))}
	}))
}

func (c *clientHandler) CancelDelegationToken(
	ctx context.Context,
	req *pb.CancelDelegationTokenRequestProto,
) (*pb.CancelDelegationTokenResponseProto, error) {
	op := c.s.CancelToken(callerOf(ctx), token.FromProto(req.GetToken()))
	return later(ctx, c.s, empty[pb.CancelDelegationTokenResponseProto](op))
}

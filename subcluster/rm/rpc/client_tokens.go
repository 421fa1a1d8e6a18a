// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"time"

	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
)

// Delegation tokens: durable before they are handed out, renewed or gone.

// IssueToken makes a delegation token for the caller.
func (d *Daemon) IssueToken(ctx context.Context, who Caller, renewer string) (token.Token, error) {
	r, err := await(ctx, d, who, d.issue(who, renewer))
	return token.FromProto(r.GetToken()), err
}

func (c *clientDoor) GetDelegationToken(
	ctx context.Context,
	req *pb.GetDelegationTokenRequestProto,
) (*pb.GetDelegationTokenResponseProto, error) {
	return later(ctx, c.d, c.d.issue(callerOf(ctx), req.GetRenewer()))
}

func (d *Daemon) issue(who Caller, renewer string) op[*pb.GetDelegationTokenResponseProto] {
	type R = *pb.GetDelegationTokenResponseProto
	return op[R]{
		durable: true,
		name:    "getDelegationToken",
		target:  renewer,
		run: func(_ *rm.Machine, now time.Time) func() (R, error) {
			d.tokens.mu.Lock()
			t, record, err := d.tokens.d.Issue(now, who.User, renewer, who.RealUser)
			d.tokens.mu.Unlock()
			if err == nil {
				err = putToken(&d.save.tx, record)
			}
			if err != nil {
				return failed[R](err)
			}
			return done(&pb.GetDelegationTokenResponseProto{Token: t.Proto()})
		},
	}
}

// RenewToken prolongs a token and gives its new expiry.
func (d *Daemon) RenewToken(ctx context.Context, who Caller, t token.Token) (time.Time, error) {
	r, err := await(ctx, d, who, d.renew(who, t))
	return at(int64(r.GetNewExpiryTime())), err
}

func (c *clientDoor) RenewDelegationToken(
	ctx context.Context,
	req *pb.RenewDelegationTokenRequestProto,
) (*pb.RenewDelegationTokenResponseProto, error) {
	return later(ctx, c.d, c.d.renew(callerOf(ctx), token.FromProto(req.GetToken())))
}

func (d *Daemon) renew(who Caller, t token.Token) op[*pb.RenewDelegationTokenResponseProto] {
	type R = *pb.RenewDelegationTokenResponseProto
	return op[R]{
		durable: true,
		name:    "renewDelegationToken",
		run: func(_ *rm.Machine, now time.Time) func() (R, error) {
			d.tokens.mu.Lock()
			record, err := d.tokens.d.Renew(now, t, who.User)
			d.tokens.mu.Unlock()
			if err == nil {
				err = putToken(&d.save.tx, record)
			}
			if err != nil {
				return failed[R](err)
			}
			return done(&pb.RenewDelegationTokenResponseProto{NewExpiryTime: new(uint64(millis(record.Expires)))})
		},
	}
}

// CancelToken ends a token.
func (d *Daemon) CancelToken(ctx context.Context, who Caller, t token.Token) error {
	_, err := await(ctx, d, who, d.cancel(who, t))
	return err
}

func (c *clientDoor) CancelDelegationToken(
	ctx context.Context,
	req *pb.CancelDelegationTokenRequestProto,
) (*pb.CancelDelegationTokenResponseProto, error) {
	return later(ctx, c.d, c.d.cancel(callerOf(ctx), token.FromProto(req.GetToken())))
}

func (d *Daemon) cancel(who Caller, t token.Token) op[*pb.CancelDelegationTokenResponseProto] {
	type R = *pb.CancelDelegationTokenResponseProto
	return op[R]{durable: true, name: "cancelDelegationToken", run: func(*rm.Machine, time.Time) func() (R, error) {
		d.tokens.mu.Lock()
		record, err := d.tokens.d.Cancel(t, who.User)
		d.tokens.mu.Unlock()
		if err != nil {
			return failed[R](err)
		}
		d.save.tx.Delete(tokenKey(record.Sequence))
		return done(&pb.CancelDelegationTokenResponseProto{})
	}}
}

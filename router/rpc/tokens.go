// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/audit"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/router/tokens"
)

// loginTime bounds the lookup of a token in the store while its client waits.
const loginTime = 5 * time.Second

// Login returns the password of a delegation token, for clients that log in by token.
func Login(t *tokens.Tokens) hrpc.TokenFunc {
	return func(identifier []byte) ([]byte, hrpc.Identity, error) {
		ctx, cancel := context.WithTimeout(context.Background(), loginTime)
		defer cancel()
		password, id, err := t.Password(ctx, identifier)
		if err != nil && !errors.Is(err, creel.ErrInvalidToken) {
			// With this class the client retries; the class of an unknown token would stop it.
			return nil, hrpc.Identity{}, yarnrpc.ErrorOf(err)
		}
		return password, hrpc.Identity{User: id.Owner, RealUser: id.RealUser, TokenKind: token.KindDelegation}, err
	}
}

// GetDelegationToken issues a token of the routers to the caller.
func (h *Handler) GetDelegationToken(
	ctx context.Context, req *yarnpb.GetDelegationTokenRequestProto,
) (*yarnpb.GetDelegationTokenResponseProto, error) {
	audit.NoteOf(ctx).Target = req.GetRenewer()
	if err := h.permits(ctx, "issued"); err != nil {
		return nil, err
	}
	real := ""
	if c := hrpc.CallFrom(ctx); c != nil && c.Identity != nil {
		real = c.Identity.RealUser
	}
	t, _, err := h.tokens.Issue(ctx, user(ctx), req.GetRenewer(), real)
	if err != nil {
		return nil, err
	}
	return &yarnpb.GetDelegationTokenResponseProto{Token: t.Proto()}, nil
}

// RenewDelegationToken extends a token for its renewer.
func (h *Handler) RenewDelegationToken(
	ctx context.Context, req *yarnpb.RenewDelegationTokenRequestProto,
) (*yarnpb.RenewDelegationTokenResponseProto, error) {
	t := token.FromProto(req.GetToken())
	audit.NoteOf(ctx).Target = t.DelegationName()
	if err := h.permits(ctx, "renewed"); err != nil {
		return nil, err
	}
	expires, err := h.tokens.Renew(ctx, t, user(ctx))
	if err != nil {
		return nil, err
	}
	return &yarnpb.RenewDelegationTokenResponseProto{NewExpiryTime: proto.Uint64(uint64(expires.UnixMilli()))}, nil
}

// CancelDelegationToken ends a token at all routers.
func (h *Handler) CancelDelegationToken(
	ctx context.Context, req *yarnpb.CancelDelegationTokenRequestProto,
) (*yarnpb.CancelDelegationTokenResponseProto, error) {
	t := token.FromProto(req.GetToken())
	audit.NoteOf(ctx).Target = t.DelegationName()
	if err := h.permits(ctx, "cancelled"); err != nil {
		return nil, err
	}
	err := h.tokens.Cancel(ctx, t, user(ctx))
	return &yarnpb.CancelDelegationTokenResponseProto{}, err
}

// permits rejects a caller without a ticket, where tokens need one.
func (h *Handler) permits(ctx context.Context, done string) error {
	c := hrpc.CallFrom(ctx)
	return h.tokens.Permits(c != nil && c.Identity != nil && c.Identity.Method == hrpc.Kerberos, done)
}

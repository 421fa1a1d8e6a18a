// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"errors"
	"time"

	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/hrpc/telemetry"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
	"github.com/creelrm/creel/subcluster/rm/server"
	"google.golang.org/protobuf/proto"
)

func callerOf(ctx context.Context) server.Caller {
	c := hrpc.CallFrom(ctx)
	who := server.Caller{
		User:     c.Identity.User,
		RealUser: c.Identity.RealUser,
		AM:       c.Identity.TokenKind == token.KindAMRM,
		Auth:     c.Identity.Method.String(),
		Remote:   c.Remote,
		Context:  c.CallerContext.Context,
		Signed:   c.CallerContext.Signature,
	}
	if sc := telemetry.SpanContext(c.Trace); sc.IsValid() {
		who.Trace = sc.TraceID().String()
	}
	return who
}

// message is a pointer to a protobuf message.
type message[T any] interface {
	*T
	proto.Message
}

// later performs an Op for a Hadoop RPC client without blocking a goroutine.
func later[T any, M message[T]](ctx context.Context, s *server.Server, o server.Op[M]) (M, error) {
	who := callerOf(ctx)
	reply := hrpc.Later(ctx)
	server.Begin(s, who, o, func(m M, err error) {
		if m == nil {
			reply(nil, err)
			return
		}
		reply(m, err)
	})
	return nil, hrpc.ErrLater
}

// unlessGone makes a list, and then its encoding, only while the connection of its caller is open.
func unlessGone[M any](
	ctx context.Context, list func(m *rm.Machine, now time.Time) func() (M, error),
) func(m *rm.Machine, now time.Time) func() (M, error) {
	gone := func() (none M, err error) { return none, ctx.Err() }
	return func(m *rm.Machine, now time.Time) func() (M, error) {
		if ctx.Err() != nil {
			return gone
		}
		encode := list(m, now)
		return func() (M, error) {
			if ctx.Err() != nil {
				return gone()
			}
			return encode()
		}
	}
}

// errorOf converts errors to YARN's exceptions.
func errorOf(err error) *hrpc.Error {
	class := ""
	switch {
	case errors.Is(err, codec.ErrNoApplicationID):
		class = yarnrpc.ClassApplicationIDNotProvided
	case errors.Is(err, rm.ErrOutOfStep), errors.Is(err, rm.ErrAlreadyRegistered):
		class = yarnrpc.ClassInvalidMasterRequest
	case errors.Is(err, rm.ErrInvalidRelease):
		class = yarnrpc.ClassInvalidRelease
	case errors.Is(err, rm.ErrInvalidBlacklist):
		class = yarnrpc.ClassInvalidBlacklist
	}
	if class != "" {
		err = yarnrpc.Throw(class, err)
	}
	return yarnrpc.ErrorOf(err)
}

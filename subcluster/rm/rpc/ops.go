// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm"
)

// Caller is who asks, as far as anyone can know.
type Caller struct {
	User     string
	RealUser string // who acts for User, or ""
	Remote   netip.AddrPort
	Request  string // request id for the audit line, or ""
}

func callerOf(ctx context.Context) Caller {
	c := hrpc.CallFrom(ctx)
	return Caller{
		User:     c.Identity.User,
		RealUser: c.Identity.RealUser,
		Remote:   c.Remote,
		Request:  c.CallerContext.Context,
	}
}

// op is one call to the machine: the owner runs run, and what it returns makes
// the answer in a responder. A durable op is answered only when what it did is in
// the journal. A named op changes something and leaves a line of audit.
type op[T any] struct {
	run     func(m *rm.Machine, now time.Time) func() (T, error)
	durable bool
	name    string
	target  string
}

// failed is an op's answer when there is nothing to make.
func failed[T any](err error) func() (T, error) {
	return func() (t T, e error) { return t, err }
}

func done[T any](t T) func() (T, error) { return func() (T, error) { return t, nil } }

// begin posts an op; finish is called once, from a responder, or at once when
// the op cannot be taken.
func begin[T any](d *Daemon, who Caller, o op[T], finish func(T, error)) {
	err := d.box.post(func(m *rm.Machine, now time.Time) func() {
		answer := o.run(m, now)
		if o.name != "" {
			d.changed = true
		} else {
			d.reads++
		}
		last := func() {
			t, err := answer()
			if o.name != "" {
				d.audit(who, o.name, o.target, err)
			}
			finish(t, err)
		}
		if o.durable {
			d.whenSaved(last)
			return nil
		}
		return last
	})
	if err != nil {
		var none T
		finish(none, err)
	}
}

// message is a pointer to a protobuf message.
type message[T any] interface {
	*T
	proto.Message
}

// later serves an op to a Hadoop RPC client without holding a goroutine.
func later[T any, M message[T]](ctx context.Context, d *Daemon, o op[M]) (M, error) {
	who := callerOf(ctx)
	reply := hrpc.Later(ctx)
	begin(d, who, o, func(m M, err error) {
		if m == nil {
			reply(nil, err)
			return
		}
		reply(m, err)
	})
	return nil, hrpc.ErrLater
}

// await runs an op for a caller of this process.
func await[T any](ctx context.Context, d *Daemon, who Caller, o op[T]) (T, error) {
	type result struct {
		t   T
		err error
	}
	c := make(chan result, 1)
	begin(d, who, o, func(t T, err error) { c <- result{t, err} })
	var none T
	select {
	case r := <-c:
		return r.t, r.err
	case <-d.stopped:
		return none, errStopping
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// audit writes the line that every change leaves: who, from where, what, to
// what, and how it went.
func (d *Daemon) audit(who Caller, operation, target string, err error) {
	level, attrs := slog.LevelInfo, make([]slog.Attr, 0, 8)
	attrs = append(
		attrs,
		slog.String("user", who.User),
		slog.String("ip", who.Remote.Addr().String()),
		slog.String("operation", operation),
	)
	if who.RealUser != "" {
		attrs = append(attrs, slog.String("realUser", who.RealUser))
	}
	if target != "" {
		attrs = append(attrs, slog.String("target", target))
	}
	if who.Request != "" {
		attrs = append(attrs, slog.String("request", who.Request))
	}
	if err == nil {
		attrs = append(attrs, slog.String("result", "SUCCESS"))
	} else {
		level = slog.LevelWarn
		attrs = append(attrs, slog.String("result", "FAILURE"), slog.String("error", err.Error()))
	}
	d.log.LogAttrs(context.Background(), level, "audit", attrs...)
}

// denied is a refusal in the form YARN gives it: a YarnException whose text
// begins with the class of its cause.
func denied(format string, args ...any) error {
	e := hrpc.Errorf(hrpc.ClassAccessControl, format, args...)
	return yarnrpc.Throw(yarnrpc.ClassYarn, &creel.Error{Kind: creel.ErrNotPermitted, What: e.Error()})
}

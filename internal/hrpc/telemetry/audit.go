// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel/internal/audit"
	"github.com/creelrm/creel/internal/hrpc"
)

// Subject reports whether a call changes something, and names the changed object: an application's id, a queue, or "".
// request is nil for a raw method.
type Subject func(call *hrpc.Call, request proto.Message) (what string, changes bool)

// Audit writes one line for each call that changes something, when it is answered. The line contains user, login
// method, address, object, result, and the call's id, which also appears in the client's log. The handler's notes
// (audit.NoteOf) override the results of subject and the answer.
func Audit(logger *slog.Logger, subject Subject) hrpc.Interceptor {
	return func(
		ctx context.Context,
		call *hrpc.Call,
		request proto.Message,
	) (context.Context, func(proto.Message, error), error) {
		what, changes := subject(call, request)
		if !changes {
			return nil, nil, nil
		}
		began := time.Now()
		ctx, note := audit.WithNote(ctx)
		return ctx, func(_ proto.Message, err error) {
			err = cmp.Or(err, note.Err)
			l := audit.Line{
				User: call.Identity.User, RealUser: call.Identity.RealUser,
				Auth: call.Identity.Method.String(), From: call.Remote.String(),
				Operation: call.Method, Target: cmp.Or(note.Target, what),
				Result: result(err), Context: call.CallerContext.Context,
			}
			if err != nil {
				l.Error = err.Error()
			}
			if sc := SpanContext(call.Trace); sc.IsValid() {
				l.Trace = sc.TraceID().String()
			}
			l.Log(logger,
				slog.String("client_id", hex.EncodeToString([]byte(call.ClientID))),
				slog.Int("call_id", int(call.CallID)),
				slog.Duration("took", time.Since(began)),
			)
		}, nil
	}
}

// result is the outcome of a call in one word.
func result(err error) string {
	var e *hrpc.Error
	switch {
	case err == nil:
		return audit.Success
	case errors.As(err, &e) && e.Class == hrpc.ClassRetriable:
		return audit.Busy
	}
	return audit.Failure
}

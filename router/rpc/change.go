// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/audit"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/router/client"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/statestore/intents"
	"github.com/creelrm/creel/subcluster/remote"
)

// change is the codec of a call that changes an application. The call goes to all parts of the application, and is
// queued while its home is unavailable.
type change struct {
	// read returns the intent of a request; its application is zero if the request names none.
	read func(request []byte) (intents.Intent, error)
	// kept returns the answer for a queued call.
	kept func(i intents.Intent) proto.Message
}

// readAs parses a request and lets fill set the intent from it.
func readAs[T any, M interface {
	vt[T]
	GetApplicationId() *yarnpb.ApplicationIdProto
}](fill func(M, *intents.Intent)) func([]byte) (intents.Intent, error) {
	return func(request []byte) (i intents.Intent, err error) {
		m := M(new(T))
		if err := m.UnmarshalVT(request); err != nil {
			return i, badMessage(err)
		}
		i.Application = yarnpb.ToApplicationID(m.GetApplicationId())
		fill(m, &i)
		return i, nil
	}
}

var changes = map[intents.Verb]change{
	intents.Kill: {
		readAs(func(r *yarnpb.KillApplicationRequestProto, i *intents.Intent) { i.Diagnostics = r.GetDiagnostics() }),
		// The client asks again until it is true.
		func(intents.Intent) proto.Message {
			return &yarnpb.KillApplicationResponseProto{IsKillCompleted: proto.Bool(false)}
		},
	},
	intents.Move: {
		readAs(func(r *yarnpb.MoveApplicationAcrossQueuesRequestProto, i *intents.Intent) {
			i.Queue = r.GetTargetQueue()
		}),
		func(intents.Intent) proto.Message { return &yarnpb.MoveApplicationAcrossQueuesResponseProto{} },
	},
	intents.Priority: {
		readAs(func(r *yarnpb.UpdateApplicationPriorityRequestProto, i *intents.Intent) {
			i.Level = r.GetApplicationPriority().GetPriority()
		}),
		func(i intents.Intent) proto.Message {
			return &yarnpb.UpdateApplicationPriorityResponseProto{
				ApplicationPriority: &yarnpb.PriorityProto{Priority: proto.Int32(i.Level)},
			}
		},
	},
	intents.Timeouts: {
		readAs(func(r *yarnpb.UpdateApplicationTimeoutsRequestProto, i *intents.Intent) {
			i.Expiry = map[string]string{}
			for _, t := range r.GetApplicationTimeouts() {
				kind := strings.TrimPrefix(t.GetApplicationTimeoutType().String(), client.TimeoutPrefix)
				i.Expiry[kind] = t.GetExpireTime()
			}
		}),
		func(i intents.Intent) proto.Message {
			return &yarnpb.UpdateApplicationTimeoutsResponseProto{ApplicationTimeouts: client.Expiries(i)}
		},
	},
	intents.Fail: {
		func(request []byte) (i intents.Intent, err error) {
			var r yarnpb.FailApplicationAttemptRequestProto
			if err := r.UnmarshalVT(request); err != nil {
				return i, badMessage(err)
			}
			i.Application = yarnpb.ToApplicationID(r.GetApplicationAttemptId().GetApplicationId())
			i.Attempt = r.GetApplicationAttemptId().GetAttemptId()
			return i, nil
		},
		func(intents.Intent) proto.Message { return &yarnpb.FailApplicationAttemptResponseProto{} },
	},
}

// change serves a call that changes an application. The members get the request unchanged. A stored intent has only
// the fields that this router understands.
func (h *Handler) change(verb intents.Verb, c change) hrpc.RawHandler {
	call := client.Changes[verb]
	return func(ctx context.Context, request []byte) ([]byte, error) {
		i, err := c.read(request)
		if err != nil {
			return nil, err
		}
		if i.Application.IsZero() {
			return nil, &creel.Error{
				Kind: creel.ErrInvalidRequest,
				What: "the request names no application",
				Try:  "set its application id",
			}
		}
		note := audit.NoteOf(ctx)
		note.Target = i.Application.String()
		if i.Attempt != 0 {
			note.Target = creel.AttemptID{Application: i.Application, Attempt: i.Attempt}.String()
		}
		i.Verb, i.User = verb, user(ctx)
		ctx = withOrigin(ctx)
		answer, kept, err := server.Change(
			ctx,
			h.server,
			i,
			func(ctx context.Context, m *remote.Member, app creel.ApplicationID) ([]byte, error) {
				body := request
				if app != i.Application {
					var err error
					if body, err = proto.Marshal(call.Request(yarnpb.FromApplicationID(app), i)); err != nil {
						return nil, err
					}
				}
				return m.Client(ctx, remote.Write, user(ctx), call.Method, body)
			},
		)
		if err != nil || kept == nil {
			return answer, err
		}
		return proto.Marshal(c.kept(i))
	}
}

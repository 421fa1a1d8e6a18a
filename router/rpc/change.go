// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/audit"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/statestore/intents"
	"github.com/creelrm/creel/subcluster/remote"
)

// change is a call that changes an application. It goes to all parts of the application, and is queued while its home
// is unavailable.
type change struct {
	method string
	// read returns the intent of a request; its application is zero if the request names none.
	read func(request []byte) (intents.Intent, error)
	// request returns the call for an intent.
	request func(app *yarnpb.ApplicationIdProto, i intents.Intent) proto.Message
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
		"forceKillApplication",
		readAs(func(r *yarnpb.KillApplicationRequestProto, i *intents.Intent) { i.Diagnostics = r.GetDiagnostics() }),
		func(app *yarnpb.ApplicationIdProto, i intents.Intent) proto.Message {
			return &yarnpb.KillApplicationRequestProto{ApplicationId: app, Diagnostics: proto.String(i.Diagnostics)}
		},
		// The client asks again until it is true.
		func(intents.Intent) proto.Message {
			return &yarnpb.KillApplicationResponseProto{IsKillCompleted: proto.Bool(false)}
		},
	},
	intents.Move: {
		"moveApplicationAcrossQueues",
		readAs(func(r *yarnpb.MoveApplicationAcrossQueuesRequestProto, i *intents.Intent) {
			i.Queue = r.GetTargetQueue()
		}),
		func(app *yarnpb.ApplicationIdProto, i intents.Intent) proto.Message {
			return &yarnpb.MoveApplicationAcrossQueuesRequestProto{
				ApplicationId: app,
				TargetQueue:   proto.String(i.Queue),
			}
		},
		func(intents.Intent) proto.Message { return &yarnpb.MoveApplicationAcrossQueuesResponseProto{} },
	},
	intents.Priority: {
		"updateApplicationPriority",
		readAs(func(r *yarnpb.UpdateApplicationPriorityRequestProto, i *intents.Intent) {
			i.Level = r.GetApplicationPriority().GetPriority()
		}),
		func(app *yarnpb.ApplicationIdProto, i intents.Intent) proto.Message {
			return &yarnpb.UpdateApplicationPriorityRequestProto{
				ApplicationId: app, ApplicationPriority: &yarnpb.PriorityProto{Priority: proto.Int32(i.Level)},
			}
		},
		func(i intents.Intent) proto.Message {
			return &yarnpb.UpdateApplicationPriorityResponseProto{
				ApplicationPriority: &yarnpb.PriorityProto{Priority: proto.Int32(i.Level)},
			}
		},
	},
	intents.Timeouts: {
		"updateApplicationTimeouts",
		readAs(func(r *yarnpb.UpdateApplicationTimeoutsRequestProto, i *intents.Intent) {
			i.Expiry = map[string]string{}
			for _, t := range r.GetApplicationTimeouts() {
				i.Expiry[strings.TrimPrefix(t.GetApplicationTimeoutType().String(), timeoutPrefix)] = t.GetExpireTime()
			}
		}),
		func(app *yarnpb.ApplicationIdProto, i intents.Intent) proto.Message {
			return &yarnpb.UpdateApplicationTimeoutsRequestProto{ApplicationId: app, ApplicationTimeouts: expiries(i)}
		},
		func(i intents.Intent) proto.Message {
			return &yarnpb.UpdateApplicationTimeoutsResponseProto{ApplicationTimeouts: expiries(i)}
		},
	},
	intents.Fail: {
		"failApplicationAttempt",
		func(request []byte) (i intents.Intent, err error) {
			var r yarnpb.FailApplicationAttemptRequestProto
			if err := r.UnmarshalVT(request); err != nil {
				return i, badMessage(err)
			}
			i.Application = yarnpb.ToApplicationID(r.GetApplicationAttemptId().GetApplicationId())
			i.Attempt = r.GetApplicationAttemptId().GetAttemptId()
			return i, nil
		},
		func(app *yarnpb.ApplicationIdProto, i intents.Intent) proto.Message {
			return &yarnpb.FailApplicationAttemptRequestProto{ApplicationAttemptId: &yarnpb.ApplicationAttemptIdProto{
				ApplicationId: app, AttemptId: proto.Int32(i.Attempt),
			}}
		},
		func(intents.Intent) proto.Message { return &yarnpb.FailApplicationAttemptResponseProto{} },
	},
}

// timeoutPrefix precedes the name of a timeout's type on the wire. Intents use REST's names, without it.
const timeoutPrefix = "APP_TIMEOUT_"

func expiries(i intents.Intent) (out []*yarnpb.ApplicationUpdateTimeoutMapProto) {
	for kind, at := range i.Expiry {
		number, ok := yarnpb.ApplicationTimeoutTypeProto_value[timeoutPrefix+kind]
		if !ok {
			continue // of a newer client than this router
		}
		out = append(out, &yarnpb.ApplicationUpdateTimeoutMapProto{
			ApplicationTimeoutType: yarnpb.ApplicationTimeoutTypeProto(number).Enum(), ExpireTime: proto.String(at),
		})
	}
	return out
}

// change serves a call that changes an application. The members get the request unchanged. A stored intent has only
// the fields that this router understands.
func (h *Handler) change(verb intents.Verb, c change) hrpc.RawHandler {
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
					if body, err = proto.Marshal(c.request(yarnpb.FromApplicationID(app), i)); err != nil {
						return nil, err
					}
				}
				return m.Client(ctx, remote.Write, user(ctx), c.method, body)
			},
		)
		if err != nil || kept == nil {
			return answer, err
		}
		return proto.Marshal(c.kept(i))
	}
}

// absentContainer recognises the rejection of a signal to a container that a ResourceManager does not know. Hadoop's
// and creel's ResourceManagers reject it without a special class, but with this text.
func absentContainer(err error) error {
	if errors.Is(err, creel.ErrInvalidRequest) && strings.Contains(err.Error(), "absent container") {
		return &creel.Error{Kind: creel.ErrContainerNotFound, What: err.Error()}
	}
	return err
}

// CarryOut sends a stored intent to a member with its user's name, and reports whether it is done there. A kill is
// done when the application has ended. The loop over recorded intents calls it.
func CarryOut(ctx context.Context, m *remote.Member, i intents.Intent) (done bool, err error) {
	if i.Verb == intents.Signal {
		request, err := proto.Marshal(&yarnpb.SignalContainerRequestProto{
			ContainerId: yarnpb.FromContainerID(i.Container),
			Command:     new(yarnpb.SignalContainerCommandProto(i.Command)),
		})
		if err != nil {
			return false, err
		}
		_, err = m.Client(ctx, remote.Write, i.User, "signalToContainer", request)
		return err == nil, absentContainer(err)
	}
	c, ok := changes[i.Verb]
	if !ok {
		return false, fmt.Errorf("%q: %w", i.Verb, intents.ErrUnknownVerb)
	}
	request, err := proto.Marshal(c.request(yarnpb.FromApplicationID(i.Application), i))
	if err != nil {
		return false, err
	}
	b, err := m.Client(ctx, remote.Write, i.User, c.method, request)
	if err != nil || i.Verb != intents.Kill {
		return err == nil, err
	}
	var killed yarnpb.KillApplicationResponseProto
	err = parse(b, &killed)
	return killed.GetIsKillCompleted(), err
}

// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/statestore/intents"
	"github.com/creelrm/creel/subcluster/remote"
)

// Change is the RPC by which an intent of one verb is carried out.
type Change struct {
	Method string
	// Request returns the call for an intent, for the application of that id: an application or a UAM.
	Request func(app *yarnpb.ApplicationIdProto, i intents.Intent) proto.Message
}

// Changes has the RPCs of the intents that change an application.
var Changes = map[intents.Verb]Change{
	intents.Kill: {
		"forceKillApplication",
		func(app *yarnpb.ApplicationIdProto, i intents.Intent) proto.Message {
			return &yarnpb.KillApplicationRequestProto{ApplicationId: app, Diagnostics: proto.String(i.Diagnostics)}
		},
	},
	intents.Move: {
		"moveApplicationAcrossQueues",
		func(app *yarnpb.ApplicationIdProto, i intents.Intent) proto.Message {
			return &yarnpb.MoveApplicationAcrossQueuesRequestProto{
				ApplicationId: app,
				TargetQueue:   proto.String(i.Queue),
			}
		},
	},
	intents.Priority: {
		"updateApplicationPriority",
		func(app *yarnpb.ApplicationIdProto, i intents.Intent) proto.Message {
			return &yarnpb.UpdateApplicationPriorityRequestProto{
				ApplicationId: app, ApplicationPriority: &yarnpb.PriorityProto{Priority: proto.Int32(i.Level)},
			}
		},
	},
	intents.Timeouts: {
		"updateApplicationTimeouts",
		func(app *yarnpb.ApplicationIdProto, i intents.Intent) proto.Message {
			return &yarnpb.UpdateApplicationTimeoutsRequestProto{ApplicationId: app, ApplicationTimeouts: Expiries(i)}
		},
	},
	intents.Fail: {
		"failApplicationAttempt",
		func(app *yarnpb.ApplicationIdProto, i intents.Intent) proto.Message {
			return &yarnpb.FailApplicationAttemptRequestProto{ApplicationAttemptId: &yarnpb.ApplicationAttemptIdProto{
				ApplicationId: app, AttemptId: proto.Int32(i.Attempt),
			}}
		},
	},
}

// TimeoutPrefix precedes the name of a timeout's type on the wire. Intents use REST's names, without it.
const TimeoutPrefix = "APP_TIMEOUT_"

// Expiries converts the expiry times of an intent. It omits types that this router does not know.
func Expiries(i intents.Intent) (out []*yarnpb.ApplicationUpdateTimeoutMapProto) {
	for kind, at := range i.Expiry {
		number, ok := yarnpb.ApplicationTimeoutTypeProto_value[TimeoutPrefix+kind]
		if !ok {
			continue // of a newer client than this router
		}
		out = append(out, &yarnpb.ApplicationUpdateTimeoutMapProto{
			ApplicationTimeoutType: yarnpb.ApplicationTimeoutTypeProto(number).Enum(), ExpireTime: proto.String(at),
		})
	}
	return out
}

// passing reports whether an intent that a member answered with an HTTP status may succeed later.
type passing func(i intents.Intent, code int) bool

// carryOut is CarryOut for the statuses that pass at a member of this kind.
func (c member) carryOut(ctx context.Context, i intents.Intent, later passing) (done bool, err error) {
	if i.REST {
		return c.carryOutREST(ctx, i, later)
	}
	if i.Verb == intents.Signal {
		request, err := proto.Marshal(&yarnpb.SignalContainerRequestProto{
			ContainerId: yarnpb.FromContainerID(i.Container),
			Command:     new(yarnpb.SignalContainerCommandProto(i.Command)),
		})
		if err != nil {
			return false, err
		}
		_, err = c.m.Client(ctx, remote.Write, i.User, "signalToContainer", request)
		return err == nil, AbsentContainer(err)
	}
	change, ok := Changes[i.Verb]
	if !ok {
		return false, fmt.Errorf("%q: %w", i.Verb, intents.ErrUnknownVerb)
	}
	request, err := proto.Marshal(change.Request(yarnpb.FromApplicationID(i.Application), i))
	if err != nil {
		return false, err
	}
	answer, err := c.m.Client(ctx, remote.Write, i.User, change.Method, request)
	if err != nil || i.Verb != intents.Kill {
		return err == nil, err
	}
	var killed yarnpb.KillApplicationResponseProto
	err = killed.UnmarshalVT(answer)
	return killed.GetIsKillCompleted(), err
}

// AbsentContainer recognises the rejection of a signal to a container that a ResourceManager does not know. Hadoop's
// and creel's ResourceManagers reject it without a special class, but with this text.
func AbsentContainer(err error) error {
	if errors.Is(err, creel.ErrInvalidRequest) && strings.Contains(err.Error(), "absent container") {
		return &creel.Error{Kind: creel.ErrContainerNotFound, What: err.Error()}
	}
	return err
}

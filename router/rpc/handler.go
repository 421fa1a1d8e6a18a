// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"bytes"
	"context"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/audit"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/client"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/router/tokens"
	"github.com/creelrm/creel/statestore/events"
	"github.com/creelrm/creel/subcluster/remote"
)

// Handler serves ApplicationClientProtocol.
type Handler struct {
	yarnrpc.UnimplementedApplicationClientProtocol
	server *server.Server
	tokens *tokens.Tokens
	ids    ids
	long   server.Lists[[]appReport]
}

// Service returns the protocol's service for an hrpc server.
func Service(s *server.Server, t *tokens.Tokens) hrpc.Service {
	h := &Handler{server: s, tokens: t}
	h.long.Last = s.LastParts()
	h.ids = ids{
		users: map[string]*userIDs{},
		gave:  func(first creel.ApplicationID, n int) { s.Gave(first, n, "") },
		fetch: func(ctx context.Context, user string, request []byte) ([]byte, error) {
			return server.Any(ctx, s, func(ctx context.Context, m *remote.Member) ([]byte, error) {
				return m.Client(ctx, remote.Read, user, "getNewApplication", request)
			})
		},
	}
	table := yarnrpc.ApplicationClientProtocolService(h)
	for name, f := range forwards {
		table.Methods[name] = hrpc.Method{Raw: h.forward(name, f.kind, f.app)}
	}
	for _, doc := range router.Documents {
		if doc.Protocol == "RPC" && doc.Route == router.AtAny {
			table.Methods[doc.Name] = hrpc.Method{Raw: h.anyone(doc.Name)}
		}
	}
	table.Methods["getNewApplication"] = hrpc.Method{Raw: h.newApplication, Inline: true}
	table.Methods["submitApplication"] = hrpc.Method{Raw: h.submit}
	for verb, c := range changes {
		table.Methods[client.Changes[verb].Method] = hrpc.Method{Raw: h.change(verb, c)}
	}
	table.Methods[reportMethod] = hrpc.Method{Raw: h.report}
	return table
}

// forwards has the calls about one application. app reads the application of a request.
var forwards = map[string]struct {
	kind remote.Kind
	app  func(request []byte) (creel.ApplicationID, error)
}{
	"getApplicationAttemptReport": {
		remote.Read,
		appOf(func(r *yarnpb.GetApplicationAttemptReportRequestProto) *yarnpb.ApplicationIdProto {
			return r.GetApplicationAttemptId().GetApplicationId()
		}),
	},
	"getApplicationAttempts": {
		remote.Read,
		appOf(func(r *yarnpb.GetApplicationAttemptsRequestProto) *yarnpb.ApplicationIdProto {
			return r.GetApplicationId()
		}),
	},
}

// vt is a message with generated fast parsing.
type vt[T any] interface {
	*T
	UnmarshalVT([]byte) error
}

// appOf returns a function that reads the application of a request.
func appOf[T any, M vt[T]](field func(M) *yarnpb.ApplicationIdProto) func([]byte) (creel.ApplicationID, error) {
	return func(request []byte) (creel.ApplicationID, error) {
		m := M(new(T))
		if err := m.UnmarshalVT(request); err != nil {
			return creel.ApplicationID{}, badMessage(err)
		}
		app := yarnpb.ToApplicationID(field(m))
		if app.IsZero() {
			return app, &creel.Error{
				Kind: creel.ErrInvalidRequest,
				What: "the request names no application",
				Try:  "set its application id",
			}
		}
		return app, nil
	}
}

func badMessage(err error) error {
	return &hrpc.Error{Class: hrpc.ClassInvalidProtobuf, Message: err.Error(), Detail: hrpc.DetailApplication}
}

// user returns the caller.
func user(ctx context.Context) string {
	if c := hrpc.CallFrom(ctx); c != nil && c.Identity != nil {
		return c.Identity.User
	}
	return ""
}

// withOrigin attaches the client's address, for events.
func withOrigin(ctx context.Context) context.Context {
	if c := hrpc.CallFrom(ctx); c != nil {
		return events.WithOrigin(ctx, c.Remote.String())
	}
	return ctx
}

// forward sends a call to the home of its application.
func (h *Handler) forward(
	method string,
	kind remote.Kind,
	app func([]byte) (creel.ApplicationID, error),
) hrpc.RawHandler {
	return func(ctx context.Context, request []byte) ([]byte, error) {
		id, err := app(request)
		if err != nil {
			return nil, err
		}
		answer, _, err := server.AtHome(ctx, h.server, id, func(ctx context.Context, m *remote.Member) ([]byte, error) {
			return m.Client(ctx, kind, user(ctx), method, request)
		})
		return answer, err
	}
}

// newApplication returns an id from any member. A request with fields comes from a newer client and is forwarded to a
// member.
func (h *Handler) newApplication(ctx context.Context, request []byte) ([]byte, error) {
	if len(request) == 0 {
		return h.ids.take(user(ctx), func() func([]byte, error) { return hrpc.LaterRaw(ctx) })
	}
	reply, caller, request := hrpc.LaterRaw(ctx), user(ctx), bytes.Clone(request)
	go func() { reply(h.ids.fetch(ctx, caller, request)) }()
	return nil, hrpc.ErrLater
}

func (h *Handler) anyone(method string) hrpc.RawHandler {
	return func(ctx context.Context, request []byte) ([]byte, error) {
		return server.Any(ctx, h.server, func(ctx context.Context, m *remote.Member) ([]byte, error) {
			answer, err := m.Client(ctx, remote.Read, user(ctx), method, request)
			return answer, server.OfNoPlan(err)
		})
	}
}

// submit reads the fields of a submission that policies use, and forwards the message unchanged.
func (h *Handler) submit(ctx context.Context, request []byte) ([]byte, error) {
	var c yarnpb.ApplicationSubmissionContextProto
	if err := readContext(request, &c); err != nil {
		return nil, badMessage(err)
	}
	audit.NoteOf(ctx).Target = yarnpb.ToApplicationID(c.GetApplicationId()).String()
	sub, err := server.ReadSubmission(&c, user(ctx))
	if err != nil {
		return nil, err
	}
	if err := h.server.CheckSize(sub.Application, len(request)); err != nil {
		return nil, err
	}
	var answer []byte
	out := h.server.Submit(ctx, sub, func(ctx context.Context, m *remote.Member, claim int64) error {
		a, err := m.Client(ctx, remote.Write, sub.User, "submitApplication", yarnrpc.WithClaim(request, claim))
		answer = a
		return err
	})
	return answer, out.Err
}

// Fields of ApplicationSubmissionContextProto that may be large and that no policy reads. These are the launch
// context with its files, tokens and environment, the rules for logs, and the scheduler's properties.
const (
	fieldSpec       protowire.Number = 5
	fieldLogs       protowire.Number = 14
	fieldProperties protowire.Number = 19
)

// readContext decodes the fields of a SubmitApplicationRequestProto that policies use. The member that gets the
// request decodes all of it, and rejects invalid data.
func readContext(request []byte, into *yarnpb.ApplicationSubmissionContextProto) error {
	var room [512]byte
	kept := room[:0]
	for len(request) > 0 {
		num, typ, n := protowire.ConsumeField(request)
		if n < 0 {
			return protowire.ParseError(n)
		}
		field := request[:n]
		request = request[n:]
		if num != 1 || typ != protowire.BytesType {
			continue
		}
		_, _, tag := protowire.ConsumeTag(field)
		inner, _ := protowire.ConsumeBytes(field[tag:])
		for len(inner) > 0 {
			num, _, n := protowire.ConsumeField(inner)
			if n < 0 {
				return protowire.ParseError(n)
			}
			if num != fieldSpec && num != fieldLogs && num != fieldProperties {
				kept = append(kept, inner[:n]...)
			}
			inner = inner[n:]
		}
	}
	return into.UnmarshalVT(kept)
}

// missingError returns the error of a merged call if no member answered.
func missingError(what string, text string) error {
	return &creel.Error{
		Kind: creel.ErrUnavailable,
		What: fmt.Sprintf("no subcluster answered for %s", what),
		Why:  text,
		Try:  "try again in a moment",
	}
}

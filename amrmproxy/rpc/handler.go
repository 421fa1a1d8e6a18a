// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"errors"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/amrmproxy"
	"github.com/creelrm/creel/amrmproxy/server"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// Verifier verifies AMRM tokens. Verify returns the token, its issuer and its password. The error is of kind
// creel.ErrInvalidToken, or creel.ErrUnavailable while keys cannot be read.
type Verifier interface {
	Verify(ctx context.Context, identifier []byte) (token.AMRM, creel.SubclusterID, []byte, error)
}

// NewServer serves ApplicationMasterProtocol to AMs that authenticate by AMRM token. It uses the limits of limits,
// and sets its protocols and users. relay may be nil.
func NewServer(s *server.Server, keys Verifier, relay *Relay, limits hrpc.Config) (*hrpc.Server, error) {
	h := &handler{server: s}
	limits.Services = []hrpc.Service{
		yarnrpc.Inline(
			yarnrpc.ApplicationMasterProtocolService(h),
			"registerApplicationMaster",
			"finishApplicationMaster",
			"allocate",
		),
	}
	limits.ErrorOf = errorOf
	limits.Simple = false
	if relay != nil {
		limits.Relay = relay.login
	}
	limits.Tokens = func(identifier []byte) ([]byte, hrpc.Identity, error) {
		id, home, password, err := keys.Verify(context.Background(), identifier)
		if errors.Is(err, creel.ErrUnavailable) {
			// AMs retry; with the class of an unknown token they would exit.
			return nil, hrpc.Identity{}, errorOf(err)
		}
		if err != nil {
			return nil, hrpc.Identity{}, err
		}
		who := &server.Caller{
			Attempt: id.Attempt,
			Home:    home,
			Credential: &hrpc.Credential{
				Identifier: append([]byte(nil), identifier...),
				Password:   password,
				Kind:       token.KindAMRM,
			},
		}
		return password, hrpc.Identity{User: id.Attempt.String(), TokenKind: token.KindAMRM, Value: who}, nil
	}
	return hrpc.NewServer(limits)
}

// errorOf maps a session's errors to the classes of Hadoop's clients. A wrong response id or a second registration
// gets the class that ends the AM, as with a ResourceManager. While home or the store is unavailable the class is a
// standby ResourceManager's: then AMs retry for yarn.resourcemanager.connect.max-wait.ms. AMs with a failover client,
// such as Spark's, would retry a RetriableException only once (RetryPolicies.FailoverOnNetworkExceptionRetry).
func errorOf(err error) *hrpc.Error {
	var own *creel.Error
	var remote *hrpc.RemoteError
	if errors.As(err, &own) && !errors.As(err, &remote) {
		switch own.Kind {
		case creel.ErrInvalidRequest:
			err = yarnrpc.Throw(yarnrpc.ClassInvalidMasterRequest, err)
		case creel.ErrUnavailable:
			err = yarnrpc.Throw(hrpc.ClassStandby, err)
		}
	}
	return yarnrpc.ErrorOf(err)
}

// handler passes calls to their sessions, which answer asynchronously.
type handler struct{ server *server.Server }

func (h *handler) call(ctx context.Context, what amrmproxy.FromAM) error {
	who, ok := hrpc.CallFrom(ctx).Identity.Value.(*server.Caller)
	if !ok {
		return &creel.Error{
			Kind: creel.ErrInvalidToken,
			What: "no AMRM token",
			Why:  "the connection has none",
			Try:  "connect with the token of the attempt",
		}
	}
	h.server.Call(*who, what, hrpc.LaterSending(ctx))
	return hrpc.ErrLater
}

func (h *handler) RegisterApplicationMaster(
	ctx context.Context,
	req *yarnpb.RegisterApplicationMasterRequestProto,
) (*yarnpb.RegisterApplicationMasterResponseProto, error) {
	return nil, h.call(ctx, amrmproxy.FromAM{Register: req})
}

func (h *handler) Allocate(
	ctx context.Context,
	req *yarnpb.AllocateRequestProto,
) (*yarnpb.AllocateResponseProto, error) {
	return nil, h.call(ctx, amrmproxy.FromAM{Allocate: req})
}

func (h *handler) FinishApplicationMaster(
	ctx context.Context,
	req *yarnpb.FinishApplicationMasterRequestProto,
) (*yarnpb.FinishApplicationMasterResponseProto, error) {
	return nil, h.call(ctx, amrmproxy.FromAM{Finish: req})
}

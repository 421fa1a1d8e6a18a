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

// Verifier returns the issuer of an AMRM token, and its password. The error is of kind creel.ErrInvalidToken, or
// creel.ErrUnavailable while that cannot be known.
type Verifier interface {
	Verify(ctx context.Context, identifier []byte) (token.AMRM, creel.SubclusterID, []byte, error)
}

// NewServer serves ApplicationMasterProtocol to AMs, by AMRM token only. limits are those of hrpc.Config; the
// protocols and their users are set here. relay may be nil.
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
			// AMs come again; by its own class an unknown token ends them.
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

// errorOf maps a session's own refusals to the classes that Hadoop's clients know. A wrong response id or a second
// registration has one that ends the AM, as the ResourceManager's would. While home or the store is away it is a
// standby ResourceManager's: with it AMs retry for yarn.resourcemanager.connect.max-wait.ms. RetriableException is
// retried once by AMs whose client is set up for failover, as Spark's is
// (RetryPolicies.FailoverOnNetworkExceptionRetry).
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

// handler posts calls and answers them later.
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

// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"errors"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/amrmproxy"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// NewServer is the door to masters: ApplicationMasterProtocol, by AMRM token
// only. limits are those of hrpc.Config; what is served and to whom is set here.
func NewServer(p *Proxy, keys *KeyBook, limits hrpc.Config) (*hrpc.Server, error) {
	d := &door{proxy: p}
	limits.Services = []hrpc.Service{
		yarnrpc.Inline(
			yarnrpc.ApplicationMasterProtocolService(d),
			"registerApplicationMaster",
			"finishApplicationMaster",
			"allocate",
		),
	}
	limits.ErrorOf = errorOf
	limits.Simple = false
	limits.Tokens = func(identifier []byte) ([]byte, hrpc.Identity, error) {
		id, home, password, err := keys.Verify(context.Background(), identifier)
		if errors.Is(err, creel.ErrUnavailable) {
			return nil, hrpc.Identity{}, yarnrpc.ErrorOf(
				err,
			) // masters come again; by its own class an unknown token ends them
		}
		if err != nil {
			return nil, hrpc.Identity{}, err
		}
		who := &Caller{
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

// errorOf gives a session's own refusals the class that Hadoop's clients know:
// one for a wrong response id or a second registration, which ends the master,
// as the ResourceManager's would.
func errorOf(err error) *hrpc.Error {
	var own *creel.Error
	var remote *hrpc.RemoteError
	if errors.As(err, &own) && !errors.As(err, &remote) && own.Kind == creel.ErrInvalidRequest {
		err = yarnrpc.Throw(yarnrpc.ClassInvalidMasterRequest, err)
	}
	return yarnrpc.ErrorOf(err)
}

// door posts calls and answers them later.
type door struct{ proxy *Proxy }

func (d *door) call(ctx context.Context, what amrmproxy.FromAM) error {
	who, ok := hrpc.CallFrom(ctx).Identity.Value.(*Caller)
	if !ok {
		return &creel.Error{
			Kind: creel.ErrInvalidToken,
			What: "no AMRM token",
			Why:  "the connection has none",
			Try:  "connect with the token of the attempt",
		}
	}
	d.proxy.Call(*who, what, hrpc.LaterSending(ctx))
	return hrpc.ErrLater
}

func (d *door) RegisterApplicationMaster(
	ctx context.Context,
	req *yarnpb.RegisterApplicationMasterRequestProto,
) (*yarnpb.RegisterApplicationMasterResponseProto, error) {
	return nil, d.call(ctx, amrmproxy.FromAM{Register: req})
}

func (d *door) Allocate(ctx context.Context, req *yarnpb.AllocateRequestProto) (*yarnpb.AllocateResponseProto, error) {
	return nil, d.call(ctx, amrmproxy.FromAM{Allocate: req})
}

func (d *door) FinishApplicationMaster(
	ctx context.Context,
	req *yarnpb.FinishApplicationMasterRequestProto,
) (*yarnpb.FinishApplicationMasterResponseProto, error) {
	return nil, d.call(ctx, amrmproxy.FromAM{Finish: req})
}

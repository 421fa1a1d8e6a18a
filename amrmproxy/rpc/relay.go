// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/amrmproxy/server"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/token"
)

// Relay has AMs log in through the proxy at homes whose keys it does not have, such as members running Hadoop's
// ResourceManager without a key file: the application's claim names its home.
type Relay struct {
	// Homes finds the home of an application by its claim; creel.ErrApplicationNotFound
	// if it has none.
	Homes interface {
		Home(ctx context.Context, app creel.ApplicationID) (creel.SubclusterID, error)
	}
	// Foreign reports whether tokens of a key are of a home that shares no keys.
	Foreign func(key int32, home creel.SubclusterID) bool
	// Login begins a login at a member.
	Login func(creel.SubclusterID) (*hrpc.RelayedLogin, error)

	begun atomic.Int64
}

// Begun is how many logins went on to an AM's home so far.
func (r *Relay) Begun() int64 { return r.begun.Load() }

// claimTime bounds the look for a claim; an AM that logs in waits for it.
const claimTime = 3 * time.Second

// login begins a login at the home of a token's application, if that is one that alone
// can check it; nil where our own keys have to do.
func (r *Relay) login(identifier []byte) (*hrpc.RelayedLogin, func() hrpc.Identity, error) {
	id, err := token.ParseAMRM(identifier)
	if err != nil || !r.Foreign(id.KeyID, "") {
		return nil, nil, nil // its key is known, or its issuer is unknown: refused as such
	}
	ctx, cancel := context.WithTimeout(context.Background(), claimTime)
	defer cancel()
	home, err := r.Homes.Home(ctx, id.Attempt.Application)
	switch {
	case errors.Is(err, creel.ErrApplicationNotFound):
		return nil, nil, nil // it came past the routers
	case err != nil:
		return nil, nil, errorOf(&creel.Error{
			Kind: creel.ErrUnavailable,
			What: "the home of " + id.Attempt.Application.String() + " is not known",
			Why:  err.Error(),
			Try:  "try again",
		})
	case !r.Foreign(id.KeyID, home):
		return nil, nil, nil
	}
	login, err := r.Login(home)
	if err != nil {
		return nil, nil, errorOf(err)
	}
	r.begun.Add(1)
	return login, func() hrpc.Identity {
		who := &server.Caller{Attempt: id.Attempt, Home: home, Login: login}
		return hrpc.Identity{User: id.Attempt.String(), TokenKind: token.KindAMRM, Value: who}
	}, nil
}

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

// Relay lets AMs log in through the proxy at homes whose keys the proxy does not have, such as members running
// Hadoop's ResourceManager without a key file. The application's claim names its home.
type Relay struct {
	// Homes finds the home of an application by its claim. The error is of kind creel.ErrApplicationNotFound if there
	// is none.
	Homes interface {
		Home(ctx context.Context, app creel.ApplicationID) (creel.SubclusterID, error)
	}
	// Foreign reports whether only home can check tokens of a key.
	Foreign func(key int32, home creel.SubclusterID) bool
	// Login starts a login at a member.
	Login func(creel.SubclusterID) (*hrpc.RelayedLogin, error)

	begun atomic.Int64
}

// Begun returns the number of logins that were relayed to a home so far; 0 for a nil Relay.
func (r *Relay) Begun() int64 {
	if r == nil {
		return 0
	}
	return r.begun.Load()
}

// claimTime bounds the search for a claim, during which the AM waits.
const claimTime = 3 * time.Second

// login starts a login at the home of a token's application, if only home can check the token. Otherwise it returns
// nil, and the proxy's keys apply.
func (r *Relay) login(identifier []byte) (*hrpc.RelayedLogin, func() hrpc.Identity, error) {
	id, err := token.ParseAMRM(identifier)
	if err != nil || !r.Foreign(id.KeyID, "") {
		return nil, nil, nil // the key is known, or the token is invalid: Verify decides
	}
	ctx, cancel := context.WithTimeout(context.Background(), claimTime)
	defer cancel()
	home, err := r.Homes.Home(ctx, id.Attempt.Application)
	switch {
	case errors.Is(err, creel.ErrApplicationNotFound):
		return nil, nil, nil // submitted without a router
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

// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/audit"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/subcluster/rm/renewal"
)

// ownTokens renews the delegation tokens of this ResourceManager in the credentials of applications, such as those with
// which a workflow engine's job submits others. As in Hadoop this ResourceManager acts as the renewer that a token
// names, without a call by RPC.
type ownTokens struct {
	s *Server
	// others renews the tokens of its federation's routers and of other clusters; nil: there are none.
	others renewal.Server
}

// renewalServers returns the servers of a secure ResourceManager's renewals, with itself.
func renewalServers(s *Server, cfg Config) map[string]renewal.Server {
	if cfg.Secure == nil {
		return cfg.Renewals.Servers
	}
	all := map[string]renewal.Server{}
	maps.Copy(all, cfg.Renewals.Servers)
	all[token.KindDelegation] = &ownTokens{s, cfg.Renewals.Servers[token.KindDelegation]}
	return all
}

// Renew is renewal.Server's.
func (o *ownTokens) Renew(ctx context.Context, t token.Token) (expires time.Time, err error) {
	err = o.call(t, func(who Caller) error {
		expires, err = Do(ctx, o.s, who, unaudited(o.s.RenewToken(who, t)))
		return err
	}, func() error {
		expires, err = o.others.Renew(ctx, t)
		return err
	})
	return expires, err
}

// Cancel is renewal.Server's.
func (o *ownTokens) Cancel(ctx context.Context, t token.Token) error {
	return o.call(t, func(who Caller) error {
		_, err := Do(ctx, o.s, who, unaudited(o.s.CancelToken(who, t)))
		return err
	}, func() error { return o.others.Cancel(ctx, t) })
}

// unaudited leaves out an audit line: there is no caller, and the token may be another cluster's.
func unaudited[T any](o Op[T]) Op[T] {
	o.name = ""
	return o
}

// call makes a call of a token's renewer here, and elsewhere for a token that is unknown here.
func (o *ownTokens) call(t token.Token, here func(Caller) error, elsewhere func() error) error {
	id, err := token.ParseDelegation(t.Identifier)
	if err == nil {
		err = here(Caller{User: id.Renewer, Auth: audit.Kerberos})
	}
	if errors.Is(err, creel.ErrInvalidToken) && o.others != nil {
		return elsewhere()
	}
	return renewal.Final(err)
}

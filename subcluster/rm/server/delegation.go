// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/audit"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/httpguard"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/state"
)

// delegation holds the delegation tokens. Handshakes read them concurrently with the owner, so a lock protects the
// list. Only the owner changes them, and writes the changes into the journal in the same turn.
type delegation struct {
	mu  sync.Mutex
	d   *token.Delegations
	rnd *rand.Rand
}

// These are keys of the journal: the master keys of delegation tokens, and one record for each token.
const keyTokenKeys = "tokenkeys"

type tokenKeysValue struct {
	Keys     []token.DelegationKey
	Sequence int32
	Roll     time.Time
}

func newDelegation(now time.Time, cfg Config) *delegation {
	rnd := randomSource()
	return &delegation{d: token.NewDelegations(cfg.Tokens, now, rnd), rnd: rnd}
}

// restore loads the state from the journal.
func (g *delegation) restore(cfg Config, keys []byte, records [][]byte) error {
	if keys == nil {
		return nil
	}
	var v tokenKeysValue
	if err := json.Unmarshal(keys, &v); err != nil {
		return fmt.Errorf("resource manager: the journal's keys of delegation tokens: %w", err)
	}
	s := token.DelegationState{Keys: v.Keys, Sequence: v.Sequence, Roll: v.Roll}
	for _, b := range records {
		var r token.DelegationRecord
		if err := json.Unmarshal(b, &r); err != nil {
			return fmt.Errorf("resource manager: a delegation token in the journal: %w", err)
		}
		s.Tokens = append(s.Tokens, r)
	}
	g.d = token.RestoreDelegations(cfg.Tokens, s)
	return nil
}

func (g *delegation) putKeys(tx *state.Tx) error {
	g.mu.Lock()
	s := g.d.State()
	g.mu.Unlock()
	value, err := json.Marshal(tokenKeysValue{Keys: s.Keys, Sequence: s.Sequence, Roll: s.Roll})
	if err == nil {
		tx.Put(keyTokenKeys, value)
	}
	return err
}

func tokenKey(sequence int32) string { return keyToken + strconv.Itoa(int(sequence)) }

// putToken writes a token's record into this turn's transaction.
func putToken(tx *state.Tx, r token.DelegationRecord) error {
	value, err := json.Marshal(r)
	if err == nil {
		tx.Put(tokenKey(r.Sequence), value)
	}
	return err
}

// step drops expired tokens and rolls the key; changed reports whether putKeys is due.
func (g *delegation) step(now time.Time, tx *state.Tx) (changed bool) {
	g.mu.Lock()
	p := g.d.Step(now, g.rnd)
	g.mu.Unlock()
	for _, r := range p.Expired {
		tx.Delete(tokenKey(r.Sequence))
	}
	return p.NewKey != nil || len(p.DroppedKeys) > 0
}

// check finds the password of a delegation token for a handshake.
func (g *delegation) check(identifier []byte) ([]byte, hrpc.Identity, error) {
	g.mu.Lock()
	password, id, err := g.d.Password(time.Now(), identifier)
	g.mu.Unlock()
	if err != nil {
		return nil, hrpc.Identity{}, err
	}
	who := hrpc.Identity{User: id.Owner, TokenKind: token.KindDelegation, Value: id}
	if id.RealUser != "" && id.RealUser != id.Owner {
		who.RealUser = id.RealUser
	}
	return password, who, nil
}

// TokenLogin verifies the text of a delegation token that a web client shows, and returns its owner.
func TokenLogin(s *Server, text string) (httpguard.Login, error) {
	t, err := token.ParseURLString(text)
	if err != nil {
		return httpguard.Login{}, fmt.Errorf("the delegation token is malformed: %w", err)
	}
	s.tokens.mu.Lock()
	id, err := s.tokens.d.Holder(time.Now(), t)
	s.tokens.mu.Unlock()
	who := httpguard.Login{User: id.Owner, RealUser: id.RealUser}
	if err != nil {
		return httpguard.Login{}, err
	}
	if who.RealUser == who.User {
		who.RealUser = ""
	}
	return who, nil
}

// Delegation tokens are durable before they are issued or renewed, and so are their ends.

// byTicket rejects a caller of a secure server that did not log in by Kerberos, with Hadoop's message: a token must not
// beget tokens, or the first one would never expire.
func (c *Secure) byTicket(who Caller, done string) error {
	if c == nil || who.Auth == audit.Kerberos {
		return nil
	}
	return denied("Delegation Token can be %s only with kerberos authentication", done)
}

// renewer returns the short name of the user that may renew a token. Clients name it by its principal.
func (c *Secure) renewer(who Caller, name string) (string, error) {
	if err := c.byTicket(who, "issued"); err != nil || c == nil || name == "" {
		return name, err
	}
	short, err := c.Names.Short(name)
	if err != nil {
		return name, &creel.Error{Kind: creel.ErrInvalidRequest, What: "the renewer is unknown: " + err.Error()}
	}
	return short, nil
}

// IssuedToken is a new delegation token with its first expiry.
type IssuedToken struct {
	Token   token.Token
	Expires time.Time
}

// IssueToken makes a delegation token for the caller.
func (s *Server) IssueToken(who Caller, renewer string) Op[IssuedToken] {
	renewer, refused := s.cfg.Secure.renewer(who, renewer)
	return Op[IssuedToken]{
		durable: true,
		grows:   true,
		name:    "getDelegationToken",
		target:  renewer,
		Run: func(_ *rm.Machine, now time.Time) func() (IssuedToken, error) {
			if refused != nil {
				return Failed[IssuedToken](refused)
			}
			s.tokens.mu.Lock()
			t, record, err := s.tokens.d.Issue(now, who.User, renewer, who.RealUser)
			s.tokens.mu.Unlock()
			if err == nil {
				err = putToken(&s.durability.tx, record)
			}
			if err != nil {
				return Failed[IssuedToken](err)
			}
			return Done(IssuedToken{t, record.Expires})
		},
	}
}

// RenewToken extends a token; the answer is its new expiry time.
func (s *Server) RenewToken(who Caller, t token.Token) Op[time.Time] {
	return Op[time.Time]{
		durable: true,
		grows:   true,
		name:    "renewDelegationToken",
		target:  t.DelegationName(),
		Run: func(_ *rm.Machine, now time.Time) func() (time.Time, error) {
			if err := s.cfg.Secure.byTicket(who, "renewed"); err != nil {
				return Failed[time.Time](err)
			}
			s.tokens.mu.Lock()
			record, err := s.tokens.d.Renew(now, t, who.User)
			s.tokens.mu.Unlock()
			if err == nil {
				err = putToken(&s.durability.tx, record)
			}
			if err != nil {
				return Failed[time.Time](err)
			}
			return Done(record.Expires)
		},
	}
}

// CancelToken ends a token.
func (s *Server) CancelToken(who Caller, t token.Token) Op[struct{}] {
	return Op[struct{}]{
		durable: true,
		name:    "cancelDelegationToken",
		target:  t.DelegationName(),
		Run: func(*rm.Machine, time.Time) func() (struct{}, error) {
			if err := s.cfg.Secure.byTicket(who, "cancelled"); err != nil {
				return Failed[struct{}](err)
			}
			s.tokens.mu.Lock()
			record, err := s.tokens.d.Cancel(t, who.User)
			s.tokens.mu.Unlock()
			if err == nil {
				s.durability.tx.Delete(tokenKey(record.Sequence))
			}
			return Failed[struct{}](err)
		},
	}
}

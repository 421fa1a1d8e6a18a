// SPDX-License-Identifier: Apache-2.0

package tokens_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/router/tokens"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/memory"
)

// routers are two over one store, whose clock the test moves.
type routers struct {
	*testing.T
	now      time.Time
	store    *memory.Store
	secret   string
	one, two *tokens.Tokens
}

func start(t *testing.T) *routers {
	r := &routers{T: t, now: time.UnixMilli(1800000000000), secret: "the cluster's secret"}
	r.store = memory.New(memory.NewState("test", nil), func() time.Time { return r.now })
	r.one, r.two = r.router(), r.router()
	return r
}

// router is one that knows nothing but the store and the cluster's secret.
func (r *routers) router() *tokens.Tokens {
	seal := func(context.Context) ([]statestore.Key, error) {
		return []statestore.Key{{ID: 1, Secret: []byte(r.secret)}}, nil
	}
	return tokens.New(r.store, seal, token.Lifetimes{}, rand.Reader)
}

func (r *routers) issue(from *tokens.Tokens, owner, renewer string) token.Token {
	r.Helper()
	t, _, err := from.Issue(r.Context(), owner, renewer, "")
	if err != nil {
		r.Fatal(err)
	}
	return t
}

// taken fails unless a router lets the token's holder in as its owner.
func (r *routers) taken(at *tokens.Tokens, t token.Token, owner string) {
	r.Helper()
	p, id, err := at.Password(r.Context(), t.Identifier)
	if err != nil || string(p) != string(t.Password) || id.Owner != owner {
		r.Errorf("a token of %s: %x of %q, %v", owner, p, id.Owner, err)
	}
	if id, err := at.Login(r.Context(), t.URLString()); err != nil || id.Owner != owner {
		r.Errorf("shown whole, a token of %s is of %q, %v", owner, id.Owner, err)
	}
}

func (r *routers) refused(at *tokens.Tokens, t token.Token, kind error) {
	r.Helper()
	if _, _, err := at.Password(r.Context(), t.Identifier); !errors.Is(err, kind) {
		r.Errorf("let in, or refused with another word than %v: %v", kind, err)
	}
	if id, err := at.Login(r.Context(), t.URLString()); !errors.Is(err, kind) || id.Owner != "" {
		r.Errorf("shown whole, it is let in as %q, or refused with another word than %v: %v", id.Owner, kind, err)
	}
}

func TestTokenIsValidAtEveryRouter(t *testing.T) {
	r := start(t)
	a := r.issue(r.one, "alice", "yarn")
	if a.Kind != token.KindDelegation || a.Service != "" {
		t.Errorf("it is a %s for %q", a.Kind, a.Service)
	}
	b := r.issue(r.two, "bob", "yarn")
	for _, at := range []*tokens.Tokens{r.one, r.two, r.router()} {
		r.taken(at, a, "alice")
		r.taken(at, b, "bob")
	}
	ring, err := r.store.Keys(t.Context(), tokens.Ring)
	if err != nil || len(ring) != 1 {
		t.Errorf("%d keys for two tokens, %v", len(ring), err)
	}
}

func TestTokenExpiresWithoutRenewal(t *testing.T) {
	r := start(t)
	a, unrenewed := r.issue(r.one, "alice", "yarn"), r.issue(r.one, "alice", "yarn")
	for day := range 7 {
		r.now = r.now.Add(23 * time.Hour)
		expires, err := r.two.Renew(t.Context(), a, "yarn")
		if err != nil {
			t.Fatalf("day %d: %v", day, err)
		}
		most := time.UnixMilli(1800000000000).Add(7 * 24 * time.Hour)
		if want := r.now.Add(24 * time.Hour); !expires.Equal(want) && !expires.Equal(most) {
			t.Errorf("day %d: it lives until %v", day, expires)
		}
		r.taken(r.one, a, "alice") // also under keys that have changed since
	}
	r.refused(r.one, unrenewed, creel.ErrInvalidToken)
	r.now = r.now.Add(8 * time.Hour) // more than seven days in all
	r.refused(r.one, a, creel.ErrInvalidToken)
	if _, err := r.one.Renew(t.Context(), a, "yarn"); !errors.Is(err, creel.ErrInvalidToken) {
		t.Errorf("renewed after its longest life: %v", err)
	}
	r.issue(r.one, "alice", "yarn") // a new key signs
	ring, err := r.store.Keys(t.Context(), tokens.Ring)
	if err != nil || len(ring) < 2 || ring[0].ID < 2 {
		t.Errorf("keys after seven days: %d, the newest %+v, %v", len(ring), ring, err)
	}
}

func TestACancelledTokenIsWorthNothingAnywhere(t *testing.T) {
	r := start(t)
	a := r.issue(r.one, "alice", "yarn")
	forged := a
	forged.Password = []byte("01234567890123456789")
	if id, err := r.two.Login(t.Context(), forged.URLString()); !errors.Is(err, creel.ErrInvalidToken) || id.Owner != "" {
		t.Errorf("let in with a wrong password as %q: %v", id.Owner, err)
	}
	for who, k := range map[string]token.Token{"mallory": a, "": a, "alice": forged, "yarn": forged} {
		if err := r.two.Cancel(t.Context(), k, who); !errors.Is(err, creel.ErrNotPermitted) {
			t.Errorf("cancelled by %q: %v", who, err)
		}
		if who == "alice" {
			continue
		}
		if _, err := r.two.Renew(t.Context(), forged, who); !errors.Is(err, creel.ErrNotPermitted) {
			t.Errorf("renewed with a wrong password by %q: %v", who, err)
		}
	}
	if _, err := r.one.Renew(t.Context(), a, "alice"); !errors.Is(err, creel.ErrNotPermitted) {
		t.Errorf("renewed by its owner: %v", err)
	}
	r.taken(r.one, a, "alice")
	if err := r.two.Cancel(t.Context(), a, "alice"); err != nil {
		t.Fatal(err)
	}
	for _, at := range []*tokens.Tokens{r.one, r.two, r.router()} {
		r.refused(at, a, creel.ErrInvalidToken)
		if _, err := at.Renew(t.Context(), a, "yarn"); !errors.Is(err, creel.ErrInvalidToken) {
			t.Errorf("renewed after its end: %v", err)
		}
		if err := at.Cancel(t.Context(), a, "alice"); !errors.Is(err, creel.ErrInvalidToken) {
			t.Errorf("cancelled again: %v", err)
		}
	}
}

// Forged tokens are rejected: a changed identifier, one of a former store, a key that was sealed under another
// secret.
func TestUnrecordedTokenIsRefused(t *testing.T) {
	r := start(t)
	a := r.issue(r.one, "alice", "yarn")
	id, err := token.ParseDelegation(a.Identifier)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*token.Delegation){
		"owner":   func(d *token.Delegation) { d.Owner = "root" },
		"renewer": func(d *token.Delegation) { d.Renewer = "alice" },
		"real":    func(d *token.Delegation) { d.RealUser = "root" },
		"age":     func(d *token.Delegation) { d.Max = d.Max.Add(time.Hour) },
		"number":  func(d *token.Delegation) { d.Sequence = 99 },
		"key":     func(d *token.Delegation) { d.KeyID = 99 },
	} {
		other := id
		change(&other)
		if _, _, err := r.one.Password(t.Context(), other.Append(nil)); !errors.Is(err, creel.ErrInvalidToken) {
			t.Errorf("another %s: %v", name, err)
		}
	}
	r.refused(r.one, token.Token{Identifier: []byte("x")}, creel.ErrInvalidToken)
	r.refused(start(t).one, a, creel.ErrInvalidToken)

	r.secret = "another secret of the cluster"
	r.refused(r.one, a, creel.ErrInvalidToken)
	r.taken(r.two, r.issue(r.one, "alice", "yarn"), "alice") // under a key that the new one sealed
}

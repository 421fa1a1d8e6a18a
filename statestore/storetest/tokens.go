// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"pgregory.net/rapid"
)

// tokens: a delegation token is valid in every process until it expires or is dropped. A renewal
// extends it at most to its longest life, and revives no expired token.
func tokens(t *testing.T, d Deployment) {
	s, ctx := d.Store, t.Context()
	got := must[statestore.Token](t)
	heard := func(want statestore.Token) {
		t.Helper()
		is := got(s.Token(ctx, want.Number))
		if is.Owner != want.Owner || is.Renewer != want.Renewer || is.RealUser != want.RealUser ||
			!is.Issued.Equal(want.Issued) || !is.Most.Equal(want.Most) || !is.Expires.Equal(want.Expires) {
			t.Fatalf("token is %+v, want %+v", is, want)
		}
	}
	none := func(number int32) {
		t.Helper()
		_, err := s.Token(ctx, number)
		refused(t, err, creel.ErrInvalidToken)
		_, err = s.RenewToken(ctx, number, time.Hour)
		refused(t, err, creel.ErrInvalidToken)
	}
	none(1)
	first := statestore.Token{Owner: "alice", Renewer: "yarn", RealUser: "oozie"}
	a := got(s.IssueToken(ctx, first, time.Hour, 24*time.Hour))
	same(t, "first number", a.Number, 1)
	same(t, "life", a.Expires.Sub(a.Issued), time.Hour)
	same(t, "longest life", a.Most.Sub(a.Issued), 24*time.Hour)
	heard(a)
	b := got(s.IssueToken(ctx, statestore.Token{Owner: "bö b\x01\"", Renewer: "yarn"}, time.Hour, 2*time.Hour))
	same(t, "second number", b.Number, 2)
	heard(b)

	d.Advance(10 * time.Millisecond)
	renewed := got(s.RenewToken(ctx, b.Number, 90*time.Minute))
	if !renewed.Expires.After(b.Expires) || !renewed.Most.Equal(b.Most) || !renewed.Issued.Equal(b.Issued) {
		t.Fatalf("%+v was renewed to %+v", b, renewed)
	}
	heard(renewed)
	renewed = got(s.RenewToken(ctx, b.Number, 9*time.Hour))
	same(t, "the longest life", renewed.Expires.Equal(b.Most), true)

	ok(t, s.DropToken(ctx, b.Number))
	ok(t, s.DropToken(ctx, b.Number))
	none(b.Number)
	heard(a)
	short := got(s.IssueToken(ctx, statestore.Token{Owner: "carol"}, 50*time.Millisecond, time.Hour))
	same(t, "third number", short.Number, 3)
	capped := got(s.IssueToken(ctx, statestore.Token{Owner: "carol"}, time.Hour, 50*time.Millisecond))
	same(t, "a life no longer than the longest", capped.Expires.Equal(capped.Most), true)
	d.Advance(100 * time.Millisecond)
	none(short.Number)
	none(capped.Number)
	heard(a)
	same(t, "number after all", got(s.IssueToken(ctx, statestore.Token{Owner: "dave"}, time.Hour, time.Hour)).Number, 5)
	for _, wrong := range []statestore.Token{{}, {Owner: "a", Renewer: strings.Repeat("x", 257)}} {
		_, err := s.IssueToken(ctx, wrong, time.Hour, time.Hour)
		refused(t, err, creel.ErrInvalidRequest)
	}
	_, err := s.IssueToken(ctx, statestore.Token{Owner: "a"}, time.Hour, -time.Hour)
	refused(t, err, creel.ErrInvalidRequest)
	if d.Again != nil {
		s = d.Again(t)
		heard(a)
		none(b.Number)
	}
}

// token issues, renews, drops or reads one of a few.
func (m *model) token(t *rapid.T) {
	sc, tc := m.contexts(t)
	number, life := rapid.Int32Range(1, 4).Draw(t, "number"), anyTTL(t)
	var s, w statestore.Token
	var serr, werr error
	switch rapid.IntRange(0, 3).Draw(t, "request") {
	case 0:
		k := statestore.Token{Owner: rapid.SampledFrom([]string{"", "alice", "bob"}).Draw(t, "owner"), Renewer: "yarn"}
		most := anyTTL(t)
		s, serr = m.store.IssueToken(sc, k, life, most)
		w, werr = m.reference.IssueToken(tc, k, life, most)
	case 1:
		s, serr = m.store.Token(sc, number)
		w, werr = m.reference.Token(tc, number)
	case 2:
		s, serr = m.store.RenewToken(sc, number, life)
		w, werr = m.reference.RenewToken(tc, number, life)
	case 3:
		serr, werr = m.store.DropToken(sc, number), m.reference.DropToken(tc, number)
	}
	alike(t, "token", serr, werr)
	equal(t, "token", [3]any{s.Number, s.Owner, s.Renewer}, [3]any{w.Number, w.Owner, w.Renewer})
}

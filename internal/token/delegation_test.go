// SPDX-License-Identifier: Apache-2.0

package token_test

import (
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/internal/token"
)

// Keys as a Hadoop Router left them in its state store.
func TestRecordedDelegationKeys(t *testing.T) {
	for text, want := range map[string]struct {
		id     int32
		secret string
	}{
		"018a01a2269ead9308a249c6171dd92ad1": {1, "a249c6171dd92ad1"},
		"088a01a226c1a7ab08978515a6f654c7c3": {8, "978515a6f654c7c3"},
	} {
		k, err := token.ParseDelegationKey(unhex(t, text))
		if err != nil || k.ID != want.id || hex.EncodeToString(k.Secret) != want.secret {
			t.Errorf("%s is %d %x (%v)", text, k.ID, k.Secret, err)
		}
		if k.Expires.Year() != 2026 {
			t.Errorf("%s expires at %v", text, k.Expires)
		}
		if got := hex.EncodeToString(k.Append(nil)); got != text {
			t.Errorf("written %s, want %s", got, text)
		}
		if _, err := token.ParseDelegationKey(unhex(t, text)[:8]); !errors.Is(err, creel.ErrInvalidRequest) {
			t.Errorf("half a key gave %v", err)
		}
	}
}

// A week in the life of a delegation token.
func TestDelegationToken(t *testing.T) {
	rnd := seeded()
	d := token.NewDelegations(token.Lifetimes{}, start, rnd)
	tok, kept, err := d.Issue(start, "alice", "yarn", "oozie")
	if err != nil || tok.Kind != "RM_DELEGATION_TOKEN" || tok.Service != "" || kept.Sequence != 1 || kept.KeyID != 1 {
		t.Fatalf("issued %v, %+v (%v)", tok, kept, err)
	}
	if !kept.Expires.Equal(start.Add(24*time.Hour)) || !kept.Max.Equal(start.Add(7*24*time.Hour)) {
		t.Fatalf("lives until %v, at most %v", kept.Expires, kept.Max)
	}
	p, who, err := d.Password(start.Add(24*time.Hour), tok.Identifier)
	if err != nil || string(p) != string(tok.Password) || who.Owner != "alice" || who.RealUser != "oozie" {
		t.Fatalf("SASL gets %x for %+v (%v)", p, who, err)
	}

	for who, kind := range map[string]error{"alice": creel.ErrNotPermitted, "bob": creel.ErrNotPermitted, "": creel.ErrNotPermitted} {
		if _, err := d.Renew(start, tok, who); !errors.Is(err, kind) {
			t.Errorf("renewal by %q: %v", who, err)
		}
	}
	forged := tok
	forged.Password = make([]byte, 20)
	if _, err := d.Renew(
		start,
		forged,
		"yarn",
	); !errors.Is(err, creel.ErrNotPermitted) ||
		!strings.Contains(err.Error(), "password") {
		t.Errorf("renewal with a wrong password: %v", err)
	}

	// Renewed every 20 hours it lives for seven days and no longer.
	now := start
	for range 8 {
		now = now.Add(20 * time.Hour)
		d.Step(now, rnd)
		kept, err = d.Renew(now, tok, "yarn")
		if err != nil {
			t.Fatalf("at %v: %v", now.Sub(start), err)
		}
	}
	if !kept.Expires.Equal(kept.Max) {
		t.Fatalf("after %v it lives until %v, its maximum is %v", now.Sub(start), kept.Expires, kept.Max)
	}
	after := kept.Max.Add(time.Millisecond)
	if _, err := d.Renew(
		after,
		tok,
		"yarn",
	); !errors.Is(err, creel.ErrInvalidToken) ||
		!strings.Contains(err.Error(), "maximum") {
		t.Errorf("renewal after the maximum: %v", err)
	}
	if _, _, err := d.Password(
		after,
		tok.Identifier,
	); !errors.Is(err, creel.ErrInvalidToken) ||
		!strings.Contains(err.Error(), "expired") {
		t.Errorf("used after the maximum: %v", err)
	}
	if passed := d.Step(after, rnd); len(passed.Expired) != 1 || passed.Expired[0].Sequence != 1 {
		t.Errorf("the step dropped %+v", passed)
	}
	if _, err := d.Renew(
		after,
		tok,
		"yarn",
	); !errors.Is(err, creel.ErrInvalidToken) ||
		!strings.Contains(err.Error(), "not known") {
		t.Errorf("renewal of a dropped token: %v", err)
	}
}

func TestCancelDelegationToken(t *testing.T) {
	for _, who := range []string{"alice", "yarn"} {
		d := token.NewDelegations(token.Lifetimes{}, start, seeded())
		tok, _, err := d.Issue(start, "alice", "yarn", "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Cancel(tok, "bob"); !errors.Is(err, creel.ErrNotPermitted) {
			t.Fatalf("bob cancelled: %v", err)
		}
		if _, err := d.Cancel(tok, who); err != nil {
			t.Fatalf("%s may not cancel: %v", who, err)
		}
		if _, err := d.Cancel(tok, who); !errors.Is(err, creel.ErrInvalidToken) {
			t.Fatalf("cancelled twice: %v", err)
		}
		if _, _, err := d.Password(start, tok.Identifier); !errors.Is(err, creel.ErrInvalidToken) {
			t.Fatalf("a cancelled token is accepted: %v", err)
		}
	}
	d := token.NewDelegations(token.Lifetimes{}, start, seeded())
	if _, _, err := d.Issue(start, "", "yarn", ""); !errors.Is(err, creel.ErrInvalidRequest) {
		t.Errorf("issued to nobody: %v", err)
	}
	tok, _, err := d.Issue(start, "alice", "", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Renew(start, tok, ""); !errors.Is(err, creel.ErrNotPermitted) {
		t.Errorf("renewed by nobody: %v", err)
	}
	if _, err := d.Cancel(tok, ""); !errors.Is(err, creel.ErrNotPermitted) {
		t.Errorf("cancelled by nobody: %v", err)
	}
}

// The holder of a token is its owner, while the token lives.
func TestHolderShowsWholeLiveToken(t *testing.T) {
	d := token.NewDelegations(token.Lifetimes{}, start, seeded())
	tok, kept, err := d.Issue(start, "alice", "yarn", "oozie")
	if err != nil {
		t.Fatal(err)
	}
	if id, err := d.Holder(kept.Expires, tok); err != nil || id.Owner != "alice" || id.RealUser != "oozie" {
		t.Errorf("the holder is %+v, %v", id, err)
	}
	elsewhere := token.NewDelegations(token.Lifetimes{}, start, rand.New(rand.NewPCG(9, 9)))
	other, _, err := elsewhere.Issue(start, "alice", "yarn", "oozie")
	if err != nil {
		t.Fatal(err)
	}
	with := func(change func(*token.Token)) token.Token {
		forged := tok
		change(&forged)
		return forged
	}
	for name, c := range map[string]struct {
		shown token.Token
		at    time.Time
		kind  error
	}{
		"expired":          {tok, kept.Expires.Add(time.Millisecond), creel.ErrInvalidToken},
		"of other keys":    {other, start, creel.ErrNotPermitted},
		"no password":      {with(func(t *token.Token) { t.Password = nil }), start, creel.ErrNotPermitted},
		"half a password":  {with(func(t *token.Token) { t.Password = t.Password[:10] }), start, creel.ErrNotPermitted},
		"another kind":     {with(func(t *token.Token) { t.Kind = token.KindAMRM }), start, creel.ErrInvalidToken},
		"no identifier":    {with(func(t *token.Token) { t.Identifier = nil }), start, creel.ErrInvalidToken},
		"another owner":    {with(ofRoot), start, creel.ErrInvalidToken},
		"no token":         {token.Token{}, start, creel.ErrInvalidToken},
		"a longer one":     {with(func(t *token.Token) { t.Password = append(t.Password[:20:20], 0) }), start, creel.ErrNotPermitted},
		"before its issue": {other, start.Add(-time.Hour), creel.ErrNotPermitted},
	} {
		if id, err := d.Holder(c.at, c.shown); !errors.Is(err, c.kind) {
			t.Errorf("%s: the holder is %+v, %v", name, id, err)
		}
	}
	if _, err := d.Cancel(tok, "alice"); err != nil {
		t.Fatal(err)
	}
	if id, err := d.Holder(start, tok); !errors.Is(err, creel.ErrInvalidToken) {
		t.Errorf("cancelled: the holder is %+v, %v", id, err)
	}
}

// ofRoot changes the owner of a token.
func ofRoot(t *token.Token) {
	if id, err := token.ParseDelegation(t.Identifier); err == nil {
		id.Owner = "root"
		t.Identifier = id.Append(nil)
	}
}

// Keys roll each day. A key is removed only when no token it signed can be live. A journal's content is enough to
// continue after a restart at any moment. A token of another list with the same number is rejected.
func TestDelegationTokensAndKeysSurviveRestarts(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
		lifetimes := token.Lifetimes{KeyUpdate: 4 * time.Hour, Renew: 3 * time.Hour, Max: 10 * time.Hour}
		d := token.NewDelegations(lifetimes, start, rnd)
		type held struct {
			token.Token
			expires, max time.Time
			cancelled    bool
		}
		var tokens []*held
		now := start
		for range 60 {
			now = now.Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "minutes")) * time.Minute)
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0:
				tok, r, err := d.Issue(now, "alice", "yarn", "")
				if err != nil {
					t.Fatal(err)
				}
				tokens = append(tokens, &held{Token: tok, expires: r.Expires, max: r.Max})
			case 1:
				if len(tokens) > 0 {
					h := tokens[rapid.IntRange(0, len(tokens)-1).Draw(t, "which")]
					r, err := d.Renew(now, h.Token, "yarn")
					if alive := !h.cancelled && !h.expires.Before(now); (err == nil) != alive {
						t.Fatalf("renewal of a token alive=%v: %v", alive, err)
					}
					if err == nil {
						h.expires = r.Expires
						if h.expires.After(h.max) || h.expires.Before(now) {
							t.Fatalf("renewed to %v at %v, maximum %v", h.expires, now, h.max)
						}
					}
				}
			case 2:
				if len(tokens) > 0 {
					h := tokens[rapid.IntRange(0, len(tokens)-1).Draw(t, "which")]
					if _, err := d.Cancel(h.Token, "alice"); err == nil {
						h.cancelled = true
					}
				}
			case 3:
				d.Step(now, rnd)
			case 4:
				restored := token.RestoreDelegations(lifetimes, d.State())
				if !reflect.DeepEqual(restored.State(), d.State()) {
					t.Fatalf("restored %+v of %+v", restored.State(), d.State())
				}
				d = restored
			}
			for _, h := range tokens {
				p, _, err := d.Password(now, h.Identifier)
				alive := !h.cancelled && !h.expires.Before(now)
				if (err == nil) != alive || alive && string(p) != string(h.Password) {
					t.Fatalf(
						"at %v a token alive=%v (until %v) gave %v",
						now.Sub(start),
						alive,
						h.expires.Sub(start),
						err,
					)
				}
			}
		}
		stranger := token.NewDelegations(lifetimes, start.Add(time.Second), rand.New(rand.NewPCG(1, 2)))
		if _, _, err := stranger.Issue(start.Add(time.Second), "bob", "yarn", ""); err != nil {
			t.Fatal(err)
		}
		for _, h := range tokens {
			if _, _, err := stranger.Password(now, h.Identifier); err == nil {
				t.Fatal("a token of another list is accepted")
			}
		}
	})
}

// A journal needs to write only the record of the changes.
func TestDelegationKeysRoll(t *testing.T) {
	rnd := seeded()
	d := token.NewDelegations(token.Lifetimes{}, start, rnd)
	if p := d.Step(start.Add(24*time.Hour-1), rnd); p.NewKey != nil {
		t.Fatal("rolled early")
	}
	for day := 1; day <= 10; day++ {
		now := start.Add(time.Duration(day) * 24 * time.Hour)
		p := d.Step(now, rnd)
		if p.NewKey == nil || p.NewKey.ID != int32(day+1) || p.OldKey == nil || p.OldKey.ID != int32(day) ||
			!p.OldKey.Expires.Equal(now.Add(7*24*time.Hour)) {
			t.Fatalf("day %d: %+v", day, p)
		}
		if gone := day >= 9; (len(p.DroppedKeys) == 1) != gone || gone && p.DroppedKeys[0].ID != int32(day-8) {
			t.Fatalf("day %d: dropped %v", day, p.DroppedKeys)
		}
	}
	empty := token.RestoreDelegations(token.Lifetimes{}, token.DelegationState{})
	if _, _, err := empty.Issue(start, "alice", "yarn", ""); !errors.Is(err, creel.ErrUnavailable) {
		t.Errorf("issued without a key: %v", err)
	}
	if p := empty.Step(start, rnd); p.NewKey == nil || p.NewKey.ID != 1 || p.OldKey != nil {
		t.Errorf("the first key: %+v", p)
	}
}

// SPDX-License-Identifier: Apache-2.0

package token_test

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/internal/token"
)

var start = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)

func seeded() *rand.Rand { return rand.New(rand.NewPCG(7, 11)) }

// A day in the life of AMRM tokens: a key is made, living AMs get the replacement, and then the old key goes.
func TestAMRMKeysRoll(t *testing.T) {
	rnd := seeded()
	k := token.NewKeys(token.Rolling{}, start, rnd)
	first := k.Newest().AMRM(attempt)
	held, err := token.ParseAMRM(first.Identifier)
	if err != nil {
		t.Fatal(err)
	}
	accepted := func(tok token.Token) bool {
		id, err := token.ParseAMRM(tok.Identifier)
		if err != nil {
			t.Fatal(err)
		}
		p, err := k.Accepted().Password(id.KeyID, tok.Identifier)
		if err != nil && !errors.Is(err, creel.ErrInvalidToken) {
			t.Fatalf("refused with %v", err)
		}
		return err == nil && string(p) == string(tok.Password)
	}
	if !accepted(first) || len(first.Identifier) == 0 || first.Service != "" {
		t.Fatalf("the first token is not accepted: %v", first)
	}
	if _, ok := k.ReplaceAMRM(held); ok {
		t.Fatal("a replacement without need")
	}
	if k.Step(start.Add(24*time.Hour-1), rnd) {
		t.Fatal("rolled early")
	}
	if !k.Deadline().Equal(start.Add(24 * time.Hour)) {
		t.Fatalf("wakes at %v", k.Deadline())
	}

	day := start.Add(24 * time.Hour)
	if !k.Step(day, rnd) {
		t.Fatal("did not roll after a day")
	}
	second, ok := k.ReplaceAMRM(held)
	if !ok || !accepted(first) || !accepted(second) || string(first.Password) == string(second.Password) {
		t.Fatal("both tokens have to be accepted while the next key is pending")
	}
	newHeld, err := token.ParseAMRM(second.Identifier)
	if err != nil || newHeld.KeyID != held.KeyID+1 || newHeld.Attempt != attempt {
		t.Fatalf("the replacement is %+v after %+v (%v)", newHeld, held, err)
	}
	if _, ok := k.ReplaceAMRM(newHeld); ok {
		t.Fatal("a second replacement")
	}
	if minted := k.Newest().AMRM(attempt); string(minted.Password) != string(second.Password) {
		t.Fatal("new tokens have to use the next key")
	}
	if k.Step(day.Add(15*time.Minute-1), rnd) || !k.Step(day.Add(15*time.Minute), rnd) {
		t.Fatal("the next key has to come into use after 15 minutes")
	}
	if accepted(first) || !accepted(second) {
		t.Fatal("after the change only the new key is accepted")
	}
	if !k.Deadline().Equal(start.Add(48 * time.Hour)) {
		t.Fatalf("the period drifted: next change at %v", k.Deadline())
	}
}

// The stored state is complete: a restored machine continues as the old one would have.
func TestKeysSurviveARestart(t *testing.T) {
	rnd := seeded()
	k := token.NewKeys(token.Rolling{Every: time.Hour, Delay: time.Minute}, start, rnd)
	for step := range 5 {
		now := k.Deadline()
		r := token.RestoreKeys(token.Rolling{Every: time.Hour, Delay: time.Minute}, k.State())
		if !reflect.DeepEqual(r.State(), k.State()) ||
			string(r.Newest().AMRM(attempt).Password) != string(k.Newest().AMRM(attempt).Password) {
			t.Fatalf("step %d: restored %v of %v", step, r.State(), k.State())
		}
		k.Step(now, rnd)
		rest := r
		rest.Step(now, seeded())
		if rest.Deadline() != k.Deadline() {
			t.Fatalf("step %d: the restored one wakes at %v, the old one at %v", step, rest.Deadline(), k.Deadline())
		}
	}
}

// An AMRM token is accepted for at least the delay after it was minted; ids only grow by one; at no moment are more
// than
// two keys accepted.
func TestTwoKeysAreAcceptedDuringRollDelay(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		rolling := token.Rolling{Every: time.Hour, Delay: 10 * time.Minute}
		k := token.NewKeys(rolling, start, rnd)
		now, id := start, k.Current().Key().ID
		type minted struct {
			at time.Time
			id int32
		}
		var last []minted
		for range 50 {
			now = now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "minutes")) * time.Minute)
			if rapid.IntRange(0, 9).Draw(t, "operator") == 0 {
				k.Roll(now, rnd)
			}
			k.Step(now, rnd)
			if got := k.Current().Key().ID; got != id && got != id+1 {
				t.Fatalf("key %d follows %d", got, id)
			}
			id = k.Current().Key().ID
			if len(k.Accepted()) > 2 {
				t.Fatalf("%d keys are accepted", len(k.Accepted()))
			}
			for _, m := range last {
				if _, ok := k.Accepted().Find(m.id); !ok && now.Sub(m.at) < rolling.Delay {
					t.Fatalf("a token of %v is refused at %v", m.at, now)
				}
			}
			last = append(last, minted{now, k.Newest().Key().ID})
		}
	})
}

// A client's token for an AM: the AM verifies it with the key its registration gave it.
func TestClientToAM(t *testing.T) {
	key := token.Key{Secret: token.NewSecret(seeded())}
	if len(key.Secret) != 8 {
		t.Fatalf("a secret of %d bytes", len(key.Secret))
	}
	tok := token.NewMac(key).ClientToAM(token.ClientToAM{Attempt: attempt, Client: "alice"})
	if !key.Verify(tok.Identifier, tok.Password) || tok.Kind != "YARN_CLIENT_TOKEN" ||
		len(tok.Password) != token.PasswordSize {
		t.Errorf("minted %v", tok)
	}
	if (token.Key{Secret: []byte("other")}).Verify(tok.Identifier, tok.Password) {
		t.Error("verified with another key")
	}
}

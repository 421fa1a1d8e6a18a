// SPDX-License-Identifier: Apache-2.0

package statestore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/creelrm/creel"
)

// Tokens are the live delegation tokens of routers: every router rejects a token that is not stored here. The secrets
// that sign them are stored elsewhere (Keys).
type Tokens interface {
	// IssueToken stores a new token of owner, renewer and real user, and sets its number and times. It expires after
	// life; renewals extend it to at most most. Numbers rise. A repeat after a lost answer may leave an unused token
	// behind, which expires.
	//
	// A store that went back may issue the number of a lost token again. So callers must compare owner, renewer, real
	// user and times of the stored token too, as router/tokens does.
	IssueToken(ctx context.Context, t Token, life, most time.Duration) (Token, error)
	// Token returns a live token, or creel.ErrInvalidToken.
	Token(ctx context.Context, number int32) (Token, error)
	// RenewToken extends a live token by life from now, up to Token.Most; else creel.ErrInvalidToken.
	RenewToken(ctx context.Context, number int32, life time.Duration) (Token, error)
	// DropToken removes a token; a missing token is success.
	DropToken(ctx context.Context, number int32) error
}

// Token is a delegation token as stored. Times are by the store's clock, in milliseconds.
type Token struct {
	Number   int32     `json:"number"` // from 1
	Owner    string    `json:"owner"`
	Renewer  string    `json:"renewer,omitempty"`
	RealUser string    `json:"real_user,omitempty"`
	Issued   time.Time `json:"issued"`
	Most     time.Time `json:"most"`    // no renewal goes beyond it
	Expires  time.Time `json:"expires"` // it lives until then
}

// maxUser is the longest name of a user in a token, in bytes.
const maxUser = 256

// CheckToken rejects tokens that cannot be stored.
func CheckToken(t Token, life, most time.Duration) error {
	for _, name := range []string{t.Owner, t.Renewer, t.RealUser} {
		if len(name) > maxUser {
			return bad("invalid delegation token", "a user's name in it is longer than %d bytes", maxUser)
		}
	}
	if t.Owner == "" {
		return bad("invalid delegation token", "it has no owner")
	}
	return cmp.Or(CheckTTL(life), CheckTTL(most))
}

// NoToken returns the error for a delegation token that is not live.
func NoToken(number int32) error {
	return failf(creel.ErrInvalidToken, "get a new one",
		"delegation token refused", "number %d is not known: it expired or was cancelled", number)
}

// tokenTable is the tokens in memory.
type tokenTable struct {
	newest int32
	of     map[int32]Token
}

// list returns the tokens by number.
func (t *tokenTable) list() []Token {
	var out []Token
	for _, k := range t.of {
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b Token) int { return cmp.Compare(a.Number, b.Number) })
	return out
}

// IssueToken: see Tokens.
func (t *State) IssueToken(now time.Time, k Token, life, most time.Duration) (Token, error) {
	if err := CheckToken(k, life, most); err != nil {
		return Token{}, err
	}
	now = now.Truncate(time.Millisecond)
	for n, old := range t.tokens.of {
		if !now.Before(old.Expires) {
			delete(t.tokens.of, n)
		}
	}
	t.tokens.newest++
	k.Number, k.Issued, k.Most = t.tokens.newest, now, now.Add(most)
	k.Expires = now.Add(min(life, most))
	t.tokens.of[k.Number] = k
	return k, nil
}

// Token: see Tokens.
func (t *State) Token(now time.Time, number int32) (Token, error) {
	k, ok := t.tokens.of[number]
	if !ok || !now.Before(k.Expires) {
		return Token{}, NoToken(number)
	}
	return k, nil
}

// RenewToken: see Tokens.
func (t *State) RenewToken(now time.Time, number int32, life time.Duration) (Token, error) {
	if err := CheckTTL(life); err != nil {
		return Token{}, err
	}
	k, err := t.Token(now, number)
	if err != nil {
		return k, err
	}
	k.Expires = now.Truncate(time.Millisecond).Add(life)
	if k.Expires.After(k.Most) {
		k.Expires = k.Most
	}
	t.tokens.of[number] = k
	return k, nil
}

// DropToken: see Tokens.
func (t *State) DropToken(number int32) { delete(t.tokens.of, number) }

// IssueToken implements Tokens. An invalid token is reported as invalid, as in every store, even if the caller has lost
// the lease.
func (m *Memory) IssueToken(ctx context.Context, k Token, life, most time.Duration) (Token, error) {
	if err := CheckToken(k, life, most); err != nil {
		return Token{}, err
	}
	return write(ctx, m, func(t *State, now time.Time) (Token, error) {
		return t.IssueToken(now, k, life, most)
	})
}

// Token implements Tokens.
func (m *Memory) Token(_ context.Context, number int32) (Token, error) {
	return read(m, func(t *State, now time.Time) (Token, error) { return t.Token(now, number) })
}

// RenewToken implements Tokens.
func (m *Memory) RenewToken(ctx context.Context, number int32, life time.Duration) (Token, error) {
	return write(ctx, m, func(t *State, now time.Time) (Token, error) {
		return t.RenewToken(now, number, life)
	})
}

// DropToken implements Tokens.
func (m *Memory) DropToken(ctx context.Context, number int32) error {
	return m.write(ctx, func(t *State, _ time.Time) error {
		t.DropToken(number)
		return nil
	})
}

// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/creelrm/creel/statestore"
)

// tokenTable is the tokens in memory.
type tokenTable struct {
	newest int32
	of     map[int32]statestore.Token
}

// list returns the tokens by number.
func (t *tokenTable) list() []statestore.Token {
	var out []statestore.Token
	for _, k := range t.of {
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b statestore.Token) int { return cmp.Compare(a.Number, b.Number) })
	return out
}

// IssueToken: see Tokens.
func (t *State) IssueToken(now time.Time, k statestore.Token, life, most time.Duration) (statestore.Token, error) {
	if err := statestore.CheckToken(k, life, most); err != nil {
		return statestore.Token{}, err
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
func (t *State) Token(now time.Time, number int32) (statestore.Token, error) {
	k, ok := t.tokens.of[number]
	if !ok || !now.Before(k.Expires) {
		return statestore.Token{}, statestore.NoToken(number)
	}
	return k, nil
}

// RenewToken: see Tokens.
func (t *State) RenewToken(now time.Time, number int32, life time.Duration) (statestore.Token, error) {
	if err := statestore.CheckTTL(life); err != nil {
		return statestore.Token{}, err
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
func (m *Store) IssueToken(
	ctx context.Context, k statestore.Token, life, most time.Duration,
) (statestore.Token, error) {
	if err := statestore.CheckToken(k, life, most); err != nil {
		return statestore.Token{}, err
	}
	return write(ctx, m, func(t *State, now time.Time) (statestore.Token, error) {
		return t.IssueToken(now, k, life, most)
	})
}

// Token implements Tokens.
func (m *Store) Token(_ context.Context, number int32) (statestore.Token, error) {
	return read(m, func(t *State, now time.Time) (statestore.Token, error) { return t.Token(now, number) })
}

// RenewToken implements Tokens.
func (m *Store) RenewToken(ctx context.Context, number int32, life time.Duration) (statestore.Token, error) {
	return write(ctx, m, func(t *State, now time.Time) (statestore.Token, error) {
		return t.RenewToken(now, number, life)
	})
}

// DropToken implements Tokens.
func (m *Store) DropToken(ctx context.Context, number int32) error {
	return m.write(ctx, func(t *State, _ time.Time) error {
		t.DropToken(number)
		return nil
	})
}

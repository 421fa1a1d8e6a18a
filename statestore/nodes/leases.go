// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/creelrm/creel/statestore"
)

// lease is the shard of one lease.
func (t *txn) lease(of string) (*shard, error) {
	return t.shard(part{t.store.paths.leases + "/" + name(of), []string{"leases"}})
}

// Acquire implements statestore.Leases.
func (s *Store) Acquire(
	ctx context.Context, name, holder string, ttl time.Duration,
) (l statestore.Lease, err error) {
	if err := statestore.CheckLease(name, holder, ttl); err != nil {
		return l, err
	}
	err = s.change(ctx, true, func(t *txn) error {
		of, err := t.lease(name)
		if err == nil {
			l, err = of.Acquire(t.now, name, holder, ttl)
		}
		return err
	})
	return l, err
}

// Renew implements statestore.Leases.
func (s *Store) Renew(ctx context.Context, l statestore.Lease, ttl time.Duration) (is statestore.Lease, err error) {
	if err := statestore.CheckLease(l.Name, l.Holder, ttl); err != nil {
		return is, err
	}
	err = s.change(ctx, false, func(t *txn) error {
		of, err := t.lease(l.Name)
		if err == nil {
			is, err = of.Renew(t.now, l, ttl)
		}
		return err
	})
	return is, err
}

// Release implements statestore.Leases.
func (s *Store) Release(ctx context.Context, l statestore.Lease) error {
	if err := statestore.CheckLease(l.Name, l.Holder, 1); err != nil {
		return err
	}
	return s.change(ctx, false, func(t *txn) error {
		of, err := t.lease(l.Name)
		if err == nil {
			err = of.Release(t.now, l)
		}
		return err
	})
}

// Holder implements statestore.Leases.
func (s *Store) Holder(ctx context.Context, name string) (l statestore.Lease, err error) {
	err = s.look(ctx, func(t *txn) error {
		of, err := t.lease(name)
		if err == nil {
			l = of.Holder(t.now, name)
		}
		return err
	})
	return l, err
}

// ring is the shard of one ring of keys.
func (t *txn) ring(of string) (*shard, error) {
	return t.shard(part{t.store.paths.keys + "/" + name(of), []string{"rings"}})
}

// Keys implements statestore.Keys.
func (s *Store) Keys(ctx context.Context, ring string) ([]statestore.Key, error) {
	list, err := s.KeysOf(ctx, []string{ring})
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// KeysOf implements statestore.Keys. The counter of changes shows that no ring changed during the read.
func (s *Store) KeysOf(ctx context.Context, rings []string) (list [][]statestore.Key, err error) {
	err = s.unchanged(ctx, s.paths.feed+"/"+string(statestore.ChangeKeys), func(t *txn) error {
		list = make([][]statestore.Key, len(rings))
		for i, name := range rings {
			of, err := t.ring(name)
			if err != nil {
				return err
			}
			list[i] = of.Keys(t.now, name)
		}
		return nil
	})
	return list, err
}

// unchanged is look, repeated if a node changes meanwhile.
func (s *engine) unchanged(ctx context.Context, path string, f func(t *txn) error) error {
	return s.look(ctx, func(t *txn) error {
		before, err := t.apart().get(path)
		if err != nil {
			return err
		}
		if err := f(t); err != nil {
			return err
		}
		after, err := t.apart().get(path)
		if err == nil && (after.stat.Changed != before.stat.Changed || after.is != before.is) {
			return errSoon
		}
		return err
	})
}

// RotateKey implements statestore.Keys.
func (s *Store) RotateKey(
	ctx context.Context, ring string, expect int32, secret []byte, keep time.Duration,
) (key statestore.Key, err error) {
	if err := statestore.CheckName("key ring", ring); err != nil {
		return key, err
	}
	err = s.change(ctx, false, func(t *txn) error {
		of, err := t.ring(ring)
		if err == nil {
			t.tell(statestore.Change{Kind: statestore.ChangeKeys})
			key, err = of.RotateKey(t.now, ring, expect, secret, keep)
		}
		return err
	})
	return key, err
}

// token is the shard of one delegation token. The highest number is in the parent.
func (t *txn) token(number int32) (*shard, error) {
	p := t.store.paths.tokens
	return t.shard(part{p, []string{"newest_token"}}, part{tokenNode(p, number), []string{"tokens"}})
}

func tokenNode(parent string, number int32) string { return fmt.Sprintf("%s/%010d", parent, number) }

// IssueToken implements statestore.Tokens.
func (s *Store) IssueToken(
	ctx context.Context, k statestore.Token, life, most time.Duration,
) (issued statestore.Token, err error) {
	if err := statestore.CheckToken(k, life, most); err != nil {
		return issued, err
	}
	err = s.change(ctx, false, func(t *txn) error {
		n, err := t.get(s.paths.tokens)
		if err != nil {
			return err
		}
		f, err := parseFields(n.data)
		if err != nil {
			return err
		}
		var newest int32
		if text := f["newest_token"]; text != nil {
			if err := json.Unmarshal(text, &newest); err != nil {
				return statestore.Unreadable("the number of tokens", err)
			}
		}
		of, err := t.token(newest + 1)
		if err == nil {
			issued, err = of.IssueToken(t.now, k, life, most)
		}
		return err
	})
	return issued, err
}

// Token implements statestore.Tokens.
func (s *Store) Token(ctx context.Context, number int32) (k statestore.Token, err error) {
	err = s.look(ctx, func(t *txn) error {
		of, err := t.shard(part{tokenNode(s.paths.tokens, number), []string{"tokens"}})
		if err == nil {
			k, err = of.Token(t.now, number)
		}
		return err
	})
	return k, err
}

// RenewToken implements statestore.Tokens.
func (s *Store) RenewToken(ctx context.Context, number int32, life time.Duration) (k statestore.Token, err error) {
	if err := statestore.CheckTTL(life); err != nil {
		return k, err
	}
	err = s.change(ctx, false, func(t *txn) error {
		of, err := t.shard(part{tokenNode(s.paths.tokens, number), []string{"tokens"}})
		if err == nil {
			k, err = of.RenewToken(t.now, number, life)
		}
		return err
	})
	return k, err
}

// DropToken implements statestore.Tokens.
func (s *Store) DropToken(ctx context.Context, number int32) error {
	return s.change(ctx, false, func(t *txn) error {
		path := tokenNode(s.paths.tokens, number)
		n, err := t.get(path)
		if err == nil && n.is {
			t.remove(path)
		}
		return err
	})
}

// sweepTokens deletes expired tokens.
func (s *engine) sweepTokens(ctx context.Context) error {
	var numbers []int32
	err := s.look(ctx, func(t *txn) error {
		numbers = nil
		names, err := t.children(s.paths.tokens)
		for _, n := range names {
			if number, err := strconv.ParseInt(n, 10, 32); err == nil {
				numbers = append(numbers, int32(number))
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	return each(len(numbers), func(i int) error {
		return s.change(ctx, false, func(t *txn) error {
			of, err := t.shard(part{tokenNode(s.paths.tokens, numbers[i]), []string{"tokens"}})
			if err != nil {
				return err
			}
			if _, err := of.Token(t.now, numbers[i]); err != nil {
				of.DropToken(numbers[i])
			}
			return nil
		})
	})
}

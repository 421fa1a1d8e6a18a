// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
)

// parseLease reads "token expires-us holder".
func parseLease(name, text string) (statestore.Lease, error) {
	token, rest, _ := strings.Cut(text, " ")
	expires, holder, _ := strings.Cut(rest, " ")
	t, err1 := strconv.ParseInt(token, 10, 64)
	us, err2 := strconv.ParseInt(expires, 10, 64)
	if err := errors.Join(
		err1,
		err2,
	); err != nil || t < 0 || us < 0 ||
		holder != "" && statestore.CheckName("lease holder", holder) != nil {
		return statestore.Lease{}, &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: "lease " + strconv.Quote(name) + " in the state store cannot be read",
			Why:  strconv.Quote(firstLine(text)),
			Try:  "check that no other program writes under this prefix",
		}
	}
	return statestore.Lease{Name: name, Holder: holder, Token: t, Expires: time.UnixMicro(us)}, nil
}

// Acquire implements statestore.Leases. Before it returns, every shard has the token, so that no
// later write by an earlier holder succeeds.
func (s *Store) Acquire(ctx context.Context, name, holder string, ttl time.Duration) (statestore.Lease, error) {
	if err := statestore.CheckLease(name, holder, ttl); err != nil {
		return statestore.Lease{}, err
	}
	list, err := s.write(ctx, acquireScript, []string{s.control("lease")}, name, holder, ttl.Microseconds())
	if err != nil {
		return statestore.Lease{}, err
	}
	l, err := parseLease(name, str(at(list, 1)))
	switch {
	case err != nil:
		return statestore.Lease{}, err
	case list[0] == "OTHER":
		return l, statestore.HeldLease(l)
	case list[0] != "OK":
		return statestore.Lease{}, surprise(list)
	}
	return l, s.everyShard(ctx, fenceScript, ":"+name, l.Token)
}

// Renew implements statestore.Leases.
func (s *Store) Renew(ctx context.Context, l statestore.Lease, ttl time.Duration) (statestore.Lease, error) {
	if err := statestore.CheckLease(l.Name, l.Holder, ttl); err != nil {
		return statestore.Lease{}, err
	}
	return s.renew(ctx, l, ttl.Microseconds())
}

func (s *Store) renew(ctx context.Context, l statestore.Lease, us int64) (statestore.Lease, error) {
	list, err := s.write(
		ctx,
		renewScript,
		[]string{s.control("lease")},
		l.Name,
		l.Holder,
		us,
		strconv.FormatInt(l.Token, 10),
	)
	if err != nil {
		return statestore.Lease{}, err
	}
	switch list[0] {
	case "OK":
		return parseLease(l.Name, str(at(list, 1)))
	case "BACK":
		is, err := parseLease(l.Name, str(at(list, 1)))
		if err != nil {
			return statestore.Lease{}, err
		}
		return is, s.everyShard(ctx, fenceScript, ":"+l.Name, l.Token)
	case "OTHER":
		is, _ := parseLease(l.Name, str(at(list, 1)))
		return is, statestore.LostLease(l)
	}
	return statestore.Lease{}, surprise(list)
}

// Release implements statestore.Leases.
func (s *Store) Release(ctx context.Context, l statestore.Lease) error {
	if err := statestore.CheckLease(l.Name, l.Holder, 1); err != nil {
		return err
	}
	_, err := s.renew(ctx, l, 0)
	if errors.Is(err, creel.ErrStale) && !isFenced(ctx) {
		return nil // already lost
	}
	return err
}

func isFenced(ctx context.Context) bool {
	_, ok := statestore.FenceOf(ctx)
	return ok
}

// Holder implements statestore.Leases.
func (s *Store) Holder(ctx context.Context, name string) (statestore.Lease, error) {
	v, err := s.do(ctx, reading(holderScript, []string{s.control("lease")}, name))
	if err != nil {
		return statestore.Lease{}, err
	}
	list, _ := v.([]any)
	text := str(at(list, 2))
	if text == "" {
		return statestore.Lease{Name: name}, nil
	}
	l, err := parseLease(name, text)
	if !serverTime(list).Before(l.Expires) {
		l.Holder = ""
	}
	return l, err
}

// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// PutPolicy implements statestore.Policies.
func (s *Store) PutPolicy(ctx context.Context, w statestore.PolicyWrite) (subcluster.Policy, error) {
	if err := statestore.CheckPolicy(&w, s.cfg.Validate); err != nil {
		return subcluster.Policy{}, err
	}
	record, err := statestore.EncodePolicy(w)
	if err != nil {
		return subcluster.Policy{}, err
	}
	list, err := s.write(
		ctx,
		putPolicyScript,
		s.controls("p", "meta", "ph:"+string(w.Queue)),
		string(w.Queue),
		w.Expect,
		record,
		s.channel,
		statestore.KeptVersions,
	)
	if err != nil {
		return subcluster.Policy{}, err
	}
	switch list[0] {
	case "OK":
		return parsePolicy(str(at(list, 1)))
	case "OTHER":
		is := num(at(list, 1))
		return subcluster.Policy{Queue: w.Queue, Version: is}, statestore.OtherPolicy(w.Queue, is, w.Expect)
	}
	return subcluster.Policy{}, surprise(list)
}

// parsePolicy reads "version time-us record".
func parsePolicy(text string) (subcluster.Policy, error) {
	version, rest, ok1 := strings.Cut(text, " ")
	at, record, ok2 := strings.Cut(rest, " ")
	v, err1 := strconv.ParseInt(version, 10, 64)
	us, err2 := strconv.ParseInt(at, 10, 64)
	if !ok1 || !ok2 || err1 != nil || err2 != nil || v <= 0 || us < 0 {
		return subcluster.Policy{}, &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: "a policy in the state store cannot be read",
			Why:  strconv.Quote(firstLine(text)),
			Try:  "write it again, or check that no other program writes under this prefix",
		}
	}
	p, err := statestore.ParsePolicy([]byte(record))
	p.Version, p.Time = v, time.UnixMicro(us)
	return p, err
}

func parsePolicies(hash map[string]string) (list []subcluster.Policy, problems []string) {
	for q, text := range hash {
		p, err := parsePolicy(text)
		if err == nil && string(p.Queue) != q {
			err = fmt.Errorf("it belongs to %q", p.Queue)
		}
		if err != nil {
			problems = append(problems, fmt.Sprintf("policy of %.80q: %v", q, err))
			continue
		}
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b subcluster.Policy) int { return strings.Compare(string(a.Queue), string(b.Queue)) })
	slices.Sort(problems)
	return list, problems
}

// PolicyHistory implements statestore.Policies.
func (s *Store) PolicyHistory(
	ctx context.Context,
	q creel.QueuePath,
	before int64,
	limit int,
) ([]subcluster.Policy, error) {
	if err := statestore.CheckLimit(limit); err != nil {
		return nil, err
	}
	const step = 16 // documents may be long
	var out []subcluster.Policy
	for from := 0; from < statestore.KeptVersions && len(out) < limit; from += step {
		v, err := s.do(ctx, command("LRANGE", s.control("ph:"+string(q)), from, from+step-1))
		if err != nil {
			return nil, err
		}
		list, _ := v.([]any)
		for _, e := range list {
			p, err := parsePolicy(str(e))
			if err != nil {
				return nil, err
			}
			// A version written meanwhile shifts the list, so leave out repeats.
			if (before == 0 || p.Version < before) && len(out) < limit &&
				(len(out) == 0 || p.Version < out[len(out)-1].Version) {
				out = append(out, p)
			}
		}
		if len(list) < step {
			break
		}
	}
	return out, nil
}

// fenced checks the lease of a write that may have nothing to change.
func (s *Store) fenced(ctx context.Context) error {
	l, ok := statestore.FenceOf(ctx)
	if !ok {
		return nil
	}
	v, err := s.do(ctx, command("HGET", s.control("guard"), ":"+l.Name))
	if err != nil {
		return err
	}
	if newest := num(v); newest > l.Token {
		return statestore.Fenced(l, newest)
	}
	return nil
}

// Keys implements statestore.Keys.
func (s *Store) Keys(ctx context.Context, ring string) ([]statestore.Key, error) {
	rings, err := s.KeysOf(ctx, []string{ring})
	if err != nil {
		return nil, err
	}
	return rings[0], nil
}

// KeysOf implements statestore.Keys.
func (s *Store) KeysOf(ctx context.Context, rings []string) ([][]statestore.Key, error) {
	if len(rings) == 0 {
		return nil, nil
	}
	keys := make([]string, len(rings))
	for i, ring := range rings {
		keys[i] = s.control("k:" + ring)
	}
	v, err := s.do(ctx, reading(keysScript, keys))
	if err != nil {
		return nil, err
	}
	list, _ := v.([]any)
	if len(list) != 2+len(rings) {
		return nil, surprise(v)
	}
	out, now := make([][]statestore.Key, len(rings)), serverTime(list)
	for i := range rings {
		if out[i], err = parseRing(stringMap(list[2+i]), now); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// parseRing reads the valid keys of a ring, newest first.
func parseRing(fields map[string]string, now time.Time) (out []statestore.Key, err error) {
	for id, text := range fields {
		if id == "cur" {
			continue
		}
		k, err := parseKey(id, text)
		if err != nil {
			return nil, err
		}
		if k.Expires.IsZero() || now.Before(k.Expires) {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, func(a, b statestore.Key) int { return int(b.ID) - int(a.ID) })
	return out, nil
}

// parseKey reads "created-us expires-ms secret".
func parseKey(id, text string) (statestore.Key, error) {
	created, rest, _ := strings.Cut(text, " ")
	expires, secret, _ := strings.Cut(rest, " ")
	n, err1 := strconv.ParseInt(id, 10, 32)
	c, err2 := strconv.ParseInt(created, 10, 64)
	e, err3 := strconv.ParseInt(expires, 10, 64)
	if err := errors.Join(
		err1,
		err2,
		err3,
	); err != nil || n < 1 || c < 0 || e < 0 ||
		statestore.CheckSecret([]byte(secret)) != nil {
		return statestore.Key{}, &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: fmt.Sprintf("key %.20q in the state store cannot be read", id),
			Why:  "it does not have the form that creel writes",
			Try:  "remove the ring; tokens made with it become invalid",
		}
	}
	k := statestore.Key{ID: int32(n), Secret: []byte(secret), Created: time.UnixMicro(c)}
	if e > 0 {
		k.Expires = time.UnixMilli(e)
	}
	return k, nil
}

// RotateKey implements statestore.Keys.
func (s *Store) RotateKey(
	ctx context.Context,
	ring string,
	expect int32,
	secret []byte,
	keep time.Duration,
) (statestore.Key, error) {
	if err := statestore.CheckName("key ring", ring); err != nil {
		return statestore.Key{}, err
	}
	if err := statestore.CheckSecret(secret); err != nil {
		return statestore.Key{}, err
	}
	if err := statestore.CheckTTL(keep); err != nil {
		return statestore.Key{}, err
	}
	list, err := s.write(ctx, rotateScript, s.controls("k:"+ring, "v"), expect, secret, keep.Milliseconds(), s.channel)
	if err != nil {
		return statestore.Key{}, err
	}
	switch list[0] {
	case "OK":
		return parseKey(strconv.FormatInt(num(at(list, 1)), 10), str(at(list, 2)))
	case "OTHER":
		return statestore.Key{}, statestore.OtherKey(ring, int32(num(at(list, 1))), expect)
	}
	return statestore.Key{}, surprise(list)
}

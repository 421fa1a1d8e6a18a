// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
)

func (s *Store) spreadKey(app creel.ApplicationID) (n int64, key string) {
	p := ofApp(app)
	return p.n, s.apps().spread(p)
}

// SaveSpread implements statestore.Spreads.
func (s *Store) SaveSpread(ctx context.Context, sp statestore.Spread) (int64, error) {
	if err := statestore.CheckSpread(&sp); err != nil {
		return 0, err
	}
	record, err := statestore.EncodeSpread(sp)
	if err != nil {
		return 0, err
	}
	n, key := s.spreadKey(sp.Attempt.Application)
	list, err := s.writeShard(ctx, n, saveSpreadScript, []string{key}, sp.Attempt.Attempt, sp.Revision, record)
	if err != nil {
		return 0, err
	}
	switch list[0] {
	case "OK":
		return num(at(list, 1)), nil
	case "OTHER":
		return 0, statestore.OtherSpread(sp.Attempt, num(at(list, 1)), sp.Revision)
	}
	return 0, surprise(list)
}

// Spread implements statestore.Spreads.
func (s *Store) Spread(ctx context.Context, a creel.AttemptID) (statestore.Spread, error) {
	n, key := s.spreadKey(a.Application)
	field := strconv.Itoa(int(a.Attempt))
	v, err := s.do(ctx, command("HMGET", key, field, field+"r"))
	if err != nil {
		return statestore.Spread{}, err
	}
	list, _ := v.([]any)
	if at(list, 0) == nil {
		if err := s.apps().sure(ctx, n); err != nil {
			return statestore.Spread{}, err
		}
		return statestore.Spread{}, statestore.NoSpread(a)
	}
	sp, err := statestore.ParseSpread([]byte(str(list[0])))
	sp.Revision = num(at(list, 1))
	return sp, err
}

// SpreadsOf implements statestore.Spreads.
func (s *Store) SpreadsOf(ctx context.Context, app creel.ApplicationID) ([]statestore.Spread, error) {
	n, key := s.spreadKey(app)
	v, err := s.do(ctx, command("HGETALL", key))
	if err != nil {
		return nil, err
	}
	fields := stringMap(v)
	if len(fields) == 0 {
		return nil, s.apps().sure(ctx, n)
	}
	var out []statestore.Spread
	for f, record := range fields {
		if strings.HasSuffix(f, "r") {
			continue
		}
		sp, err := statestore.ParseSpread([]byte(record))
		if err != nil {
			return nil, err
		}
		sp.Revision = num(fields[f+"r"])
		out = append(out, sp)
	}
	slices.SortFunc(out, func(a, b statestore.Spread) int { return a.Attempt.Compare(b.Attempt) })
	return out, nil
}

// DropSpread implements statestore.Spreads.
func (s *Store) DropSpread(ctx context.Context, a creel.AttemptID) error {
	n, key := s.spreadKey(a.Application)
	_, err := s.writeShard(ctx, n, dropSpreadScript, []string{key}, a.Attempt)
	return err
}

// stringMap reads what HGETALL gives, in either version of the protocol.
func stringMap(v any) map[string]string {
	m := map[string]string{}
	switch l := v.(type) {
	case []any:
		for i := 0; i+1 < len(l); i += 2 {
			m[str(l[i])] = str(l[i+1])
		}
	case map[any]any:
		for k, v := range l {
			m[str(k)] = str(v)
		}
	}
	return m
}

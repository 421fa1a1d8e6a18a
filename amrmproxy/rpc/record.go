// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"slices"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/amrmproxy"
	"github.com/creelrm/creel/statestore"
)

// record is a session's line to the store: one spread per attempt, compared
// and set by its revision, so that of two proxies with the same attempt the
// later reader wins and the other stops.
type record struct {
	cfg      *Config
	attempt  creel.AttemptID
	revision int64
	olders   []creel.AttemptID // of earlier attempts; dropped once ours is durable
	tried    [][]byte          // states sent since the revision, of which one may be in the store
}

// load finds the application's record: ours, else the latest of an earlier
// attempt, else nil. A record of a later attempt means that ours is over.
func (r *record) load(ctx context.Context) (*amrmproxy.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.StoreTime)
	defer cancel()
	spreads, err := r.cfg.Spreads.SpreadsOf(ctx, r.attempt.Application)
	if err != nil {
		// Running it without its spread would start second twins, or leave
		// first ones behind: rather let the master try again.
		return nil, &creel.Error{
			Kind: creel.ErrUnavailable,
			What: "the store cannot tell where " + r.attempt.Application.String() + " lives",
			Why:  err.Error(),
			Try:  "try again",
		}
	}
	var best *statestore.Spread
	for i := range spreads {
		switch c := spreads[i].Attempt.Compare(r.attempt); {
		case c > 0:
			return nil, &creel.Error{
				Kind: creel.ErrAttemptNotFound,
				What: r.attempt.String() + " is superseded",
				Why:  spreads[i].Attempt.String() + " has registered",
				Try:  "this master should stop",
			}
		case c < 0:
			r.olders = append(r.olders, spreads[i].Attempt)
		default:
			r.revision = spreads[i].Revision
		}
		if best == nil || spreads[i].Attempt.Compare(best.Attempt) > 0 {
			best = &spreads[i]
		}
	}
	if best == nil {
		return nil, nil
	}
	keys, err := r.cfg.Secrets(ctx)
	if err != nil {
		return nil, err
	}
	plain, err := statestore.Open(keys, []byte(best.Attempt.String()), best.State)
	if err != nil {
		return nil, err
	}
	out := &amrmproxy.Record{}
	if err := out.UnmarshalBinary(plain); err != nil {
		return nil, err
	}
	return out, nil
}

// save writes the record, or removes it when it is nil. The error is of kind
// creel.ErrStale when another proxy or attempt owns it.
func (r *record) save(ctx context.Context, rec *amrmproxy.Record) error {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.StoreTime)
	defer cancel()
	if rec == nil {
		r.dropOlder(ctx)
		return r.cfg.Spreads.DropSpread(ctx, r.attempt)
	}
	keys, err := r.cfg.Secrets(ctx)
	if err != nil {
		return err
	}
	if len(keys) == 0 {
		return &creel.Error{Kind: creel.ErrUnavailable, What: "the cluster has no secret to seal with", Try: "set one"}
	}
	plain, err := rec.MarshalBinary()
	if err != nil {
		return err
	}
	sealed, err := statestore.Seal(rand.Reader, keys[0], []byte(r.attempt.String()), plain)
	if err != nil {
		return err
	}
	s := statestore.Spread{Attempt: r.attempt, Revision: r.revision, Home: rec.Home, Proxy: r.cfg.Name, State: sealed}
	for _, t := range rec.Twins {
		phase := "running"
		switch {
		case rec.Ending:
			phase = "ending"
		case t.Token == nil:
			phase = "launching"
		}
		s.Members = append(s.Members, statestore.SpreadMember{Member: t.Member, Phase: phase})
	}
	revision, err := r.cfg.Spreads.SaveSpread(ctx, s)
	if errors.Is(err, creel.ErrConflict) && (len(r.tried) > 0 || r.revision > 0) {
		ours, lookErr := r.caughtUp(ctx)
		if lookErr != nil {
			return lookErr
		}
		if ours {
			s.Revision = r.revision
			revision, err = r.cfg.Spreads.SaveSpread(ctx, s)
		}
	}
	if errors.Is(err, creel.ErrConflict) {
		return &creel.Error{
			Kind: creel.ErrStale,
			What: "the spread of " + r.attempt.String() + " is not ours any more",
			Why:  err.Error(),
		}
	}
	if err != nil {
		r.tried = append(r.tried, sealed)
		return err
	}
	r.revision, r.tried = revision, nil
	r.dropOlder(ctx)
	return nil
}

// caughtUp tells whether what keeps us from saving is our own: a save whose
// answer was lost. Sealing the same record twice does not give the same bytes,
// so the store cannot tell. The revision is then the store's. A store that has
// no record of the application at all has come back empty: the running session
// is the truth then, and is saved anew. Whoever superseded it left a record.
func (r *record) caughtUp(ctx context.Context) (bool, error) {
	spreads, err := r.cfg.Spreads.SpreadsOf(ctx, r.attempt.Application)
	if err != nil {
		return false, err
	}
	for i := range spreads {
		s := &spreads[i]
		if s.Attempt == r.attempt &&
			slices.ContainsFunc(r.tried, func(state []byte) bool { return bytes.Equal(state, s.State) }) {
			r.revision, r.tried = s.Revision, nil
			return true, nil
		}
	}
	if len(spreads) == 0 {
		r.revision, r.tried = 0, nil
		return true, nil
	}
	return false, nil
}

// dropOlder removes the records of earlier attempts: their twins are in ours
// now, and a proxy that still holds one of them must find out.
func (r *record) dropOlder(ctx context.Context) {
	for len(r.olders) > 0 {
		if r.cfg.Spreads.DropSpread(ctx, r.olders[0]) != nil {
			return // at the next save
		}
		r.olders = r.olders[1:]
	}
}

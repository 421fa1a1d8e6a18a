// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/creelrm/creel"
)

// Entry is a UAM record as the store keeps it: one per attempt, sealed, under a
// revision that rises with each write.
type Entry struct {
	Attempt  creel.AttemptID
	Revision int64
	Home     creel.SubclusterID
	Proxy    string // the proxy that wrote it
	UAMs     []EntryUAM
	Sealed   []byte // the Record, by Sealer
}

// EntryUAM is a UAM's id, attempt and state (launching, running or ending) in the clear, for routers and operators.
type EntryUAM struct {
	Member  creel.SubclusterID
	OwnID   creel.ApplicationID // zero: it has the application's
	Attempt int32               // of the UAM; 0 while it is not launched
	Phase   string
}

// Store keeps the entries of attempts.
type Store interface {
	// Entries of all attempts of an application.
	Entries(ctx context.Context, app creel.ApplicationID) ([]Entry, error)
	// Put writes an entry if the stored revision is e.Revision (0: none yet) and
	// returns the new revision. The error is of kind creel.ErrConflict if the
	// stored revision is another, and the same content again is success.
	Put(ctx context.Context, e Entry) (revision int64, err error)
	// Remove removes the entry of an attempt; it may be gone already.
	Remove(ctx context.Context, a creel.AttemptID) error
}

// Sealer encrypts records, which hold tokens. bound names the owner of a sealed value: Open refuses it for any other.
type Sealer interface {
	Seal(ctx context.Context, bound, plain []byte) (sealed []byte, err error)
	Open(ctx context.Context, bound, sealed []byte) (plain []byte, err error)
}

// Recording keeps a session's record in the store, compared and set by its revision. So of two proxies with the same
// attempt the later wins: it saves the record that it has read before it acts, and the other stops when it saves. It
// also saves before it calls again a member that another proxy has called in its name. Load is called once, before
// the session is made; one Save may be under way at a time, as the session requests them.
type Recording struct {
	Attempt creel.AttemptID
	Proxy   string // name of this proxy
	Store   Store
	Sealer  Sealer

	revision int64
	earlier  []creel.AttemptID // with entries of their own; removed once ours is durable
	unclear  [][]byte          // sealed states sent since the revision, of which one may be in the store
}

// Load finds the application's record: ours, else the latest of an earlier
// attempt, else nil. An entry of a later attempt means that ours is over: the
// error is of kind creel.ErrAttemptNotFound.
func (r *Recording) Load(ctx context.Context) (*Record, error) {
	entries, err := r.Store.Entries(ctx, r.Attempt.Application)
	if err != nil {
		// Running it without its record would launch second UAMs, or leave
		// first ones behind: rather let the AM try again.
		return nil, &creel.Error{
			Kind: creel.ErrUnavailable,
			What: "failed to read the UAM records of " + r.Attempt.Application.String(),
			Why:  err.Error(),
			Try:  "try again",
		}
	}
	var latest *Entry
	for i := range entries {
		e := &entries[i]
		switch c := e.Attempt.Compare(r.Attempt); {
		case c > 0:
			return nil, superseded(r.Attempt, e.Attempt.String()+" has registered")
		case c < 0:
			r.earlier = append(r.earlier, e.Attempt)
		default:
			r.revision = e.Revision
		}
		if latest == nil || e.Attempt.Compare(latest.Attempt) > 0 {
			latest = e
		}
	}
	if latest == nil {
		return nil, nil
	}
	plain, err := r.Sealer.Open(ctx, []byte(latest.Attempt.String()), latest.Sealed)
	if err != nil {
		return nil, err
	}
	out := &Record{}
	if err := out.UnmarshalBinary(plain); err != nil {
		return nil, err
	}
	return out, nil
}

// Save writes the record, or removes it when it is nil. The error is of kind
// creel.ErrStale when another proxy or attempt owns it.
func (r *Recording) Save(ctx context.Context, rec *Record) error {
	if rec == nil {
		// Ours goes last: while it is there, a proxy that comes after us finds
		// the earlier ones too.
		if err := r.removeEarlier(ctx); err != nil {
			return err
		}
		return r.Store.Remove(ctx, r.Attempt)
	}
	plain, err := rec.MarshalBinary()
	if err != nil {
		return err
	}
	sealed, err := r.Sealer.Seal(ctx, []byte(r.Attempt.String()), plain)
	if err != nil {
		return err
	}
	if err := r.put(ctx, r.entry(rec, sealed)); err != nil {
		return err
	}
	_ = r.removeEarlier(ctx) // else at the next save
	return nil
}

func (r *Recording) entry(rec *Record, sealed []byte) Entry {
	e := Entry{Attempt: r.Attempt, Home: rec.Home, Proxy: r.Proxy, Sealed: sealed}
	for _, u := range rec.UAMs {
		phase := "running"
		switch {
		case rec.Ending:
			phase = "ending"
		case u.Token == nil:
			phase = "launching"
		}
		e.UAMs = append(e.UAMs, EntryUAM{Member: u.Member, OwnID: u.OwnID, Attempt: u.Attempt.Attempt, Phase: phase})
	}
	return e
}

func (r *Recording) put(ctx context.Context, e Entry) error {
	e.Revision = r.revision
	revision, err := r.Store.Put(ctx, e)
	if errors.Is(err, creel.ErrConflict) && (len(r.unclear) > 0 || r.revision > 0) {
		ours, readErr := r.catchUp(ctx)
		if readErr != nil {
			return readErr
		}
		if ours {
			e.Revision = r.revision
			revision, err = r.Store.Put(ctx, e)
		}
	}
	switch {
	case errors.Is(err, creel.ErrConflict):
		return &creel.Error{
			Kind: creel.ErrStale,
			What: "another proxy has taken over the UAM record of " + r.Attempt.String(),
			Why:  err.Error(),
		}
	case err != nil:
		r.unclear = append(r.unclear, e.Sealed)
		return err
	}
	r.revision, r.unclear = revision, nil
	return nil
}

// catchUp reports whether this proxy's own earlier save, whose answer was lost, blocks the current one. Sealing the
// same record twice yields different bytes, so the store cannot see it. The revision is then the store's. A store
// that has no entry of the application at all has come back empty: the running session is the truth then, and is
// saved again. A superseding proxy would have left an entry.
func (r *Recording) catchUp(ctx context.Context) (bool, error) {
	entries, err := r.Store.Entries(ctx, r.Attempt.Application)
	if err != nil {
		return false, err
	}
	if len(entries) == 0 {
		r.revision, r.unclear = 0, nil
		return true, nil
	}
	for i := range entries {
		e := &entries[i]
		if e.Attempt == r.Attempt &&
			slices.ContainsFunc(r.unclear, func(sealed []byte) bool { return bytes.Equal(sealed, e.Sealed) }) {
			r.revision, r.unclear = e.Revision, nil
			return true, nil
		}
	}
	return false, nil
}

// removeEarlier removes the entries of earlier attempts: their UAMs are in ours
// now, and a proxy that still holds one of them must find out.
func (r *Recording) removeEarlier(ctx context.Context) error {
	for len(r.earlier) > 0 {
		if err := r.Store.Remove(ctx, r.earlier[0]); err != nil {
			return err
		}
		r.earlier = r.earlier[1:]
	}
	return nil
}

func superseded(a creel.AttemptID, why string) error {
	return &creel.Error{
		Kind: creel.ErrAttemptNotFound,
		What: a.String() + " is superseded",
		Why:  why,
		Try:  "this AM should stop",
	}
}

// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
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
	// Writers of the attempt's entry in the order in which they took it over, at most maxWriters; the last
	// wrote this one. None: a version before writers wrote it.
	Writers []string
	UAMs    []EntryUAM
	Sealed  []byte // the Record, by Sealer
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
// also saves before it calls again a member that another proxy has called in its name. A store may go back to an
// earlier state: an entry that this recording wrote, or that it took over from, is older then, and is replaced. Load is
// called once, before the session is made; one Save may be under way at a time, as the session requests them.
type Recording struct {
	Attempt creel.AttemptID
	Proxy   string // name of this proxy
	Writer  string // names this recording, and no other of any process
	Store   Store
	Sealer  Sealer
	// WentBack, if given, is called when the store has an earlier state of the entry than this recording saved;
	// the entry is replaced then.
	WentBack func()

	revision int64
	read     int64             // revision of the entry that Load found; 0: none
	writers  []string          // of that entry
	saved    bool              // an entry with our Writer has been durable
	earlier  []creel.AttemptID // with entries of their own; removed once ours is durable
}

// maxWriters bounds Entry.Writers: the first ones are left out.
const maxWriters = 16

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
			r.revision, r.read = e.Revision, e.Revision
			r.writers = e.Writers[max(0, len(e.Writers)-maxWriters+1):]
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
		// A save of an earlier attempt may have come after Load.
		entries, err := r.Store.Entries(ctx, r.Attempt.Application)
		if err != nil {
			return err
		}
		r.addEarlier(entries)
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
	e.Writers = append(slices.Clone(r.writers), r.Writer)
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
	if errors.Is(err, creel.ErrConflict) {
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
		return err
	}
	r.revision, r.saved = revision, true
	return nil
}

// catchUp reports whether this recording may replace the stored entry, and sets the revision to do so.
func (r *Recording) catchUp(ctx context.Context) (bool, error) {
	entries, err := r.Store.Entries(ctx, r.Attempt.Application)
	if err != nil {
		return false, err
	}
	revision, ours := r.stands(entries)
	if !ours {
		return false, nil
	}
	if r.saved && revision < r.revision && r.WentBack != nil {
		r.WentBack()
	}
	r.revision = revision
	r.addEarlier(entries) // they are back, if the store went back
	return true, nil
}

// addEarlier adds the entries of earlier attempts to those that are removed.
func (r *Recording) addEarlier(entries []Entry) {
	for i := range entries {
		if a := entries[i].Attempt; a.Compare(r.Attempt) < 0 && !slices.Contains(r.earlier, a) {
			r.earlier = append(r.earlier, a)
		}
	}
}

// stands returns the revision that a save replaces, or false if another proxy or a later attempt has taken over. No
// entry of the attempt means that the store lost it: it is empty or went back. A successor would have left an entry,
// and the store refuses an entry that was removed.
func (r *Recording) stands(entries []Entry) (revision int64, ours bool) {
	ours = true
	for i := range entries {
		e := &entries[i]
		switch c := e.Attempt.Compare(r.Attempt); {
		case c > 0:
			return 0, false
		case c == 0:
			revision, ours = e.Revision, r.older(e)
		}
	}
	return revision, ours
}

// older reports whether an entry of the attempt has nothing that this recording does not know. Sealing a record twice
// yields different bytes, so the writer is compared.
func (r *Recording) older(e *Entry) bool {
	if len(e.Writers) == 0 { // of a version before writers
		return len(r.writers) == 0 && e.Revision <= r.read
	}
	switch writer := e.Writers[len(e.Writers)-1]; {
	case writer == r.Writer:
		return true // a save whose answer was lost, or the store went back
	case slices.Contains(r.writers, writer):
		// The writer before us stops at its next save once we have saved, unless the store went back.
		return r.saved || e.Revision <= r.read
	}
	return false
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

// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"context"
	"errors"
	"slices"

	"github.com/creelrm/creel"
)

// Entry is a sealed UAM record in the store. There is one per attempt. Its revision rises with each write.
type Entry struct {
	Attempt  creel.AttemptID
	Revision int64
	Home     creel.SubclusterID
	Proxy    string // the proxy that wrote it
	// Writers are the writers of the attempt's entry in the order in which they took it over, at most maxWriters; the
	// last wrote this entry. Empty: an older version without writers wrote it.
	Writers []string
	UAMs    []EntryUAM
	Sealed  []byte // the Record, by Sealer
}

// EntryUAM is a UAM's id, attempt and state (launching, running or ending), unencrypted, for routers and operators.
type EntryUAM struct {
	Member  creel.SubclusterID
	OwnID   creel.ApplicationID // zero: the application's id
	Attempt int32               // of the UAM; 0 before its launch
	Phase   string
}

// Store stores the entries of attempts.
type Store interface {
	// Entries returns the entries of all attempts of an application.
	Entries(ctx context.Context, app creel.ApplicationID) ([]Entry, error)
	// Put writes an entry if the stored revision is e.Revision (0: no entry yet), and returns the new revision. The
	// error is of kind creel.ErrConflict if the stored revision differs. Writing the same content again succeeds.
	Put(ctx context.Context, e Entry) (revision int64, err error)
	// Remove removes the entry of an attempt. It succeeds if there is none.
	Remove(ctx context.Context, a creel.AttemptID) error
}

// Sealer encrypts records, since they have tokens. bound identifies the owner of a sealed value: Open fails for
// another owner.
type Sealer interface {
	Seal(ctx context.Context, bound, plain []byte) (sealed []byte, err error)
	Open(ctx context.Context, bound, sealed []byte) (plain []byte, err error)
}

// Recording saves a session's record in the store by compare-and-set of its revision. So of two proxies with the same
// attempt the later wins: it saves the record that it has read before it acts. The other stops at its next save. If
// another proxy has called a member for this attempt, the session saves before it calls that member again. The store
// may go back to an earlier state. Then an older entry by this recording, or by the writer before it, is replaced.
// Load is called once, before the session is made. At most one Save is under way at a time.
type Recording struct {
	Attempt creel.AttemptID
	Proxy   string // name of this proxy
	Writer  string // unique name of this recording, over all processes
	Store   Store
	Sealer  Sealer
	// WentBack, if set, is called when the store has an earlier state of the entry than this recording saved. The
	// entry is then replaced.
	WentBack func()

	revision int64
	read     int64             // revision of the entry that Load read; 0: none
	writers  []string          // of that entry
	saved    bool              // an entry with this Writer has been durable
	earlier  []creel.AttemptID // attempts with entries; removed once this attempt's entry is durable
}

// maxWriters bounds Entry.Writers: the earliest are dropped.
const maxWriters = 16

// Load returns the application's record: this attempt's, else the latest of an earlier attempt, else nil. If there is
// an entry of a later attempt, this attempt is over, and the error is of kind creel.ErrAttemptNotFound.
func (r *Recording) Load(ctx context.Context) (*Record, error) {
	entries, err := r.Store.Entries(ctx, r.Attempt.Application)
	if err != nil {
		// Without its record the session would launch duplicate UAMs or leave UAMs behind. So the AM gets an error
		// and tries again.
		return nil, &creel.Error{
			Kind: creel.ErrUnavailable,
			What: "failed to read the UAM records of " + r.Attempt.Application.String(),
			Why:  err.Error(),
			Try:  "try again",
		}
	}
	r.earlier = nil // an earlier Load may have failed behind this line
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

// Save writes the record, or removes it if rec is nil. The error is of kind creel.ErrStale if another proxy or
// attempt owns the record.
func (r *Recording) Save(ctx context.Context, rec *Record) error {
	if rec == nil {
		// A session of an earlier attempt may have saved after Load.
		entries, err := r.Store.Entries(ctx, r.Attempt.Application)
		if err != nil {
			return err
		}
		r.addEarlier(entries)
		// This attempt's entry is removed last: while it exists, a later proxy finds the earlier entries too.
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
	_ = r.removeEarlier(ctx) // retried at the next save
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
	r.addEarlier(entries) // if the store went back, it has them again
	return true, nil
}

// addEarlier adds the attempts of earlier entries to r.earlier.
func (r *Recording) addEarlier(entries []Entry) {
	for i := range entries {
		if a := entries[i].Attempt; a.Compare(r.Attempt) < 0 && !slices.Contains(r.earlier, a) {
			r.earlier = append(r.earlier, a)
		}
	}
}

// stands returns the revision that a save replaces, or false if another proxy or a later attempt has taken over. If
// there is no entry of the attempt, the store lost it: it is empty or went back. A successor would have an entry, and
// the store refuses an entry that was removed.
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

// older reports whether an entry of the attempt is not newer than this recording's state. Sealing a record twice
// yields different bytes, so writers are compared.
func (r *Recording) older(e *Entry) bool {
	if len(e.Writers) == 0 { // written by an older version
		return len(r.writers) == 0 && e.Revision <= r.read
	}
	switch writer := e.Writers[len(e.Writers)-1]; {
	case writer == r.Writer:
		return true // a save whose answer was lost, or the store went back
	case slices.Contains(r.writers, writer):
		// Once this recording has saved, the writer before it stops at its next save, unless the store went back.
		return r.saved || e.Revision <= r.read
	}
	return false
}

// removeEarlier removes the entries of earlier attempts. Their UAMs are in this attempt's entry now, and a proxy that
// still runs an earlier attempt must fail to save.
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

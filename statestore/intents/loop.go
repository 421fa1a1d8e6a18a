// SPDX-License-Identifier: Apache-2.0

package intents

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// ErrUnknownVerb is for an intent of another version, whose verb this version cannot carry out.
var ErrUnknownVerb = errors.New("this version does not know the verb")

// Config of a Loop. View and Do are required.
type Config struct {
	View func() *subcluster.View // nil at first
	// Do asks a member for a user's change, in the user's name, and reports whether the change is made.
	// creel.ErrUnavailable: the member did not answer; creel.ErrBusy: try again later; creel.ErrReadOnly: its disk is
	// full; ErrUnknownVerb: this version does not support the verb. Any other error is the member's rejection;
	// creel.ErrContainerNotFound may be temporary.
	Do func(ctx context.Context, m *subcluster.Status, i Intent) (done bool, err error)
	// Moving reports whether an application is being moved to a home that does not know it yet; nil: none is.
	Moving func(ctx context.Context, app creel.ApplicationID) (bool, error)
	Every  time.Duration // between rounds [5 s]
	Log    *slog.Logger  // nil: silent
}

// Loop carries out recorded intents. Make one with New, run it with Run, or call Round from a loop.
type Loop struct {
	store Store
	cfg   Config
	left  map[string]int64 // versions of documents whose skipping has been logged
}

// New makes a Loop.
func New(store Store, cfg Config) *Loop {
	if cfg.Every <= 0 {
		cfg.Every = 5 * time.Second
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Loop{store: store, cfg: cfg, left: map[string]int64{}}
}

// Run works until ctx ends, then returns nil.
func (l *Loop) Run(ctx context.Context) error {
	tick := time.NewTicker(l.cfg.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := l.Round(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, creel.ErrUnavailable) {
				l.cfg.Log.Warn("failed to carry out recorded intents", "error", err)
			}
		}
	}
}

// Round tries each intent once, oldest first. If the store is away, the round ends with its error. Errors of single
// intents do not stop the round; the first is returned.
func (l *Loop) Round(ctx context.Context) (failed error) {
	view := l.cfg.View()
	if view == nil {
		return nil
	}
	set, err := l.store.Documents(ctx, class)
	if err != nil {
		return err
	}
	maps.DeleteFunc(l.left, func(name string, version int64) bool {
		d, there := set.Find(name)
		return !there || d.Version != version
	})
	var gone statestore.Removals
	if len(set.Documents) > 0 {
		if gone, err = statestore.RemovalsIn(ctx, l.store); err != nil {
			return err
		}
	}
	for d := range byTime(set) {
		i, err := Read(d, set.Now)
		if err != nil {
			if set.Now.Sub(d.Time) > RefusedFor { // until then a router of another version may read it
				l.cfg.Log.Warn("dropped an unreadable intent", "name", d.Name, "error", err)
				l.write(ctx, d, nil)
			}
			continue
		}
		if i.Refused != "" {
			if i.Age > RefusedFor {
				l.write(ctx, d, nil)
			}
			continue
		}
		if i.Again && i.Age < AgainAfter {
			continue
		}
		err = l.carryOut(ctx, &round{view, set, gone}, d, i)
		if errors.Is(err, creel.ErrUnavailable) || ctx.Err() != nil {
			return err
		}
		if err != nil && failed == nil {
			failed = fmt.Errorf("%s: %w", d.Name, err)
		}
	}
	return failed
}

// round is the input of a round: the view, the recorded intents, and the removed members.
type round struct {
	view *subcluster.View
	set  statestore.DocumentSet
	gone statestore.Removals
}

// unknown ends an intent whose member does not know the application, unless a move explains that. recorded: the member
// has, or gets, a UAM of the application. The error comes from the store.
func (l *Loop) unknown(
	ctx context.Context, d *statestore.Document, i Intent, at creel.SubclusterID, recorded bool, attrs []any,
) error {
	if l.cfg.Moving != nil {
		if moving, err := l.cfg.Moving(ctx, i.Application); err != nil || moving {
			return err
		}
	}
	// A move made between the home's look-up and the call is not recorded any more; then the home has changed by now.
	if i.Member == "" {
		is, err := l.store.Home(ctx, i.Application)
		if err == nil && is != at {
			return nil // the next round asks there
		}
		if err != nil && !errors.Is(err, creel.ErrApplicationNotFound) {
			return err
		}
	}
	if recorded && i.Verb.sets() && i.Age < AgainAfter {
		return nil // the UAM may be on its way there, with the value that home had before
	}
	if i.Member != "" {
		l.cfg.Log.Info("intent dropped: the subcluster does not know the application", attrs...)
		l.write(ctx, d, nil)
		return nil
	}
	now := i
	now.Doubted, now.Refused = "", fmt.Sprintf("%s does not know the application any more", at)
	l.cfg.Log.Warn("intent refused: its home does not know the application", attrs...)
	l.hear(ctx, d, i, now)
	return nil
}

// carryOut makes the call at the member, if the member is alive. The error comes from the store.
func (l *Loop) carryOut(ctx context.Context, r *round, d *statestore.Document, i Intent) error {
	attrs := []any{
		"application", i.Application.String(), "user", i.User, "intent", i.String(),
		"asked_before", i.Age.Round(time.Second).String(),
	}
	home, err := l.store.Home(ctx, i.Application)
	if errors.Is(err, creel.ErrApplicationNotFound) {
		l.cfg.Log.Info("intent dropped: the application has no record", attrs...)
		l.write(ctx, d, nil)
		return nil
	}
	if err != nil {
		return err
	}
	at := home
	if i.Member != "" {
		at = i.Member
	}
	if r.gone.Removed(r.view, at) {
		now := i
		now.Doubted, now.Refused = "", fmt.Sprintf("subcluster %s was removed from the federation", at)
		l.cfg.Log.Warn("intent refused: its subcluster was removed",
			append(attrs, "subcluster", string(at))...)
		l.hear(ctx, d, i, now)
		return nil
	}
	m, ok := r.view.Member(at)
	if !ok || !m.State.Alive() {
		l.hear(ctx, d, i, i.heard(false, ""))
		return nil
	}
	attrs = append(attrs, "subcluster", string(at))
	there, recorded := i, false
	if i.Member != "" {
		if there.Application, recorded, err = l.idAt(ctx, i, home); err != nil {
			return err
		}
	}
	// A long round may reach this intent after a newer one was carried out.
	if now, err := l.store.DocumentOf(ctx, class, d.Name, nil); err != nil || now.Version != d.Version {
		return err
	}
	done, err := l.cfg.Do(ctx, m, there)
	switch {
	case comesAgain(err): // try later
	case errors.Is(err, creel.ErrUnavailable):
		l.hear(ctx, d, i, i.heard(false, ""))
	case errors.Is(err, ErrUnknownVerb):
		if _, told := l.left[d.Name]; !told {
			l.left[d.Name] = d.Version
			l.cfg.Log.Warn("intent left to routers of another version", append(attrs, "error", err)...)
		}
	case errors.Is(err, creel.ErrApplicationNotFound):
		return l.unknown(ctx, d, i, at, recorded, attrs)
	case err != nil:
		now := i.heard(errors.Is(err, creel.ErrContainerNotFound), err.Error())
		if now.Refused != "" && !i.Again {
			l.cfg.Log.Warn("intent refused by its subcluster",
				append(attrs, "error", err)...)
		}
		l.hear(ctx, d, i, now)
	case done:
		if i.Member == "" && !i.Again {
			if err := elsewhere(ctx, l.store, i, home, d.Version); err != nil {
				return err // before this intent's record is deleted
			}
		}
		earlier := l.earlier(r.set, d, i)
		if err := earlier.drop(ctx, l.store); err != nil {
			return err
		}
		if i.Again {
			l.write(ctx, d, nil)
			break
		}
		l.cfg.Log.Info("intent carried out", attrs...)
		if i.Another || len(earlier) > 0 {
			i.Another, i.Again = false, true
			l.write(ctx, d, &i)
			break
		}
		l.write(ctx, d, nil)
	}
	return nil
}

// hear stores the new state of an intent, if it changed. An intent that is sent once more and rejected is deleted: its
// user was informed of success.
func (l *Loop) hear(ctx context.Context, d *statestore.Document, was, is Intent) {
	if is.Again && is.Refused != "" {
		l.write(ctx, d, nil)
	} else if was.Doubted != is.Doubted || was.Refused != is.Refused {
		l.write(ctx, d, &is)
	}
}

// elsewhere records an intent that its home has carried out for every other member with a part of the
// application, if its verb applies to parts. version is the intent's recorded version.
func elsewhere(ctx context.Context, s Store, i Intent, home creel.SubclusterID, version int64) error {
	others, err := Others(ctx, s, i, home)
	for _, p := range others {
		i.Member = p.Member
		err = errors.Join(err, write(ctx, s, i, 0, version)) // it replaces an intent: there is room
	}
	return err
}

// earlier returns the intents recorded before one that its member has carried out: the member may have been busy when
// it was asked for them.
func (l *Loop) earlier(set statestore.DocumentSet, d *statestore.Document, i Intent) Documents {
	if !i.Verb.sets() {
		return nil
	}
	words := i.earlier(set).at(i.Member)
	return slices.DeleteFunc(words, func(e statestore.Document) bool { return e.Version >= d.Version })
}

// idAt returns the application's id at the member that an intent is for, and whether a UAM there is recorded.
func (l *Loop) idAt(
	ctx context.Context, i Intent, home creel.SubclusterID,
) (id creel.ApplicationID, recorded bool, err error) {
	parts, err := Parts(ctx, l.store, i.Application, home)
	for _, p := range parts {
		if p.Member == i.Member {
			return p.ID, true, err
		}
	}
	return i.Application, false, err
}

// Part is a UAM of an application.
type Part struct {
	Member  creel.SubclusterID
	ID      creel.ApplicationID // of the application there: its own id, or the UAM's
	Attempt int32               // the number of the UAM's attempt; 0 if its record lacks it
	Of      creel.AttemptID     // the attempt at home that owns the UAM
}

// Parts lists the application's UAMs outside its home.
func Parts(ctx context.Context, s Store, app creel.ApplicationID, home creel.SubclusterID) (parts []Part, err error) {
	records, err := s.UAMRecordsOf(ctx, app)
	if err != nil || len(records) == 0 {
		return nil, err
	}
	newest := &records[len(records)-1]
	for _, u := range newest.UAMs {
		if u.Member == home {
			continue
		}
		p := Part{Member: u.Member, ID: app, Attempt: u.Attempt, Of: newest.Attempt}
		if !u.OwnID.IsZero() {
			p.ID = u.OwnID
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// Others returns the parts outside the home that an intent applies to: none for verbs that only the home carries out.
func Others(ctx context.Context, s Store, i Intent, home creel.SubclusterID) ([]Part, error) {
	if !i.Verb.sets() {
		return nil, nil
	}
	return Parts(ctx, s, i.Application, home)
}

// write replaces a record, or deletes it for nil. A record that changed meanwhile stays unchanged.
func (l *Loop) write(ctx context.Context, d *statestore.Document, i *Intent) {
	w := statestore.DocumentWrite{Class: class, Name: d.Name, Expect: d.Version, Quiet: true, Author: d.Author}
	var err error
	if i != nil {
		w.Data, err = i.encode()
	}
	if err == nil {
		_, err = l.store.PutDocument(ctx, w)
	}
	if err != nil && !errors.Is(err, creel.ErrConflict) && ctx.Err() == nil {
		l.cfg.Log.Warn("failed to update an intent", "name", d.Name, "error", err)
	}
}

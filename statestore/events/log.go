// SPDX-License-Identifier: Apache-2.0

// Package events reads and records the federation's events (statestore.Events) for routers and rebalancers.
//
// A Log reads the stream of events. A Recorder records events that belong to no write of the store. Both continue while
// the store does not answer: a Log has the events that it read before, and a Recorder keeps events until it returns.
package events

import (
	"context"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
)

// Reader is the part of the store that a Log needs.
type Reader interface {
	Events(ctx context.Context, after string, limit int) ([]statestore.Event, error)
}

// Query selects events.
type Query struct {
	After   string    // cursor: events after it, oldest first; "": the newest
	Before  string    // cursor: the newest events before it; "": no bound
	Since   time.Time // events from this time on, oldest first
	Kind    statestore.EventKind
	Subject string
	User    string
	Limit   int
	// Visible reports whether the viewer may see an event; nil: all of them.
	Visible func(e *statestore.Event) bool
}

// Log has the events of the store. Concurrent readers share its reads. It is safe for concurrent use.
type Log struct {
	store Reader
	now   func() time.Time

	mu     sync.Mutex
	events []statestore.Event // by id
	read   time.Time          // time of the last complete read
}

// The time for which readers share a read, and the time that a read repeats: servers that replace each other may have
// different clocks.
const (
	shareFor = 250 * time.Millisecond
	overlap  = 10 * time.Second
)

// NewLog makes a log.
func NewLog(store Reader, now func() time.Time) *Log { return &Log{store: store, now: now} }

// Read returns matching events, oldest first, and the cursor after the last one that was considered. If the store does
// not answer, it returns the events read before and the store's error, with their age.
func (l *Log) Read(ctx context.Context, q Query) (page []statestore.Event, next string, age time.Duration, err error) {
	for _, cursor := range []string{q.After, q.Before} {
		if err := statestore.CheckCursor(cursor); err != nil {
			return nil, "", 0, err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	err = l.refresh(ctx)
	if err != nil && !l.read.IsZero() {
		age = l.now().Sub(l.read)
	}
	after := q.After
	if since := statestore.EventCursor(q.Since); !q.Since.IsZero() && statestore.CompareEventIDs(after, since) < 0 {
		after = since
	}
	first := sort.Search(len(l.events), func(i int) bool {
		return statestore.CompareEventIDs(l.events[i].ID, after) > 0
	})
	end := len(l.events)
	if q.Before != "" {
		end = sort.Search(end, func(i int) bool { return statestore.CompareEventIDs(l.events[i].ID, q.Before) >= 0 })
	}
	next = q.After
	newest := after == "" || q.Before != ""
	for _, e := range l.events[min(first, end):end] {
		if !newest && len(page) == q.Limit {
			return page, next, age, err
		}
		next = e.ID
		if q.matches(&e) {
			page = append(page, e)
		}
	}
	return page[max(0, len(page)-q.Limit):], next, age, err
}

func (q *Query) matches(e *statestore.Event) bool {
	return (q.Kind == "" || q.Kind == e.Kind) && (q.Subject == "" || q.Subject == e.Subject) &&
		(q.User == "" || q.User == e.User) && (q.Visible == nil || q.Visible(e))
}

// refresh reads new events. The caller has mu.
func (l *Log) refresh(ctx context.Context) error {
	now := l.now()
	if !l.read.IsZero() && now.Sub(l.read) < shareFor {
		return nil
	}
	after := ""
	if n := len(l.events); n > 0 {
		after = statestore.EventCursor(l.events[n-1].Time.Add(-overlap))
	}
	for {
		list, err := l.store.Events(ctx, after, statestore.MaxPage)
		if err != nil {
			return err
		}
		for _, e := range list {
			at, known := slices.BinarySearchFunc(l.events, e.ID, func(k statestore.Event, id string) int {
				return statestore.CompareEventIDs(k.ID, id)
			})
			if !known {
				l.events = slices.Insert(l.events, at, e)
			}
			after = e.ID
		}
		if len(list) < statestore.MaxPage {
			break
		}
	}
	l.events = slices.Delete(l.events, 0, max(0, len(l.events)-statestore.MaxEvents))
	l.read = now
	return nil
}

// ParseSince reads the start of a period: a time as RFC 3339, or a duration that ends now, such as 2h.
func ParseSince(text string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, &creel.Error{
			Kind: creel.ErrInvalidRequest, What: "since is not a time",
			Try: "use a time such as 2h or 2006-01-02T15:04:05Z",
		}
	}
	return at, nil
}

// CheckKind rejects unknown kinds; "" is every kind.
func CheckKind(kind statestore.EventKind) error {
	if kind == "" || slices.Contains(statestore.EventKinds, kind) {
		return nil
	}
	names := ""
	for _, k := range statestore.EventKinds {
		names += " " + string(k)
	}
	return &creel.Error{
		Kind: creel.ErrInvalidRequest, What: "there is no such kind of event", Try: "one of:" + names,
	}
}

// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
)

// Config configures Lists of items T, by key K. R is a list made of the members' parts.
type Config[K comparable, T, R any] struct {
	Ask   func(ctx context.Context, key K) []router.Part[[]T]
	Merge func(parts []Part[T]) R
	// Wait is the time that a viewer waits for a refresh if there is a list; default 300 ms.
	Wait time.Duration
	// Changed counts changes by this router, nil: none. A viewer must see a change that was made before the request.
	Changed func() int64
	// Fresh is the greatest age of a list that is shown without a refresh; default a second.
	Fresh time.Duration
}

// Lists have a list for each key. They are safe for concurrent use.
type Lists[K comparable, T, R any] struct {
	conf Config[K, T, R]

	mu    sync.Mutex
	lists map[K]*list[T, R]
}

// list is the list of one key.
type list[T, R any] struct {
	asked time.Time // last request of a viewer

	parts   []Part[T] // not modified after they are set
	whole   R
	at      time.Time // time when it was complete; zero: there is no list yet
	took    time.Duration
	changes int64         // result of Changed at the start of the refresh
	pending chan struct{} // closed when the refresh under way ends
}

const (
	defaultFresh = time.Second
	defaultWait  = 300 * time.Millisecond
	maxKeys      = 32
	maxIdle      = time.Minute      // a list without requests for this time is dropped
	currentWait  = 5 * time.Second  // longest wait for a current list if there is an older one
	refreshTime  = 15 * time.Second // bounds a refresh
)

// New makes empty lists. It starts nothing.
func New[K comparable, T, R any](c Config[K, T, R]) *Lists[K, T, R] {
	c.Wait, c.Fresh = cmp.Or(c.Wait, defaultWait), cmp.Or(c.Fresh, defaultFresh)
	if c.Changed == nil {
		c.Changed = func() int64 { return 0 }
	}
	return &Lists[K, T, R]{conf: c, lists: map[K]*list[T, R]{}}
}

// Get returns the list of a key: a fresh one, or one that arrives within Config.Wait, or else the last one. Only the
// first viewer waits longer. A current list was requested from the members after the call began; it is awaited for 5 s.
// The error is Refusal's, or ctx's without parts.
func (s *Lists[K, T, R]) Get(ctx context.Context, key K, current bool) (whole R, parts []Part[T], err error) {
	now := time.Now()
	s.mu.Lock()
	l := s.admit(key, now)
	l.asked = now
	changed := current || s.conf.Changed() != l.changes
	if !l.at.IsZero() && !changed && s.isFresh(l, now) {
		defer s.mu.Unlock()
		return l.whole, l.parts, Refusal(l.parts)
	}
	var enough <-chan time.Time
	if !l.at.IsZero() {
		most := s.conf.Wait
		switch {
		case current:
			most = currentWait
		case changed:
			most = defaultWait
		}
		t := time.NewTimer(most)
		defer t.Stop()
		enough = t.C
	}
	for again := true; again; {
		// A refresh under way may have started before the change, so wait for another one.
		again = changed && l.pending != nil
		pending := s.begin(ctx, key, l)
		s.mu.Unlock()
		select {
		case <-pending:
		case <-enough:
			again = false
		case <-ctx.Done():
			return whole, nil, ctx.Err()
		}
		s.mu.Lock()
	}
	defer s.mu.Unlock()
	return l.whole, l.parts, Refusal(l.parts)
}

// Last returns the last list of a key, whatever its age, without I/O; false if there is none.
func (s *Lists[K, T, R]) Last(key K) (whole R, parts []Part[T], ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.lists[key]; l != nil && l.parts != nil {
		return l.whole, l.parts, true
	}
	return whole, nil, false
}

// Renew refreshes the list of a key without a viewer, unless it is fresh, and waits for the refresh.
func (s *Lists[K, T, R]) Renew(ctx context.Context, key K) {
	now := time.Now()
	s.mu.Lock()
	l := s.admit(key, now)
	if s.isFresh(l, now) {
		s.mu.Unlock()
		return
	}
	over := s.begin(ctx, key, l)
	s.mu.Unlock()
	select {
	case <-over:
	case <-ctx.Done():
	}
}

// Watched reports whether a viewer has requested a list within the last minute.
func (s *Lists[K, T, R]) Watched() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lists {
		if time.Since(l.asked) < maxIdle {
			return true
		}
	}
	return false
}

// isFresh reports whether a list is shown without a refresh. The caller must have mu.
func (s *Lists[K, T, R]) isFresh(l *list[T, R], now time.Time) bool {
	return now.Sub(l.at) < max(s.conf.Fresh, 10*l.took)
}

// begin starts a refresh unless one is under way. It starts at once, or, if the last one took long, so late that
// members are idle two thirds of the time. The caller must have mu.
func (s *Lists[K, T, R]) begin(ctx context.Context, key K, l *list[T, R]) (over chan struct{}) {
	if l.pending == nil {
		l.pending = make(chan struct{})
		rest := min(time.Until(l.at.Add(2*l.took)), refreshTime)
		time.AfterFunc(max(rest, 0), func() {
			s.mu.Lock()
			l.changes = s.conf.Changed()
			s.mu.Unlock()
			s.refresh(context.WithoutCancel(ctx), key, l)
		})
	}
	return l.pending
}

// admit returns the list of a key. If it is new, lists without viewers are dropped. The caller must have mu.
func (s *Lists[K, T, R]) admit(key K, now time.Time) *list[T, R] {
	if l := s.lists[key]; l != nil {
		return l
	}
	var oldest K
	var last *list[T, R] // the list of oldest
	for name, other := range s.lists {
		if now.Sub(other.asked) > maxIdle {
			delete(s.lists, name)
		} else if last == nil || other.asked.Before(last.asked) {
			oldest, last = name, other
		}
	}
	if len(s.lists) >= maxKeys {
		delete(s.lists, oldest)
	}
	l := &list[T, R]{}
	s.lists[key] = l
	return l
}

// refresh asks the members. If a member does not answer, its previous part stays.
func (s *Lists[K, T, R]) refresh(ctx context.Context, key K, l *list[T, R]) {
	ctx, cancel := context.WithTimeout(ctx, refreshTime)
	defer cancel()
	began := time.Now()
	answers := s.conf.Ask(ctx, key)
	now := time.Now()
	s.mu.Lock()
	last, whole, isFirst := l.parts, l.whole, l.at.IsZero()
	s.mu.Unlock()
	before := map[creel.SubclusterID]Part[T]{}
	for _, p := range last {
		before[p.Member] = p
	}
	parts := make([]Part[T], len(answers))
	for i, p := range answers {
		parts[i] = Part[T]{Member: p.Member, Items: p.Value, At: now}
		if p.Err != nil {
			parts[i] = before[p.Member]
			parts[i].Member, parts[i].Err = p.Member, p.Err
		}
	}
	if isFirst || !Same(parts, last) {
		whole = s.conf.Merge(parts)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l.parts, l.whole, l.took = parts, whole, time.Since(began)
	if len(parts) > 0 { // without members there is no list yet: the router has not read the store
		l.at = time.Now()
	}
	close(l.pending)
	l.pending = nil
}

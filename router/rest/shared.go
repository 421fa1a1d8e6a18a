// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/rawjson"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/subcluster/remote"
)

// shared is a list that is fetched from the members once for all viewers of a user. Independent of their number,
// members are asked at most once per freshFor, and refreshes take at most a tenth of the time. There is one list for
// each user, since the members decide which items a user may see.
type shared[T any] struct {
	ask func(ctx context.Context, who string) []router.Part[[]T]
	// merge merges the parts into one list, in display order.
	merge func(parts []listShare[T]) []T
	// wait is the time that a viewer waits for a refresh if there is a list; default sharedWait.
	wait time.Duration
	// changed counts changes by this router, nil: none. A viewer must see a change that was made before the request.
	changed func() int64
	// fresh is the greatest age of a list that is shown without a refresh; default freshFor.
	fresh time.Duration
	mu    sync.Mutex
	lists map[string]*sharedList[T]
}

// sharedList is the list for one identity.
type sharedList[T any] struct {
	asked time.Time // last request of a viewer

	parts   []listShare[T] // not modified after they are set
	rows    []T
	at      time.Time // time when it was complete; zero: there is no list yet
	took    time.Duration
	changes int64         // result of changed at the start of the refresh
	pending chan struct{} // closed when the refresh under way ends
}

// listShare is a member's newest part of a list.
type listShare[T any] struct {
	Member creel.SubclusterID
	Items  []T
	At     time.Time // time when the member sent it; zero: never
	Err    error     // reason why there is no newer one
}

// sameAs reports whether two parts have the identical items of a member that answers.
func (h *listShare[T]) sameAs(o *listShare[T]) bool {
	return h.Member == o.Member && h.Err == nil && o.Err == nil && len(h.Items) == len(o.Items) &&
		(len(h.Items) == 0 || &h.Items[0] == &o.Items[0])
}

const (
	freshFor    = time.Second
	sharedUsers = 32                     // limit of stored lists
	sharedIdle  = time.Minute            // a list without requests for this time is dropped
	sharedWait  = 300 * time.Millisecond // longest wait for a refresh if there is a list
	currentWait = 5 * time.Second        // longest wait for a current list if there is an older one
	sharedTime  = 15 * time.Second       // bounds a refresh
)

// get returns the list for an identity: a fresh one, or one that arrives within sharedWait, or else the last one.
// Only the first viewer waits longer.
func (s *shared[T]) get(ctx context.Context, who string) (rows []T, parts []listShare[T], err error) {
	return s.list(ctx, who, false)
}

// list is get. A current list was requested from the members after the call began; it is awaited for currentWait.
func (s *shared[T]) list(ctx context.Context, who string, current bool) (rows []T, parts []listShare[T], err error) {
	now := time.Now()
	s.mu.Lock()
	l := s.lists[who]
	if l == nil {
		l = &sharedList[T]{}
		s.admit(who, l, now)
	}
	l.asked = now
	changed := current || s.changed != nil && s.changed() != l.changes
	if !l.at.IsZero() && !changed && s.isFresh(l, now) {
		defer s.mu.Unlock()
		return l.rows, l.parts, refusal(l.parts)
	}
	var enough <-chan time.Time
	if !l.at.IsZero() {
		most := cmp.Or(s.wait, sharedWait)
		switch {
		case current:
			most = currentWait
		case changed:
			most = sharedWait
		}
		t := time.NewTimer(most)
		defer t.Stop()
		enough = t.C
	}
	for again := true; again; {
		// A refresh under way may have started before the change, so wait for another one.
		again = changed && l.pending != nil
		pending := s.begin(ctx, who, l)
		s.mu.Unlock()
		select {
		case <-pending:
		case <-enough:
			again = false
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
		s.mu.Lock()
	}
	defer s.mu.Unlock()
	return l.rows, l.parts, refusal(l.parts)
}

// last returns the last list for an identity, whatever its age; nil if there is none.
func (s *shared[T]) last(who string) []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.lists[who]; l != nil {
		return l.rows
	}
	return nil
}

// isFresh reports whether a list is shown without a refresh. The caller must have mu.
func (s *shared[T]) isFresh(l *sharedList[T], now time.Time) bool {
	return now.Sub(l.at) < max(cmp.Or(s.fresh, freshFor), 10*l.took)
}

// begin starts a refresh unless one is under way. It starts at once, or, if the last one took long, so late that
// members are idle two thirds of the time. The caller must have mu.
func (s *shared[T]) begin(ctx context.Context, who string, l *sharedList[T]) (over chan struct{}) {
	if l.pending == nil {
		l.pending = make(chan struct{})
		rest := min(time.Until(l.at.Add(2*l.took)), sharedTime)
		time.AfterFunc(max(rest, 0), func() {
			s.mu.Lock()
			if s.changed != nil {
				l.changes = s.changed()
			}
			s.mu.Unlock()
			s.refresh(context.WithoutCancel(ctx), who, l)
		})
	}
	return l.pending
}

// renew refreshes the list for an identity without a viewer, unless it is fresh, and waits for the refresh.
func (s *shared[T]) renew(ctx context.Context, who string) {
	s.mu.Lock()
	l := s.lists[who]
	if l == nil {
		l = &sharedList[T]{}
		s.admit(who, l, time.Now())
	}
	if s.isFresh(l, time.Now()) {
		s.mu.Unlock()
		return
	}
	over := s.begin(ctx, who, l)
	s.mu.Unlock()
	select {
	case <-over:
	case <-ctx.Done():
	}
}

// watchedSince reports whether a viewer has requested a list since t.
func (s *shared[T]) watchedSince(t time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lists {
		if l.asked.After(t) {
			return true
		}
	}
	return false
}

// ageOf returns the age of the oldest part of the members that answer.
func ageOf[T any](parts []listShare[T], now time.Time) float64 {
	oldest := now
	for i := range parts {
		if parts[i].Err == nil && parts[i].At.Before(oldest) {
			oldest = parts[i].At
		}
	}
	return now.Sub(oldest).Round(100 * time.Millisecond).Seconds()
}

// admit stores a new list, and drops lists without viewers. The caller must have mu.
func (s *shared[T]) admit(who string, l *sharedList[T], now time.Time) {
	if s.lists == nil {
		s.lists = map[string]*sharedList[T]{}
	}
	oldest := ""
	for name, other := range s.lists {
		if now.Sub(other.asked) > sharedIdle {
			delete(s.lists, name)
		} else if oldest == "" || other.asked.Before(s.lists[oldest].asked) {
			oldest = name
		}
	}
	if len(s.lists) >= sharedUsers {
		delete(s.lists, oldest)
	}
	s.lists[who] = l
}

// refresh asks the members. If a member does not answer, its previous part stays.
func (s *shared[T]) refresh(ctx context.Context, who string, l *sharedList[T]) {
	ctx, cancel := context.WithTimeout(ctx, sharedTime)
	defer cancel()
	began := time.Now()
	answers := s.ask(ctx, who)
	now := time.Now()
	s.mu.Lock()
	before := map[creel.SubclusterID]listShare[T]{}
	for _, p := range l.parts {
		before[p.Member] = p
	}
	s.mu.Unlock()
	parts := make([]listShare[T], len(answers))
	for i, p := range answers {
		parts[i] = listShare[T]{Member: p.Member, Items: p.Value, At: now}
		if p.Err != nil {
			parts[i] = before[p.Member]
			parts[i].Member, parts[i].Err = p.Member, p.Err
		}
	}
	s.mu.Lock()
	rows, same := l.rows, !l.at.IsZero() && len(parts) == len(l.parts)
	for i := 0; same && i < len(parts); i++ {
		same = parts[i].sameAs(&l.parts[i])
	}
	s.mu.Unlock()
	if !same {
		rows = s.merge(parts)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l.parts, l.rows, l.took = parts, rows, time.Since(began)
	if len(parts) > 0 { // without members there is no list yet: the router has not read the store
		l.at = time.Now()
	}
	close(l.pending)
	l.pending = nil
}

// listOf asks every member for a YARN list and reads each of its items.
func listOf[T any](
	s *server.Server,
	path, root, name string,
	read func(raw []byte, from creel.SubclusterID) T,
) func(ctx context.Context, who string) []router.Part[[]T] {
	return func(ctx context.Context, who string) []router.Part[[]T] {
		return server.Ask(ctx, s, func(ctx context.Context, m *remote.Member) ([]T, error) {
			return readList(ctx, m, path+"&"+who, root, name, read)
		})
	}
}

// readList asks one member for a YARN list.
func readList[T any](
	ctx context.Context,
	m *remote.Member,
	path, root, name string,
	read func(raw []byte, from creel.SubclusterID) T,
) ([]T, error) {
	head := http.Header{"Accept": {"application/json"}}
	doc, _, err := m.Web(ctx, remote.List, http.MethodGet, path, "", head, nil)
	if err != nil {
		return nil, err
	}
	raw, err := rawjson.ListAt(doc, root, name)
	if err != nil {
		return nil, err
	}
	out := make([]T, len(raw))
	for i := range raw {
		out[i] = read(raw[i], m.ID)
	}
	return out, nil
}

// identity returns the part of a query by which members identify the caller.
func identity(r *http.Request) string {
	who := url.Values{}
	for name, values := range r.URL.Query() {
		if (name == "user.name" || strings.EqualFold(name, "doAs")) && len(values) > 0 {
			who.Set(name, values[0])
		}
	}
	return who.Encode()
}

// missing is a member whose part of a list is old or absent.
type missing struct {
	Member creel.SubclusterID `json:"member"`
	Reason string             `json:"reason"`
	// AgeSeconds is the age of the displayed part; -1 if there is none.
	AgeSeconds float64 `json:"age_s"`
}

func missingOf[T any](parts []listShare[T], now time.Time) []missing {
	out := []missing{}
	for i := range parts {
		p := &parts[i]
		if p.Err == nil {
			continue
		}
		m := missing{Member: p.Member, Reason: p.Err.Error(), AgeSeconds: -1}
		if !p.At.IsZero() {
			m.AgeSeconds = now.Sub(p.At).Seconds()
		}
		out = append(out, m)
	}
	return out
}

// refusal returns the first rejection if all members rejected the call, nil if one answered.
func refusal[T any](parts []listShare[T]) error {
	var first *remote.StatusError
	for i := range parts {
		var refused *remote.StatusError
		if parts[i].Err == nil || !errors.As(parts[i].Err, &refused) || refused.Code >= 500 {
			return nil
		}
		if first == nil {
			first = refused
		}
	}
	if first == nil {
		return nil
	}
	return &creel.Error{
		Kind: creel.ErrNotPermitted, What: "the members refuse to list this", Why: first.Error(),
		Try: "ask as a permitted user, by ?user.name=",
	}
}

// SPDX-License-Identifier: Apache-2.0

package rest

import (
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

// A shared list is asked of the members once for all who look at it: however many
// viewers there are, members are asked no more often than freshFor, and a refresh
// takes no more than a tenth of the time. What a list shows depends on who asks, so
// there is one for each user (the members decide what a user may see).
type shared[T any] struct {
	ask func(ctx context.Context, who string) []router.Part[[]T]
	// merge makes one list of the parts, in the order in which it is shown.
	merge func(parts []held[T]) []T
	mu    sync.Mutex
	lists map[string]*sharedList[T]
}

// sharedList is the list for one identity.
type sharedList[T any] struct {
	asked time.Time // by a viewer, for the last time

	parts   []held[T] // nobody writes to these two once they are here
	rows    []T
	at      time.Time // when it was complete; zero: there is none yet
	took    time.Duration
	pending chan struct{} // closed when the refresh under way is over
}

// held is a member's part of a list: the newest that it gave.
type held[T any] struct {
	Member creel.SubclusterID
	Items  []T
	At     time.Time // when it was given; zero: never
	Err    error     // why there is none newer
}

const (
	freshFor    = time.Second
	sharedUsers = 32                     // lists kept at most
	sharedIdle  = time.Minute            // a list that nobody asked for so long goes
	sharedWait  = 300 * time.Millisecond // for a refresh, where there is a list
	sharedTime  = 15 * time.Second       // of a refresh
)

// get returns the newest list for an identity: one that is fresh, or that comes within
// sharedWait, or else the last one. Only who asks first waits for longer.
func (s *shared[T]) get(ctx context.Context, who string) (rows []T, parts []held[T], err error) {
	now := time.Now()
	s.mu.Lock()
	l := s.lists[who]
	if l == nil {
		l = &sharedList[T]{}
		s.admit(who, l, now)
	}
	l.asked = now
	if !l.at.IsZero() && now.Sub(l.at) < max(freshFor, 10*l.took) {
		defer s.mu.Unlock()
		return l.rows, l.parts, refusal(l.parts)
	}
	if l.pending == nil {
		l.pending = make(chan struct{})
		go s.refresh(context.WithoutCancel(ctx), who, l)
	}
	pending, has := l.pending, !l.at.IsZero()
	s.mu.Unlock()
	var enough <-chan time.Time
	if has {
		t := time.NewTimer(sharedWait)
		defer t.Stop()
		enough = t.C
	}
	select {
	case <-pending:
	case <-enough:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return l.rows, l.parts, refusal(l.parts)
}

// admit keeps a new list, and lets go of those that nobody looks at. Under mu.
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

// refresh asks the members. One that does not answer keeps what it gave before.
func (s *shared[T]) refresh(ctx context.Context, who string, l *sharedList[T]) {
	ctx, cancel := context.WithTimeout(ctx, sharedTime)
	defer cancel()
	began := time.Now()
	answers := s.ask(ctx, who)
	now := time.Now()
	s.mu.Lock()
	before := map[creel.SubclusterID]held[T]{}
	for _, p := range l.parts {
		before[p.Member] = p
	}
	s.mu.Unlock()
	parts := make([]held[T], len(answers))
	for i, p := range answers {
		parts[i] = held[T]{Member: p.Member, Items: p.Value, At: now}
		if p.Err != nil {
			parts[i] = before[p.Member]
			parts[i].Member, parts[i].Err = p.Member, p.Err
		}
	}
	rows := s.merge(parts)
	s.mu.Lock()
	defer s.mu.Unlock()
	l.parts, l.rows, l.at, l.took = parts, rows, time.Now(), time.Since(began)
	close(l.pending)
	l.pending = nil
}

// listOf asks every member for a list of YARN's and reads each of its items.
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

// readList asks one member.
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

// identity is what of a query says who asks, as members read it.
func identity(r *http.Request) string {
	who := url.Values{}
	for name, values := range r.URL.Query() {
		if (name == "user.name" || strings.EqualFold(name, "doAs")) && len(values) > 0 {
			who.Set(name, values[0])
		}
	}
	return who.Encode()
}

// missing are the members whose part of a list is old or not there.
type missing struct {
	Member creel.SubclusterID `json:"member"`
	Reason string             `json:"reason"`
	// AgeSeconds is how old what is shown of it is; -1 where nothing is.
	AgeSeconds float64 `json:"age_s"`
}

func missingOf[T any](parts []held[T], now time.Time) []missing {
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

// refusal is the refusal that all members gave, nil where one answered.
func refusal[T any](parts []held[T]) error {
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
		Try: "ask as somebody who may, by ?user.name=",
	}
}

// SPDX-License-Identifier: Apache-2.0

package groups

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/user"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel/internal/ratelog"
)

const (
	most        = 100_000          // cached users
	mostRunning = 1000             // lookups at a time
	longestWait = 10 * time.Second // of a caller for a lookup
	retryAfter  = 5 * time.Second  // from a failed lookup of a user to the next one
	inUse       = time.Second      // how long operations under way may use groups that Forget dropped

	// staleFactor is how often Keep fits into the time for which groups are used after the last good lookup, as in
	// Hadoop. It is staleLeast at least.
	staleFactor = 10
	staleLeast  = time.Minute
)

// Mapping finds a user's groups, primary first. It returns none for an unknown user. An error means that the groups
// are unknown for now.
type Mapping func(ctx context.Context, user string) ([]string, error)

// Config configures a Groups.
type Config struct {
	Mapping  Mapping
	Keep     time.Duration // how long groups are used without another lookup
	KeepNone time.Duration // how long "no groups" is; 0: it is not cached
	Slow     time.Duration // a lookup that takes longer is logged; 0: none is
	Logger   *slog.Logger  // nil: slog.Default
}

// Groups finds a user's groups and caches them. Its methods may be called at any time.
type Groups struct {
	conf Config

	mu      sync.RWMutex
	known   map[string]answer
	running map[string]*lookup

	failures, slow ratelog.Line
	figures        [3]atomic.Int64 // by Result
	failing        atomic.Bool
}

// answer has the groups of a user.
type answer struct {
	groups []string
	fresh  time.Time // until then no lookup is made
	until  time.Time // from then on the groups are not used
}

func (a *answer) at(now time.Time) []string {
	if now.Before(a.until) {
		return a.groups
	}
	return nil
}

// lookup is a running call of the mapping, shared by all callers that need its user.
type lookup struct {
	done   chan struct{}
	groups []string // after done
}

// Result is the outcome of a lookup.
type Result uint8

// The results.
const (
	Found Result = iota
	None         // the user has no groups
	Failed
)

func (r Result) String() string { return [...]string{"found", "none", "failed"}[r] }

// Open makes a Groups.
func Open(c Config) *Groups {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return &Groups{conf: c, known: map[string]answer{}, running: map[string]*lookup{}}
}

// New makes a Groups with a lookup that cannot fail, and caches its results for a time.
func New(lookup func(user string) []string, keep time.Duration) *Groups {
	return Open(Config{
		Mapping:  func(_ context.Context, user string) ([]string, error) { return lookup(user), nil },
		Keep:     keep,
		KeepNone: keep,
	})
}

// Of returns a user's groups, primary first. It may wait for a lookup, so an owner of state must not call it: see
// Known.
func (g *Groups) Of(user string) []string {
	now := time.Now()
	g.mu.RLock()
	a, ok := g.known[user]
	g.mu.RUnlock()
	if ok && now.Before(a.fresh) {
		return a.at(now)
	}
	l := g.look(user, now)
	if l == nil {
		return g.Known(user)
	}
	limit := time.NewTimer(longestWait)
	defer limit.Stop()
	select {
	case <-l.done:
		return l.groups
	case <-limit.C:
		return g.Known(user)
	}
}

// Known returns the groups of a user that Of found before, and none otherwise. It never waits.
func (g *Groups) Known(user string) []string {
	g.mu.RLock()
	a := g.known[user]
	g.mu.RUnlock()
	return a.at(time.Now())
}

// Forget makes the next question about each user a lookup. If that fails, the user has no groups.
func (g *Groups) Forget() {
	soon := time.Now().Add(inUse)
	g.mu.Lock()
	defer g.mu.Unlock()
	for user, a := range g.known {
		a.fresh = time.Time{}
		if a.until.After(soon) {
			a.until = soon
		}
		g.known[user] = a
	}
	clear(g.running) // a lookup that began before may have old groups
}

// Lookups returns the number of lookups with a result so far.
func (g *Groups) Lookups(r Result) int64 { return g.figures[r].Load() }

// Failing reports whether the last lookup failed.
func (g *Groups) Failing() bool { return g.failing.Load() }

// look returns the running lookup of a user, and starts one if there is none. It returns nil if too many run.
func (g *Groups) look(user string, now time.Time) *lookup {
	g.mu.Lock()
	defer g.mu.Unlock()
	l, ok := g.running[user]
	switch {
	case ok:
		return l
	case len(g.running) >= mostRunning:
		return nil
	}
	l = &lookup{done: make(chan struct{})}
	g.running[user] = l
	go func() {
		defer close(l.done)
		found, err := g.conf.Mapping(context.Background(), user)
		g.finish(user, l, found, err, now)
	}()
	return l
}

// finish stores the result of a lookup, unless Forget dropped it.
func (g *Groups) finish(user string, l *lookup, found []string, err error, began time.Time) {
	now := time.Now()
	g.mu.Lock()
	a := g.known[user]
	l.groups = found
	switch {
	case err != nil:
		a.fresh = now.Add(retryAfter)
		l.groups = a.at(now)
	case len(found) == 0:
		a = answer{fresh: now.Add(g.conf.KeepNone)}
	default:
		a = answer{
			groups: found, fresh: now.Add(g.conf.Keep),
			until: now.Add(max(staleFactor*g.conf.Keep, staleLeast)),
		}
	}
	if g.running[user] == l {
		delete(g.running, user)
		g.put(user, a)
	}
	g.mu.Unlock()
	g.report(user, l.groups, err, now.Sub(began))
}

// put stores the groups of a user. At the limit another user is dropped.
func (g *Groups) put(user string, a answer) {
	if _, ok := g.known[user]; !ok && len(g.known) >= most {
		for other := range g.known {
			delete(g.known, other)
			break
		}
	}
	g.known[user] = a
}

// report counts a lookup, and logs a failure, a slow one, and the first one after failures.
func (g *Groups) report(user string, used []string, err error, took time.Duration) {
	result := Found
	switch {
	case err != nil:
		result = Failed
	case len(used) == 0:
		result = None
	}
	g.figures[result].Add(1)
	if before := g.failing.Swap(err != nil); before && err == nil {
		g.conf.Logger.Info("groups of users are found again")
	}
	if err != nil {
		if n, write := g.failures.Happened(time.Now()); write {
			g.conf.Logger.Warn("failed to look up the groups of a user", "user", user, "error", err,
				"using", fmt.Sprintf("%d groups of an earlier lookup", len(used)), "failures", n)
		}
		return
	}
	if g.conf.Slow > 0 && took > g.conf.Slow {
		if n, write := g.slow.Happened(time.Now()); write {
			g.conf.Logger.Warn("slow lookup of a user's groups", "user", user, "took", took, "lookups", n)
		}
	}
}

// OfMachine is the mapping by this machine's groups.
func OfMachine(_ context.Context, name string) ([]string, error) {
	u, err := user.Lookup(name)
	if unknown := user.UnknownUserError(""); errors.As(err, &unknown) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	ids, err := u.GroupIds()
	if err != nil {
		return nil, err
	}
	var groups []string
	for _, id := range append([]string{u.Gid}, ids...) {
		if g, err := user.LookupGroupId(id); err == nil && !slices.Contains(groups, g.Name) {
			groups = append(groups, g.Name)
		}
	}
	return groups, nil
}

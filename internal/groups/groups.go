// SPDX-License-Identifier: Apache-2.0

// Package groups finds the groups of users for access lists and placement rules. It caches them for a while: a lookup
// may query a directory over the network.
package groups

import (
	"os/user"
	"slices"
	"sync"
	"time"
)

// most bounds the number of cached users.
const most = 100_000

// Groups finds a user's groups and caches them. Its methods may be called at any time.
type Groups struct {
	lookup func(user string) []string
	keep   time.Duration

	mu    sync.RWMutex
	known map[string]answer
}

type answer struct {
	groups []string
	until  time.Time
}

// New makes a Groups with a lookup function, and caches the results for a time.
func New(lookup func(user string) []string, keep time.Duration) *Groups {
	return &Groups{lookup: lookup, keep: keep, known: map[string]answer{}}
}

// Of returns a user's groups, primary first.
func (g *Groups) Of(user string) []string {
	now := time.Now()
	g.mu.RLock()
	a, ok := g.known[user]
	g.mu.RUnlock()
	if ok && now.Before(a.until) {
		return a.groups
	}
	found := g.lookup(user)
	g.mu.Lock()
	if len(g.known) >= most {
		clear(g.known)
	}
	g.known[user] = answer{groups: found, until: now.Add(g.keep)}
	g.mu.Unlock()
	return found
}

// Forget drops all cached results, so that the next question about each user is a lookup.
func (g *Groups) Forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.known)
}

// OfMachine finds a user's groups on this machine, primary first. It returns none for a user that the machine does not
// know.
func OfMachine(name string) []string {
	u, err := user.Lookup(name)
	if err != nil {
		return nil
	}
	ids, err := u.GroupIds()
	if err != nil {
		return nil
	}
	var groups []string
	for _, id := range append([]string{u.Gid}, ids...) {
		if g, err := user.LookupGroupId(id); err == nil && !slices.Contains(groups, g.Name) {
			groups = append(groups, g.Name)
		}
	}
	return groups
}

// SPDX-License-Identifier: Apache-2.0

package router

import (
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/subcluster"
)

// A router's state between calls is in the two types below. They are pure and have no locks. router/server has one of
// each behind a mutex. app/sim runs the same code with one of each for every simulated router, and makes new
// ones when it restarts. Update both from every Outcome of Submitter.Submit:
//
//	sub.Assumed = assumed.Write   // before Submit
//	out := submitter.Submit(ctx, sub, forward)
//	memory.Put(out)                                          // after it, whatever the outcome
//	if out.Err == nil {
//		assumed.Add(view, out.Home, sub.Size)
//	}
//
// Before any call to an application's home, look it up in Memory.Home, and only then in the store. Pass the store's
// answer to Learn. Call Forget if the home does not know the application.

// Memory has the homes of the applications used last, and the outcomes of the last submissions; each drops the least
// recently used. A home in it is a hint without an age: it needs no call to the store, also while the store is away. If
// the home does not know the application, the caller must call Forget and read the store.
type Memory struct {
	bound    int // of homes
	homes    *simplelru.LRU[creel.ApplicationID, creel.SubclusterID]
	outcomes *simplelru.LRU[creel.ApplicationID, Outcome]
}

// NewMemory makes a Memory of at most the given numbers of homes and outcomes, at least one of each.
func NewMemory(homes, outcomes int) *Memory {
	m := &Memory{bound: max(homes, 1)}
	// NewLRU fails only for a size below 1.
	m.homes, _ = simplelru.NewLRU[creel.ApplicationID, creel.SubclusterID](m.bound, nil)
	m.outcomes, _ = simplelru.NewLRU[creel.ApplicationID, Outcome](max(outcomes, 1), nil)
	return m
}

// Put stores the outcome of a submission. A failed one leaves no home: a try may have reached any member.
func (m *Memory) Put(out Outcome) {
	m.outcomes.Add(out.Application, out)
	if out.Err == nil && out.Home != "" {
		m.homes.Add(out.Application, out.Home)
	} else {
		m.homes.Remove(out.Application)
	}
}

// Learn stores a home that the store or a member reported.
func (m *Memory) Learn(app creel.ApplicationID, home creel.SubclusterID) { m.homes.Add(app, home) }

// Home returns the remembered home of an application.
func (m *Memory) Home(app creel.ApplicationID) (creel.SubclusterID, bool) { return m.homes.Get(app) }

// Homes returns the number of remembered homes, and the greatest number that it can have.
func (m *Memory) Homes() (n, bound int) { return m.homes.Len(), m.bound }

// Outcome returns the outcome of an application's submission through this router, with the home as far as it is
// remembered now.
func (m *Memory) Outcome(app creel.ApplicationID) (Outcome, bool) {
	out, ok := m.outcomes.Get(app)
	if home, known := m.homes.Peek(app); known {
		out.Home, out.Err = home, nil
	} else if out.Err == nil {
		out.Home = ""
	}
	return out, ok && len(out.Tries) > 0
}

// Forget drops an application's home; its Outcome stays, for `creel app why`.
func (m *Memory) Forget(app creel.ApplicationID) { m.homes.Remove(app) }

// AssumedLoad counts the applications sent to each member since its last heartbeat, which its load report does not
// include yet. It is an estimate: a submission that crosses a heartbeat is counted once too often or not at all. The
// zero value is ready to use.
type AssumedLoad struct {
	view *subcluster.View // the view of the counts

	// Parallel to the view's members:
	sent       []policies.RecentLoad
	heartbeats []time.Time // of the last heartbeats, by the view's clock
}

// turn switches to another view. Counts of members with a newer heartbeat start again at zero. Counts of members that
// are not in the view are dropped.
func (a *AssumedLoad) turn(view *subcluster.View) {
	if a.view == view {
		return
	}
	sent, heartbeats := make([]policies.RecentLoad, len(view.Members)), make([]time.Time, len(view.Members))
	for i := range view.Members {
		m := &view.Members[i]
		if was, ok := a.view.Index(m.ID); ok {
			sent[i], heartbeats[i] = a.sent[was], a.heartbeats[was]
		}
		if last := view.At.Add(-m.Age).Round(time.Millisecond); last.After(heartbeats[i]) {
			sent[i], heartbeats[i] = policies.RecentLoad{}, last
		}
	}
	a.view, a.sent, a.heartbeats = view, sent, heartbeats
}

// Add counts an application that a member accepted.
func (a *AssumedLoad) Add(view *subcluster.View, id creel.SubclusterID, size creel.Resource) {
	i, ok := view.Index(id)
	if !ok {
		return
	}
	a.turn(view)
	a.sent[i].Apps++
	a.sent[i].Size = a.sent[i].Size.Add(size)
}

// Write writes the load sent to each member of a view since its last heartbeat: the number of applications, and the
// sum of their AMs' sizes.
func (a *AssumedLoad) Write(view *subcluster.View, each []policies.RecentLoad) {
	if view == nil {
		return
	}
	a.turn(view)
	copy(each, a.sent)
}

// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"sync"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/subcluster"
)

// memory keeps the last outcomes and homes, the oldest leaving first. A home
// remembered here is a hint: it moves only after a failed submission, and a
// home that does not know the application makes its caller Forget.
type memory struct {
	mu    *sync.RWMutex
	most  int
	order []creel.ApplicationID // a ring
	next  int
	byID  map[creel.ApplicationID]router.Outcome
}

func newMemory(most int) memory {
	return memory{mu: &sync.RWMutex{}, most: most, byID: make(map[creel.ApplicationID]router.Outcome)}
}

func (k *memory) put(out router.Outcome) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, there := k.byID[out.Application]; !there {
		if len(k.order) < k.most {
			k.order = append(k.order, out.Application)
		} else {
			delete(k.byID, k.order[k.next])
			k.order[k.next] = out.Application
			k.next = (k.next + 1) % k.most
		}
	}
	k.byID[out.Application] = out
}

func (k *memory) learn(app creel.ApplicationID, home creel.SubclusterID) {
	k.mu.RLock()
	out, there := k.byID[app]
	k.mu.RUnlock()
	if there && out.Home == home {
		return
	}
	out.Application, out.Home = app, home
	out.Err = nil
	k.put(out)
}

// home of an application whose submission did not fail here.
func (k *memory) home(app creel.ApplicationID) (creel.SubclusterID, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	out, ok := k.byID[app]
	return out.Home, ok && out.Home != "" && out.Err == nil
}

func (k *memory) outcome(app creel.ApplicationID) (router.Outcome, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	out, ok := k.byID[app]
	return out, ok && len(out.Tries) > 0
}

// forget drops the home, and keeps the decision for why.
func (k *memory) forget(app creel.ApplicationID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if out, ok := k.byID[app]; ok {
		out.Home = ""
		k.byID[app] = out
	}
}

// assumed counts what was sent to each member since its last beat, which its
// load cannot show yet. It is an estimate: a submission that crosses a beat on
// its way is counted once too often or not at all.
type assumed struct {
	mu      sync.Mutex
	members map[creel.SubclusterID]*since
}

type since struct {
	beat time.Time
	apps int64
	size creel.Resource
}

// at gives the counter of a member, emptied if it has beaten since.
func (a *assumed) at(view *subcluster.View, id creel.SubclusterID) *since {
	if a.members == nil {
		a.members = map[creel.SubclusterID]*since{}
	}
	s := a.members[id]
	if s == nil {
		s = &since{}
		a.members[id] = s
	}
	if status, ok := view.Member(id); ok {
		if beat := view.At.Add(-status.Age).Round(time.Millisecond); beat.After(s.beat) {
			*s = since{beat: beat}
		}
	}
	return s
}

func (a *assumed) add(view *subcluster.View, id creel.SubclusterID, size creel.Resource) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.at(view, id)
	s.apps++
	s.size = s.size.Add(size)
}

func (a *assumed) of(view *subcluster.View) func(creel.SubclusterID) (int64, creel.Resource) {
	return func(id creel.SubclusterID) (int64, creel.Resource) {
		a.mu.Lock()
		defer a.mu.Unlock()
		s := a.at(view, id)
		return s.apps, s.size
	}
}

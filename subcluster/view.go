// SPDX-License-Identifier: Apache-2.0

package subcluster

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/creelrm/creel"
)

// View is the known state of the federation at a moment. Build makes it from the store's records; it is shared by an
// atomic pointer and immutable.
type View struct {
	Serial   int64     // rises by one with each Build
	At       time.Time // store's clock when the records were read
	Store    string    // identity of the store; it changes if the store came back empty
	Members  []Status  // sorted by ID
	Policies Policies
	Plan     *Plan    // the rebalancer's plan while its lease lasts, else nil: decide without one
	Freeze   *Freeze  // nil unless all members fell silent together
	Problems []string // records that the store could not read, as messages

	KeyChanges int64 // see Records

	index   map[creel.SubclusterID]int
	derived *derivedData
}

// derivedData is the data that decisions have derived from a view, by queue. A copy of the view has none, because it
// may be changed.
type derivedData struct {
	view *View
	mu   sync.RWMutex
	of   map[QueueOn]any
}

// mostDerived limits the data derived from a view, counted in members: a queue takes some 400 bytes of each.
const mostDerived = 50_000

// Derived returns the data derived from the view for a queue; the first call makes it. It depends only on the view
// and the key. So it is stored until the next view, unless there is too much of it. Goroutines may share it; it is
// never modified.
func (v *View) Derived(key QueueOn, made func() any) any {
	if v.derived == nil || v.derived.view != v {
		return made()
	}
	v.derived.mu.RLock()
	x := v.derived.of[key]
	v.derived.mu.RUnlock()
	if x != nil {
		return x
	}
	x = made()
	v.derived.mu.Lock()
	defer v.derived.mu.Unlock()
	if len(v.derived.of) == 0 || len(v.derived.of)*len(v.Members) < mostDerived {
		v.derived.of[key] = x
	}
	return x
}

// Status is a member's state in the view.
type Status struct {
	Member
	State    State
	Reason   string        // reason of the state, as a message: "heartbeat 0.4 s ago"
	Age      time.Duration // since its last heartbeat (or registration), store's clock
	Draining string        // requester and reason of a drain, "" if not draining
	Since    time.Time     // store's clock when the view first saw this state
	// Forgotten: the store had a record of it and lost it.
	Forgotten bool
	Load      Load
	// LoadError is why the last report could not be parsed; Load is then the last valid one.
	LoadError string

	loadText string  // the text of Load, so that equal reports are parsed once
	leaves   *leaves // of Load's queues; ignored if built for other queues
}

// Freeze is the reason why the view does not trust the store's records.
type Freeze struct {
	Reason string
	At     time.Time // store's clock when the members were last well; states are as of then
	// ThawBy is the end of the freeze even if some members are still missing; zero while none has returned.
	ThawBy time.Time
	Unread bool // the last read of the store failed
}

// Index is a member's position in Members.
func (v *View) Index(id creel.SubclusterID) (int, bool) {
	if v == nil {
		return 0, false
	}
	i, ok := v.index[id]
	return i, ok
}

// Member finds a member by id.
func (v *View) Member(id creel.SubclusterID) (*Status, bool) {
	i, ok := v.Index(id)
	if !ok {
		return nil, false
	}
	return &v.Members[i], true
}

// Active returns the members that may become homes, sorted by ID.
func (v *View) Active() []creel.SubclusterID {
	if v == nil {
		return nil
	}
	ids := make([]creel.SubclusterID, 0, len(v.Members))
	for i := range v.Members {
		if v.Members[i].State == StateActive {
			ids = append(ids, v.Members[i].ID)
		}
	}
	return ids
}

// Policy is the policy that applies to a queue, inherited down the tree.
func (v *View) Policy(q creel.QueuePath) (Policy, bool) {
	if v == nil {
		return Policy{}, false
	}
	return v.Policies.For(q)
}

// NewView makes a view of members and policies, for tests and simulations without records. Members are copied and
// sorted.
func NewView(at time.Time, members []Status, policies []Policy) *View {
	v := &View{Serial: 1, At: at, Members: slices.Clone(members), Policies: NewPolicies(policies)}
	v.seal()
	return v
}

func (v *View) seal() {
	slices.SortFunc(v.Members, func(a, b Status) int { return strings.Compare(string(a.ID), string(b.ID)) })
	v.derived = &derivedData{view: v, of: map[QueueOn]any{}}
	v.index = make(map[creel.SubclusterID]int, len(v.Members))
	for i := range v.Members {
		m := &v.Members[i]
		v.index[m.ID] = i
		if !m.leaves.isOf(m.Load.Queues) {
			m.leaves = leavesOf(m.Load.Queues)
		}
	}
}

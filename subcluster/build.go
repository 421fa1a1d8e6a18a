// SPDX-License-Identifier: Apache-2.0

package subcluster

import (
	"fmt"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/units"
)

// Record is the store's data about a member.
type Record struct {
	Member
	Registered   time.Time // store's clock
	Heartbeat    time.Time `json:"Beat"` // store's clock at the last heartbeat or registration
	Load         string    // JSON of the last heartbeat, "" before the first
	Draining     string    // requester and reason of the drain, "" if not draining
	Deregistered bool
	Superseded   bool  `json:",omitempty"` // the store has seen a later epoch: this record is old
	Parsed       *Load `json:"-"`          // Load as already parsed by the store, nil if not; never modified
}

// Records is one consistent read of the store.
type Records struct {
	Now      time.Time // store's clock at the read
	Store    string    // identity of the store, made at its first write
	Members  []Record
	Policies []Policy // latest version of each queue, including removed ones
	Problems []string // records that the store could not read, as messages
	Plan     *Plan    // the rebalancer's plan, if known; the watcher reads it itself
	// KeyChanges changes whenever a ring of keys in the store changes. Older creel releases do not count their
	// changes.
	KeyChanges int64
}

// lostAfter is the number of silent leases after which a suspect member is lost.
const lostAfter = 3

// stateAt computes a record's state at a moment of the store's clock.
func stateAt(r *Record, now time.Time) (State, string) {
	age := max(0, now.Sub(r.Heartbeat))
	lease := r.LeaseOrDefault()
	switch {
	case r.Deregistered:
		return StateDeregistered, "it deregistered"
	case age > lostAfter*lease:
		return StateLost, fmt.Sprintf("no heartbeat for %s, three leases of %s are over", short(age), short(lease))
	case age > lease:
		return StateSuspect, fmt.Sprintf("no heartbeat for %s, its lease is %s", short(age), short(lease))
	case r.Draining != "":
		return StateDraining, "drained: " + r.Draining
	default:
		return StateActive, fmt.Sprintf("heartbeat %s ago", short(age))
	}
}

func short(d time.Duration) string { return units.Age(d.Seconds()) }

// Build makes the next view from a read of the store. previous may be nil. It is pure: the same arguments give the
// same view.
//
// The view freezes in two cases: at least two members were well at the same time and now none is; or the store came
// back empty and lacks members it had. Then members keep the state they had at the last heartbeat of any of them, and
// View.Freeze has the reason. It thaws once all those members are back, or one lease after the first returned.
func Build(previous *View, records Records, storeNow time.Time) *View {
	v := &View{Serial: 1, At: storeNow, Store: records.Store, Problems: records.Problems,
		KeyChanges: records.KeyChanges}
	if previous != nil {
		v.Serial = previous.Serial + 1
	}
	v.Policies = nextPolicies(previous, records)
	known := withForgotten(previous, records)
	asOf := storeNow
	if v.Freeze = freeze(previous, records, known, storeNow); v.Freeze != nil {
		asOf = v.Freeze.At
	}
	v.Members = make([]Status, 0, len(known))
	for i := range known {
		v.Members = append(v.Members, status(previous, v.Freeze, &known[i], asOf, storeNow))
	}
	if v.Freeze == nil { // else use is unknown, and a deficit would be a guess
		v.Plan = records.Plan.inForce(storeNow)
	}
	v.seal()
	return v
}

// nextPolicies never goes back to lower versions: if the store lost its policies, the view keeps its own.
func nextPolicies(previous *View, records Records) Policies {
	next := NewPolicies(records.Policies)
	if previous != nil && next.Version < previous.Policies.Version {
		return previous.Policies
	}
	if previous != nil && next.Version == previous.Policies.Version {
		return previous.Policies // unchanged: keep the pointers, by which callers may have cached
	}
	return next
}

// withForgotten adds to the records the members of the previous view that the store no longer has, with their last
// heartbeat.
func withForgotten(previous *View, records Records) []knownRecord {
	list := make([]knownRecord, 0, len(records.Members))
	have := make(map[creel.SubclusterID]bool, len(records.Members))
	for _, r := range records.Members {
		list = append(list, knownRecord{Record: r})
		have[r.ID] = true
	}
	if previous == nil {
		return list
	}
	for i := range previous.Members {
		p := &previous.Members[i]
		if have[p.ID] || p.State == StateDeregistered {
			continue
		}
		r := Record{Member: p.Member, Heartbeat: previous.At.Add(-p.Age), Load: p.loadText}
		r.Draining = p.Draining
		list = append(list, knownRecord{Record: r, forgotten: true})
	}
	return list
}

type knownRecord struct {
	Record
	forgotten bool // the store lost its record
}

// freeze decides whether all members fell silent together.
func freeze(previous *View, records Records, members []knownRecord, now time.Time) *Freeze {
	var alive, forgotten int
	var newest time.Time // last heartbeat of any member
	var lease time.Duration
	for i := range members {
		m := &members[i]
		if m.Deregistered {
			continue
		}
		if m.forgotten {
			forgotten++
		} else if s, _ := stateAt(&m.Record, now); s.Alive() {
			alive++
		}
		if m.Heartbeat.After(newest) {
			newest = m.Heartbeat
		}
		lease = max(lease, m.LeaseOrDefault())
	}
	before := previous != nil && previous.Freeze != nil
	if alive > 0 {
		if !before && !(replaced(previous, records) && alive < aliveIn(previous)) {
			return nil
		}
		f := Freeze{At: previous.At}
		if before {
			f = *previous.Freeze
			f.Unread = false
		}
		if f.ThawBy.IsZero() {
			f.ThawBy = now.Add(lease)
		}
		missing := 0
		for i := range members {
			s, _ := stateAt(&members[i].Record, now)
			was, _ := stateAt(&members[i].Record, f.At)
			if was.Alive() && (members[i].forgotten || !s.Alive()) {
				missing++
			}
		}
		if missing == 0 || now.After(f.ThawBy) {
			return nil
		}
		f.Reason = fmt.Sprintf("members are coming back: %d here, %d still missing", alive, missing)
		return &f
	}
	well := 0 // number of members well at that heartbeat
	for i := range members {
		if s, _ := stateAt(&members[i].Record, newest); s.Alive() {
			well++
		}
	}
	if before {
		f := *previous.Freeze
		f.Unread = false
		if well >= 2 || forgotten > 0 {
			f.ThawBy = time.Time{}
			return &f
		}
		if f.ThawBy.IsZero() { // the others had failed before: one lease of grace
			f.ThawBy = now.Add(lease)
		}
		if now.After(f.ThawBy) {
			return nil
		}
		return &f
	}
	if forgotten > 0 && len(records.Members) == 0 && aliveIn(previous) > 0 {
		return &Freeze{
			At:     previous.At,
			Reason: "the store has no member records: it came back empty, or it is another store",
		}
	}
	if well < 2 {
		return nil
	}
	return &Freeze{
		At:     newest,
		Reason: fmt.Sprintf("all %d members fell silent together: probably the store or this process failed, not they", well),
	}
}

// replaced reports whether the records come from another store than the previous view.
func replaced(previous *View, records Records) bool {
	return previous != nil && previous.Store != "" && records.Store != previous.Store
}

func aliveIn(v *View) int {
	n := 0
	if v != nil {
		for i := range v.Members {
			if v.Members[i].State.Alive() {
				n++
			}
		}
	}
	return n
}

// status turns a record into a member's status in the view. In a freeze each member has its state at the freeze,
// unless it has sent a heartbeat since.
func status(previous *View, f *Freeze, k *knownRecord, asOf, now time.Time) Status {
	s := Status{
		Member: k.Member, Draining: k.Draining, Age: max(0, now.Sub(k.Heartbeat)), Forgotten: k.forgotten,
	}
	s.State, s.Reason = stateAt(&k.Record, now)
	switch {
	case f != nil && (k.forgotten || !s.State.Alive()) && s.State != StateDeregistered:
		s.State, s.Reason = stateAt(&k.Record, asOf)
		s.Reason = "as before the freeze: " + s.Reason
	case k.forgotten:
		s.State, s.Reason = StateLost, "the store has no record of it any more"
	}
	before, ok := previous.Member(k.ID)
	s.readLoad(k, before, ok)
	if s.State == StateActive && s.Load.Refusing != "" {
		s.State, s.Reason = StateDraining, "it takes no new applications: "+s.Load.Refusing
	}
	s.Since = now
	if ok && before.State == s.State && before.Epoch == s.Epoch {
		s.Since = before.Since
	}
	return s
}

// readLoad takes the load from the record, or from the previous view if that one is equal or the record's is
// unreadable.
func (s *Status) readLoad(k *knownRecord, before *Status, ok bool) {
	s.loadText = k.Load
	if s.loadText == "" {
		s.loadText = k.Capability
	}
	if ok && before.loadText == s.loadText {
		s.Load, s.LoadError, s.leaves = before.Load, before.LoadError, before.leaves
		return
	}
	if k.Parsed != nil && k.Load != "" {
		s.Load = *k.Parsed
		return
	}
	l, err := ParseLoad([]byte(s.loadText))
	if err != nil {
		s.LoadError = err.Error()
		if ok {
			s.Load = before.Load
		}
		return
	}
	s.Load = l
}

// Unseen returns a view for the time after a gap, by the store's clock, in which the store was not read: it or the
// reader was paused. In the next Build, members that were alive keep their state until one lease after the first is
// back.
func Unseen(previous *View, gap time.Duration) *View {
	v := *previous
	v.Freeze = &Freeze{
		At:     previous.At,
		Reason: fmt.Sprintf("the store was not read for %s: it or this process was paused", short(gap)),
	}
	return &v
}

// Unreachable returns the view after a failed read of the store: the previous one, frozen, with the reason. Ages and
// states are those of the last successful read.
func Unreachable(previous *View, why string) *View {
	v := *previous
	v.Serial++
	f := Freeze{At: previous.At}
	if previous.Freeze != nil {
		f = *previous.Freeze
		f.ThawBy = time.Time{}
	}
	f.Reason, f.Unread = "the state store does not answer: "+why, true
	v.Freeze, v.Plan = &f, nil
	v.derived = &derivedData{view: &v, of: map[QueueOn]any{}} // decisions depend on the plan too
	return &v
}

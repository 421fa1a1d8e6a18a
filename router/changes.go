// SPDX-License-Identifier: Apache-2.0

package router

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// Event is a change of the federation that this router observed.
type Event struct {
	At     time.Time // of this router's clock
	Kind   string    // member, view, policy, breaker
	Member creel.SubclusterID
	Text   string
}

// keptEvents bounds the stored events.
const keptEvents = 200

// Changes stores the last events. Like Memory it is pure and has no lock.
type Changes struct {
	events   []Event
	states   map[creel.SubclusterID]string
	open     map[creel.SubclusterID]string
	frozen   bool
	policies int64
	seen     bool
}

// Observation is what a router observes at one moment.
type Observation struct {
	Now         time.Time
	View        *subcluster.View
	Submissions int64                           // received since the start
	Open        map[creel.SubclusterID][]string // kinds of call that a breaker stops
	Waiting     *Waiting                        // nil: by the members' reports
}

// Observe records the differences from the last observation as events. It is called about once a second.
func (c *Changes) Observe(o Observation) {
	if o.View == nil {
		return
	}
	first := !c.seen
	c.seen = true
	event := func(kind string, id creel.SubclusterID, format string, values ...any) {
		c.events = append(c.events, Event{o.Now, kind, id, fmt.Sprintf(format, values...)})
		if len(c.events) > keptEvents {
			c.events = slices.Delete(c.events, 0, len(c.events)-keptEvents)
		}
	}
	states, open := map[creel.SubclusterID]string{}, map[creel.SubclusterID]string{}
	for i := range o.View.Members {
		m := &o.View.Members[i]
		states[m.ID] = m.State.String()
		switch was, known := c.states[m.ID]; {
		case !known:
			event("member", m.ID, "%s is %s", m.ID, m.State)
		case was != m.State.String():
			event("member", m.ID, "%s was %s and is %s: %s", m.ID, was, m.State, m.Reason)
		}
		open[m.ID] = strings.Join(o.Open[m.ID], ", ")
		switch was := c.open[m.ID]; {
		case open[m.ID] != "" && open[m.ID] != was:
			event("breaker", m.ID, "calls of kind %s to %s are cut off", open[m.ID], m.ID)
		case open[m.ID] == "" && was != "":
			event("breaker", m.ID, "%s is called again", m.ID)
		}
	}
	for id := range c.states {
		if _, still := states[id]; !still {
			event("member", id, "%s left the federation", id)
		}
	}
	switch frozen := o.View.Freeze != nil; {
	case frozen && !c.frozen:
		event("view", "", "the view froze: %s", o.View.Freeze.Reason)
	case !frozen && c.frozen:
		event("view", "", "the view is followed again")
	}
	if v := o.View.Policies.Version; !first && v != c.policies {
		event("policy", "", "policies changed, to version %d", v)
	}
	c.states, c.open, c.frozen, c.policies = states, open, o.View.Freeze != nil, o.View.Policies.Version
}

// Events returns the last events, newest first.
func (c *Changes) Events() []Event {
	out := slices.Clone(c.events)
	slices.Reverse(out)
	return out
}

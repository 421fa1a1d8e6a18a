// SPDX-License-Identifier: Apache-2.0

package statestore

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Events are the federation's changes and incidents, in the order in which the store recorded them. No decision
// depends on them. The store keeps the last MaxEvents of the last EventsFor.
type Events interface {
	// AppendEvent records an event. An event with the key of one of the last EventKeys events is the same event; it is
	// not recorded again.
	AppendEvent(ctx context.Context, e Event) error
	// Events reads events after a cursor ("": from the oldest), oldest first, at most limit (1 to MaxPage).
	Events(ctx context.Context, after string, limit int) ([]Event, error)
}

// The bounds of Events. MaxEvent is the length of an event in bytes, as EncodeEvent writes it.
const (
	MaxEvents = 10_000
	EventsFor = 30 * 24 * time.Hour
	EventKeys = 128
	MaxEvent  = 8192
)

// Event is a change or an incident.
type Event struct {
	ID   string    `json:"id,omitempty"`  // the event's cursor, set by the store
	Time time.Time `json:"time,omitzero"` // store's clock, set by the store
	Key  string    `json:"-"`             // identifies the event among repeats and among several reporters
	// Kind is one of the kinds below.
	Kind    EventKind `json:"kind"`
	Subject string    `json:"subject"`          // an application, a queue or a member
	User    string    `json:"user,omitempty"`   // "": a daemon itself
	From    string    `json:"from,omitempty"`   // address of the user's client
	By      string    `json:"by,omitempty"`     // the daemon that recorded it
	Before  string    `json:"before,omitempty"` // value before the change
	After   string    `json:"after,omitempty"`  // value after the change
	Result  string    `json:"result"`           // EventDone, EventFailed or EventKept
	Detail  string    `json:"detail,omitempty"` // comment of the user, or reason
}

// EventKind is a kind of event.
type EventKind string

// The kinds of events.
const (
	EventPolicy    EventKind = "policy"     // a queue's policy was written
	EventTree      EventKind = "tree"       // the federation's queue tree was written
	EventPlan      EventKind = "plan"       // a plan changed a queue's entitlement
	EventRebalance EventKind = "rebalancer" // plans were paused or resumed
	EventMend      EventKind = "mend"       // a member's queues were changed
	EventDrain     EventKind = "drain"      // a drain began or ended
	EventMember    EventKind = "member"     // a member joined, was lost, was refused, or left
	EventMove      EventKind = "move"       // an application moved to another queue or member
	EventKill      EventKind = "kill"       // an application was killed
	EventSignal    EventKind = "signal"     // a container was sent a signal
	EventPriority  EventKind = "priority"   // an application's priority changed
	EventLifetime  EventKind = "lifetime"   // an application's time limit changed
	EventLeader    EventKind = "leader"     // a rebalancer took the lead
	EventBreaker   EventKind = "breaker"    // a router stopped or resumed calls to a member
	EventInvariant EventKind = "invariant"  // an invariant of the federation was broken
)

// EventKinds lists the kinds.
var EventKinds = []EventKind{
	EventPolicy, EventTree, EventPlan, EventRebalance, EventMend, EventDrain, EventMember, EventMove, EventKill,
	EventSignal, EventPriority, EventLifetime, EventLeader, EventBreaker, EventInvariant,
}

// The results of events.
const (
	EventDone   = "done"
	EventFailed = "failed"
	EventKept   = "kept" // recorded, and made when the member answers
)

type recordingKey struct{}

// Recording attaches an event to the context of a write: the store records the event in the same step as the write, if
// the write is made. These writes are PutPolicy, PutDocument, Drain, Deregister and RemoveMember.
func Recording(ctx context.Context, e Event) context.Context {
	return context.WithValue(ctx, recordingKey{}, e)
}

// RecordingOf is the event attached to the context.
func RecordingOf(ctx context.Context) (Event, bool) {
	e, ok := ctx.Value(recordingKey{}).(Event)
	return e, ok
}

// EncodeEvent writes the parts of an event that its reporter sets. Long values are cut.
func EncodeEvent(e Event) ([]byte, error) {
	if !slices.Contains(EventKinds, e.Kind) {
		return nil, bad("event refused", "its kind is %q", e.Kind)
	}
	if e.Subject == "" || e.Key == "" || len(e.Key) > 512 {
		return nil, bad("event refused", "its subject is %.80q and its key %.80q", e.Subject, e.Key)
	}
	e.ID, e.Time = "", time.Time{}
	for _, v := range []*string{&e.Subject, &e.User, &e.From, &e.By} {
		*v = cut(*v, 256)
	}
	for _, v := range []*string{&e.Before, &e.After, &e.Detail} {
		*v = cut(*v, 1000)
	}
	b, err := json.Marshal(e)
	if err == nil && len(b) > MaxEvent { // of characters that JSON escapes
		e.Before, e.After, e.Detail = "", "", cut(e.Detail, 100)
		b, err = json.Marshal(e)
	}
	return b, err
}

// cut shortens a text to at most most bytes, at a character, with a mark.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	text = text[:most-len("…")]
	for len(text) > 0 && !utf8.ValidString(text) {
		text = text[:len(text)-1]
	}
	return text + "…"
}

// ParseEvent reads the output of EncodeEvent.
func ParseEvent(id string, data []byte) (Event, error) {
	var e Event
	if err := json.Unmarshal(data, &e); err != nil {
		return e, Unreadable("an event", err)
	}
	ms, _, ok := ParseEventID(id)
	if !ok {
		return e, Unreadable("an event", fmt.Errorf("its id is %q", id))
	}
	e.ID, e.Time = id, time.UnixMilli(ms).UTC()
	return e, nil
}

// CheckCursor rejects invalid cursors of Events.
func CheckCursor(cursor string) error {
	if _, _, ok := ParseEventID(cursor); cursor != "" && !ok {
		return bad("invalid cursor of events", "%.40q is not the id of an event, such as 1764353628120-0", cursor)
	}
	return nil
}

// CompareEventIDs orders valid ids of events; "" is the lowest.
func CompareEventIDs(a, b string) int {
	ms1, n1, _ := ParseEventID(a)
	ms2, n2, _ := ParseEventID(b)
	return cmp.Or(cmp.Compare(ms1, ms2), cmp.Compare(n1, n2))
}

// EventCursor is the cursor of the events from t on.
func EventCursor(t time.Time) string { return fmt.Sprintf("%d-0", max(0, t.UnixMilli()-1)) }

// ParseEventID returns the time and the number of an event id.
func ParseEventID(id string) (ms, n int64, ok bool) {
	head, tail, found := strings.Cut(id, "-")
	ms, err := strconv.ParseInt(head, 10, 64)
	n, err2 := strconv.ParseInt(tail, 10, 64)
	return ms, n, found && err == nil && err2 == nil && ms >= 0 && n >= 0
}

// CheckRecording rejects a write with an event that cannot be recorded.
func CheckRecording(ctx context.Context) error {
	e, ok := RecordingOf(ctx)
	if !ok {
		return nil
	}
	_, err := EncodeEvent(e)
	return err
}

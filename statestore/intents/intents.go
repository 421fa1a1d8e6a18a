// SPDX-License-Identifier: Apache-2.0

// Package intents records users' requests for an application while a member that must carry them out is away. Requests
// kill the application, move it to another queue, change its priority or its lifetime, fail an attempt, or signal a
// container. Routers carry a request out when the member is back.
//
// An intent is one document of the state store for each application, user, verb (and container) and member. So the
// answer "it will be done" remains true even if the router that sent it dies. A later intent of the same user replaces
// the earlier one.
//
// Some verbs set a value: a queue, a priority, a lifetime. Once a member has carried out such an intent, it replaces
// all earlier ones recorded for that member, of any user (Earlier). A call with an earlier one may still be on its way,
// so the intent is sent once more after AgainAfter. Users are not informed of the repeat.
//
// Every router carries intents out: it makes the call at the member in the user's name. It repeats the call until the
// member reports success, does not know the application, or rejects the call. A member outside the home may not know
// the application yet, because a UAM is recorded before it is submitted. So an intent that sets a value waits there for
// AgainAfter while the UAM is recorded. The member may not know a signal's
// container because its node has not registered again yet. So such a signal is rejected only if that is still the
// case after DoubtFor. Intents for a member that was removed from the federation are rejected. Each verb can be
// repeated without harm, so no lease is needed. Only the member decides whether the user is permitted. A rejection
// stays recorded for RefusedFor, so that the user can read it. A home that does not know the application rejects it
// too.
//
// A router leaves an intent with an unknown verb to routers of other versions.
//
// A state store that comes back empty has lost its intents: users must repeat their requests.
package intents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
)

// class of the documents, named APPLICATION/USER/VERB for the home, and
// APPLICATION/USER/VERB/MEMBER for another member. VERB is signal:CONTAINER for a signal.
const class = "intents"

// most limits the number of recorded intents. Above half of it, a user who has a full share recorded can add no more,
// so that others can.
const (
	most  = 10_000
	share = 500
)

// tries limits the attempts to write a record that other processes write at the same time.
const tries = 5

// DoubtFor is the time for which a member that is back is asked again to signal a container it does not know. A
// restarted ResourceManager learns of a container when its node registers. It expires nodes after this time by default
// (yarn.nm.liveness-monitor.expiry-interval-ms).
const DoubtFor = 10 * time.Minute

// AgainAfter is the pause before an intent that replaced others is sent again: longer than any call with one of them
// can last, and than the launch of a UAM.
const AgainAfter = time.Minute

// RefusedFor is the time for which a rejected intent can be read, by the store's clock.
const RefusedFor = time.Hour

// Store is the part of a state store that the package needs.
type Store interface {
	Home(ctx context.Context, app creel.ApplicationID) (creel.SubclusterID, error)
	UAMRecordsOf(ctx context.Context, app creel.ApplicationID) ([]statestore.UAMRecord, error)
	PutDocument(ctx context.Context, w statestore.DocumentWrite) (statestore.Document, error)
	DocumentOf(ctx context.Context, class, name string, queues []string) (statestore.Document, error)
	Documents(ctx context.Context, class string) (statestore.DocumentSet, error)
}

// Verb is the requested change.
type Verb string

// The verbs.
const (
	Kill     Verb = "kill"
	Move     Verb = "move"     // to Queue
	Priority Verb = "priority" // to Level
	Timeouts Verb = "timeouts" // to Expiry
	Fail     Verb = "fail"     // of Attempt
	Signal   Verb = "signal"   // Command to Container
)

// sets reports whether a verb sets a value in each member with a part of the application, so that the last intent
// counts. A kill does not: UAMs end when their home reports the end of the attempt.
func (v Verb) sets() bool { return v == Move || v == Priority || v == Timeouts }

// Intent is one request that waits for a member.
type Intent struct {
	Application creel.ApplicationID `json:"-"`
	Verb        Verb                `json:"-"`
	User        string              `json:"-"`
	Member      creel.SubclusterID  `json:"-"` // "": the home

	Diagnostics string            `json:"diagnostics,omitempty"` // of a kill, from the user
	Queue       string            `json:"queue,omitempty"`
	Level       int32             `json:"level,omitempty"`
	Expiry      map[string]string `json:"expiry,omitempty"` // type of timeout to an ISO 8601 time
	Attempt     int32             `json:"attempt,omitempty"`
	Container   creel.ContainerID `json:"container,omitzero"`
	Command     int32             `json:"command,omitempty"` // its number in YARN's protocol
	REST        bool              `json:"rest,omitempty"`    // it came by REST and is sent by REST

	Doubted string        `json:"doubted,omitempty"` // the answer of a member that may not know the container yet
	Refused string        `json:"refused,omitempty"` // why the member rejected it
	Another bool          `json:"another,omitempty"` // it replaced another intent of the user
	Again   bool          `json:"again,omitempty"`   // it was carried out, and is sent once more
	Asked   time.Time     `json:"-"`                 // or first doubted, rejected or carried out; store's clock
	Age     time.Duration `json:"-"`                 // since then, by the store's clock

	newer map[string]json.RawMessage // fields of another version, which are written back
}

// heard returns the new state of an intent after a member's answer; "" is silence. A signal to a container that the
// member does not know is first doubted. It is rejected once DoubtFor has passed by the store's clock, so that all
// routers agree. If the member goes away meanwhile, the time starts again.
func (i Intent) heard(unknown bool, said string) Intent {
	switch {
	case said == "":
		i.Doubted = ""
	case i.Verb != Signal || !unknown:
		i.Doubted, i.Refused = "", said
	case i.Doubted == "":
		i.Doubted = said
	case i.Age >= DoubtFor:
		i.Doubted, i.Refused = "", said
	}
	return i
}

func (i *Intent) String() string {
	switch i.Verb {
	case Move:
		return "move to queue " + i.Queue
	case Priority:
		return fmt.Sprintf("change the priority to %d", i.Level)
	case Timeouts:
		var parts []string
		for _, kind := range slices.Sorted(maps.Keys(i.Expiry)) {
			parts = append(parts, kind+" to "+i.Expiry[kind])
		}
		return "change the timeout " + strings.Join(parts, ", ")
	case Fail:
		return fmt.Sprintf("fail attempt %d", i.Attempt)
	case Signal:
		name := fmt.Sprint("command ", i.Command)
		if n := int(i.Command) - 1; n >= 0 && n < len(creel.SignalCommands) {
			name = creel.SignalCommands[n]
		}
		return fmt.Sprintf("signal %s to %s", i.Container, name)
	}
	if i.Verb == Kill {
		return string(i.Verb)
	}
	return string(i.Verb) + " (this version does not know how)"
}

func (i *Intent) name() string {
	name := i.Application.String() + "/" + url.PathEscape(i.User) + "/" + string(i.Verb)
	if i.Verb == Signal {
		name += ":" + i.Container.String()
	}
	if i.Member != "" {
		name += "/" + string(i.Member)
	}
	return name
}

// Record stores an intent until it is carried out. A repeat is success; another intent of the user for the same purpose
// replaces it. A user without a name and an application without a home are rejected, because later neither the
// permission nor the member could be determined.
func Record(ctx context.Context, s Store, i Intent) error {
	refuse := func(kind error, why, try string, after time.Duration) error {
		return &creel.Error{
			Kind: kind, What: fmt.Sprintf("%s: request to %s not recorded", i.Application, &i),
			Why: why, Try: try, RetryAfter: after,
		}
	}
	if i.User == "" {
		return refuse(
			creel.ErrInvalidRequest,
			"it has no user name",
			"set one (user.name, HADOOP_USER_NAME)",
			0,
		)
	}
	if _, err := s.Home(ctx, i.Application); err != nil {
		return err
	}
	if err := write(ctx, s, i, most/2, math.MaxInt64); !errors.Is(err, creel.ErrBusy) {
		return err
	}
	set, err := s.Documents(ctx, class)
	if err != nil {
		return err
	}
	own := 0
	for k := range set.Documents {
		if of, err := Read(&set.Documents[k], set.Now); err == nil && of.User == i.User {
			own++
		}
	}
	if own < share {
		if err := write(ctx, s, i, most, math.MaxInt64); !errors.Is(err, creel.ErrBusy) {
			return err
		}
	}
	return refuse(creel.ErrBusy, fmt.Sprintf("%d requests are waiting for their members, %d of them from %s",
		len(set.Documents), own, i.User), "try again when the member answers", 30*time.Second)
}

// write records an intent, unless the user's recorded intent is younger than version. most limits the number of
// intents (0: no limit).
func write(ctx context.Context, s Store, i Intent, most int, version int64) error {
	i.Another = false
	same, err := i.encode()
	if err != nil {
		return err
	}
	i.Another = i.Verb.sets()
	other, err := i.encode()
	if err != nil {
		return err
	}
	for range tries {
		var before statestore.Document
		if before, err = s.DocumentOf(ctx, class, i.name(), nil); err != nil {
			return err
		}
		is := string(before.Data)
		if is == string(same) || is == string(other) || before.Version > version {
			return nil
		}
		data := same
		if before.Data != nil {
			data = other
		}
		_, err = s.PutDocument(ctx, statestore.DocumentWrite{
			Class: class, Name: i.name(), Expect: before.Version, Data: data, Author: i.User, Quiet: true, Most: most,
		})
		if !errors.Is(err, creel.ErrConflict) {
			break
		}
	}
	return err
}

// Documents are intents as recorded.
type Documents []statestore.Document

// Earlier returns the recorded intents, of any user, that a carried-out intent replaces: they set the same value
// differently. Call it before the member is asked, because intents recorded meanwhile are not earlier. Rejected intents
// are left out and stay readable.
func Earlier(ctx context.Context, s Store, i Intent) (Documents, error) {
	if !i.Verb.sets() {
		return nil, nil
	}
	set, err := s.Documents(ctx, class)
	return i.earlier(set), err
}

func (i *Intent) earlier(set statestore.DocumentSet) (out Documents) {
	ofApplication := i.Application.String() + "/"
	for k := range set.Documents {
		d := &set.Documents[k]
		if !strings.HasPrefix(d.Name, ofApplication) {
			continue // a round compares each intent with all others, so parsing them all would be slow
		}
		of, err := Read(d, set.Now)
		if err == nil && of.Application == i.Application && of.Verb == i.Verb && of.Refused == "" {
			out = append(out, *d)
		}
	}
	return out
}

// at returns the intents for a member, "" for the home.
func (w Documents) at(member creel.SubclusterID) (out Documents) {
	for k := range w {
		if i, err := Read(&w[k], w[k].Time); err == nil && i.Member == member {
			out = append(out, w[k])
		}
	}
	return out
}

// giveWay removes a member's intents, if unchanged, in favour of an intent that the member has carried out. It records
// that intent in their place, to be sent again.
func (w Documents) giveWay(ctx context.Context, s Store, to Intent) (failed error) {
	if len(w) == 0 {
		return nil
	}
	newest := int64(0)
	for k := range w {
		newest = max(newest, w[k].Version)
	}
	to.Again = true
	if err := write(ctx, s, to, 0, newest); err != nil {
		failed = fmt.Errorf("an earlier request may undo this one: %w", err)
	}
	return errors.Join(failed, w.drop(ctx, s))
}

// drop removes intents that are unchanged since they were read.
func (w Documents) drop(ctx context.Context, s Store) (failed error) {
	for k := range w {
		_, err := s.PutDocument(ctx, statestore.DocumentWrite{
			Class: class, Name: w[k].Name, Expect: w[k].Version, Author: w[k].Author, Quiet: true,
		})
		if err != nil && !errors.Is(err, creel.ErrConflict) {
			failed = errors.Join(failed, fmt.Errorf("failed to remove an earlier request: %w", err))
		}
	}
	return failed
}

// Waiting returns the recorded intents of one application, oldest first; of all applications for a zero id.
func Waiting(ctx context.Context, s Store, app creel.ApplicationID) ([]Intent, error) {
	set, err := s.Documents(ctx, class)
	if err != nil {
		return nil, err
	}
	var out []Intent
	for d := range byTime(set) {
		if i, err := Read(d, set.Now); err == nil && !i.Again && (app.IsZero() || i.Application == app) {
			out = append(out, i)
		}
	}
	return out, nil
}

// byTime yields the documents in the order in which they were written.
func byTime(set statestore.DocumentSet) func(func(*statestore.Document) bool) {
	slices.SortStableFunc(set.Documents, func(a, b statestore.Document) int { return int(a.Version - b.Version) })
	return func(yield func(*statestore.Document) bool) {
		for k := range set.Documents {
			if !yield(&set.Documents[k]) {
				return
			}
		}
	}
}

// Read parses a document and computes its age at now, by the store's clock.
func Read(d *statestore.Document, now time.Time) (Intent, error) {
	parts := strings.Split(d.Name, "/")
	if len(parts) < 3 || len(parts) > 4 {
		return Intent{}, fmt.Errorf("the name %q is not APPLICATION/USER/VERB[/MEMBER]", d.Name)
	}
	app, err := creel.ParseApplicationID(parts[0])
	if err != nil {
		return Intent{}, err
	}
	user, err := url.PathUnescape(parts[1])
	if err != nil {
		return Intent{}, err
	}
	verb, _, _ := strings.Cut(parts[2], ":")
	i := Intent{
		Application: app, User: user, Verb: Verb(verb), Asked: d.Time, Age: max(0, now.Sub(d.Time)),
	}
	if len(parts) == 4 {
		i.Member = creel.SubclusterID(parts[3])
	}
	if err := json.Unmarshal(d.Data, &i); err != nil {
		return i, err
	}
	i.newer, err = statestore.OtherFields[Intent](d.Data)
	return i, err
}

// encode returns the document of an intent, with the fields that another version wrote.
func (i *Intent) encode() ([]byte, error) { return statestore.WithFields(i, i.newer) }

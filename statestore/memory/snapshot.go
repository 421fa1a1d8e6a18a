// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// snapshot is the whole store, in an order that depends only on its content, so that equal stores have equal bytes.
type snapshot struct {
	Schema       string                       `json:"schema"`
	Identity     string                       `json:"identity"`
	Members      []subcluster.Record          `json:"members,omitempty"`
	Epochs       map[creel.SubclusterID]int64 `json:"epochs,omitempty"`
	Homes        []snapshotHome               `json:"homes,omitempty"`
	Reservations []snapshotReservation        `json:"reservations,omitempty"`
	UAMRecords   []statestore.UAMRecord       `json:"spreads,omitempty"`
	Dropped      []creel.AttemptID            `json:"dropped,omitempty"`  // see State.dropped
	Policies     []subcluster.Policy          `json:"policies,omitempty"` // all kept versions, by queue then version
	Version      int64                        `json:"version,omitempty"`
	Documents    []keptDocument               `json:"documents,omitempty"` // all kept versions
	Leases       []statestore.Lease           `json:"leases,omitempty"`
	Rings        []ring                       `json:"rings,omitempty"`
	Tokens       []statestore.Token           `json:"tokens,omitempty"`
	NewestToken  int32                        `json:"newest_token,omitempty"`
	Events       []keptEvent                  `json:"events,omitempty"`
}

// snapshotHome is the home of an application.
type snapshotHome struct {
	Application creel.ApplicationID `json:"application"`
	Home        creel.SubclusterID  `json:"home"`
	Claimed     time.Time           `json:"claimed"`
	Ends        time.Time           `json:"ends,omitzero"`
	Number      int64               `json:"number,omitempty"` // 0 stands for 1
	Ended       time.Time           `json:"ended,omitzero"`
	Life        int64               `json:"life,omitempty"`
	Placement   []byte              `json:"placement,omitempty"`
	Denials     *denials            `json:"denials,omitempty"`
}

// snapshotReservation is the home of a reservation.
type snapshotReservation struct {
	Reservation creel.ReservationID `json:"reservation"`
	Home        creel.SubclusterID  `json:"home"`
	Claimed     time.Time           `json:"claimed"`
	Ends        time.Time           `json:"ends,omitzero"`
	Number      int64               `json:"number,omitempty"` // 0 stands for 1
	Placement   []byte              `json:"placement,omitempty"`
}

type ring struct {
	Name string           `json:"name"`
	Keys []statestore.Key `json:"keys"`
}

// Snapshot writes the whole store as JSON. Equal stores have equal bytes. Records of daemons are
// left out: running daemons store theirs again.
func (t *State) Snapshot() ([]byte, error) {
	s := snapshot{
		Schema:   t.schema,
		Identity: t.identity,
		Version:  t.version,
		Members:  t.Records(time.Time{}).Members,
		Epochs:   t.epochs,
	}
	for id, p := range t.apps.of {
		s.Homes = append(s.Homes, snapshotHome{
			id, p.home, p.claimed, p.ends, p.number, p.ended, p.life, p.placement, t.apps.denials[id],
		})
	}
	slices.SortFunc(s.Homes, func(a, b snapshotHome) int { return a.Application.Compare(b.Application) })
	for id, p := range t.reservations.of {
		s.Reservations = append(
			s.Reservations, snapshotReservation{id, p.home, p.claimed, p.ends, p.number, p.placement},
		)
	}
	slices.SortFunc(s.Reservations, func(a, b snapshotReservation) int {
		return a.Reservation.Compare(b.Reservation)
	})
	for _, l := range t.uams {
		s.UAMRecords = append(s.UAMRecords, l...)
	}
	slices.SortFunc(s.UAMRecords, func(a, b statestore.UAMRecord) int { return a.Attempt.Compare(b.Attempt) })
	for app, attempt := range t.dropped {
		s.Dropped = append(s.Dropped, creel.AttemptID{Application: app, Attempt: attempt})
	}
	slices.SortFunc(s.Dropped, creel.AttemptID.Compare)
	for _, h := range t.policies {
		s.Policies = append(s.Policies, h...)
	}
	slices.SortFunc(s.Policies, func(a, b subcluster.Policy) int { return int(a.Version - b.Version) })
	slices.SortStableFunc(
		s.Policies,
		func(a, b subcluster.Policy) int { return strings.Compare(string(a.Queue), string(b.Queue)) },
	)
	s.Documents = t.saveDocuments()
	for _, l := range t.leases {
		s.Leases = append(s.Leases, l)
	}
	slices.SortFunc(s.Leases, func(a, b statestore.Lease) int { return strings.Compare(a.Name, b.Name) })
	for name, keys := range t.rings {
		s.Rings = append(s.Rings, ring{name, keys})
	}
	slices.SortFunc(s.Rings, func(a, b ring) int { return strings.Compare(a.Name, b.Name) })
	s.Events = t.events
	s.Tokens, s.NewestToken = t.tokens.list(), t.tokens.newest
	return json.Marshal(s)
}

// Restore replaces the whole store by a snapshot. If the snapshot cannot be read, the store stays unchanged.
func (t *State) Restore(data []byte) error {
	var s snapshot
	if err := json.Unmarshal(data, &s); err != nil {
		return statestore.Unreadable("the snapshot", err)
	}
	if s.Schema != "" {
		if err := statestore.ReadableSchema(s.Schema); err != nil {
			return err
		}
	}
	n := NewState(s.Identity, t.valid)
	n.schema, n.version = s.Schema, s.Version
	for _, m := range s.Members {
		if err := m.Validate(); err != nil {
			return err
		}
		n.members[m.ID] = &m
	}
	for id, epoch := range s.Epochs {
		n.epochs[id] = epoch
	}
	for _, h := range s.Homes {
		if err := checkPlaced(statestore.CheckApplication(h.Application), h.Home); err != nil {
			return err
		}
		n.apps.lose(h.Application)
		n.apps.put(h.Application, homeEntry{
			h.Home, max(h.Number, 1), h.Claimed, h.Ends, h.Ended, h.Life, h.Placement,
		})
		if h.Denials != nil {
			n.apps.denials[h.Application] = h.Denials
		}
	}
	for _, h := range s.Reservations {
		if err := checkPlaced(statestore.CheckReservation(h.Reservation), h.Home); err != nil {
			return err
		}
		n.reservations.drop(h.Reservation)
		n.reservations.put(h.Reservation, homeEntry{
			home: h.Home, number: max(h.Number, 1), claimed: h.Claimed, ends: h.Ends, placement: h.Placement,
		})
	}
	for _, sp := range s.UAMRecords {
		if err := statestore.CheckUAMRecord(&sp); err != nil {
			return err
		}
		list := n.uams[sp.Attempt.Application]
		i, ok := slices.BinarySearchFunc(list, sp.Attempt, compareAttempt)
		if ok {
			return &creel.Error{
				Kind: creel.ErrInvalidRequest,
				What: "snapshot refused",
				Why:  fmt.Sprintf("it has two UAM records of %s", sp.Attempt),
				Try:  "correct the request",
			}
		}
		n.uams[sp.Attempt.Application] = slices.Insert(list, i, sp)
	}
	for _, a := range s.Dropped {
		n.dropped[a.Application] = a.Attempt
	}
	for _, p := range s.Policies {
		n.policies[p.Queue] = append(n.policies[p.Queue], p)
	}
	if err := n.restoreDocuments(s.Documents); err != nil {
		return err
	}
	n.restored = t.restored + 1
	for _, l := range s.Leases {
		n.leases[l.Name] = l
	}
	for _, r := range s.Rings {
		n.rings[r.Name] = r.Keys
	}
	n.tokens.newest = s.NewestToken
	for _, k := range s.Tokens {
		if err := statestore.CheckToken(k, 0, 0); err != nil {
			return err
		}
		n.tokens.of[k.Number] = k
		n.tokens.newest = max(n.tokens.newest, k.Number)
	}
	for _, k := range s.Events {
		if _, err := statestore.ParseEvent(k.ID, k.Event); err != nil {
			return err
		}
	}
	n.events = s.Events
	*t = *n
	return nil
}

func checkPlaced(err error, home creel.SubclusterID) error {
	if err != nil {
		return err
	}
	return subcluster.ValidID(home)
}

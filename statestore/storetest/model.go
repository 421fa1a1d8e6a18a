// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/memory"
	"github.com/creelrm/creel/subcluster"
	"pgregory.net/rapid"
)

// Model sends the same random requests to a store and to the memory state, and expects the same answers. open returns
// an empty store for each run. Times to live are zero or very long, so that the two clocks may differ. Numbers derived
// from a clock (versions, tokens) are compared by the record they identify.
func Model(t *testing.T, open func() statestore.Store) {
	propertytest.Check(t, func(t *rapid.T) {
		m := &model{
			ctx:       context.Background(),
			store:     open(),
			reference: memory.New(memory.NewState("memory", Validate), time.Now),
			versions:  map[int64]int64{0: 0},
			documents: map[int64]int64{0: 0},
			leases:    []pair{{}},
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) { // reading everything after each step would be slow
				if rapid.IntRange(0, 7).Draw(t, "look") == 0 {
					m.check(t)
				}
			},
			"register":      m.register,
			"heartbeat":     m.heartbeat,
			"drain":         m.drain,
			"deregister":    m.deregister,
			"remove":        m.remove,
			"claim":         m.claim,
			"claimMore":     m.claim,
			"move":          m.move,
			"forget":        m.forget,
			"accept":        m.accept,
			"sweep":         m.sweep,
			"reservation":   m.reservation,
			"saveUAMRecord": m.saveUAMRecord,
			"dropUAMRecord": m.dropUAMRecord,
			"putPolicy":     m.putPolicy,
			"putDocument":   m.putDocument,
			"acquire":       m.acquire,
			"renew":         m.renew,
			"release":       m.release,
			"rotate":        m.rotate,
			"token":         m.token,
			"daemon":        m.daemon,
		})
		m.check(t)
	})
}

type pair struct{ store, reference statestore.Lease }

type model struct {
	ctx              context.Context
	store, reference statestore.Store
	versions         map[int64]int64 // the memory state's policy version -> the store's
	documents        map[int64]int64 // the same for documents
	leases           []pair          // all leases acquired so far; the first is the zero lease
}

var kinds = []error{
	creel.ErrApplicationNotFound,
	creel.ErrAttemptNotFound,
	creel.ErrConflict,
	creel.ErrStale,
	creel.ErrNotRegistered,
	creel.ErrInvalidRequest,
	creel.ErrUnavailable,
	creel.ErrNotPermitted,
}

// alike expects errors of the same kind.
func alike(t *rapid.T, what string, store, reference error) {
	t.Helper()
	if (store == nil) != (reference == nil) {
		t.Fatalf("%s: the store says %v, the memory state %v", what, store, reference)
	}
	for _, k := range kinds {
		if errors.Is(store, k) != errors.Is(reference, k) {
			t.Fatalf("%s: the store says %v, the memory state %v", what, store, reference)
		}
	}
}

func equal(t *rapid.T, what string, store, reference any) {
	t.Helper()
	if s, w := fmt.Sprintf("%+v", store), fmt.Sprintf("%+v", reference); s != w {
		t.Fatalf("%s: the store has %s, the memory state %s", what, s, w)
	}
}

func anyMember(t *rapid.T) creel.SubclusterID {
	return rapid.SampledFrom([]creel.SubclusterID{"sc-1", "sc-2", "sc-3"}).Draw(t, "member")
}

func anyApp(t *rapid.T) creel.ApplicationID {
	return App(rapid.SampledFrom([]int{1, 2, 65, 4097}).Draw(t, "application"))
}

func anyPlacement(t *rapid.T) []byte {
	return rapid.SampledFrom([][]byte{nil, []byte("a"), bytes.Repeat([]byte("b"), 300)}).Draw(t, "placement")
}

func anyTTL(t *rapid.T) time.Duration {
	return rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(t, "ttl")
}

// contexts puts the same lease (old, new or none) into the contexts of both stores.
func (m *model) contexts(t *rapid.T) (store, reference context.Context) {
	l := m.leases[0]
	if rapid.IntRange(0, 3).Draw(t, "fenced") == 0 {
		l = rapid.SampledFrom(m.leases).Draw(t, "lease")
	}
	if l.reference.Name == "" {
		return m.ctx, m.ctx
	}
	return statestore.Under(m.ctx, l.store), statestore.Under(m.ctx, l.reference)
}

func (m *model) register(t *rapid.T) {
	sc, tc := m.contexts(t)
	r := member(anyMember(t), rapid.Int64Range(0, 3).Draw(t, "epoch"))
	alike(t, "register", m.store.Register(sc, r), m.reference.Register(tc, r))
}

func (m *model) heartbeat(t *rapid.T) {
	sc, tc := m.contexts(t)
	b := subcluster.Heartbeat{ID: anyMember(t), Epoch: rapid.Int64Range(0, 3).Draw(t, "epoch")}
	if rapid.Bool().Draw(t, "loaded") {
		b.Load = fmt.Appendf(nil, `{"clusterMetrics":{"appsRunning":%d}}`, rapid.IntRange(0, 9).Draw(t, "running"))
	}
	alike(t, "heartbeat", m.store.Heartbeat(sc, b), m.reference.Heartbeat(tc, b))
}

func (m *model) drain(t *rapid.T) {
	sc, tc := m.contexts(t)
	id, reason := anyMember(t), rapid.SampledFrom([]string{"", "alice"}).Draw(t, "reason")
	alike(t, "drain", m.store.Drain(sc, id, reason), m.reference.Drain(tc, id, reason))
}

func (m *model) deregister(t *rapid.T) {
	sc, tc := m.contexts(t)
	id, epoch := anyMember(t), rapid.Int64Range(0, 3).Draw(t, "epoch")
	alike(t, "deregister", m.store.Deregister(sc, id, epoch), m.reference.Deregister(tc, id, epoch))
}

func (m *model) remove(t *rapid.T) {
	sc, tc := m.contexts(t)
	id := anyMember(t)
	alike(t, "remove", m.store.RemoveMember(sc, id), m.reference.RemoveMember(tc, id))
}

func (m *model) claim(t *rapid.T) {
	sc, tc := m.contexts(t)
	app, id, placement := anyApp(t), anyMember(t), anyPlacement(t)
	s, snumber, serr := m.store.Claim(sc, app, id, placement)
	w, wnumber, werr := m.reference.Claim(tc, app, id, placement)
	alike(t, "claim", serr, werr)
	equal(t, "claim", s, w)
	equal(t, "number", snumber, wnumber)
}

func (m *model) move(t *rapid.T) {
	sc, tc := m.contexts(t)
	app, from, to := anyApp(t), anyMember(t), anyMember(t)
	number := rapid.SampledFrom([]int64{0, 0, 1, 2, 3}).Draw(t, "number")
	placement := anyPlacement(t)
	s, serr := m.store.Move(sc, app, from, to, number, placement)
	w, werr := m.reference.Move(tc, app, from, to, number, placement)
	alike(t, "move", serr, werr)
	equal(t, "move", s, w)
}

func (m *model) forget(t *rapid.T) {
	sc, tc := m.contexts(t)
	app, id, ttl := anyApp(t), anyMember(t), anyTTL(t)
	alike(t, "forget", m.store.Forget(sc, app, id, ttl), m.reference.Forget(tc, app, id, ttl))
}

func (m *model) accept(t *rapid.T) {
	sc, tc := m.contexts(t)
	app, id, life := anyApp(t), anyMember(t), rapid.Int64Range(0, 3).Draw(t, "life")
	alike(t, "accept", m.store.Accept(sc, app, id, life), m.reference.Accept(tc, app, id, life))
}

func (m *model) sweep(t *rapid.T) {
	sc, tc := m.contexts(t)
	s, serr := m.store.Sweep(sc, 100)
	w, werr := m.reference.Sweep(tc, 100)
	alike(t, "sweep", serr, werr)
	equal(t, "sweep", s, w)
}

func (m *model) reservation(t *rapid.T) {
	sc, tc := m.contexts(t)
	id := creel.ReservationID{ClusterTimestamp: 1, ID: rapid.Int64Range(1, 2).Draw(t, "reservation")}
	a, b := anyMember(t), anyMember(t)
	store, reference := m.store.Reservations(), m.reference.Reservations()
	var s, w creel.SubclusterID
	var serr, werr error
	switch rapid.IntRange(0, 3).Draw(t, "request") {
	case 0:
		var snumber, wnumber int64
		s, snumber, serr = store.Claim(sc, id, a, nil)
		w, wnumber, werr = reference.Claim(tc, id, a, nil)
		equal(t, "number", snumber, wnumber)
	case 1:
		s, serr = store.Move(sc, id, a, b, 0, nil)
		w, werr = reference.Move(tc, id, a, b, 0, nil)
	case 2:
		s, serr = store.Home(sc, id)
		w, werr = reference.Home(tc, id)
	case 3:
		ttl := anyTTL(t)
		serr, werr = store.Forget(sc, id, a, ttl), reference.Forget(tc, id, a, ttl)
	}
	alike(t, "reservation", serr, werr)
	equal(t, "reservation", s, w)
}

func (m *model) saveUAMRecord(t *rapid.T) {
	sc, tc := m.contexts(t)
	sp := uamRecord(
		rapid.IntRange(1, 2).Draw(t, "application"),
		rapid.IntRange(1, 2).Draw(t, "attempt"),
		rapid.Int64Range(0, 3).Draw(t, "revision"),
		rapid.SampledFrom([]string{"launching", "running"}).Draw(t, "phase"),
	)
	s, serr := m.store.SaveUAMRecord(sc, sp)
	w, werr := m.reference.SaveUAMRecord(tc, sp)
	alike(t, "save", serr, werr)
	equal(t, "save", s, w)
}

func (m *model) dropUAMRecord(t *rapid.T) {
	sc, tc := m.contexts(t)
	a := Attempt(rapid.IntRange(1, 2).Draw(t, "application"), rapid.IntRange(1, 2).Draw(t, "attempt"))
	alike(t, "drop", m.store.DropUAMRecord(sc, a), m.reference.DropUAMRecord(tc, a))
}

func (m *model) putPolicy(t *rapid.T) {
	sc, tc := m.contexts(t)
	q := rapid.SampledFrom([]creel.QueuePath{"root", "root.a", "*"}).Draw(t, "queue")
	var known []int64
	for v := range m.versions {
		known = append(known, v)
	}
	slices.Sort(known)
	expect := rapid.SampledFrom(known).Draw(t, "expect")
	if h, err := m.reference.PolicyHistory(m.ctx, q, 0, 1); err == nil && len(h) > 0 && rapid.Bool().Draw(t, "right") {
		expect = h[0].Version
	}
	w := put(q, expect, rapid.SampledFrom([]string{"one", "two", "", "bad"}).Draw(t, "document"))
	if string(w.Document) == "bad" {
		// A write with a bad document and a lost lease may be rejected for either reason.
		sc, tc = m.ctx, m.ctx
	}
	tp, terr := m.reference.PutPolicy(tc, w)
	w.Expect = m.versions[expect]
	sp, serr := m.store.PutPolicy(sc, w)
	alike(t, "policy", serr, terr)
	if terr == nil {
		if before, seen := m.versions[tp.Version]; seen && before != sp.Version {
			t.Fatalf("a repeated policy write made version %d, before it was %d", sp.Version, before)
		}
		m.versions[tp.Version] = sp.Version
	}
}

func (m *model) acquire(t *rapid.T) {
	sc, tc := m.contexts(t)
	name, holder := rapid.SampledFrom([]string{"x", "y"}).
		Draw(t, "name"),
		rapid.SampledFrom([]string{"a", "b"}).
			Draw(t, "holder")
	s, serr := m.store.Acquire(sc, name, holder, time.Hour)
	w, werr := m.reference.Acquire(tc, name, holder, time.Hour)
	alike(t, "acquire", serr, werr)
	equal(t, "holder", s.Holder, w.Holder)
	if serr == nil {
		m.leases = append(m.leases, pair{s, w})
	}
}

func (m *model) renew(t *rapid.T) {
	l := rapid.SampledFrom(m.leases).Draw(t, "lease")
	if l.reference.Name == "" {
		return
	}
	s, serr := m.store.Renew(m.ctx, l.store, time.Hour)
	w, werr := m.reference.Renew(m.ctx, l.reference, time.Hour)
	alike(t, "renew", serr, werr)
	equal(t, "holder", s.Holder, w.Holder)
	if serr == nil && (s.Token != l.store.Token || w.Token != l.reference.Token) {
		t.Fatalf("renewing changed the token: %+v %+v", s, w)
	}
}

func (m *model) release(t *rapid.T) {
	l := rapid.SampledFrom(m.leases).Draw(t, "lease")
	if l.reference.Name == "" {
		return
	}
	alike(t, "release", m.store.Release(m.ctx, l.store), m.reference.Release(m.ctx, l.reference))
}

func (m *model) rotate(t *rapid.T) {
	sc, tc := m.contexts(t)
	expect, secret, keep := rapid.Int32Range(0, 3).
		Draw(t, "expect"),
		rapid.SampledFrom([]string{"s", "t"}).
			Draw(t, "secret"),
		anyTTL(
			t,
		)
	s, serr := m.store.RotateKey(sc, "ring", expect, []byte(secret), keep)
	w, werr := m.reference.RotateKey(tc, "ring", expect, []byte(secret), keep)
	alike(t, "rotate", serr, werr)
	equal(t, "key", s.ID, w.ID)
}

// check compares everything that can be read.
func (m *model) check(t *rapid.T) {
	get := func(s statestore.Store) string {
		var out []string
		say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
		r, err := s.Records(m.ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range r.Members {
			say("member %+v load %s drain %q gone %v", r.Member, r.Load, r.Draining, r.Deregistered)
		}
		for _, p := range r.Policies {
			say("policy %s %s %s %s", p.Queue, p.Document, p.Author, p.Comment)
		}
		out = append(out, m.documentLines(t, s)...)
		for _, q := range []creel.QueuePath{"root", "root.a", "*"} {
			h, err := s.PolicyHistory(m.ctx, q, 0, 100)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range h {
				say("history %s %s", p.Queue, p.Document)
			}
		}
		for _, id := range []creel.SubclusterID{"sc-1", "sc-2", "sc-3"} {
			var lines []string
			for cursor := ""; ; {
				page, next, err := s.HomesAt(m.ctx, id, cursor, 2)
				if err != nil {
					t.Fatal(err)
				}
				for _, h := range page {
					placement, err := s.Placement(m.ctx, h.ID)
					if err != nil {
						t.Fatal(err)
					}
					ended, err := s.Ended(m.ctx, h.ID)
					if err != nil {
						t.Fatal(err)
					}
					life, err := s.AcceptedIn(m.ctx, h.ID)
					if err != nil {
						t.Fatal(err)
					}
					lines = append(lines, fmt.Sprintf("%s %s %v %v %d %q",
						h.ID, h.Home, h.Ends.IsZero(), ended.IsZero(), life, placement))
				}
				if cursor = next; next == "" {
					break
				}
			}
			slices.Sort(lines)
			say("homes at %s: %s", id, lines)
			page, _, err := s.Reservations().HomesAt(m.ctx, id, "", 10)
			if err != nil {
				t.Fatal(err)
			}
			lines = nil
			for _, h := range page {
				lines = append(lines, fmt.Sprint(h.ID, h.Home, h.Ends.IsZero()))
			}
			slices.Sort(lines)
			say("reservations at %s: %s", id, lines)
		}
		for _, n := range []int{1, 2} {
			l, err := s.UAMRecordsOf(m.ctx, App(n))
			if err != nil {
				t.Fatal(err)
			}
			say("UAM records %+v", l)
		}
		for _, name := range []string{"x", "y"} {
			l, err := s.Holder(m.ctx, name)
			if err != nil {
				t.Fatal(err)
			}
			say("lease %s %s", name, l.Holder)
		}
		k, err := s.Keys(m.ctx, "ring")
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range k {
			say("key %d %s %v", k.ID, k.Secret, k.Expires.IsZero())
		}
		text := ""
		for _, l := range out {
			text += l + "\n"
		}
		return text
	}
	if s, w := get(m.store), get(m.reference); s != w {
		t.Fatalf("the stores differ; the store:\n%s\nthe memory state:\n%s", s, w)
	}
}

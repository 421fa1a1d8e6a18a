// SPDX-License-Identifier: Apache-2.0

package escrow

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"pgregory.net/rapid"
)

// usersWorld is one state of a small federation with a user limit: one user runs containers in its members, another
// could. It resembles the world of the explorer for queues, with the document of a queue's users in place of records.
type usersWorld struct {
	now, source, faults int
	version, formerAt   int
	record, former      *UsersRecord
	members             [3]usersMember
}

type usersMember struct {
	u          Users
	use, known int64 // of the user: containers that run, and that its ResourceManager knows of
	stage      stage
	asks       int
	sent       int
	req        *UsersRequest
	grant      UsersGrant
	w, ghost   usersWrite
	runs       time.Time // when the lease is over under which its containers were granted
}

type usersWrite struct {
	record          *UsersRecord
	version, source int
}

type usersExplorer struct {
	terms   Terms
	maximum int64
	ticks   int
	members []creel.SubclusterID
	path    []string
	next    []usersSuccessor
	seen    map[[2]uint64]struct{}
	seeds   [2]maphash.Seed
}

type usersSuccessor struct {
	world usersWorld
	label string
}

func newUsersExplorer(members, asks, faults, ticks int) (*usersExplorer, usersWorld) {
	e := &usersExplorer{
		terms: Terms{Lease: 3 * unit, Linger: unit, Margin: unit}, maximum: 4, ticks: ticks,
		seen: map[[2]uint64]struct{}{}, seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
	}
	w := usersWorld{faults: faults}
	for i := range members {
		id := creel.SubclusterID(fmt.Sprint("m", i))
		e.members = append(e.members, id)
		w.members[i] = usersMember{u: Users{ID: id, Epoch: 1, Terms: e.terms}, asks: asks}
	}
	return e, w
}

// standing lets the first members hold their even part of the limit for every user; then alice, if she is hot, holds
// all of the limit in the first.
func (e *usersExplorer) standing(w *usersWorld, members int, hot bool) {
	ask := func(i int, uses ...UserUse) {
		r := NewUsersRecord("root.a", mem(e.maximum), 1)
		if w.record != nil {
			r = w.record.clone()
		}
		r.Adopt(at(0), "0", e.members[:members], e.terms)
		q := w.members[i].u.Ask(at(0), uses)
		g, err := r.Ask(at(0), q, e.terms)
		if err != nil {
			panic(err)
		}
		w.members[i].u.Granted(at(0), g)
		w.record = r
	}
	for range 3 {
		for i := range members {
			ask(i)
		}
	}
	for range 3 {
		for i := range members {
			if hot && i == 0 {
				ask(i, UserUse{"alice", creel.Resource{}, mem(e.maximum)})
			} else if hot {
				ask(i)
			}
		}
	}
}

func (r *UsersRecord) clone() *UsersRecord {
	c := &UsersRecord{Each: r.Each.Clone()}
	for _, h := range r.Hot {
		c.Hot = append(c.Hot, HotUser{h.User, h.Clone()})
	}
	return c
}

func (u Users) clone() Users {
	hot := make(map[string]*hotUser, len(u.hot))
	for name, h := range u.hot {
		c := *h
		hot[name] = &c
	}
	u.hot = hot
	return u
}

func (x *usersMember) cap(now time.Time, user string) int64 {
	c, _ := x.u.Cap(now, user)
	return c.MemoryMB
}

func (e *usersExplorer) broken(w *usersWorld) string {
	for _, user := range []string{"alice", "bob"} {
		var caps, sum int64
		for i := range e.members {
			x := &w.members[i]
			c := x.cap(at(w.now), user)
			caps += c
			if user == "alice" {
				c = max(c, x.use)
			}
			sum += c
		}
		if caps > e.maximum || sum > e.maximum {
			text, _ := json.Marshal(w.record)
			return fmt.Sprintf("%s: caps sum to %d, caps and use to %d, above %d, after\n  %s\nrecord %s",
				user, caps, sum, e.maximum, strings.Join(e.path, "\n  "), text)
		}
	}
	return ""
}

func (e *usersExplorer) successors(w usersWorld) []usersSuccessor {
	e.next = nil
	for i := range e.members {
		e.member(w, i)
	}
	if w.faults > 0 {
		next := w
		next.faults--
		next.source++
		if w.version > 0 {
			next.record, next.version = w.former, w.formerAt
		}
		e.next = append(e.next, usersSuccessor{next, "the store fails over and loses the last write"})
		next = w
		next.faults--
		next.source++
		next.record, next.version, next.former, next.formerAt = nil, 0, nil, 0
		e.next = append(e.next, usersSuccessor{next, "the store is emptied"})
	}
	if w.now < e.ticks {
		w.now++
		for i := range e.members {
			x := &w.members[i]
			if !at(w.now).Before(x.runs.Add(e.terms.Margin + e.terms.Linger)) {
				x.use, x.known = 0, 0
			}
		}
		e.next = append(e.next, usersSuccessor{w, "a tick"})
	}
	return e.next
}

func (e *usersExplorer) member(w usersWorld, i int) {
	now, x := at(w.now), &w.members[i]
	do := func(label string, change func(w *usersWorld, x *usersMember)) {
		next := w
		change(&next, &next.members[i])
		e.next = append(e.next, usersSuccessor{next, fmt.Sprintf("m%d %s", i, label)})
	}
	if x.known < x.use {
		do("finds its containers", func(_ *usersWorld, x *usersMember) { x.known = x.use })
	} else {
		if c := x.cap(now, "alice"); x.use < c {
			do("fills alice's cap", func(_ *usersWorld, x *usersMember) {
				x.use, x.known = c, c
				_, x.runs = x.u.Cap(now, "alice")
			})
		}
		if x.use > 0 && x.stage == idle {
			do("ends its containers", func(_ *usersWorld, x *usersMember) { x.use, x.known = 0, 0 })
		}
	}
	switch x.stage {
	case idle:
		if x.asks == 0 {
			break
		}
		for _, needs := range []int64{0, e.maximum} {
			do(fmt.Sprint("asks for ", needs), func(w *usersWorld, x *usersMember) {
				var uses []UserUse
				if n := max(needs, x.known); n > 0 {
					uses = []UserUse{{"alice", mem(x.known), mem(n)}}
				}
				x.u = x.u.clone()
				x.req, x.sent, x.stage = x.u.Ask(now, uses), w.now, asked
				x.asks--
			})
		}
	case asked:
		do("reads", func(w *usersWorld, x *usersMember) {
			r := NewUsersRecord("root.a", mem(e.maximum), 1)
			if w.record != nil {
				r = w.record.clone()
			}
			r.Adopt(now, fmt.Sprint(w.source), e.members, e.terms)
			grant, err := r.Ask(now, x.req, e.terms)
			if err != nil {
				x.stage = idle
				return
			}
			x.grant, x.w, x.stage = grant, usersWrite{r, w.version, w.source}, decided
		})
	case decided:
		do("writes", func(w *usersWorld, x *usersMember) {
			if x.stage = idle; w.write(x.w) {
				x.stage = written
			}
			x.w = usersWrite{}
		})
		do("writes, but its answer is lost", func(_ *usersWorld, x *usersMember) {
			x.stage, x.ghost, x.w = idle, x.w, usersWrite{}
		})
	case written:
		do("is answered", func(_ *usersWorld, x *usersMember) {
			x.u = x.u.clone()
			x.u.Granted(at(x.sent), x.grant)
			x.stage = idle
			if _, ends := x.u.Cap(now, "alice"); x.use > 0 {
				x.runs = later(x.runs, ends)
			}
		})
		do("loses the answer", func(_ *usersWorld, x *usersMember) { x.stage = idle })
	}
	if x.ghost.record != nil {
		do("writes late", func(w *usersWorld, x *usersMember) {
			w.write(x.ghost)
			x.ghost = usersWrite{}
		})
	}
	if w.faults > 0 {
		do("restarts", func(w *usersWorld, x *usersMember) {
			w.faults--
			x.u = Users{ID: x.u.ID, Epoch: x.u.Epoch + 1, Terms: e.terms, Recover: now.Add(2 * unit)}
			if x.stage == decided {
				x.ghost = x.w
			}
			x.known, x.stage, x.w = 0, idle, usersWrite{}
		})
	}
}

func (w *usersWorld) write(c usersWrite) bool {
	if c.version != w.version || c.source != w.source {
		return false
	}
	w.former, w.formerAt = w.record, w.version
	w.record = c.record
	w.version++
	return true
}

// key identifies a state. It contains times as they are: exploration is short.
func (e *usersExplorer) key(w *usersWorld) (k [2]uint64) {
	b := make([]byte, 0, 2048)
	add := func(v ...any) { b = fmt.Appendln(b, v...) }
	record := func(r *UsersRecord) {
		if r == nil {
			add("none")
			return
		}
		one := func(r *Record) {
			add(r.Source, r.Awaited, r.Settled.Unix())
			for _, h := range r.Holders {
				add(h.Member, h.Epoch, h.Cap.MemoryMB, h.Over.MemoryMB, h.Needs.MemoryMB, h.Ends.Unix())
			}
		}
		one(r.Each)
		for _, h := range r.Hot {
			add(h.User)
			one(h.Record)
		}
	}
	write := func(c usersWrite) {
		switch {
		case c.record == nil:
			add("-")
		case c.version != w.version || c.source != w.source:
			add("fails")
		default:
			record(c.record)
		}
	}
	add(w.now, w.source, w.faults)
	record(w.record)
	if w.faults > 0 {
		record(w.former)
	}
	for i := range e.members {
		x := &w.members[i]
		add(x.use, x.known, x.stage, x.asks, x.runs.Unix(), x.u.Epoch, x.u.source, x.u.each.held.MemoryMB, x.u.each.ends.Unix())
		for _, name := range slices.Sorted(maps.Keys(x.u.hot)) {
			h := x.u.hot[name]
			add(name, h.held.MemoryMB, h.ends.Unix(), h.first, h.again, h.gone, h.leaves)
		}
		if x.stage != idle {
			add(x.sent, *x.req)
			add(x.grant.Each.Cap.MemoryMB, x.grant.Hot, len(x.grant.Users))
			for _, g := range x.grant.Users {
				add(g.Cap.MemoryMB)
			}
		}
		write(x.w)
		write(x.ghost)
	}
	return [2]uint64{maphash.Bytes(e.seeds[0], b), maphash.Bytes(e.seeds[1], b)}
}

// A user limit's document, in every order of messages, with a user that becomes hot and cools down.
func TestEveryOrderWithUsers(t *testing.T) {
	for _, c := range []struct {
		name                        string
		members, asks, fault, ticks int
		standing                    int
		hot                         bool
	}{
		{"from nothing", 2, 2, 0, 0, 0, false},
		{"a user becomes hot", 2, 2, 0, 1, 2, false},
		{"and a fault", 2, 1, 1, 1, 2, false},
		{"a hot user and a fault", 2, 1, 1, 0, 2, true},
		{"a hot user and time", 2, 1, 0, 5, 2, true},
		{"another member comes", 3, 1, 0, 1, 2, false},
		{"three members, as far as it goes", 3, 3, 1, 2, 3, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, w := newUsersExplorer(c.members, c.asks, c.fault, c.ticks)
			e.standing(&w, c.standing, c.hot)
			e.explore(t, w)
			t.Logf("%d states", len(e.seen))
			if len(e.seen) >= maxStates/20 {
				t.Logf("cut off: not all states were visited")
			}
		})
	}
}

// explore visits all states that can be reached from w; each costs several times a state of a queue.
func (e *usersExplorer) explore(t *testing.T, w usersWorld) {
	k := e.key(&w)
	if _, old := e.seen[k]; old || len(e.seen) >= maxStates/20 {
		return
	}
	e.seen[k] = struct{}{}
	if why := e.broken(&w); why != "" {
		t.Fatal(why)
	}
	for _, n := range e.successors(w) {
		e.path = append(e.path, n.label)
		e.explore(t, n.world)
		e.path = e.path[:len(e.path)-1]
	}
}

// Long walks through many leases and faults, with a limit of any size, also of less than a
// part for each member.
func TestLongWalksWithUsers(t *testing.T) {
	const pause = 12 // ticks from a fault to the next: all has settled
	propertytest.Check(t, func(t *rapid.T) {
		e, w := newUsersExplorer(3, 1<<30, 1, 1<<30)
		e.maximum = rapid.Int64Range(1, 9).Draw(t, "maximum")
		e.standing(&w, rapid.IntRange(0, 3).Draw(t, "members that hold parts"), rapid.Bool().Draw(t, "hot"))
		last := 0
		for range rapid.IntRange(1, 400).Draw(t, "steps") {
			before := w.faults
			list := e.successors(w)
			n := list[rapid.IntRange(0, len(list)-1).Draw(t, "next")]
			e.path = append(e.path, n.label)
			if w = n.world; w.faults < before {
				last = w.now
			}
			if w.faults == 0 && w.now-last > pause {
				w.faults = 1
			}
			if why := e.broken(&w); why != "" {
				t.Fatal(why)
			}
		}
	})
}

// A restarted member has not found yet which containers a user runs there under its part of Each. A user who became
// hot while it was away has a record without them. Other members are granted the rest without that part until the
// member has found its containers, and everything if it finds none.
func TestUnrecoveredUseCountsForNewlyHotUser(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	terms := DefaultTerms()
	limit := creel.NewResource(18<<10, 18)
	r := NewUsersRecord("root.a", limit, 1)
	r.Adopt(now, "s", nil, terms)
	members := map[creel.SubclusterID]*Users{"sc-1": {Terms: terms}, "sc-2": {Terms: terms}, "sc-3": {Terms: terms}}
	for id, u := range members {
		u.ID, u.Epoch = id, 1
	}
	ask := func(id creel.SubclusterID, uses ...UserUse) {
		t.Helper()
		for again := true; again; {
			g, err := r.Ask(now, members[id].Ask(now, uses), terms)
			if err != nil {
				t.Fatal(err)
			}
			again = members[id].Granted(now, g)
		}
	}
	wants := UserUse{User: "u", Needs: limit}
	for range 3 {
		for _, id := range []creel.SubclusterID{"sc-1", "sc-2", "sc-3"} {
			ask(id) // each has its part, and sc-1 lets the user run a container by it
		}
	}
	now = now.Add(time.Second)
	ask("sc-2", wants)
	ask("sc-3", wants)
	members["sc-1"] = &Users{ID: "sc-1", Epoch: 2, Terms: terms, Recover: now.Add(time.Minute)}
	ask("sc-1") // it has not found the container
	others := func() (sum creel.Resource) {
		for range 4 {
			now = now.Add(time.Second)
			ask("sc-1")
			ask("sc-2", wants)
			ask("sc-3", wants)
		}
		for _, id := range []creel.SubclusterID{"sc-2", "sc-3"} {
			c, _ := members[id].Cap(now, "u")
			sum = sum.Add(c)
		}
		return sum
	}
	if sum, left := others(), creel.NewResource(12<<10, 12); !sum.Fits(left) {
		t.Errorf("others are given %s where the member may run %s of %s", sum, limit.Sub(left), limit)
	}
	now = now.Add(time.Minute)
	if sum := others(); !sum.Equal(limit) {
		t.Errorf("nothing runs there, and others are given %s of %s", sum, limit)
	}
}

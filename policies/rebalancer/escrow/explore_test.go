// SPDX-License-Identifier: Apache-2.0

package escrow

import (
	"fmt"
	"hash/maphash"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"pgregory.net/rapid"
)

// The checker explores every order of events in a small federation: members ask, records are read, written, written
// late or twice, answers arrive or are lost, leases expire, members restart, the store fails over or is emptied,
// leaders publish shares, also deposed ones. It runs the production code of both sides; only the driver between them
// is modelled.

const unit = time.Second

// world is one state. Copying it copies everything that changes in place:
// records are cloned before they are written.
type world struct {
	now    int // ticks
	source int
	faults int // left
	queues [2]queueWorld
}

type queueWorld struct {
	version  int
	record   *Record // nil: there is none
	former   *Record // before the last write, restored by a failover
	formerAt int
	members  [3]memberWorld
	leaders  [2]write // writes that leaders are about to make, also deposed ones
	plans    int      // leaders' turns left
}

type stage uint8

const (
	idle stage = iota
	asked
	decided
	written
)

type memberWorld struct {
	m     Member
	use   int64 // containers that run
	known int64 // of them, that the ResourceManager knows of: fewer while it recovers
	stage stage
	req   Request
	sent  int
	w     write
	grant Grant
	ghost write // a write without a known outcome: it may still happen
	asks  int   // asks left
	// For a member whose cap is a setting of its ResourceManager.
	hadoop  bool
	s       Standing
	floor   int64 // the lowest possible setting
	set     int64 // in force
	put     change
	latePut change // one without an answer; it may still take effect
}

// change is a change of a setting, under way until a tick.
type change struct {
	to    int64
	until int // 0: there is none
}

// cap returns the cap in force.
func (x *memberWorld) cap(now time.Time) int64 {
	if x.hadoop {
		return x.set
	}
	return x.m.Cap(now).MemoryMB
}

// write is a compare-and-set under way.
type write struct {
	record  *Record
	version int
	source  int
}

type explorer struct {
	t       *testing.T
	terms   Terms
	maximum int64
	queues  int
	ticks   int
	seen    map[[2]uint64]struct{}
	seeds   [2]maphash.Seed
	path    []string
	limit   int
	shares  bool
	members []creel.SubclusterID
	// standing are the members whose caps are settings.
	standing []creel.SubclusterID
	next     []successor
}

func at(tick int) time.Time { return time.Unix(1000, 0).Add(time.Duration(tick) * unit) }

func mem(n int64) creel.Resource { return creel.Resource{MemoryMB: n} }

// explore visits all states that can be reached from w.
func (e *explorer) explore(w world) {
	k := e.key(&w)
	if _, old := e.seen[k]; old || len(e.seen) >= e.limit {
		return
	}
	e.seen[k] = struct{}{}
	e.check(&w)
	for _, n := range e.successors(w) {
		if e.t.Failed() {
			return
		}
		e.path = append(e.path, n.label)
		e.explore(n.world)
		e.path = e.path[:len(e.path)-1]
	}
}

// successors are all states that one thing more can lead to.
func (e *explorer) successors(w world) []successor {
	e.next = nil
	for q := range e.queues {
		for m := range e.members {
			e.member(w, q, m)
		}
		e.leader(w, q)
	}
	e.store(w)
	e.tick(w)
	return e.next
}

type successor struct {
	world world
	label string
}

func (e *explorer) step(w world, label string) { e.next = append(e.next, successor{w, label}) }

// check requires the caps in force, or the use above them, to be within the maximum.
func (e *explorer) check(w *world) {
	if why := e.broken(w); why != "" {
		e.t.Fatal(why)
	}
}

func (e *explorer) broken(w *world) string {
	for i := range e.queues {
		var caps, sum int64
		for j := range w.queues[i].members {
			x := &w.queues[i].members[j]
			c := x.cap(at(w.now))
			caps += c
			sum += max(c, x.use)
		}
		if caps > e.maximum || sum > e.maximum {
			return fmt.Sprintf("queue %d: caps sum to %d, caps and use to %d, above %d, after\n  %s\nrecord %+v",
				i, caps, sum, e.maximum, strings.Join(e.path, "\n  "), w.queues[i].record)
		}
	}
	return ""
}

// member is all that one member can do or suffer next.
func (e *explorer) member(w world, qi, mi int) {
	name := fmt.Sprintf("q%d m%d ", qi, mi)
	now := at(w.now)
	x := &w.queues[qi].members[mi]
	do := func(label string, change func(w *world, q *queueWorld, x *memberWorld)) {
		next := w
		change(&next, &next.queues[qi], &next.queues[qi].members[mi])
		e.step(next, name+label)
	}
	if x.known < x.use {
		do("finds its containers", func(_ *world, _ *queueWorld, x *memberWorld) { x.known = x.use })
	} else {
		if x.use < x.cap(now) { // all at once: smaller amounts are covered by other orders
			do("fills its cap", func(_ *world, _ *queueWorld, x *memberWorld) {
				x.use = x.cap(now)
				x.known = x.use
			})
		}
		if x.use > 0 && x.stage == idle { // its use matters when it asks
			do("ends its containers", func(_ *world, _ *queueWorld, x *memberWorld) { x.use, x.known = 0, 0 })
		}
	}
	switch x.stage {
	case idle:
		if x.asks == 0 || x.put.until > 0 {
			break
		}
		for _, needs := range []int64{0, e.maximum} {
			do(fmt.Sprint("asks for ", needs), func(w *world, _ *queueWorld, x *memberWorld) {
				if x.sent, x.stage = w.now, asked; x.hadoop {
					x.s.Seen(mem(x.set))
					x.req = x.s.Ask(now, mem(x.known), mem(needs))
				} else {
					x.req = x.m.Ask(now, mem(x.known), mem(needs))
				}
				x.asks--
			})
		}
	case asked:
		do("reads", func(w *world, q *queueWorld, x *memberWorld) {
			r := e.read(w, q)
			grant, err := r.Ask(now, x.req, e.terms)
			if err != nil {
				x.stage = idle
				return
			}
			x.grant, x.w, x.stage = grant, write{r, q.version, w.source}, decided
		})
	case decided:
		do("writes", func(w *world, q *queueWorld, x *memberWorld) {
			x.stage = idle
			if q.write(w, x.w) {
				x.stage = written
			}
			x.w = write{}
		})
		do("writes, but its answer is lost", func(w *world, q *queueWorld, x *memberWorld) {
			x.stage, x.ghost, x.w = idle, x.w, write{}
		})
	case written:
		do("is answered", func(_ *world, _ *queueWorld, x *memberWorld) {
			if x.hadoop {
				x.s.Granted(x.grant)
				if to, due := x.s.Change(); due {
					x.put = change{max(to.MemoryMB, x.floor), 1 << 20}
				}
			} else {
				x.m.Granted(at(x.sent), x.grant)
			}
			x.stage, x.grant, x.req = idle, Grant{}, Request{}
		})
		do("loses the answer", func(_ *world, _ *queueWorld, x *memberWorld) {
			x.stage, x.grant, x.req = idle, Grant{}, Request{}
		})
	}
	if x.put.until > 0 {
		do("has its setting changed", func(_ *world, _ *queueWorld, x *memberWorld) {
			x.set = x.put.to
			x.s.Changed(now, mem(x.put.to), true)
			x.put = change{}
		})
		do("has no answer to a change of its setting", func(w *world, _ *queueWorld, x *memberWorld) {
			x.s.Changed(now, mem(x.put.to), false)
			x.latePut, x.put = change{x.put.to, w.now + int(x.s.Late/unit)}, change{}
		})
	}
	if x.latePut.until > 0 {
		do("has its setting changed late", func(_ *world, _ *queueWorld, x *memberWorld) {
			x.set, x.latePut = x.latePut.to, change{}
		})
	}
	if x.ghost.record != nil {
		do("writes late", func(w *world, q *queueWorld, x *memberWorld) {
			q.write(w, x.ghost)
			x.ghost = write{}
		})
	}
	if w.faults > 0 {
		do("restarts", func(w *world, _ *queueWorld, x *memberWorld) {
			w.faults--
			if x.hadoop {
				fixed := x.s.Fixed
				x.s = Standing{ID: x.s.ID, Epoch: x.s.Epoch + 1, Late: x.s.Late, Recover: now.Add(x.s.Late), Fixed: fixed}
				if x.put.until > 0 {
					x.latePut, x.put = change{x.put.to, w.now + int(x.s.Late/unit)}, change{}
				}
			} else {
				x.m = Member{ID: x.m.ID, Epoch: x.m.Epoch + 1, Terms: e.terms, Recover: now.Add(2 * unit)}
			}
			if x.stage == decided {
				x.ghost = x.w
			}
			x.known, x.stage, x.w, x.grant, x.req = 0, idle, write{}, Grant{}, Request{}
			if x.hadoop {
				x.known = x.use // the ResourceManager itself runs on
			}
		})
	}
}

// read returns the record as one just read.
func (e *explorer) read(w *world, q *queueWorld) *Record {
	now, source := at(w.now), fmt.Sprint(w.source)
	r := NewRecord("root.a", mem(e.maximum), 1)
	if q.record != nil {
		r = q.record.Clone()
	}
	r.Adopt(now, source, e.members, e.standing, e.terms)
	return r
}

// write is the store's compare-and-set.
func (q *queueWorld) write(w *world, c write) bool {
	if c.version != q.version || c.source != w.source {
		return false
	}
	q.former, q.formerAt = q.record, q.version
	q.record = c.record
	q.version++
	return true
}

// leader reads a record and writes shares into it; another may do so meanwhile.
func (e *explorer) leader(w world, qi int) {
	if !e.shares || w.queues[qi].record == nil {
		return
	}
	for li := range w.queues[qi].leaders {
		next := w
		q := &next.queues[qi]
		if l := q.leaders[li]; l.record != nil {
			q.write(&next, l)
			q.leaders[li] = write{}
			e.step(next, fmt.Sprintf("q%d leader %d writes", qi, li))
		} else if q.plans > 0 {
			q.plans--
			r := e.read(&next, q)
			r.Plan(map[creel.SubclusterID]creel.Resource{"m0": mem(int64(li)), "m1": mem(e.maximum)})
			q.leaders[li] = write{r, q.version, next.source}
			e.step(next, fmt.Sprintf("q%d leader %d plans", qi, li))
		}
	}
}

// store fails over, losing the last write of a record, or is emptied.
func (e *explorer) store(w world) {
	if w.faults == 0 {
		return
	}
	next := w
	next.faults--
	next.source++
	for i := range e.queues {
		q := &next.queues[i]
		if q.version > 0 {
			q.record, q.version = q.former, q.formerAt // pending writes fail: the source is another
		}
	}
	e.step(next, "the store fails over and loses the last write")
	next = w
	next.faults--
	next.source++
	for i := range e.queues {
		q := &next.queues[i]
		q.record, q.version, q.former, q.formerAt = nil, 0, nil, 0
	}
	e.step(next, "the store is emptied")
}

// tick advances the time by a unit. Containers of a member whose lease ended Linger ago have completed.
func (e *explorer) tick(w world) {
	if w.now >= e.ticks {
		return
	}
	w.now++
	for i := range e.queues {
		for j := range w.queues[i].members {
			x := &w.queues[i].members[j]
			if x.latePut.until > 0 && w.now >= x.latePut.until {
				x.latePut = change{} // it was lost
			}
			if !x.hadoop && !at(w.now).Before(x.m.Ends().Add(e.terms.Margin+e.terms.Linger)) {
				x.use, x.known = 0, 0
			}
		}
	}
	e.step(w, "a tick")
}

// key identifies a state by the parts that can still matter: times by their distance from now, versions by whether a
// write under way can succeed.
func (e *explorer) key(w *world) (k [2]uint64) {
	var buf [1024]byte
	b := append(buf[:0], byte(w.now), byte(w.faults))
	amount := func(r creel.Resource) { b = append(b, byte(r.MemoryMB)) }
	when := func(t time.Time, matters time.Duration) {
		b = append(b, byte(max(t.Sub(at(w.now))+matters, 0)/unit))
	}
	record := func(r *Record) {
		if r == nil {
			b = append(b, 255)
			return
		}
		current := r.Source == fmt.Sprint(w.source)
		for _, m := range r.Awaited {
			if current && at(w.now).Before(r.Settled) {
				b = append(b, 'w', m[1])
			}
		}
		for _, m := range r.AwaitedStanding {
			b = append(b, 'W', m[1])
		}
		if b = append(b, 254); current {
			b = append(b, 253)
		}
		when(r.Settled, 0)
		b = append(b, byte(len(r.Holders)))
		for i := range r.Holders {
			h := &r.Holders[i]
			b = append(b, h.Member[1], byte(h.Epoch))
			amount(h.Cap)
			amount(h.Over)
			amount(h.Needs)
			amount(h.Share)
			when(h.Ends, e.terms.Linger)
		}
	}
	for i := range e.queues {
		q := &w.queues[i]
		under := func(c write) {
			if c.record == nil {
				b = append(b, 252)
			} else if c.version != q.version || c.source != w.source {
				b = append(b, 251) // it can only fail
			} else {
				record(c.record)
			}
		}
		b = append(b, byte(q.plans))
		record(q.record)
		if w.faults > 0 {
			record(q.former)
		}
		under(q.leaders[0])
		under(q.leaders[1])
		for j := range q.members {
			x := &q.members[j]
			b = append(b, byte(x.m.Epoch), byte(x.use), byte(x.known), byte(x.stage), byte(x.asks))
			if x.hadoop {
				b = append(b, byte(x.set), byte(x.put.to), byte(x.latePut.to), byte(max(0, x.latePut.until-w.now)), byte(x.s.Epoch))
				if x.put.until > 0 {
					b = append(b, 'p')
				}
				if x.s.given {
					b = append(b, 'g')
				}
				amount(x.s.limit)
				amount(x.s.late)
				amount(x.s.target)
				when(x.s.until, 0)
				when(x.s.Recover, 0)
			}
			amount(x.m.Cap(at(w.now)))
			when(x.m.ends, e.terms.Margin+e.terms.Linger)
			when(x.m.Recover, 0)
			if x.stage != idle {
				b = append(b, byte(w.now-x.sent))
				amount(x.req.Holds)
				amount(x.req.Uses)
				amount(x.req.Needs)
				amount(x.grant.Cap)
				if x.req.Recovering {
					b = append(b, 1)
				}
			}
			under(x.w)
			under(x.ghost)
		}
	}
	return [2]uint64{maphash.Bytes(e.seeds[0], b), maphash.Bytes(e.seeds[1], b)}
}

func TestEveryOrderOfMessages(t *testing.T) {
	for _, c := range []struct {
		name                              string
		queues, ticks, asks, plans, fault int
		members                           int
	}{
		{"three members", 1, 1, 1, 0, 0, 3},
		{"two members", 1, 4, 1, 0, 0, 2},
		{"two members that ask twice", 1, 1, 2, 0, 0, 2},
		{"two members and a fault", 1, 4, 1, 0, 1, 2},
		{"leaders, also deposed ones", 1, 2, 1, 1, 1, 2},
		{"two queues, two members", 2, 0, 1, 0, 0, 2},
		{"two queues, three members and a fault, as far as it goes", 2, 4, 1, 1, 1, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, w := newExplorer(t, c.queues, c.members, c.asks, c.plans, c.fault)
			e.ticks = c.ticks
			e.explore(w)
			t.Logf("%d states", len(e.seen))
			if len(e.seen) >= e.limit {
				t.Logf("cut off: not all states were visited")
			}
		})
	}
}

// newExplorer makes the first state: records exist and are settled, as most of the time.
func newExplorer(t *testing.T, queues, members, asks, plans, faults int) (*explorer, world) {
	e := &explorer{
		t: t, terms: Terms{Lease: 3 * unit, Linger: unit, Margin: unit}, maximum: 4, queues: queues,
		seen: map[[2]uint64]struct{}{}, seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		limit: maxStates, shares: plans > 0,
	}
	for j := range members {
		e.members = append(e.members, creel.SubclusterID(fmt.Sprint("m", j)))
	}
	w := world{faults: faults}
	for i := range queues {
		q := &w.queues[i]
		q.plans = plans
		q.record = NewRecord("root.a", mem(e.maximum), 1)
		q.record.Source = "0"
		for j, id := range e.members {
			q.members[j].m = Member{ID: id, Epoch: 1, Terms: e.terms}
			q.members[j].asks = asks
		}
	}
	return e, w
}

// asSettings makes members whose caps are settings: one that can be changed, but not below floor, and one that cannot
// and is at fixed.
func (e *explorer) asSettings(w *world, floor, fixed int64) {
	e.standing = e.members[:1]
	if fixed >= 0 {
		e.standing = e.members[:2]
	}
	for i := range e.queues {
		q := &w.queues[i]
		for j, id := range e.standing {
			x := &q.members[j]
			x.hadoop, x.floor, x.set = true, floor, floor
			x.s = Standing{ID: id, Epoch: 1, Late: 2 * unit}
			if j == 1 {
				x.floor, x.set, x.s.Fixed = fixed, fixed, true
			}
		}
		q.record.AwaitedStanding = e.standing
	}
}

// Members whose caps are settings of ResourceManagers without leases: slow to apply them, not below their guarantees,
// or not at all.
func TestEveryOrderWithSettings(t *testing.T) {
	for _, c := range []struct {
		name                        string
		ticks, asks, fault, members int
		floor, fixed                int64
	}{
		{"one that can be changed", 3, 2, 0, 2, 0, -1},
		{"one that is never below its guarantee", 2, 2, 0, 2, 1, -1},
		{"and a fault", 3, 1, 1, 2, 1, -1},
		{"one that cannot be changed", 2, 1, 0, 3, 1, 2},
		{"and a fault, as far as it goes", 3, 2, 1, 3, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, w := newExplorer(t, 1, c.members, c.asks, 0, c.fault)
			e.ticks = c.ticks
			e.asSettings(&w, c.floor, c.fixed)
			e.explore(w)
			t.Logf("%d states", len(e.seen))
		})
	}
}

// Long walks go where the explorer does not reach: through hundreds of leases
// and many faults, one after the other.
func TestLongWalks(t *testing.T) {
	const pause = 12 // ticks from a fault to the next: all has settled
	propertytest.Check(t, func(t *rapid.T) {
		e, w := newExplorer(nil, 1, 3, 1<<30, 1<<30, 1)
		e.ticks, e.maximum = 1<<30, rapid.Int64Range(1, 9).Draw(t, "maximum")
		w.queues[0].record.Maximum = mem(e.maximum)
		if rapid.Bool().Draw(t, "settings") {
			fixed := rapid.Int64Range(-1, e.maximum/2).Draw(t, "fixed")
			e.asSettings(&w, rapid.Int64Range(0, e.maximum/2).Draw(t, "floor"), fixed)
		}
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

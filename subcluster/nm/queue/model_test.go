// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
)

// model is the scheduler by its rules: a list of containers in no order, and stamps for order. Nothing is remembered
// that can be counted.
type model struct {
	cfg   Config
	total creel.Resource
	clock int
	all   []*record
}

type record struct {
	item                     *Item
	size                     creel.Resource
	opportunistic            bool
	queued, started          int // stamps, 0 if it does not wait or run
	paused, stopping, urgent bool
}

func (m *model) stamp() int { m.clock++; return m.clock }

// waiting lists a queue by stamp.
func (m *model) waiting(opportunistic bool) (out []*record) {
	for _, r := range m.all {
		if r.queued > 0 && r.opportunistic == opportunistic {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b *record) int { return a.queued - b.queued })
	return out
}

// started lists what runs, the last started first.
func (m *model) started() (out []*record) {
	for _, r := range m.all {
		if r.started > 0 {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b *record) int { return b.started - a.started })
	return out
}

func sum(list []*record) (out creel.Resource) {
	for _, r := range list {
		out = out.Add(r.size)
	}
	return out
}

func (m *model) fits(size creel.Resource) bool { return sum(m.started()).Add(size).Fits(m.total) }

func (m *model) arrive(r *record) bool {
	if r.opportunistic {
		w := m.waiting(true)
		switch {
		case m.cfg.Policy == ByResources && !m.fits(sum(w).Add(r.size)):
			return false
		case m.cfg.Policy == ByLength && len(w) >= m.cfg.Length:
			return false
		}
	}
	r.queued, r.urgent = m.stamp(), true
	m.all = append(m.all, r)
	return true
}

func (m *model) shed(n int) (gone []*record) {
	w := m.waiting(true)
	if n < 0 || n >= len(w) {
		return nil
	}
	w = slices.DeleteFunc(w, func(r *record) bool { return r.paused })
	if n < len(w) {
		gone = w[n:]
	}
	return gone
}

func (m *model) settle() (out []string) {
	force := m.cfg.Policy == ByResources || m.cfg.Length <= 0
	blocked := false
	for _, opportunistic := range []bool{false, true} {
		for _, r := range m.waiting(opportunistic) {
			if blocked = blocked || !(force && !opportunistic) && !m.fits(r.size); blocked {
				break
			}
			verb := Start
			if r.paused {
				verb = Resume
			}
			out = append(out, fmt.Sprint(verb, r.item.ID.ID))
			r.queued, r.paused, r.started = 0, false, m.stamp()
		}
	}
	for _, g := range m.waiting(false) {
		if g.urgent {
			out = append(out, m.reclaim(g)...)
		}
	}
	for _, r := range m.all {
		r.urgent = false
	}
	return out
}

func (m *model) reclaim(g *record) (out []string) {
	verb := Kill
	if m.cfg.Pause {
		verb = Pause
	}
	enough := func() bool {
		need := creel.Resource{}
		for _, r := range m.waiting(false) {
			if r.queued <= g.queued {
				need = need.Add(r.size)
			}
		}
		for _, r := range m.started() {
			if !r.stopping {
				need = need.Add(r.size)
			}
		}
		return need.Fits(m.total)
	}
	for _, r := range m.started() {
		if r.opportunistic && !r.stopping && !enough() {
			r.stopping = true
			out = append(out, fmt.Sprint(verb, r.item.ID.ID))
		}
	}
	return out
}

var drawnTotal = creel.NewResource(12, 8)

func drawSize(t *rapid.T) creel.Resource {
	return creel.NewResource(rapid.Int64Range(1, 6).Draw(t, "mb"), rapid.Int64Range(0, 3).Draw(t, "cores"))
}

// Each event leads to the decisions of the model.
func TestSchedulerEqualsItsModel(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		cfg := Config{
			Length: rapid.IntRange(0, 4).Draw(t, "length"),
			Policy: Policy(rapid.IntRange(0, 1).Draw(t, "policy")),
			Pause:  rapid.Bool().Draw(t, "pause"),
		}
		s, m := New(cfg, drawnTotal), &model{cfg: cfg, total: drawnTotal}
		for step := range rapid.IntRange(1, 60).Draw(t, "steps") {
			play(t, s, m, int64(step+1))
			compare(t, s, m)
		}
	})
}

// play applies one drawn event to both.
func play(t *rapid.T, s *Scheduler, m *model, id int64) {
	kind := rapid.IntRange(0, 9).Draw(t, "kind")
	if kind <= 3 || len(m.all) == 0 {
		x := &Item{ID: creel.ContainerID{ID: id}, Size: drawSize(t), Opportunistic: rapid.Bool().Draw(t, "opportunistic")}
		r := &record{item: x, size: x.Size, opportunistic: x.Opportunistic}
		if got, want := s.Arrive(x), m.arrive(r); got != want {
			t.Fatalf("container %d accepted: %v, want %v", id, got, want)
		}
		return
	}
	i := rapid.IntRange(0, len(m.all)-1).Draw(t, "which")
	r := m.all[i]
	switch kind {
	case 4, 5:
		s.Remove(r.item)
		m.all = slices.Delete(m.all, i, i+1)
	case 6:
		s.Paused(r.item)
		if r.started > 0 {
			r.started, r.queued, r.paused, r.stopping, r.urgent = 0, m.stamp(), true, false, true
		}
	case 7:
		r.size = drawSize(t)
		s.Resize(r.item, r.size)
	case 8:
		s.Retype(r.item, !r.opportunistic)
		if r.opportunistic = !r.opportunistic; r.queued > 0 {
			r.queued, r.urgent = m.stamp(), true
		}
	case 9:
		if rapid.Bool().Draw(t, "total") {
			m.total = creel.NewResource(rapid.Int64Range(4, 20).Draw(t, "total mb"), 8)
			s.SetTotal(m.total)
			return
		}
		n := rapid.IntRange(-1, 3).Draw(t, "limit")
		want := m.shed(n)
		for j, x := range s.Shed(n) {
			if j >= len(want) || want[j].item != x {
				t.Fatalf("limit %d removes %d as number %d", n, x.ID.ID, j)
			}
			m.all = slices.DeleteFunc(m.all, func(r *record) bool { return r.item == x })
		}
	}
}

func compare(t *rapid.T, s *Scheduler, m *model) {
	var got []string
	for _, d := range s.Settle() {
		got = append(got, fmt.Sprint(d.Verb, d.Item.ID.ID))
	}
	if want := m.settle(); !slices.Equal(got, want) {
		t.Fatalf("decisions %v, want %v", got, want)
	}
	if again := s.Settle(); len(again) > 0 {
		t.Fatalf("a second time %v", again)
	}
	want := Status{Queued: len(m.waiting(true)), Capacity: m.cfg.Length}
	if m.cfg.Policy == ByResources {
		want.Capacity = 0
	}
	want.Waiting = want.Queued + len(m.waiting(false))
	var idle creel.Resource
	for _, r := range m.all {
		switch {
		case r.started > 0 && r.opportunistic:
			want.Running++
			want.Used = want.Used.Add(r.size)
		case r.queued > 0 && !r.paused:
			idle = idle.Add(r.size)
		}
		if r.item.Waiting() != (r.queued > 0) {
			t.Fatalf("container %d waits: %v", r.item.ID.ID, r.item.Waiting())
		}
	}
	if got := s.Status(); got.Running != want.Running || !got.Used.Equal(want.Used) || got.Queued != want.Queued ||
		got.Waiting != want.Waiting || got.Capacity != want.Capacity {
		t.Fatalf("status %+v, want %+v", got, want)
	}
	if got := s.Idle(); !got.Equal(idle) {
		t.Fatalf("idle %v, want %v", got, idle)
	}
}

func TestConfigWithoutQueueIsDisabled(t *testing.T) {
	for _, c := range []struct {
		cfg      Config
		enabled  bool
		capacity int
	}{
		{Config{}, false, 0},
		{Config{Length: -1}, false, 0},
		{Config{Length: 3}, true, 3},
		{Config{Length: 3, Policy: ByResources}, true, 0},
	} {
		if c.cfg.Enabled() != c.enabled || c.cfg.Capacity() != c.capacity {
			t.Errorf("%+v: enabled %v, capacity %d", c.cfg, c.cfg.Enabled(), c.cfg.Capacity())
		}
	}
}

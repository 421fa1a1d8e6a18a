// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/router/history"
)

var began = time.Date(2026, 11, 29, 6, 0, 7, 0, time.UTC)

// model has all figures that were ever recorded, by step. It computes each minute when it is asked.
type model map[history.Subject]map[int64]history.Values

func (m model) minute(s history.Subject, of history.Measure, minute int64) float32 {
	var all []float64
	for step := 12 * minute; step < 12*minute+12; step++ {
		if v, ok := m[s][step]; ok && !math.IsNaN(float64(v[of])) {
			all = append(all, float64(v[of]))
		}
	}
	if len(all) == 0 {
		return float32(math.NaN())
	}
	sum, most := 0.0, 0.0
	for _, v := range all {
		sum, most = sum+v, max(most, v)
	}
	switch of {
	case history.Grants, history.Submissions:
		return float32(sum)
	case history.GrantP99:
		return float32(most)
	}
	return float32(sum / float64(len(all)))
}

func (m model) step(s history.Subject, of history.Measure, step int64) float32 {
	if v, ok := m[s][step]; ok {
		return v[of]
	}
	return float32(math.NaN())
}

var subjects = []history.Subject{{}, {Kind: history.Member, Name: "a"}, {Kind: history.Queue, Name: "root.a"}}

// drawn returns figures, of which some are unknown.
func drawn(rnd *rand.Rand) history.Values {
	v := history.Unknown()
	for m := range v {
		if rnd.IntN(4) > 0 {
			v[m] = float32(rnd.IntN(1000)) / 8 // sums are exact
		}
	}
	return v
}

func same(a, b float32) bool {
	return a == b || !history.Known(a) && !history.Known(b)
}

// record lets a router run for some steps. It is away for some, does not observe some, and records some twice.
func record(rnd *rand.Rand, h *history.History, m model, now time.Time, steps int) time.Time {
	for range steps {
		gap := 1
		switch rnd.IntN(400) {
		case 0:
			gap = 1 + rnd.IntN(2000)
		case 1:
			gap = 1 + rnd.IntN(40)
		}
		now = now.Add(time.Duration(gap) * history.Step)
		step := h.StepAt(now) - 1
		if rnd.IntN(50) == 0 {
			step -= int64(rnd.IntN(30)) // late
		}
		var samples []history.Sample
		for _, s := range subjects {
			if rnd.IntN(10) == 0 {
				continue
			}
			v := drawn(rnd)
			samples = append(samples, history.Sample{Subject: s, Values: v})
			if m[s] == nil {
				m[s] = map[int64]history.Values{}
			}
			m[s][step] = v
		}
		h.Record(step, samples)
	}
	return now
}

func check(t *testing.T, h *history.History, m model, now time.Time) {
	t.Helper()
	newest := h.StepAt(now) - 1
	for _, s := range subjects {
		for r, last := range map[history.Resolution]int64{history.Fine: newest, history.Coarse: (newest+1)/12 - 1} {
			got, ok := h.Read(now, s, r, 24*time.Hour)
			if !ok || got.Length != int(r.Slots()) || got.Age < 0 || got.Age >= r.Step() {
				t.Fatalf("%v: %v, %d steps, %v old", s, ok, got.Length, got.Age)
			}
			for of := range history.Measures {
				for i := range got.Length {
					step := last - int64(got.Length-1-i)
					want := m.step(s, of, step)
					if r == history.Coarse {
						want = m.minute(s, of, step)
					}
					is := float32(math.NaN())
					if got.Values[of] != nil {
						is = got.Values[of][i]
					}
					if !same(is, want) {
						t.Fatalf("%v, resolution %d, measure %d, %d steps ago: %v, want %v",
							s, r, of, got.Length-1-i, is, want)
					}
				}
			}
		}
	}
}

func TestHistoryMatchesSlowModel(t *testing.T) {
	rnd := propertytest.Rand(t)
	for range 4 {
		var h history.History
		m := model{}
		now := began.Add(time.Duration(rnd.IntN(3600)) * time.Second)
		h.StepAt(now)
		for range 6 {
			now = record(rnd, &h, m, now, 1+rnd.IntN(1500))
			check(t, &h, m, now)
		}
	}
}

// send copies a history over the wire, with clocks that differ by years, and returns its receiver.
func send(t *testing.T, from *history.History, sent time.Time, to *history.History, came time.Time) {
	t.Helper()
	head, at := from.Head(sent)
	wire := history.AppendHead(nil, head)
	all := from.Subjects()
	for _, s := range all {
		c, ok := from.Copy(s, at)
		if !ok {
			t.Fatalf("no copy of %v", s)
		}
		wire = history.AppendCopy(wire, &c)
	}
	r, err := history.NewReader(bytes.NewReader(wire))
	if err != nil {
		t.Fatal(err)
	}
	for range all {
		c, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		to.Merge(came, r.Head, c)
	}
	if _, err := r.Next(); err != io.EOF {
		t.Fatalf("the copy ends with %v", err)
	}
}

// After a restart each figure is there with its age, to a step. A gap stays one, and other routers' submissions are
// not in it. The minutes agree with the steps of the last hour.
func TestRestartKeepsHistory(t *testing.T) {
	rnd := propertytest.Rand(t)
	for range 10 {
		var old, fresh history.History
		m := model{}
		start := began.Add(time.Duration(rnd.IntN(3600)) * time.Second)
		old.StepAt(start)
		now := record(rnd, &old, m, start, 1000)
		sent := now.Add(time.Duration(rnd.IntN(5000)) * time.Millisecond)
		late := time.Duration(rnd.IntN(900)) * time.Millisecond
		skew := time.Duration(rnd.IntN(1e9)) * 100 * time.Millisecond // to a few years
		send(t, &old, sent, &fresh, sent.Add(late+skew))
		for _, s := range subjects {
			for _, r := range []history.Resolution{history.Fine, history.Coarse} {
				before, _ := old.Read(sent, s, r, 24*time.Hour)
				after, ok := fresh.Read(sent.Add(late+skew), s, r, 24*time.Hour)
				if !ok {
					t.Fatalf("%v is lost", s)
				}
				for of := range history.Measures {
					a, b := before.Values[of], after.Values[of]
					if of == history.Submissions {
						if b != nil {
							t.Errorf("%v has the submissions of another router", s)
						}
						continue
					}
					if why := shifted(r, a, b); why != "" {
						t.Fatalf("%v, resolution %d, measure %d: %s", s, r, of, why)
					}
				}
			}
		}
	}
}

// shifted reports the difference of two rings that are equal up to a step's shift. The second may have more: newest
// figures, and minutes of the last hour that begin elsewhere and so have other steps.
func shifted(r history.Resolution, a, b []float32) (why string) {
	if a == nil {
		return ""
	}
	for _, by := range []int{0, 1, -1, -2} {
		why = ""
		for i := range a {
			more := !history.Known(a[i]) && (i+by >= len(b)-1 || r == history.Coarse && i+by > len(b)-60)
			if j := i + by; j >= 0 && j < len(b) && !same(a[i], b[j]) && !more {
				why = fmt.Sprintf("%d steps ago it was %v, is %v", len(a)-1-i, a[i], b[j])
			}
		}
		if why == "" && len(b) > 0 {
			return ""
		}
	}
	return why + fmt.Sprint(" of ", len(b))
}

// What a router observed itself stays. A second copy changes nothing.
func TestMergeKeepsOwnFigures(t *testing.T) {
	rnd := propertytest.Rand(t)
	var old, fresh history.History
	start := began
	old.StepAt(start)
	fresh.StepAt(start)
	now := record(rnd, &old, model{}, start, 700)
	own := model{}
	for at := now.Add(-10 * history.Step); at.Before(now); at = at.Add(history.Step) {
		v := drawn(rnd)
		step := fresh.StepAt(at) - 1
		fresh.Record(step, []history.Sample{{Values: v}})
		if own[subjects[0]] == nil {
			own[subjects[0]] = map[int64]history.Values{}
		}
		own[subjects[0]][step] = v
	}
	var first history.Series
	for i := range 2 {
		send(t, &old, now, &fresh, now)
		got, _ := fresh.Read(now, history.Subject{}, history.Fine, time.Hour)
		for step, v := range own[subjects[0]] {
			at := got.Length - 1 - int(fresh.StepAt(now)-1-step)
			for of, want := range v {
				if history.Known(want) && got.Values[of][at] != want {
					t.Errorf("measure %d of step %d: %v, observed %v", of, step, got.Values[of][at], want)
				}
			}
		}
		if i == 1 && fmt.Sprint(first) != fmt.Sprint(got) {
			t.Error("a second copy changed the history")
		}
		first = got
	}
}

// A subject without a figure for a minute makes room for a new one. Others do not, and the number of those without
// room is reported.
func TestSeriesAreBounded(t *testing.T) {
	var h history.History
	now := began
	sample := func(from, to int) (out []history.Sample) {
		for i := from; i < to; i++ {
			v := history.Unknown()
			v[history.Use] = 1
			out = append(out, history.Sample{
				Subject: history.Subject{Kind: history.Queue, Name: fmt.Sprintf("root.%05d", i)}, Values: v,
			})
		}
		return out
	}
	pass := func(samples []history.Sample, steps int) (all []history.Subject, leftOut int) {
		for range steps {
			now = now.Add(history.Step)
			h.Record(h.StepAt(now)-1, samples)
		}
		return h.Subjects(), h.LeftOut()
	}
	h.StepAt(now)
	if all, without := pass(sample(0, history.MaxSeries+7), 3); len(all) != history.MaxSeries || without != 7 {
		t.Errorf("%d subjects, %d without room", len(all), without)
	}
	pass(sample(20, history.MaxSeries+7), 11)
	if all, without := pass(sample(20, history.MaxSeries+7), 3); len(all) != history.MaxSeries || without != 0 {
		t.Errorf("after a minute: %d subjects, %d without room", len(all), without)
	}
	if all, _ := pass(nil, 24*60*12+12); len(all) != 0 {
		t.Errorf("after a day: %d subjects", len(all))
	}
	long := history.Subject{Kind: history.Queue, Name: string(make([]byte, 5000))}
	if all, without := pass([]history.Sample{{Subject: long}}, 1); len(all) != 0 || without != 1 {
		t.Errorf("a name of 5,000 bytes: %v", all)
	}
}

func TestSubjectsAreParsed(t *testing.T) {
	for _, s := range append(subjects, history.Subject{Kind: history.Member, Name: "a/b"}) {
		if got, ok := history.ParseSubject(s.String()); !ok || got != s {
			t.Errorf("%v: %v, %v", s, got, ok)
		}
	}
	for _, text := range []string{"", "federation/", "federation/x", "member", "member/", "nodes/x", "/"} {
		if s, ok := history.ParseSubject(text); ok {
			t.Errorf("%q is %v", text, s)
		}
	}
}

// A copy comes from another machine: whatever it has, reading it ends with an error or its end, and figures that are
// negative or no numbers are unknown.
func FuzzReader(t *testing.F) {
	f := propertytest.Fuzz(t)
	var h history.History
	h.StepAt(began)
	now := record(rand.New(rand.NewPCG(1, 2)), &h, model{}, began, 40)
	head, at := h.Head(now)
	wire := history.AppendHead(nil, head)
	for _, s := range subjects {
		if c, ok := h.Copy(s, at); ok {
			wire = history.AppendCopy(wire, &c)
		}
	}
	f.Add(wire)
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := history.NewReader(bytes.NewReader(data))
		if err != nil {
			return
		}
		var h history.History
		for {
			c, err := r.Next()
			if err != nil {
				if err != io.EOF && errors.Unwrap(err) == io.EOF {
					t.Errorf("a truncated copy ends like a whole one: %v", err)
				}
				break
			}
			h.Merge(began, r.Head, c)
			for _, res := range []history.Resolution{history.Fine, history.Coarse} {
				got, _ := h.Read(began, c.Subject, res, 24*time.Hour)
				for _, values := range got.Values {
					for _, v := range values {
						if !history.Known(v) && !math.IsNaN(float64(v)) {
							t.Fatalf("%v has %v", c.Subject, v)
						}
					}
				}
			}
		}
	})
}

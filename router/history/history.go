// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
)

// A Kind is a kind of subjects.
type Kind uint8

// The kinds.
const (
	Federation Kind = iota
	Member
	Queue
	kinds
)

var kindNames = [kinds]string{"federation", "member", "queue"}

// Subject has figures. Name is the member's id or the queue's path; the federation has none.
type Subject struct {
	Kind Kind
	Name string
}

// String returns "federation", "member/ID" or "queue/PATH".
func (s Subject) String() string {
	if s.Kind == Federation {
		return kindNames[Federation]
	}
	return kindNames[s.Kind] + "/" + s.Name
}

// ParseSubject reads the output of Subject.String.
func ParseSubject(text string) (Subject, bool) {
	kind, name, named := strings.Cut(text, "/")
	i := slices.Index(kindNames[:], kind)
	if i < 0 || named != (Kind(i) != Federation) || named && !usable(name) {
		return Subject{}, false
	}
	return Subject{Kind(i), name}, true
}

// longestName bounds a subject's name, in bytes.
const longestName = 4096

func usable(name string) bool { return name != "" && len(name) <= longestName }

// Compare orders subjects: the federation, members, queues, each by name.
func Compare(a, b Subject) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
}

// A Measure is a kind of figures.
type Measure int

// The measures. Shares are parts of the dominant resource of the federation, or of the member, from 0 to 1.
const (
	Use         Measure = iota // share in use
	Entitlement                // share that the queue, or all leaf queues together, are entitled to
	Waiting                    // applications that wait
	Grants                     // containers granted in the step
	GrantP50                   // median of the seconds from an ask to the grant of a container
	GrantP99                   // 99th percentile of the same
	Submissions                // applications submitted through this router in the step
	Measures
)

// Values are the figures of a step. NaN is an unknown one.
type Values [Measures]float32

// Unknown returns values that are all unknown.
func Unknown() (v Values) {
	for m := range v {
		v[m] = nan
	}
	return v
}

var nan = float32(math.NaN())

// Known reports whether a figure is known. No figure is negative or infinite.
func Known(v float32) bool { return v >= 0 && v <= math.MaxFloat32 }

// A Resolution is a length of steps.
type Resolution int

// The resolutions.
const (
	Fine   Resolution = iota // the last hour, in steps of Step
	Coarse                   // the last day, in minutes
	resolutions
)

// Step is the time of a fine step.
const Step = 5 * time.Second

const (
	fineSlots   = int64(time.Hour / Step)
	coarseSlots = int64(24 * time.Hour / time.Minute)
	perMinute   = int64(time.Minute / Step)
)

// Step returns the time of one step.
func (r Resolution) Step() time.Duration { return [...]time.Duration{Step, time.Minute}[r] }

// Slots returns the number of stored steps.
func (r Resolution) Slots() int64 { return [...]int64{fineSlots, coarseSlots}[r] }

// MaxSeries bounds the subjects of a History. One with all measures has 60 kB, a queue about 52 kB.
const MaxSeries = 1000

// History has the figures of its subjects. The zero value is empty.
type History struct {
	start   time.Time // of step 0, a whole minute of the clock; two days before the first use
	newest  int64     // last complete fine step
	series  map[Subject]*series
	leftOut int // samples without room in the last step
}

// series has a ring for each resolution and measure. A ring is made for the first known figure.
type series struct {
	rings [resolutions][Measures][]float32
	known int64 // last fine step with a known figure
}

// StepAt returns the number of the step that contains a time.
func (h *History) StepAt(now time.Time) int64 {
	if h.series == nil {
		h.series = map[Subject]*series{}
		into := now.Sub(now.Truncate(time.Minute))
		h.start = now.Add(-into - 48*time.Hour) // imported steps have numbers above 0
		h.newest = h.stepAt(now) - 1
	}
	return h.stepAt(now)
}

func (h *History) stepAt(now time.Time) int64 { return int64(now.Sub(h.start) / Step) }

// Sample has the figures of one subject.
type Sample struct {
	Subject
	Values
}

// Record stores the figures of a complete step. A step without a call is unknown.
func (h *History) Record(step int64, samples []Sample) {
	if h.series == nil {
		return // StepAt was never called
	}
	h.advance(step)
	if step <= h.newest-fineSlots+perMinute { // its minute may have lost steps
		return
	}
	h.leftOut = 0
	for i := range samples {
		s := h.of(samples[i].Subject)
		if s == nil {
			h.leftOut++
			continue
		}
		for m, v := range samples[i].Values {
			if s.set(Fine, Measure(m), step, v) {
				s.known = max(s.known, step)
			}
		}
	}
	if minute := step / perMinute; minute <= h.minute() {
		for _, s := range h.series {
			s.summarize(minute)
		}
	}
}

// minute returns the last complete minute.
func (h *History) minute() int64 { return (h.newest+1)/perMinute - 1 }

// newestAt returns the last complete step of a resolution.
func (h *History) newestAt(r Resolution) int64 {
	if r == Coarse {
		return h.minute()
	}
	return h.newest
}

// advance makes steps complete, up to one. They are unknown until they are set.
func (h *History) advance(to int64) {
	if to-h.newest > coarseSlots*perMinute { // nothing of the day remains
		clear(h.series)
		h.newest = to
		return
	}
	for h.newest < to {
		h.newest++
		whole := (h.newest+1)%perMinute == 0
		for subject, s := range h.series {
			for m := range s.rings[Fine] {
				s.set(Fine, Measure(m), h.newest, nan)
			}
			if whole {
				s.summarize(h.newest / perMinute)
			}
			if h.newest-s.known > coarseSlots*perMinute {
				delete(h.series, subject)
			}
		}
	}
}

// of returns a subject's series, nil if there is no room.
func (h *History) of(subject Subject) *series {
	s := h.series[subject]
	if s != nil || subject.Kind != Federation && !usable(subject.Name) {
		return s
	}
	if len(h.series) >= MaxSeries && !h.evict() {
		return nil
	}
	s = &series{}
	h.series[subject] = s
	return s
}

// evict removes the subject that has been unknown for the longest time, at least for a minute.
func (h *History) evict() bool {
	var oldest Subject
	at := h.newest - perMinute
	for subject, s := range h.series {
		if s.known < at || s.known == at && at < h.newest-perMinute && Compare(subject, oldest) > 0 {
			oldest, at = subject, s.known
		}
	}
	if at == h.newest-perMinute {
		return false
	}
	delete(h.series, oldest)
	return true
}

// set stores a figure, and reports whether it is known.
func (s *series) set(r Resolution, m Measure, step int64, v float32) bool {
	ring := &s.rings[r][m]
	if !Known(v) {
		if *ring != nil {
			(*ring)[step%r.Slots()] = nan
		}
		return false
	}
	if *ring == nil {
		*ring = slices.Repeat([]float32{nan}, int(r.Slots()))
	}
	(*ring)[step%r.Slots()] = v
	return true
}

// at returns a stored figure.
func (s *series) at(r Resolution, m Measure, step int64) float32 {
	if ring := s.rings[r][m]; ring != nil {
		return ring[step%r.Slots()]
	}
	return nan
}

// summarize makes a minute from its steps.
func (s *series) summarize(minute int64) {
	for m := range Measures {
		s.set(Coarse, m, minute, s.minuteOf(m, minute))
	}
}

// minuteOf applies the rule of the package to one measure.
func (s *series) minuteOf(m Measure, minute int64) float32 {
	var sum, most float64
	known := 0
	for step := minute * perMinute; step < (minute+1)*perMinute; step++ {
		if v := s.at(Fine, m, step); Known(v) {
			known, sum, most = known+1, sum+float64(v), max(most, float64(v))
		}
	}
	switch {
	case known == 0:
		return nan
	case m == Grants || m == Submissions:
		return float32(sum)
	case m == GrantP99:
		return float32(most)
	}
	return float32(sum / float64(known))
}

// Series has a subject's figures, oldest first.
type Series struct {
	Resolution
	Age    time.Duration       // time since the end of the last step
	Length int                 // number of steps
	Values [Measures][]float32 // nil: no figure is known
}

// Read returns the last steps of a subject, which together have at least the time last, or all. ok is false if the
// subject has no figures.
func (h *History) Read(now time.Time, subject Subject, r Resolution, last time.Duration) (out Series, ok bool) {
	s := h.series[subject]
	if s == nil {
		return out, false
	}
	newest := h.newestAt(r)
	n := min(max(int64((last+r.Step()-1)/r.Step()), 1), r.Slots())
	out = Series{Resolution: r, Length: int(n), Age: h.age(now, r)}
	for m := range Measures {
		if s.rings[r][m] == nil {
			continue
		}
		values, any := make([]float32, n), false
		for i := range values {
			values[i] = s.at(r, m, newest-n+1+int64(i))
			any = any || Known(values[i])
		}
		if any {
			out.Values[m] = values
		}
	}
	return out, true
}

// age returns the time since the end of the last complete step.
func (h *History) age(now time.Time, r Resolution) time.Duration {
	return now.Sub(h.start) - time.Duration(h.newestAt(r)+1)*r.Step()
}

// LeftOut returns the number of subjects without room.
func (h *History) LeftOut() int { return h.leftOut }

// Subjects returns the subjects with figures, in order.
func (h *History) Subjects() (all []Subject) {
	for s := range h.series {
		all = append(all, s)
	}
	slices.SortFunc(all, Compare)
	return all
}

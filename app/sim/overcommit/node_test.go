// SPDX-License-Identifier: Apache-2.0

package overcommit

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/nm"
	"github.com/creelrm/creel/subcluster/nm/overallocate"
	"github.com/creelrm/creel/subcluster/rm/opportunistic"
)

// watched is a node of 8 cores and 8 GiB, with containers that use a fixed percentage of their size.
type watched struct {
	*Node
	t   *testing.T
	now time.Time
	ids int64
}

func newWatched(t *testing.T, mode string) *watched {
	now := time.Unix(1000, 0)
	p, err := New(mode, 1, now.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return &watched{Node: p.NewNode(creel.NewResource(8192, 8)), t: t, now: now}
}

// start starts a container of a number of GiB and cores.
func (w *watched) start(lent bool, size int64, use int32) (c *nm.Container, broken string) {
	w.ids++
	app := creel.AttemptID{Application: creel.ApplicationID{ClusterTimestamp: 1, ID: 1}, Attempt: 1}
	c = &nm.Container{
		ID: creel.NewContainerID(app, 0, w.ids), Resource: creel.NewResource(1024*size, size), State: nm.Running,
		Execution: creel.Guaranteed,
	}
	if lent {
		c.Execution = creel.Opportunistic
	}
	return c, w.Starts(c, nm.Script{Use: use}, w.now)
}

func (w *watched) mustStart(lent bool, size int64, use int32) *nm.Container {
	w.t.Helper()
	c, broken := w.start(lent, size, use)
	if broken != "" {
		w.t.Fatal(broken)
	}
	return c
}

// look measures and checks the node after a Period.
func (w *watched) look() (broken string) {
	w.now = w.now.Add(Period)
	w.Measure(w.now)
	return w.Looked(w.now)
}

func (w *watched) broken(rule, got string) {
	w.t.Helper()
	if rule == "" && got != "" || !strings.Contains(got, rule) {
		w.t.Errorf("broken: %q, want %q", got, rule)
	}
}

// A lent container starts only while the expected use of the node stays below its threshold. The expected use has the
// whole size of the containers started since the last look.
func TestLentContainerStartsBelowThreshold(t *testing.T) {
	w := newWatched(t, Threshold)
	w.mustStart(false, 8, 25)
	w.broken("", w.look())
	w.mustStart(true, 4, 25)
	_, broken := w.start(true, 1, 25)
	w.broken("starts at an expected use", broken)
	w.mustStart(false, 4, 25) // guaranteed containers are not lent
}

// Of the containers that run at a look, the youngest lent one ends first. A guaranteed one never does.
func TestYoungestLentContainerEndsFirst(t *testing.T) {
	w := newWatched(t, Threshold)
	first := w.mustStart(false, 4, 50)
	older, younger := w.mustStart(true, 1, 50), w.mustStart(true, 1, 50)
	w.broken("", w.look())
	w.broken("before the younger", w.Ends(older.ID, opportunistic.ForUse, true, w.now))
	w.broken("", w.Ends(younger.ID, opportunistic.ForUse, true, w.now))
	w.broken("is ended by its node", w.Ends(first.ID, opportunistic.ForUse, true, w.now))
	w.broken("", w.Ends(first.ID, opportunistic.ForUse, true, w.now)) // it is unknown now
	r := &w.play.Result
	lost := Period * (4 + 1 + 1)
	if r.ForUse != 2 || r.ForRoom != 0 || r.CoresLost != lost || r.Cores != lost {
		t.Errorf("%d for use, %d for room, %v of %v lost", r.ForUse, r.ForRoom, r.CoresLost, r.Cores)
	}
}

// A node that uses too much and runs beyond its size must end lent containers within a few looks. The end, or a pause,
// of one begins the count again.
func TestHotNodeMustEndLentContainers(t *testing.T) {
	w := newWatched(t, Threshold)
	w.mustStart(true, 1, 100)
	w.mustStart(false, 8, 100)
	looks := w.play.Node.Looks + 1
	for range looks {
		w.broken("", w.look())
	}
	w.broken("ends no lent container", w.look())

	w = newWatched(t, Threshold)
	paused := w.mustStart(true, 1, 100)
	w.mustStart(true, 1, 100)
	w.mustStart(false, 8, 100)
	for range looks {
		w.broken("", w.look())
	}
	w.Pauses(paused.ID)
	for range looks {
		w.broken("", w.look())
	}
	w.broken("ends no lent container", w.look())
}

// If all containers use their whole size, a node gives up lending beyond its size.
func TestSurgeEndsLending(t *testing.T) {
	w := newWatched(t, Threshold)
	w.play.Surges = []Surge{{w.now, w.now.Add(time.Hour), 1}}
	w.mustStart(true, 1, 1)
	guaranteed := w.mustStart(false, 8, 1)
	w.play.Node.Preempt = overallocate.Shares{Memory: 2, CPU: 2} // so that no use is too high
	for range w.play.Node.Looks + 2 {
		w.broken("", w.look())
	}
	w.broken("with a use of the whole size", w.look())
	w.broken("", w.Ends(guaranteed.ID, opportunistic.ForUse, false, w.now))
	w.broken("", w.look())
}

// A paused container uses memory and no CPU. It is checked like a new one when it resumes.
func TestPausedContainerUsesMemoryOnly(t *testing.T) {
	w := newWatched(t, Threshold)
	c := w.mustStart(true, 4, 50)
	w.Pauses(c.ID)
	w.now = w.now.Add(Period)
	m := w.Measure(w.now)
	if len(m.Uses) != 1 || m.Uses[0].Use != (overallocate.Amount{MemoryMB: 2048}) {
		t.Errorf("measured %+v", m.Uses)
	}
	w.mustStart(false, 8, 100)
	w.broken("starts at an expected use", w.Resumes(c.ID))
	var none *Node // of a run without measurements
	none.Pauses(c.ID)
	w.broken("", none.Resumes(c.ID)+none.Starts(c, nm.Script{}, w.now)+none.Ends(c.ID, opportunistic.ForUse, true, w.now))
}

// The ResourceManager's promotions reach the node within a few looks.
func TestPromotionReachesNode(t *testing.T) {
	w := newWatched(t, Threshold)
	c := w.mustStart(true, 1, 10)
	yes, no := func(creel.ContainerID) bool { return true }, func(creel.ContainerID) bool { return false }
	for range waits {
		w.broken("", w.Promoted(yes))
	}
	w.broken("", w.Promoted(no))
	for range waits {
		w.broken("", w.Promoted(yes))
	}
	w.broken("its node does not know", w.Promoted(yes))
	w.broken("", w.look())
	c.Execution = creel.Guaranteed
	w.broken("", w.Promoted(yes))
	w.broken("", w.look())
	w.broken("", w.look())
	if n := w.play.Result.Promoted; n != 1 {
		t.Errorf("%d counted as promoted", n)
	}
}

// Looks count the sizes and the use, and whether the containers need more than the node has. Later looks do not count.
func TestLooksAreSummed(t *testing.T) {
	w := newWatched(t, None)
	w.mustStart(false, 8, 50)
	w.broken("", w.look())
	c := w.mustStart(false, 8, 100)
	w.broken("", w.look())
	w.Pauses(c.ID)
	w.play.Until = w.now
	w.broken("", w.look())
	core := func(n int64) overallocate.Amount {
		return overallocate.Amount{MemoryMB: 1024 * n, MilliCores: 1000 * n}
	}
	want := Looks{Count: 2, Above: 1, Size: core(16), Run: core(24), Use: core(12), Needed: core(16)}
	if got := w.play.Result.Nodes; got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Each mode has its configuration, and others are refused. Drawn surges follow each other until the end of the run.
func TestModesAndSurges(t *testing.T) {
	if _, err := New("half", 1, time.Time{}); err == nil || !strings.Contains(err.Error(), strings.Join(Modes(), ", ")) {
		t.Errorf("an unknown mode: %v", err)
	}
	for mode, want := range map[string]overallocate.Config{
		None: {}, Threshold: {Looks: 4}, NSigma: {Looks: 4, Predicts: true, Estimate: overallocate.NSigma},
		Peak: {Looks: 4, Predicts: true},
	} {
		p, err := New(mode, 1, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		got := p.Node
		lends := got.Alloc != (overallocate.Shares{}) && got.Preempt != (overallocate.Shares{})
		if got.Looks != want.Looks || got.Predicts != want.Predicts || got.Estimate != want.Estimate || lends != (mode != None) {
			t.Errorf("%s: %+v", mode, got)
		}
	}
	from := time.Unix(1000, 0)
	p := &Play{Until: from.Add(time.Hour)}
	p.Draw(rand.New(rand.NewPCG(1, 2)), from)
	at := from
	for _, s := range p.Surges {
		if s.From.Before(at) || s.To.Before(s.From) || s.Least < 0.6 || s.Least >= 1 || p.least(s.From) != s.Least {
			t.Errorf("surge %+v after %v", s, at)
		}
		at = s.To
	}
	if len(p.Surges) < 8 || p.least(from) != 0 || (*Play)(nil).Counts() != nil || p.Counts() != &p.Result {
		t.Errorf("%d surges in an hour", len(p.Surges))
	}
}

// SPDX-License-Identifier: Apache-2.0

package overcommit

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/nm"
	"github.com/creelrm/creel/subcluster/nm/overallocate"
	"github.com/creelrm/creel/subcluster/rm/opportunistic"
)

// Node measures and checks the containers of one node. Each method that checks returns the rule that the node has
// broken, or "".
type Node struct {
	play    *Play
	total   overallocate.Amount
	runs    map[creel.ContainerID]*run
	started int // processes

	looked time.Time           // the last look
	use    overallocate.Amount // at the last look
	since  overallocate.Amount // sizes of the containers started since
	hot    int                 // consecutive looks with too high a use and no end of a lent container
	full   int                 // consecutive looks at which all containers used their whole size
}

// run is a container with a process.
type run struct {
	c      *nm.Container
	shape  nm.Shape
	began  time.Time
	order  int // by its last start
	paused bool
	lent   bool // at the last look
	use    overallocate.Amount
	behind int // consecutive looks at which the ResourceManager counted it as guaranteed, and the node did not
}

// waits is the number of looks for which a guaranteed container may wait for lent ones: each ends some of them.
const waits = 6

// NewNode returns the checks of a node without containers.
func (p *Play) NewNode(total creel.Resource) *Node {
	return &Node{play: p, total: overallocate.Of(total), runs: map[creel.ContainerID]*run{}}
}

// Starts records and checks a container whose process starts.
func (n *Node) Starts(c *nm.Container, s nm.Script, now time.Time) (broken string) {
	if n == nil {
		return ""
	}
	n.runs[c.ID] = &run{
		c: c, shape: nm.NewShape(n.play.Seed, c.ID, s), began: now, lent: c.Execution == creel.Opportunistic,
	}
	return n.goesOn(c)
}

// goesOn checks that a container starts or resumes within the node's size, or within the use up to which it lends.
func (n *Node) goesOn(c *nm.Container) (broken string) {
	n.started++
	n.runs[c.ID].order, n.runs[c.ID].paused = n.started, false
	n.since = n.since.Add(overallocate.Of(c.Resource))
	expected := n.use.Add(n.since)
	if c.Execution != creel.Opportunistic || n.size().Fits(n.total) || expected.Fits(n.play.Node.Alloc.Of(n.total)) {
		return ""
	}
	return fmt.Sprintf("lent %s starts at an expected use of %v of %v", c.ID, expected, n.total)
}

// size is the size of the containers that run.
func (n *Node) size() (sum overallocate.Amount) {
	for _, r := range n.runs {
		if !r.paused {
			sum = sum.Add(overallocate.Of(r.c.Resource))
		}
	}
	return sum
}

// Pauses records a container whose process pauses.
func (n *Node) Pauses(id creel.ContainerID) {
	if n != nil && n.runs[id] != nil {
		n.runs[id].paused, n.hot = true, 0
	}
}

// Resumes is Starts for a paused process.
func (n *Node) Resumes(id creel.ContainerID) (broken string) {
	if n == nil || n.runs[id] == nil {
		return ""
	}
	return n.goesOn(n.runs[id].c)
}

// Ends records the end of a container. killed reports that its node's scheduler ended it, and why.
func (n *Node) Ends(id creel.ContainerID, why opportunistic.Kill, killed bool, now time.Time) (broken string) {
	if n == nil || n.runs[id] == nil {
		return ""
	}
	x, r := n.runs[id], &n.play.Result
	delete(n.runs, id)
	cores := now.Sub(x.began) * time.Duration(x.c.Resource.VCores)
	r.Cores += cores
	if x.c.Execution == creel.Opportunistic {
		n.hot = 0
	}
	if !killed {
		return ""
	}
	r.CoresLost += cores
	if x.c.Execution == creel.Guaranteed {
		return fmt.Sprintf("guaranteed %s is ended by its node", id)
	}
	if why != opportunistic.ForUse {
		r.ForRoom++
		return ""
	}
	r.ForUse++
	for _, y := range n.runs {
		younger := y.order > x.order && y.began.Before(n.looked)
		if younger && y.c.Execution == creel.Opportunistic && y.c.State == nm.Running && y.use.MilliCores > 0 {
			broken = fmt.Sprintf("%s ends for its use before the younger %s", id, y.c.ID)
		}
	}
	return broken
}

// Measure returns the use of the containers at a look.
func (n *Node) Measure(now time.Time) (out nm.Measured) {
	n.looked, n.use, n.since = now, overallocate.Amount{}, overallocate.Amount{}
	least := n.play.least(now)
	for _, id := range slices.SortedFunc(maps.Keys(n.runs), creel.ContainerID.Compare) {
		r := n.runs[id]
		size := overallocate.Of(r.c.Resource)
		r.use = r.shape.At(r.c.Resource, now.Sub(r.began)).Max(overallocate.Shares{Memory: least, CPU: least}.Of(size))
		if r.paused {
			r.use.MilliCores = 0
		}
		n.use = n.use.Add(r.use)
		out.Uses = append(out.Uses, nm.Use{ID: id, Use: r.use})
	}
	return out
}

// Looked checks the node after a look, and counts it.
func (n *Node) Looked(now time.Time) (broken string) {
	n.count(now)
	size, lent := n.size(), false
	for _, r := range n.runs {
		opportunistic := r.c.Execution == creel.Opportunistic
		if r.lent && !opportunistic {
			n.play.Result.Promoted++
		}
		r.lent = opportunistic
		lent = lent || opportunistic && !r.paused
	}
	if !lent {
		n.hot, n.full = 0, 0
		return ""
	}
	return n.recedes(size, n.play.least(now) >= 1)
}

// recedes checks that lent containers end while the node's use is too high, until the others fit.
func (n *Node) recedes(size overallocate.Amount, surge bool) (broken string) {
	looks, beyond := n.play.Node.Looks, size.Sub(n.total)
	above := n.use.Sub(n.play.Node.Preempt.Of(n.total))
	if n.hot++; above.Min(beyond).Positive() == (overallocate.Amount{}) {
		n.hot = 0
	}
	if n.full++; !surge || beyond.Positive() == (overallocate.Amount{}) {
		n.full = 0
	}
	switch {
	case n.hot > looks+1:
		return fmt.Sprintf("uses %v of %v for %d looks, and ends no lent container", n.use, n.total, n.hot)
	case n.full > looks+2:
		return fmt.Sprintf("lends beyond its size at %d looks with a use of the whole size", n.full)
	}
	return ""
}

// Displaces checks that no guaranteed container waits for long while lent ones run. waiting returns the time of the
// arrival of a container that has no process yet.
func (n *Node) Displaces(m *nm.Node, now time.Time, waiting func(creel.ContainerID) (time.Time, bool)) (broken string) {
	var ahead *run
	for _, r := range n.runs {
		if r.c.Execution == creel.Opportunistic && r.c.State == nm.Running && (ahead == nil || r.order < ahead.order) {
			ahead = r
		}
	}
	if ahead == nil || n.size().Fits(n.total) {
		return ""
	}
	for _, c := range m.Containers() {
		since, ok := waiting(c.ID)
		if !ok || c.Execution != creel.Guaranteed || c.State != nm.Scheduled {
			continue
		}
		n.play.Result.Displaced++
		if now.Sub(since) > waits*Period {
			return fmt.Sprintf("guaranteed %s waits for %v while lent %s runs", c.ID, now.Sub(since), ahead.c.ID)
		}
	}
	return ""
}

// Promoted checks that a node has the execution types that its ResourceManager counts, soon after they change.
// guaranteed returns whether the ResourceManager counts a container as guaranteed.
func (n *Node) Promoted(guaranteed func(creel.ContainerID) bool) (broken string) {
	for id, r := range n.runs {
		if r.behind++; r.c.Execution == creel.Guaranteed || !guaranteed(id) {
			r.behind = 0
		}
		if r.behind > waits {
			broken = fmt.Sprintf("%s was promoted %d looks ago, and its node does not know", id, r.behind)
		}
	}
	return broken
}

// count adds a look to the figures.
func (n *Node) count(now time.Time) {
	if now.After(n.play.Until) {
		return
	}
	l := &n.play.Result.Nodes
	l.Count++
	l.Size = l.Size.Add(n.total)
	l.Run = l.Run.Add(n.size())
	l.Use = l.Use.Add(n.use.Min(n.total))
	l.Needed = l.Needed.Add(n.use)
	if !n.use.Fits(n.total) {
		l.Above++
	}
}

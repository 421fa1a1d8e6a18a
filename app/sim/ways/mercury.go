// SPDX-License-Identifier: Apache-2.0

package ways

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// mercury is a model of Mercury: short tasks wait in queues of the nodes, placed by the proxies of their AMs. Long ones
// get guaranteed containers of a central ResourceManager.
type mercury struct {
	*central
	loads []load // of the last heartbeats
	least []int  // nodes for short tasks, the least loaded first
	limit int    // of the queues, to which nodes shorten theirs
}

// load is a node's report.
type load struct {
	wait  time.Duration // until a new container starts, estimated by the mean run time
	free  int
	queue int
}

// Numbers of Hadoop's version of Mercury.
const (
	queueLength = 10 // of nodes
	listLength  = 10 // nodes that proxies use
	limitLeast  = 5
	limitMost   = 15
)

func newMercury(w *world) way {
	m := &mercury{central: newCentral(w), loads: make([]load, w.Nodes), limit: limitMost}
	for i := range m.loads {
		m.loads[i].free = w.Slots
	}
	m.polls.allocate = m.allocate
	w.every(w.NodeHeartbeat, func(i int) {
		n := m.nodes[i]
		for len(n.queue) > m.limit {
			last := n.queue[len(n.queue)-1]
			n.queue = n.queue[:len(n.queue)-1]
			n.drop(last)
		}
		now := load{free: n.free(), queue: len(n.queue)}
		if now.free == 0 {
			now.wait = n.mean * time.Duration(now.queue+1) / time.Duration(w.Slots)
		}
		w.send(func() {
			m.loads[i] = now
			m.heard(i)
		})
	})
	var sort func()
	sort = func() {
		m.sort()
		w.after(time.Second, sort)
	}
	w.after(0, sort)
	return m
}

// sort chooses the least loaded nodes, and the limit of the queues: the mean and one standard deviation.
func (m *mercury) sort() {
	m.least = m.w.rnd.Perm(m.w.Nodes)
	slices.SortStableFunc(m.least, func(a, b int) int {
		x, y := m.loads[a], m.loads[b]
		return cmp.Or(cmp.Compare(x.wait, y.wait), cmp.Compare(y.free, x.free))
	})
	m.least = m.least[:min(listLength, len(m.least))]
	sum, squares, n := 0.0, 0.0, float64(len(m.loads))
	for _, l := range m.loads {
		sum += float64(l.queue)
		squares += float64(l.queue) * float64(l.queue)
	}
	deviation := math.Sqrt(max(squares/n-sum/n*sum/n, 0))
	m.limit = min(max(int(math.Ceil(sum/n+deviation)), limitLeast), limitMost)
}

// allocate places short tasks at once, one after the other over the list.
func (m *mercury) allocate(j *job) (out []grant) {
	if j.class == Long {
		return m.ask(j)
	}
	first := m.w.rnd.IntN(len(m.least))
	for k := range j.waiting {
		n := m.nodes[m.least[(first+k)%len(m.least)]]
		out = append(out, grant{n.number, func(t *task) {
			if n.free() == 0 && len(n.queue) >= queueLength {
				n.drop(t)
				return
			}
			n.arrive(t, false)
		}})
	}
	return out
}

func (m *mercury) finished(j *job) {
	if j.class == Long {
		m.central.finished(j)
	}
}

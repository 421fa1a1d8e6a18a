// SPDX-License-Identifier: Apache-2.0

package ways

import "slices"

// central is a model of Hadoop's ResourceManager: at each heartbeat of a node it fills the free slots, in the order of
// the jobs' first asks. The AM receives the containers at its next heartbeat.
type central struct {
	polls
	nodes []*slots
	free  []int // slots by node, as of its last heartbeat
	order []*job
	asks  map[*job]int
	fresh map[*job][]grant
}

func newCentral(w *world) *central {
	c := &central{asks: map[*job]int{}, fresh: map[*job][]grant{}}
	c.polls = polls{w, c.ask}
	for i := range w.Nodes {
		c.nodes = append(c.nodes, newSlots(w, i))
		c.free = append(c.free, w.Slots)
	}
	return c
}

// newHeartbeat is the way of Hadoop's ResourceManager alone.
func newHeartbeat(w *world) way {
	c := newCentral(w)
	w.every(w.NodeHeartbeat, func(i int) { w.send(func() { c.heard(i) }) })
	return c
}

// ask sets the number of containers that a job wants, and returns those assigned since its last heartbeat.
func (c *central) ask(j *job) []grant {
	out := c.fresh[j]
	delete(c.fresh, j)
	if c.asks[j] = len(j.waiting) - len(out); !slices.Contains(c.order, j) {
		c.order = append(c.order, j)
	}
	return out
}

// heard assigns the free slots of a node at its heartbeat.
func (c *central) heard(i int) {
	n := c.nodes[i]
	c.free[i] += n.report()
	for _, j := range c.order {
		for ; c.free[i] > 0 && c.asks[j] > 0; c.free[i]-- {
			c.asks[j]--
			c.fresh[j] = append(c.fresh[j], grant{i, func(t *task) { n.arrive(t, true) }})
		}
	}
}

func (c *central) finished(j *job) {
	i := slices.Index(c.order, j)
	c.order = slices.Delete(c.order, i, i+1)
	delete(c.asks, j)
	for _, g := range c.fresh[j] { // released by the end of the job
		c.free[g.node]++
	}
	delete(c.fresh, j)
}

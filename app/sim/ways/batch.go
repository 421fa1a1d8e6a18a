// SPDX-License-Identifier: Apache-2.0

package ways

// batch is a model of Sparrow: a job of m tasks reserves places in the queues of 2*m random nodes. A node with a free
// slot fetches a task for its next reservation; if the job has none left, it goes on to the one after.
type batch struct {
	w     *world
	nodes []*sampled
}

// sampled is a node of the model.
type sampled struct {
	*slots
	reserved []*job
	fetching int // slots that wait for a scheduler's answer
}

// probes is the number of reservations for each task.
const probes = 2

func newBatch(w *world) way {
	b := &batch{w: w}
	for i := range w.Nodes {
		n := &sampled{slots: newSlots(w, i)}
		n.ended = n.fetch
		b.nodes = append(b.nodes, n)
	}
	return b
}

func (b *batch) submit(j *job) { b.ready(j) }

func (b *batch) ready(j *job) {
	for _, t := range j.waiting {
		t.asked = b.w.now
	}
	var order []int
	for range probes * len(j.waiting) {
		if len(order) == 0 {
			order = b.w.rnd.Perm(b.w.Nodes)
		}
		n := b.nodes[order[0]]
		order = order[1:]
		b.w.send(func() {
			n.reserved = append(n.reserved, j)
			n.fetch()
		})
	}
}

func (b *batch) finished(*job) {}

// fetch asks the schedulers of the next reservations for tasks, one for each free slot.
func (n *sampled) fetch() {
	for n.free() > n.fetching && len(n.reserved) > 0 {
		j := n.reserved[0]
		n.reserved = n.reserved[1:]
		n.fetching++
		n.w.send(func() {
			t := j.take()
			n.w.send(func() {
				n.fetching--
				if t != nil {
					n.arrive(t, false)
				}
				n.fetch()
			})
		})
	}
}

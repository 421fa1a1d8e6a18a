// SPDX-License-Identifier: Apache-2.0

package ways

// grant is a container for one task of a job.
type grant struct {
	node  int
	start func(t *task) // at the node, when the AM's call arrives
}

// polls are AMs that allocate at heartbeats: the first with the submission, then one each AM heartbeat.
type polls struct {
	w *world
	// allocate is the ResourceManager's part of an AM's heartbeat. The AM asks for len(j.waiting) containers, less
	// those that the answer grants.
	allocate func(j *job) []grant
}

func (p *polls) submit(j *job) { p.heartbeat(j) }

// ready does nothing: the AM asks for the next stage at its next heartbeat.
func (p *polls) ready(*job) {}

func (p *polls) heartbeat(j *job) {
	w := p.w
	if j.over {
		return
	}
	w.send(func() {
		if j.over {
			return
		}
		for _, t := range j.lost {
			t.job.waiting = append(t.job.waiting, t)
		}
		j.lost = nil
		for _, t := range j.waiting {
			if t.asked.IsZero() {
				t.asked = w.now
			}
		}
		grants := p.allocate(j)
		w.send(func() {
			for _, g := range grants {
				t := j.take()
				w.check(t != nil, "job %d received more containers than it wanted", j.index)
				if t != nil {
					w.send(func() { g.start(t) })
				}
			}
		})
	})
	w.after(w.AMHeartbeat, func() { p.heartbeat(j) })
}

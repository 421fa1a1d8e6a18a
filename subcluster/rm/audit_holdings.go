// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"github.com/creelrm/creel/subcluster/rm/sched"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// holdings are the sums of containers by attempt, for the audit of changes. A node has few containers, an application
// thousands. So each changed node corrects the sums of the attempts that its list had and has, and no check reads all
// containers of an application. An application whose sums differ from its books is summed from its containers.
type holdings struct {
	m  *Machine
	on [][]counted // by the serial number of a node: its containers in the sums
	by map[*attempt]*holding
}

// counted is one container in the sums.
type counted struct {
	*container
	to    *holding
	label string // of its node
	size  amounts.SizeNumber
	free  bool // uncharged
}

// holding is the sum of the containers of one attempt.
type holding struct {
	of      *attempt
	count   int
	charged map[string]sched.Holding // by the label of the node
	free    uncharged                // without unseen
}

// uncharged sums opportunistic containers.
type uncharged struct {
	placed             amounts.Vec
	containers, unseen int32
}

func (u *uncharged) add(m *Machine, c *container) {
	u.placed.Add(&m.sizeOf(c).V)
	u.containers++
	if c.state != cRunning {
		u.unseen++
	}
}

// refresh corrects the sums by the present containers of a node.
func (h *holdings) refresh(n *node) {
	serial := int(n.Serial())
	if grow := serial + 1 - len(h.on); grow > 0 {
		h.on = append(h.on, make([][]counted, grow)...)
	}
	last, label := h.on[serial], n.Label()
	if same(last, n, label) {
		return
	}
	for i := range last {
		h.add(&last[i], -1)
	}
	last = last[:0]
	for _, k := range n.live {
		if k != nil {
			k := counted{k, h.holding(k.owner()), label, k.size, k.uncharged()}
			h.add(&k, 1)
			last = append(last, k)
		}
	}
	clear(last[len(last):cap(last)])
	h.on[serial] = last
}

// same reports whether a node has the containers in the sums.
func same(last []counted, n *node, label string) bool {
	i := 0
	for _, k := range n.live {
		if k == nil {
			continue
		}
		if i == len(last) {
			return false
		}
		was := &last[i]
		if was.container != k || was.to.of != k.owner() || was.label != label || was.size != k.size ||
			was.free != k.uncharged() {
			return false
		}
		i++
	}
	return i == len(last)
}

func (h *holdings) holding(t *attempt) *holding {
	to := h.by[t]
	if to == nil {
		to = &holding{of: t, charged: map[string]sched.Holding{}}
		h.by[t] = to
	}
	return to
}

// add adds a container to its sums, or takes it out.
func (h *holdings) add(k *counted, times int32) {
	size, to := &h.m.sizes.At(k.size).V, k.to
	to.count += int(times)
	if k.free {
		to.free.placed.AddTimes(size, int64(times))
		to.free.containers += times
	} else {
		sum := to.charged[k.label]
		sum.Used.AddTimes(size, int64(times))
		if sum.Containers += times; sum.Containers == 0 {
			delete(to.charged, k.label)
		} else {
			to.charged[k.label] = sum
		}
	}
	if to.count == 0 {
		delete(h.by, to.of)
	} else {
		h.by[to.of] = to
	}
}

// sums returns the sums of an application's containers if they have all of these and equal its books.
func (h *holdings) sums(a *app) (charged map[string]sched.Holding, free uncharged, current bool) {
	if h == nil {
		return nil, free, false
	}
	live := 0
	for _, t := range a.attempts {
		live += t.live.Len()
		to := h.by[t]
		if to == nil {
			continue
		}
		if live -= to.count; charged != nil || t.over() && t != a.current {
			return nil, free, false // two attempts have containers
		}
		charged, free = to.charged, to.free
	}
	use := a.opportunisticUse(0)
	current = live == 0 && a.App.Books(charged) && use.containers == free.containers && use.used.Is(&free.placed)
	return charged, free, current
}

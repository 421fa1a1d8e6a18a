// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"slices"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster/rm"
)

// meddle lets a user or an administrator act, as they may at any time: kill an application, move it to another queue,
// drain a member for a while, exchange the queues' capacities, or change the split of asks.
func (w *World) meddle(which uint64, d time.Duration) {
	c := w.clusters[which>>8%uint64(len(w.clusters))]
	switch which % 5 {
	case 0:
		if id, ok := w.someApp(c, which>>16); ok {
			w.audit.fault("applications killed by their users")
			w.say("%s is killed by its user", id)
			c.kill(id, "killed by its user", func(bool, error) {})
		}
	case 1:
		id, ok := w.someApp(c, which>>16)
		if leaves := c.leaves(); ok && len(leaves) > 1 {
			to := leaves[which>>32%uint64(len(leaves))]
			w.audit.fault("applications moved to another queue")
			c.post(func(m *rm.Machine, now time.Time) func() {
				_ = m.Move(now, id, to) // a full queue may reject it
				return nil
			})
		}
	case 2:
		w.audit.fault("members drained")
		w.drain(c, "maintenance")
		w.after(2*d, func() { w.drain(c, "") })
	case 3:
		if c.up && !w.asleep(c.host) {
			w.audit.fault("queues reloaded")
			c.reload()
		}
	case 4:
		w.audit.fault("policies changed")
		split := []string{HomeFirst, ByHeadroom}[which>>8%2]
		w.changePolicy(`{"split":` + split + `}`)
	}
}

// someApp picks a running application with its home in a member.
func (w *World) someApp(c *cluster, which uint64) (creel.ApplicationID, bool) {
	var all []creel.ApplicationID
	for v := range c.m.Apps {
		if !v.Unmanaged && !v.State.Ended() {
			all = append(all, v.ID)
		}
	}
	if !c.up || w.asleep(c.host) || len(all) == 0 {
		return creel.ApplicationID{}, false
	}
	return all[which%uint64(len(all))], true
}

// killHelpless kills applications that have waited longer than any automatic recovery takes, if no unfinished
// application can proceed. It reports whether it killed any.
func (w *World) killHelpless() bool {
	var left []creel.ApplicationID
	for _, id := range w.audit.ids {
		if app := w.audit.apps[id]; app.ended.IsZero() {
			if !w.helpless(id, app.am) {
				return false
			}
			left = append(left, id)
		}
	}
	for _, id := range left {
		w.audit.fault("helpless applications killed by their users")
		w.say("%s is killed by its user: it cannot proceed", id)
		w.audit.apps[id].home.kill(id, "killed by its user", func(bool, error) {})
	}
	return len(left) > 0
}

// killSecondRuns kills runs of ended applications that cannot proceed. A store that went back lets a repeated
// submission run in another member than before.
func (w *World) killSecondRuns() {
	for _, id := range w.audit.ids {
		app := w.audit.apps[id]
		if app.ended.IsZero() || app.ams == 0 || !w.helpless(id, app.am) {
			continue
		}
		for _, c := range w.clusters {
			if v, ok := c.m.App(id); c.up && ok && !v.Unmanaged && !v.State.Ended() {
				w.audit.fault("helpless second runs killed by their users")
				w.say("%s is killed in %s by its user: it cannot proceed", id, c.id)
				c.kill(id, "killed by its user", func(bool, error) {})
			}
		}
	}
}

// helpless reports whether an application's AM accepts only places of members in which the application has ended. A
// member without fences, like Hadoop's, accepts an id only once. Such a UAM expires if neither its AM nor a proxy calls
// for the expiry time, e.g. when both died. No member starts a UAM of an application that it ran to its end and lists.
// A session that met that end asks the member for no UAM any more, also when the list drops the application.
func (w *World) helpless(id creel.ApplicationID, m *am) bool {
	if m == nil {
		return false
	}
	spent := func(c *cluster) bool {
		v, ok := c.m.App(id)
		return ok && v.State.Ended() && (c.hadoop || !v.Unmanaged) || !ok && c.kept.disowned(id) == math.MaxInt64
	}
	for _, h := range m.wishes {
		there := slices.DeleteFunc(slices.Clone(w.clusters), func(c *cluster) bool {
			return !slices.ContainsFunc(c.nodes, h.takes)
		})
		if h.strict && len(there) > 0 && !slices.ContainsFunc(there, func(c *cluster) bool { return !spent(c) }) {
			return true
		}
	}
	return false
}

// leaves returns the paths of the queues that accept applications.
func (c *cluster) leaves() (out []string) {
	for q := range c.m.Queues {
		if q.Leaf {
			out = append(out, string(q.Path))
		}
	}
	return out
}

// drain drains a member, or ends the drain if there is no reason.
func (w *World) drain(c *cluster, reason string) {
	if err := w.store.Drain(c.id, reason); err != nil {
		w.say("%s is not drained: %v", c.id, err) // not registered with this store yet
		return
	}
	w.tell(statestore.Change{Kind: statestore.ChangeMembers})
}

// reload exchanges the capacities of the queues below root.
func (c *cluster) reload() {
	spec := c.conf.Queues
	spec.Root.Children = slices.Clone(spec.Root.Children)
	children := spec.Root.Children
	for i := range len(children) / 2 {
		a, b := &children[i], &children[len(children)-1-i]
		a.Capacity, b.Capacity = b.Capacity, a.Capacity
	}
	c.conf.Queues = spec
	c.post(func(m *rm.Machine, now time.Time) func() {
		if err := m.ReloadQueues(now, spec); err != nil {
			c.w.audit.breach("%s refuses its queues: %v", c.id, err)
		}
		return nil
	})
}

// changePolicy replaces root's policy document.
func (w *World) changePolicy(document string) {
	if err := w.putRootPolicy(document); err != nil {
		w.audit.breach("the policy is refused: %v", err)
	}
}

func (w *World) putRootPolicy(document string) error {
	write := statestore.PolicyWrite{Queue: "root", Document: []byte(document), Author: "sim"}
	for _, p := range w.store.Records(w.storeClock()).Policies {
		if p.Queue == "root" {
			write.Expect = p.Version
		}
	}
	_, err := w.store.PutPolicy(w.storeClock(), write)
	if err == nil {
		w.tell(statestore.Change{Kind: statestore.ChangePolicies})
	}
	return err
}

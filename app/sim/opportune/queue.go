// SPDX-License-Identifier: Apache-2.0

package opportune

import (
	"fmt"
	"maps"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/nm"
	"github.com/creelrm/creel/subcluster/rm/opportunistic"
)

// Queue checks the containers of one node from outside. Each method returns the rule that the node has broken, or "".
type Queue struct {
	waiting map[creel.ContainerID]time.Time // containers without a process, by arrival
	over    map[creel.ContainerID]bool      // containers that the node has ended
}

// NewQueue returns the checks of a node without containers.
func NewQueue() *Queue {
	return &Queue{waiting: map[creel.ContainerID]time.Time{}, over: map[creel.ContainerID]bool{}}
}

// Waiting is the number of containers without a process. A nil Queue has none.
func (q *Queue) Waiting() int {
	if q == nil {
		return 0
	}
	return len(q.waiting)
}

// Arrives records a container that the node has accepted.
func (q *Queue) Arrives(id creel.ContainerID, now time.Time) {
	if q != nil {
		q.waiting[id] = now
	}
}

// Starts checks a container that the node starts. A node starts nothing that it has ended. It starts no opportunistic
// container while a guaranteed one waits. since is the time of its arrival.
func (q *Queue) Starts(m *nm.Node, c *nm.Container) (since time.Time, broken string) {
	since = q.waiting[c.ID]
	delete(q.waiting, c.ID)
	if q.over[c.ID] {
		return since, fmt.Sprintf("%s is started after its end", c.ID)
	}
	if c.Execution != creel.Opportunistic {
		return since, ""
	}
	for _, g := range m.Containers() {
		if _, waits := q.waiting[g.ID]; waits && g.Execution == creel.Guaranteed && g.State == nm.Scheduled {
			broken = fmt.Sprintf("opportunistic %s starts where guaranteed %s waits", c.ID, g.ID)
		}
	}
	return since, broken
}

// Since returns the arrival of a container without a process.
func (q *Queue) Since(id creel.ContainerID) (since time.Time, waits bool) {
	since, waits = q.waiting[id]
	return since, waits
}

// Reclaims checks that a guaranteed container waits only for guaranteed ones, and for opportunistic ones that are about
// to end or to pause. runs reports whether a container has a process.
func (q *Queue) Reclaims(m *nm.Node, total creel.Resource, runs func(creel.ContainerID) bool) string {
	if len(q.waiting) == 0 {
		return ""
	}
	var need creel.Resource
	var behind, ahead *nm.Container
	for _, c := range m.Containers() {
		_, waiting := q.waiting[c.ID]
		switch {
		case waiting && c.Execution == creel.Guaranteed && c.State == nm.Scheduled:
			need, behind = need.Add(c.Resource), c
		case !runs(c.ID) || c.State == nm.Killing || c.State == nm.Pausing || c.State == nm.Paused:
		default:
			need = need.Add(c.Resource)
			if c.Execution == creel.Opportunistic {
				ahead = c
			}
		}
	}
	if behind == nil || ahead == nil || need.Fits(total) {
		return ""
	}
	return fmt.Sprintf("guaranteed %s waits while opportunistic %s runs", behind.ID, ahead.ID)
}

// Ends records that the node has ended a container. killed reports that its scheduler did, and why.
func (q *Queue) Ends(m *nm.Node, id creel.ContainerID) (why opportunistic.Kill, killed bool) {
	delete(q.waiting, id)
	q.over[id] = true
	status, err := m.Status(id)
	exit := status.GetExitStatus()
	killed = err == nil && (exit == nm.ExitKilledByScheduler || exit == nm.ExitPreempted)
	return opportunistic.KillOf(status.GetDiagnostics()), killed
}

// Forget drops the ended containers of applications that do nothing any more. q may be nil.
func (q *Queue) Forget(over map[creel.ApplicationID]bool) {
	if q != nil {
		maps.DeleteFunc(q.over, func(id creel.ContainerID, _ bool) bool { return over[id.Attempt.Application] })
	}
}

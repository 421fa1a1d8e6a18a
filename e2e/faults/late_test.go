// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creelrm/creel/statestore/redis/redistest"
)

// late is the delay of a slow path. A router waits less for a member's response (creel.router.forward-timeout, 10 s).
// So a submission arrives after its router has timed out.
const late = 14 * time.Second

// slow returns a fault that delays the paths to a member by late.
func slow(directions ...int) func(memberProcess) {
	return func(m memberProcess) {
		for _, p := range m.paths {
			for _, d := range directions {
				p.slow(d, late)
			}
		}
		time.Sleep(late)
		for _, p := range m.paths {
			for _, d := range directions {
				p.slow(d, 0)
			}
		}
		time.Sleep(late + time.Second)
	}
}

// cut loses all packets from and to a member for 11.5 s.
func cut(m memberProcess) {
	for _, p := range m.paths {
		p.cut(11500 * time.Millisecond)
	}
	time.Sleep(stall)
}

// stopped stops a member for longer than its router waits. So the router times out while the submission is still in the
// member's socket buffer.
func stopped(m memberProcess) {
	m.Signal(syscall.SIGSTOP)
	time.Sleep(stall)
	m.Signal(syscall.SIGCONT)
	time.Sleep(time.Second)
}

// waitedFor matches the audit lines of submissions whose member did not answer within the router's limit of 10 s.
var waitedFor = regexp.MustCompile(`"target":"(application_\d+_\d+)".*"took":\d{11}`)

// Faults that leave processes alive affect all members but one, and the paths to them. Submissions by REST and by
// Hadoop RPC are in flight. The router times out on them, and they arrive afterwards. Two of the members run Hadoop's
// ResourceManager, which has no fence. Still each application is in one subcluster, each client that repeats as
// requested succeeds, and no AM is killed.
func TestLateSubmissionsDoubleNothing(t *testing.T) {
	operatorsSee(t)
	members := []*farMember{
		{name: "requests-late", start: creelRM, fault: slow(thither)},
		{name: "answers-late", start: creelRM, fault: slow(hither)},
		{name: "both-late", start: creelRM, fault: slow(thither, hither)},
		{name: "stopped", start: creelRM, fault: stopped},
		{name: "cut", start: creelRM, fault: cut},
		{name: "hadoop-late", start: hadoopRM, fault: slow(thither)},
		{name: "hadoop-stopped", start: hadoopRM, fault: stopped},
		{name: "well", start: creelRM, fault: func(memberProcess) {}},
	}
	s := story{behindPaths: foundBehindPaths(t, redistest.Start(t).URL(), members)}
	unmet := members[:len(members)-1]
	// On a loaded machine a fault may pass before a submission reaches its member; then it is applied again.
	for round := 0; round < 4 && len(unmet) > 0; round++ {
		s.tell(96/(1+round), func() {
			var faults sync.WaitGroup
			for _, m := range unmet {
				faults.Go(func() { m.fault(m.memberProcess) })
			}
			faults.Wait()
		})
		waited := waitedFor.FindAllStringSubmatch(s.router.Output(), -1)
		unmet = slices.DeleteFunc(slices.Clone(unmet), func(m *farMember) bool {
			out := m.Output()
			return strings.Contains(s.router.Output(), "its home "+m.name+" did not answer") ||
				strings.Contains(out, "disownApplication") ||
				slices.ContainsFunc(waited, func(w []string) bool { return strings.Contains(out, w[1]) })
		})
	}
	for _, m := range unmet {
		t.Errorf("the fault of %s met no submission: it proves nothing", m.name)
	}
	s.audit()
}

// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creelrm/creel/statestore/redis/redistest"
)

// late is how late a slow path is: later than a router waits for a member's
// answer (creel.router.forward-timeout, 10 s), so that a submission arrives when
// its router has given it up.
const late = 14 * time.Second

// slow makes the paths to a member slow for as long as that.
func slow(directions ...int) func(far) {
	return func(m far) {
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

// cut loses what is sent to and from a member for 11.5 s.
func cut(m far) {
	for _, p := range m.paths {
		p.cut(11500 * time.Millisecond)
	}
	time.Sleep(stall)
}

// stopped stops a member for longer than its router waits, so that the router
// gives up while the submission lies in the member's socket.
func stopped(m far) {
	m.Signal(syscall.SIGSTOP)
	time.Sleep(stall)
	m.Signal(syscall.SIGCONT)
	time.Sleep(time.Second)
}

// Faults that are no deaths befall all members of a federation but one, and the
// paths to them, while submissions by REST and by Hadoop RPC are on their way;
// their router gives them up, and they arrive afterwards. Two of the members are
// Hadoop's, which know of no fence. Each application is in one subcluster all the
// same, each client that repeats as it is told is answered success, and no AM is
// killed.
func TestWhatArrivesLateDoublesNothing(t *testing.T) {
	operatorsSee(t)
	members := []*farMember{
		{name: "requests-late", start: creelRM, fault: slow(thither)},
		{name: "answers-late", start: creelRM, fault: slow(hither)},
		{name: "both-late", start: creelRM, fault: slow(thither, hither)},
		{name: "stopped", start: creelRM, fault: stopped},
		{name: "cut", start: creelRM, fault: cut},
		{name: "hadoop-late", start: hadoopRM, fault: slow(thither)},
		{name: "hadoop-stopped", start: hadoopRM, fault: stopped},
		{name: "well", start: creelRM, fault: func(far) {}},
	}
	s := story{behindPaths: foundBehindPaths(t, redistest.Start(t).URL(), members)}
	met := map[string]bool{}
	s.tell(96, func() {
		var faults sync.WaitGroup
		over := make(chan struct{})
		for _, m := range members {
			faults.Go(func() { m.fault(m.far) })
		}
		go func() {
			faults.Wait()
			close(over)
		}()
		for {
			select {
			case <-over:
				return
			case <-time.After(500 * time.Millisecond):
				s.givenUp(met)
			}
		}
	})
	for _, m := range members[:len(members)-1] {
		if !met[m.name] && !strings.Contains(m.Output(), "disownApplication") {
			t.Errorf("the fault of %s met no submission: it proves nothing", m.name)
		}
	}
	s.audit()
}

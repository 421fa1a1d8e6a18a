// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/internal/units"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/nm"
)

// Started is a container that a simulated node has started.
type Started struct {
	Container creel.ContainerID
	Node      creel.NodeID
	User      string
	Resource  creel.Resource
	AM        bool // the container of an application master
	Launch    *pb.ContainerLaunchContextProto
}

// Hook is called for every container that starts. If it takes the container (a non-nil stop), the container runs
// until exit is called or the container is killed. After a kill, stop is called and exit has no effect. Hook and stop
// must not block; any goroutine may call exit, even the hook itself.
type Hook func(s Started, exit func(code int32, diagnostic string)) (stop func())

// Node is one simulated node: the machine, and an executor that only waits. Any goroutine may call it. Its lock
// protects both and is never held during I/O.
type Node struct {
	farm *Farm

	mu   sync.Mutex
	m    *nm.Node
	jobs map[creel.ContainerID]*job
	pace nm.Pace
	tick time.Time // of the machine's next deadline, if set
}

// job is a container's simulated process.
type job struct {
	ended  bool
	stop   func() // returned by the hook that took it
	script nm.Script
	shape  nm.Shape
	size   creel.Resource
	began  time.Time
	due    time.Time     // its end, zero while it is paused or a hook may take it
	left   time.Duration // run time at the pause
	paused bool
}

// Do passes an event to the machine and performs its actions. The error is the machine's.
func (n *Node) Do(now time.Time, e nm.Event) error {
	n.mu.Lock()
	calls, err := n.locked(now, e, nil)
	n.mu.Unlock()
	for _, call := range calls {
		call()
	}
	return err
}

// Signal sends a signal to a container's process, if there is one.
func (n *Node) Signal(now time.Time, id creel.ContainerID, command pb.SignalContainerCommandProto) {
	n.mu.Lock()
	calls := n.perform(now, nm.SignalContainer{ID: id, Command: command}, nil)
	n.mu.Unlock()
	for _, call := range calls {
		call()
	}
}

// Status of a container, see nm.Node.
func (n *Node) Status(id creel.ContainerID) (*pb.ContainerStatusProto, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.m.Status(id)
}

// Log returns the output of a container: its state, since no program writes any. It reports false for
// containers that the node does not know.
func (n *Node) Log(id creel.ContainerID) (text string, known bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	status, err := n.m.Status(id)
	if err != nil {
		return "", false
	}
	text = "creel simulates this node: the container runs no program and writes nothing.\n" +
		"state " + strings.TrimPrefix(status.GetState().String(), "C_") + "\n"
	if j := n.jobs[id]; j != nil && j.stop == nil {
		text += fmt.Sprintf("simulated run time %s, exit code %d\n", units.Age(j.script.Run.Seconds()), j.script.Code)
	}
	if d := strings.TrimSpace(status.GetDiagnostics()); d != "" {
		text += "diagnostics:\n" + d + "\n"
	}
	return text, true
}

// CheckNM returns the password of an NMToken, see nm.Node.
func (n *Node) CheckNM(id token.NM, identifier []byte) ([]byte, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.m.CheckNM(id, identifier)
}

// CheckContainer returns the content of a container token, see nm.Node.
func (n *Node) CheckContainer(t token.Token) (token.Container, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.m.CheckContainer(t)
}

// locked is Do with the lock held. calls are hook functions to run after its release.
func (n *Node) locked(now time.Time, e nm.Event, calls []func()) ([]func(), error) {
	actions, err := n.m.Step(now, e)
	// Carrying out an action may step the machine again, which reuses its slice.
	todo := append([]nm.Action(nil), actions...)
	for _, a := range todo {
		calls = n.perform(now, a, calls)
	}
	if d := n.m.NextDeadline(); !d.IsZero() && !d.Equal(n.tick) {
		n.tick = d
		n.farm.timers.at(d, func(now time.Time) { _ = n.Do(now, nm.Tick{}) })
	}
	return calls, err
}

func (n *Node) perform(now time.Time, a nm.Action, calls []func()) []func() {
	switch a := a.(type) {
	case nm.Localize:
		id := a.Container.ID
		if d := n.farm.cfg.LocalizeTime; d > 0 {
			n.farm.timers.at(now.Add(d), func(now time.Time) { _ = n.Do(now, nm.Localized{ID: id}) })
			return calls
		}
		calls, _ = n.locked(now, nm.Localized{ID: id}, calls)
	case nm.Launch:
		return n.launch(now, a, calls)
	case nm.Kill:
		if j := n.jobs[a.ID]; j != nil && !j.ended {
			if j.stop != nil {
				calls = append(calls, j.stop)
			}
			return n.exited(now, a.ID, j, int32(128+a.Signal), "", calls)
		}
		// Killed between Launch and the process's start: it ends at once.
	case nm.Pause:
		if j := n.jobs[a.ID]; j != nil && !j.ended {
			calls, _ = n.locked(now, nm.Suspended{ID: a.ID, Failure: j.pause(now, a.ID)}, calls)
		}
	case nm.Resume:
		if j := n.jobs[a.ID]; j != nil && !j.ended {
			j.paused = false
			n.runFor(now, a.ID, j, j.left)
			calls, _ = n.locked(now, nm.Resumed(a), calls)
		}
	case nm.Cleanup:
		delete(n.jobs, a.ID)
		n.soon(now)
	case nm.SignalContainer:
		if a.Command != pb.SignalContainerCommandProto_OUTPUT_THREAD_DUMP {
			if j := n.jobs[a.ID]; j != nil && !j.ended {
				if j.stop != nil {
					calls = append(calls, j.stop)
				}
				code := int32(nm.ExitTerminated)
				if a.Command == pb.SignalContainerCommandProto_FORCEFUL_SHUTDOWN {
					code = nm.ExitForceKilled
				}
				return n.exited(now, a.ID, j, code, "", calls)
			}
		}
	case nm.Register:
		n.farm.metrics.Resyncs.Add(1)
		n.wake(now)
	case nm.Halt:
		n.pace.Halt()
		n.farm.log.Info("node stopped by the ResourceManager", "node", n.m.ID().String(), "reason", a.Reason)
	case nm.AppEnded:
	}
	return calls
}

func (n *Node) launch(now time.Time, a nm.Launch, calls []func()) []func() {
	c, j := a.Container, &job{script: nm.ReadScript(a.Launch, n.farm.cfg.RunTime), began: now}
	j.size = c.Resource
	j.shape = nm.NewShape(0, c.ID, j.script)
	n.jobs[c.ID] = j
	n.farm.metrics.Started.Add(1)
	calls, _ = n.locked(now, nm.Launched{ID: c.ID}, calls)
	end := func(code int32, diagnostic string) {
		at := time.Now()
		n.mu.Lock()
		calls := n.exited(at, c.ID, j, code, diagnostic, nil)
		n.mu.Unlock()
		for _, call := range calls {
			call()
		}
	}
	hook := n.farm.cfg.OnStart
	if hook == nil {
		n.runFor(now, c.ID, j, j.script.Run)
		return calls
	}
	started := Started{
		Container: c.ID,
		Node:      n.m.ID(),
		User:      c.User,
		Resource:  c.Resource,
		AM:        c.AM,
		Launch:    a.Launch,
	}
	return append(calls, func() {
		stop := hook(started, end)
		n.mu.Lock()
		if stop == nil {
			n.runFor(now, c.ID, j, j.script.Run)
			n.mu.Unlock()
			return
		}
		late := j.ended // killed before the hook returned
		j.stop = stop
		n.mu.Unlock()
		if late {
			stop()
		}
	})
}

// runFor ends a job by its script after a time, unless it pauses before. A paused job only gets the time. The caller
// holds the lock.
func (n *Node) runFor(now time.Time, id creel.ContainerID, j *job, left time.Duration) {
	if j.left = left; j.paused {
		return
	}
	due := now.Add(left)
	j.due = due
	n.farm.timers.at(due, func(time.Time) {
		at := time.Now()
		n.mu.Lock()
		var calls []func()
		if j.due.Equal(due) {
			calls = n.exited(at, id, j, j.script.Code, exitText(j.script.Code), nil)
		}
		n.mu.Unlock()
		for _, call := range calls {
			call()
		}
	})
}

// measure returns the use of the jobs, as an executor of real processes would measure it. A paused job uses no CPU.
func (n *Node) measure(now time.Time) nm.Measured {
	uses := make([]nm.Use, 0, len(n.jobs))
	for id, j := range n.jobs {
		if j.ended {
			continue
		}
		x := nm.Use{ID: id, Use: j.shape.At(j.size, now.Sub(j.began))}
		if j.paused {
			x.Use.MilliCores = 0
		}
		uses = append(uses, x)
	}
	return nm.Measured{Uses: uses}
}

// pause stops a job's time. It returns the reason if the job cannot pause.
func (j *job) pause(now time.Time, id creel.ContainerID) (failure string) {
	if j.stop != nil {
		return "Exception when trying to pause container " + id.String() + ": it simulates a program"
	}
	j.paused = true
	if !j.due.IsZero() {
		j.left, j.due = max(j.due.Sub(now), 0), time.Time{}
	}
	return ""
}

func exitText(code int32) string {
	if code == 0 {
		return ""
	}
	return "Exception from container-launch.\nExit code: " + strconv.Itoa(int(code)) + "\n"
}

// exited ends a job once, at the first of these: its time, its hook or a kill.
func (n *Node) exited(
	now time.Time,
	id creel.ContainerID,
	j *job,
	code int32,
	diagnostic string,
	calls []func(),
) []func() {
	if j.ended || n.jobs[id] != j {
		return calls
	}
	j.ended = true
	n.farm.metrics.Finished.Add(1)
	calls, _ = n.locked(now, nm.Exited{ID: id, Code: code, Diagnostic: diagnostic}, calls)
	return calls
}

// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"fmt"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/workload"
)

// Priority of the containers' ask.
const priority = 0

// maxTold limits the failures that the diagnostics name.
const maxTold = 5

// Job decides the actions of a Spec's AM. It performs no I/O and has one owner. It asks for the containers, starts
// the command in each, and counts their outcomes. Failures are not repeated. It implements load.Job.
type Job struct {
	containers int
	size       creel.Resource
	simulated  bool

	wants    int // containers not granted yet
	running  map[creel.ContainerID]creel.NodeID
	reasons  map[creel.ContainerID]string // why some did not start
	ended    int
	failed   int
	told     []string // of the first failures
	sent     int      // last count sent to the ResourceManager; -1: none
	finished bool
}

// NewJob makes the job of a Spec. On simulated nodes it reports that the command was not executed.
func NewJob(s Spec, simulated bool) *Job {
	return &Job{
		containers: s.Containers, size: s.Size(), simulated: simulated, wants: s.Containers, sent: -1,
		running: map[creel.ContainerID]creel.NodeID{}, reasons: map[creel.ContainerID]string{},
	}
}

// Outstanding returns the numbers of containers that it still wants and has.
func (j *Job) Outstanding() (wants, holds int) { return j.wants, len(j.running) }

// Share is the finished fraction of the job, 0 to 1.
func (j *Job) Share() float32 { return float32(j.ended) / float32(j.containers) }

// Registered asks for all containers that are still wanted.
func (j *Job) Registered() workload.Steps {
	j.sent = -1
	return j.settle(workload.Steps{})
}

// Allocated processes an answer of the scheduler.
func (j *Job) Allocated(grants []workload.Grant, ended []workload.Completion) workload.Steps {
	var s workload.Steps
	for _, e := range ended {
		j.end(e)
	}
	for _, g := range grants {
		if j.wants == 0 || j.finished {
			s.Releases = append(s.Releases, g.Container) // more than requested
			continue
		}
		j.wants--
		j.sent-- // the ResourceManager lowered its own count
		j.running[g.Container] = g.Node
		s.Starts = append(s.Starts, workload.Start{Grant: g})
	}
	return j.settle(s)
}

// NotStarted records the reason for the next StartFailed.
func (j *Job) NotStarted(c creel.ContainerID, reason string) { j.reasons[c] = reason }

// StartFailed counts a container that its node did not start as failed.
func (j *Job) StartFailed(c creel.ContainerID) workload.Steps {
	var s workload.Steps
	if _, ok := j.running[c]; ok {
		s.Releases = []creel.ContainerID{c}
		j.end(workload.Completion{
			Container: c, Exit: creel.ExitAborted, Diagnostics: "it was not started: " + j.reasons[c],
		})
	}
	delete(j.reasons, c)
	return j.settle(s)
}

func (j *Job) end(e workload.Completion) {
	node, ok := j.running[e.Container]
	if !ok {
		return // it was released
	}
	delete(j.running, e.Container)
	j.ended++
	if e.Exit == creel.ExitSuccess {
		return
	}
	j.failed++
	if len(j.told) < maxTold {
		text := fmt.Sprintf("%s on %s: exit code %d", e.Container, node, e.Exit)
		if why := brief(e.Diagnostics); why != "" {
			text += " (" + why + ")"
		}
		j.told = append(j.told, text)
	}
}

// settle asks if the count has changed, and ends the job when all containers have ended.
func (j *Job) settle(s workload.Steps) workload.Steps {
	if j.finished {
		return s
	}
	if j.sent != j.wants {
		j.sent = j.wants
		s.Asks = append(s.Asks, workload.Ask{Priority: priority, Name: "*", Count: int32(j.wants), Size: j.size})
	}
	if j.ended == j.containers {
		j.finished = true
		s.Finish, s.Failed, s.Diagnostics = true, j.failed > 0, j.diagnostics()
	}
	return s
}

// diagnostics describes the outcome in one line.
func (j *Job) diagnostics() string {
	var b strings.Builder
	if j.failed == 0 {
		fmt.Fprintf(&b, "%d of %d containers ended with exit code 0", j.ended, j.containers)
	} else {
		fmt.Fprintf(&b, "%d of %d containers failed: %s", j.failed, j.containers, strings.Join(j.told, "; "))
		if more := j.failed - len(j.told); more > 0 {
			fmt.Fprintf(&b, "; and %d more", more)
		}
	}
	if j.simulated {
		b.WriteString(" (simulated nodes: nothing was executed)")
	}
	return b.String()
}

// maxReason limits, in bytes, the reported reason of one container's end.
const maxReason = 300

// brief returns the informative part of a node's report on one line: the last lines, with the command's error output.
func brief(report string) string {
	var said []string
	for line := range strings.Lines(report) {
		line = strings.Trim(strings.TrimSpace(line), "[]")
		switch {
		case line == "",
			strings.HasPrefix(line, "Exception from container-launch"),
			strings.HasPrefix(line, "Container id: "),
			strings.HasPrefix(line, "Exit code: "),
			strings.HasPrefix(line, "Container exited with a non-zero exit code"),
			strings.HasPrefix(line, "Last 4096 bytes of"),
			strings.Contains(line, "]Container exited with a non-zero exit code"),
			strings.Contains(line, "Exception from container-launch."),
			strings.HasPrefix(line, "at "):
			continue
		}
		said = append(said, line)
	}
	text := strings.Join(said, " / ")
	if len(text) > maxReason {
		text = "..." + strings.ToValidUTF8(text[len(text)-maxReason:], "")
	}
	return text
}

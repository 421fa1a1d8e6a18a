// SPDX-License-Identifier: Apache-2.0

package servlets

import (
	"bytes"
	"fmt"
	"net/http"
	"path"
	"runtime"
	"strings"
)

// maxStacks limits the text of all stacks. All goroutines are stopped while it is written.
const maxStacks = 16 << 20

// stacks lists the stacks of all goroutines in the form of Hadoop's servlet, which parsers of thread dumps read.
func stacks(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=UTF-8")
	text := make([]byte, 1<<20)
	n := runtime.Stack(text, true)
	for n == len(text) && n < maxStacks {
		text = make([]byte, 2*len(text))
		n = runtime.Stack(text, true)
	}
	cut := n == len(text)
	all := strings.Split(strings.TrimSpace(string(text[:n])), "\n\n")
	if cut { // the last one may be incomplete
		all = all[:len(all)-1]
	}
	active := len(all)
	if cut {
		active = runtime.NumGoroutine()
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "Process Thread Dump: \n%d active threads\n", active)
	for _, g := range all {
		writeThread(&b, g)
	}
	if cut {
		fmt.Fprintf(&b, "The first %d threads are listed: the text of all of them exceeds %d MiB.\n", len(all), maxStacks>>20)
	}
	w.Write(b.Bytes()) // an error here means that the client disconnected
}

// writeThread writes one goroutine of runtime.Stack as a thread. Its name is the function that it began with. Go does
// not count how often a goroutine has waited: the counts are of its present wait alone.
func writeThread(b *bytes.Buffer, goroutine string) {
	head, rest, _ := strings.Cut(goroutine, "\n")
	id, why := parseHead(head)
	state := threadState(why)
	blocked, waited := 0, 0
	switch state {
	case "BLOCKED":
		blocked = 1
	case "WAITING", "TIMED_WAITING":
		waited = 1
	}
	var frames []string
	name := "unknown"
	for lines := strings.Split(rest, "\n"); len(lines) > 0; lines = lines[1:] {
		function := lines[0]
		if strings.HasPrefix(function, "created by ") {
			break
		}
		if strings.HasPrefix(function, "...") { // frames that the runtime left out
			frames = append(frames, function)
			continue
		}
		if at := strings.LastIndexByte(function, '('); at > 0 { // its arguments
			function = function[:at]
		}
		place := "Unknown Source"
		if len(lines) > 1 && strings.HasPrefix(lines[1], "\t") {
			place, _, _ = strings.Cut(strings.TrimSpace(lines[1]), " +0x")
			place = path.Base(place)
			lines = lines[1:]
		}
		name = function
		frames = append(frames, function+"("+place+")")
	}
	fmt.Fprintf(b, "Thread %s (%s):\n  State: %s\n", id, name, state)
	fmt.Fprintf(b, "  Blocked count: %d\n  Waited count: %d\n", blocked, waited)
	switch state {
	case "BLOCKED":
		fmt.Fprintf(b, "  Blocked on %s\n", why)
	case "WAITING":
		fmt.Fprintf(b, "  Waiting on %s\n", why)
	}
	b.WriteString("  Stack:\n")
	for _, f := range frames {
		b.WriteString("    " + f + "\n")
	}
}

// parseHead splits "goroutine 7 [chan receive, 5 minutes]:". The head may have the group of a GC scan as well:
// "[select (scan)]".
func parseHead(head string) (id, why string) {
	head = strings.TrimPrefix(head, "goroutine ")
	id, head, _ = strings.Cut(head, " ")
	_, why, _ = strings.Cut(head, "[")
	why, _, _ = strings.Cut(why, "]")
	why, _, _ = strings.Cut(why, ",")
	return id, strings.TrimSuffix(why, " (scan)")
}

// threadState maps the runtime's wait reasons to Java's states of threads.
func threadState(why string) string {
	switch {
	case why == "running", why == "runnable", why == "syscall":
		return "RUNNABLE"
	case why == "semacquire", strings.HasPrefix(why, "sync.Mutex"), strings.HasPrefix(why, "sync.RWMutex"):
		return "BLOCKED"
	case why == "sleep":
		return "TIMED_WAITING"
	}
	return "WAITING"
}

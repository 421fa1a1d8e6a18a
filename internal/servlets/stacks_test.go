// SPDX-License-Identifier: Apache-2.0

package servlets_test

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creelrm/creel/internal/servlets"
)

func waitForLock(m *sync.Mutex)  { m.Lock(); defer m.Unlock() }
func waitForEnd(c chan struct{}) { <-c }
func sleepLong()                 { time.Sleep(time.Hour) }

// thread is one thread of a dump, as parsers read it.
type thread struct{ state, blocked, waited, more, stack string }

var threadForm = regexp.MustCompile(
	`(?m)^Thread (\d+) \((.+)\):\n  State: (\w+)\n  Blocked count: (\d+)\n  Waited count: (\d+)\n((?:  (?:Waiting|Blocked) on .+\n)?)  Stack:\n((?:    \S.*\n)+)`,
)

func TestStacksAreAThreadDump(t *testing.T) {
	s := newSite(t, servlets.Config{})
	var lock sync.Mutex
	lock.Lock()
	end := make(chan struct{})
	go waitForLock(&lock)
	go waitForEnd(end)
	go sleepLong()
	defer func() { lock.Unlock(); close(end) }()
	want := map[string]thread{
		"waitForLock": {"BLOCKED", "1", "0", "  Blocked on sync.Mutex.Lock\n", "stacks_test.go:16"},
		"waitForEnd":  {"WAITING", "0", "1", "  Waiting on chan receive\n", "stacks_test.go:17"},
		"sleepLong":   {"TIMED_WAITING", "0", "1", "", "stacks_test.go:18"},
	}
	const pkg = "github.com/creelrm/creel/internal/servlets_test."
	var got map[string]thread
	var body string
	ready := func() bool { // they may not have begun to wait
		_, body = s.call("GET", "/stacks")
		got = map[string]thread{}
		for _, m := range threadForm.FindAllStringSubmatch(body, -1) {
			got[strings.TrimPrefix(m[2], pkg)] = thread{m[3], m[4], m[5], m[6], m[7]}
		}
		for name, w := range want {
			if got[name].state != w.state {
				return false
			}
		}
		return true
	}
	for !ready() {
		if t.Context().Err() != nil {
			t.Fatalf("threads: %v in\n%s", got, body)
		}
		time.Sleep(time.Millisecond)
	}
	for name, w := range want {
		g := got[name]
		if g.blocked != w.blocked || g.waited != w.waited || g.more != w.more ||
			!strings.HasSuffix(g.stack, "    "+pkg+name+"("+w.stack+")\n") {
			t.Errorf("%s: %+v", name, g)
		}
	}
	// Nothing but threads is in the dump, and their number is right.
	title, rest, _ := strings.Cut(body, "\n")
	var active int
	fmt.Sscanf(rest, "%d active threads", &active)
	_, rest, _ = strings.Cut(rest, "\n")
	if n := len(threadForm.FindAllString(body, -1)); title != "Process Thread Dump: " || n != active {
		t.Errorf("%q with %d active threads, %d listed", title, active, n)
	}
	if left := threadForm.ReplaceAllString(rest, ""); left != "" {
		t.Errorf("beside threads: %q", left)
	}
}

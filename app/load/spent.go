// SPDX-License-Identifier: Apache-2.0

package load

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// useMeter measures the CPU time between two moments, of this process and of watched processes on this machine, from
// /proc.
type useMeter struct {
	pids  []int
	timer *time.Timer

	mu      sync.Mutex
	begun   bool
	own     time.Duration
	others  []time.Duration
	results struct {
		own    time.Duration
		others []time.Duration
		memory []int64 // resident bytes at the end
	}
}

func newSpending(pids []int) *useMeter { return &useMeter{pids: pids} }

// startAt takes the first reading after the warm-up.
func (s *useMeter) startAt(at time.Time) {
	s.timer = time.AfterFunc(time.Until(at), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.read()
	})
}

func (s *useMeter) read() {
	s.begun, s.own, s.others = true, ownCPU(), s.others[:0]
	for _, pid := range s.pids {
		cpu, _, _ := processUse(pid)
		s.others = append(s.others, cpu)
	}
}

// stop takes the second reading.
func (s *useMeter) stop() {
	s.timer.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun {
		s.read() // it ended during the warm-up
	}
	s.results.own = ownCPU() - s.own
	for i, pid := range s.pids {
		cpu, memory, err := processUse(pid)
		if err != nil {
			cpu = s.others[i] // it has ended
		}
		s.results.others = append(s.results.others, cpu-s.others[i])
		s.results.memory = append(s.results.memory, memory)
	}
}

func (s *useMeter) each(answers, seconds float64) (Generator, []ProcessUse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	per := func(d time.Duration) float64 {
		if answers == 0 {
			return 0
		}
		return round(float64(d.Microseconds()) / answers)
	}
	g := Generator{
		CPUSeconds: round(s.results.own.Seconds()),
		Cores:      round(s.results.own.Seconds() / seconds),
		CPUMicros:  per(s.results.own),
	}
	var others []ProcessUse
	for i, pid := range s.pids {
		d := s.results.others[i]
		others = append(
			others,
			ProcessUse{PID: pid, CPUSeconds: round(d.Seconds()), Cores: round(d.Seconds() / seconds), CPUMicros: per(d),
				ResidentMB: round(float64(s.results.memory[i]) / (1 << 20))},
		)
	}
	return g, others
}

// ownCPU is the processor time of this process, user and system.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// clockTick is the unit of /proc/PID/stat on every Linux that Go supports.
const clockTick = 10 * time.Millisecond

// processUse reads the processor time and the resident memory of a process.
func processUse(pid int) (cpu time.Duration, resident int64, err error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, fmt.Errorf("process %d cannot be watched: %w", pid, err)
	}
	// The name is in brackets and may contain any character; the fields start after it.
	text := string(b)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 22 {
		return 0, 0, fmt.Errorf("process %d: its stat has only %d fields", pid, len(fields))
	}
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	pages, err3 := strconv.ParseInt(fields[21], 10, 64)
	if err1 != nil || err2 != nil || err3 != nil {
		return 0, 0, fmt.Errorf("process %d: its stat cannot be read: %q", pid, text)
	}
	return time.Duration(user+system) * clockTick, pages * int64(os.Getpagesize()), nil
}

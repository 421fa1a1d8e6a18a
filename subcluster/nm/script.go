// SPDX-License-Identifier: Apache-2.0

package nm

import (
	"math"
	"strconv"
	"strings"
	"time"

	pb "github.com/creelrm/creel/internal/yarnpb"
)

// These variables in a launch context's environment control a simulated container.
const (
	EnvMillis = "CREEL_SIM_MS"   // run time
	EnvExit   = "CREEL_SIM_EXIT" // exit code, 0 if absent
	EnvUse    = "CREEL_SIM_USE"  // use of its size, in percent; drawn if absent
)

// EnvWork is the environment variable with the remaining work of a container's job, in ms. Queues by work use it.
const EnvWork = "CREEL_REMAINING_WORK_MS"

// ReadWork finds the remaining work of a job in a launch context. Without it a container counts as the longest.
func ReadWork(l *pb.ContainerLaunchContextProto) time.Duration {
	for _, e := range l.GetEnvironment() {
		if e.GetKey() != EnvWork {
			continue
		}
		ms, err := strconv.ParseInt(e.GetValue(), 10, 64)
		if err == nil && ms >= 0 && ms <= math.MaxInt64/int64(time.Millisecond) {
			return time.Duration(ms) * time.Millisecond
		}
	}
	return math.MaxInt64
}

// Script is a simulated container's behaviour: its run time, its exit code and its use.
type Script struct {
	Run  time.Duration
	Code int32
	Use  int32 // of its size, in percent; 0: as Shape draws it
}

// ReadScript finds the script in a launch context: the environment, else a command "sleep N" (seconds) anywhere in
// the command line, else the default run time.
func ReadScript(l *pb.ContainerLaunchContextProto, otherwise time.Duration) Script {
	s := Script{Run: otherwise}
	words := strings.Fields(strings.Join(l.GetCommand(), " "))
	for i, w := range words {
		if w != "sleep" || i+1 == len(words) {
			continue
		}
		if sec, err := strconv.ParseFloat(words[i+1], 64); err == nil && sec >= 0 && sec < 1e9 {
			s.Run = time.Duration(sec * float64(time.Second))
		}
	}
	for _, e := range l.GetEnvironment() {
		n, err := strconv.ParseInt(e.GetValue(), 10, 32)
		if err != nil {
			continue
		}
		switch e.GetKey() {
		case EnvMillis:
			s.Run = time.Duration(max(n, 0)) * time.Millisecond
		case EnvExit:
			s.Code = int32(n)
		case EnvUse:
			s.Use = int32(min(max(n, 0), 100))
		}
	}
	return s
}

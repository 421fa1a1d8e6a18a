// SPDX-License-Identifier: Apache-2.0

package nm_test

import (
	"slices"
	"testing"
	"time"

	"github.com/creelrm/creel/subcluster/nm"
)

func TestOneCallIsInFlight(t *testing.T) {
	var p nm.Pace
	now := time.Unix(1000, 0)
	if !p.Wake(now.Add(time.Second)) || p.Wake(now.Add(2*time.Second)) || !p.Wake(now) {
		t.Error("only an earlier time needs a timer")
	}
	if !p.Fire(now) || p.Fire(now) || p.Fire(now.Add(time.Second)) || p.Wake(now) {
		t.Error("a call is on its way, and another is made")
	}
	p.Ended()
	if at, set := p.Next(now, now.Add(time.Millisecond), time.Second, true); !set || !at.Equal(now.Add(time.Second)) {
		t.Errorf("the next at %v, %v", at, set)
	}
	if p.Halt(); p.Fire(now.Add(time.Second)) || p.Wake(now) {
		t.Error("a halted node calls")
	}
}

func TestHeartbeatFollowsCompletionSoon(t *testing.T) {
	p := nm.Pace{Eager: 20 * time.Millisecond}
	now := time.Unix(1000, 0)
	p.Wake(now.Add(time.Second))
	if at, set := p.Hurry(now, true); !set || !at.Equal(now.Add(p.Eager)) || !p.Fire(at) {
		t.Errorf("%v, %v", at, set)
	}
	if _, set := p.Hurry(now, true); set { // it may have ended after the call's report was made
		t.Error("a second call")
	}
	p.Ended()
	if at, _ := p.Next(now, now, time.Second, true); !at.Equal(now.Add(p.Eager)) {
		t.Errorf("after the call at %v", at)
	}
	if _, set := p.Hurry(now, false); set {
		t.Error("a node that is registering hurries")
	}
	var patient nm.Pace
	if _, set := patient.Hurry(now, true); set {
		t.Error("a node that waits as Hadoop's do hurries")
	}
}

// Its driver's timers never lie in the past: one that did would fire at another time
// than the one that is due, and the node would never call again.
func TestNextCallIsDueAfterLateAnswer(t *testing.T) {
	var p nm.Pace
	now := time.Unix(1000, 0)
	p.Wake(now)
	p.Fire(now)
	p.Ended()
	late := now.Add(3 * time.Second)
	if at, set := p.Next(now, late, time.Second, true); !set || !at.Equal(late) || !p.Fire(late) {
		t.Errorf("the next at %v, %v", at, set)
	}
}

func TestSilentResourceManagerIsCalledWithBackoff(t *testing.T) {
	var p nm.Pace
	now := time.Unix(1000, 0)
	var pauses []int64
	for range 7 {
		p.Wake(now)
		p.Fire(now)
		p.Ended()
		at, _ := p.Next(now, now, time.Second, false)
		pauses = append(pauses, at.Sub(now).Milliseconds())
		now = at
	}
	if !slices.Equal(pauses, []int64{100, 200, 400, 800, 1600, 2000, 2000}) {
		t.Errorf("pauses %v", pauses)
	}
	p.Fire(now)
	p.Ended()
	if at, _ := p.Next(now, now, time.Second, true); at.Sub(now) != time.Second {
		t.Errorf("after an answer %v", at.Sub(now))
	}
}

// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
)

// If containers run exactly as long as those of their applications did, a further one starts when the node has
// estimated.
func TestWaitIsThatOfTheQueue(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		s := New(Config{Length: 100, Estimates: true}, drawnTotal)
		now, id := time.Unix(1000, 0), int64(0)
		runs := map[creel.ApplicationID]time.Duration{}
		arrive := func(app int32, size creel.Resource) *Item {
			id++
			x := &Item{
				ID:   creel.NewContainerID(creel.AttemptID{Application: creel.ApplicationID{ID: app}, Attempt: 1}, 0, id),
				Size: size, Opportunistic: true, Since: now,
			}
			s.Arrive(x)
			return x
		}
		for app := range int32(3) {
			k := creel.ApplicationID{ID: app}
			runs[k] = time.Duration(rapid.IntRange(1, 20).Draw(t, "run time")) * time.Second
			s.Ran(&Item{ID: creel.ContainerID{Attempt: creel.AttemptID{Application: k}}}, runs[k])
		}
		// settle starts containers, and ends those that have run.
		settle := func() {
			for _, d := range s.Settle() {
				d.Item.Started = now
			}
		}
		step := func() {
			now = now.Add(time.Second)
			for _, x := range slices.Clone(s.running) {
				if now.Sub(x.Started) >= runs[x.ID.Attempt.Application] {
					s.Remove(x)
				}
			}
			settle()
		}
		for range rapid.IntRange(0, 12).Draw(t, "containers") {
			arrive(rapid.Int32Range(0, 2).Draw(t, "application"), drawSize(t))
			settle()
			for range rapid.IntRange(0, 2).Draw(t, "seconds") {
				step()
			}
		}
		want, ok := s.Wait(now)
		if !ok {
			t.Fatal("no estimate")
		}
		from := now
		probe := arrive(0, s.meanSize())
		for settle(); probe.Waiting(); {
			step()
		}
		if got := now.Sub(from); got != want {
			t.Fatalf("it started after %v, estimated %v", got, want)
		}
	})
}

func TestNodeEstimatesOnlyWithItsKey(t *testing.T) {
	if wait, ok := New(Config{Length: 3}, drawnTotal).Wait(time.Unix(1000, 0)); ok {
		t.Errorf("estimated %v", wait)
	}
}

// A node remembers the run times of present applications only.
func TestForgottenApplicationHasTheMeanOfAll(t *testing.T) {
	s := New(Config{Length: 3, Estimates: true}, drawnTotal)
	a, b := creel.ApplicationID{ID: 1}, creel.ApplicationID{ID: 2}
	of := func(app creel.ApplicationID) *Item {
		return &Item{ID: creel.ContainerID{Attempt: creel.AttemptID{Application: app}}}
	}
	if got := s.tasks.expected(a); got != unknownRun {
		t.Errorf("before the first end %v", got)
	}
	s.Ran(of(a), 16*time.Second)
	s.Ran(of(b), 8*time.Second)
	if x, y := s.tasks.expected(a), s.tasks.expected(b); x != 16*time.Second || y != 8*time.Second {
		t.Errorf("expected %v and %v", x, y)
	}
	s.Forget(a)
	if got := s.tasks.expected(a); got != 15*time.Second || len(s.tasks.each) != 1 {
		t.Errorf("expected %v, %d applications remembered", got, len(s.tasks.each))
	}
}

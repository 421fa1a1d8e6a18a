// SPDX-License-Identifier: Apache-2.0

package runtimes

import (
	"testing"

	"github.com/creelrm/creel/internal/propertytest"
	"pgregory.net/rapid"
)

func TestStaysIsOneWithoutEnds(t *testing.T) {
	if got := new(Histogram).Stays(1000, 15000); got != 1 {
		t.Errorf("%v, want 1", got)
	}
}

func TestStaysFollowsTheEndsOfOthers(t *testing.T) {
	var h Histogram
	for range 500 {
		h.Add(2_000)
		h.Add(3_600_000)
	}
	if got := h.Stays(0, 15_000); got < 0.49 || got > 0.51 {
		t.Errorf("a new container stays with %v, want one half", got)
	}
	if got := h.Stays(60_000, 15_000); got != 1 {
		t.Errorf("a container beyond the short ones stays with %v, want 1", got)
	}
	if got := h.Stays(3_000_000, 3_000_000); got > 0.01 {
		t.Errorf("a container at the end of the long ones stays with %v", got)
	}
}

func TestNewEndsOutweighOldOnes(t *testing.T) {
	var h Histogram
	for range memory {
		h.Add(1_000)
	}
	for range memory {
		h.Add(60_000)
	}
	if got := h.Stays(0, 15_000); got < 0.6 {
		t.Errorf("a container stays with %v although the later half ran a minute", got)
	}
	sum := uint32(0)
	for _, n := range h.Ended() {
		sum += n
	}
	if sum > memory {
		t.Errorf("%d ends are counted, at most %d", sum, memory)
	}
}

func TestStaysFallsWithTheWait(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		var h Histogram
		times := rapid.Int64Range(0, 1<<32)
		for _, ms := range rapid.SliceOfN(times, 0, 50).Draw(t, "ends") {
			h.Add(ms)
		}
		age, wait, more := times.Draw(t, "age"), times.Draw(t, "wait"), times.Draw(t, "more")
		short, long := h.Stays(age, wait), h.Stays(age, wait+more)
		if long < 0 || short > 1 || long > short+1e-9 {
			t.Fatalf("after %d ms a container stays %d ms with %v, and %d ms with %v", age, wait, short, wait+more, long)
		}
	})
}

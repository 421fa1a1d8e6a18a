// SPDX-License-Identifier: Apache-2.0

package load

import (
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/workload"
)

// The parts of an ask add up to it, and asks for hosts are guaranteed.
func TestAskIsDividedByExecutionType(t *testing.T) {
	for _, x := range []struct {
		name          string
		count         int32
		part          float64
		opportunistic int32
	}{
		{"*", 10, 0, 0}, {"*", 10, 0.3, 3}, {"*", 1, 0.3, 0}, {"*", 0, 0.3, 0}, {"*", 7, 1, 7}, {"h1", 10, 0.3, 0},
	} {
		var sum, opportunistic int32
		list := asksOf(workload.Ask{Priority: 1, Name: x.name, Count: x.count, Size: creel.NewResource(1, 1)}, x.part)
		for _, k := range list {
			sum += k.GetNumContainers()
			if creel.ExecutionType(k.GetExecutionTypeRequest().GetExecutionType()) == creel.Opportunistic {
				opportunistic += k.GetNumContainers()
			}
		}
		if sum != x.count || opportunistic != x.opportunistic {
			t.Errorf("%+v: %d asked for, %d of them opportunistic", x, sum, opportunistic)
		}
	}
}

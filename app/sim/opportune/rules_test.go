// SPDX-License-Identifier: Apache-2.0

package opportune

import (
	"testing"

	"github.com/creelrm/creel/subcluster/rm/opportunistic"
)

func TestRulesChangeQueuesAndOrder(t *testing.T) {
	p := New(0.3, nil, nil, nil)
	p.Follow(Rules{})
	if p.LongQueue != 0 || p.Queue.Estimates || p.Central.Moves || p.Central.Comparator != opportunistic.QueueLength {
		t.Errorf("without rules: %+v, %+v", p.Queue, p.Central)
	}
	r, err := ParseRules("wait,move,long=3")
	if err != nil {
		t.Fatal(err)
	}
	if p.Follow(r); p.LongQueue != 3 || !p.Queue.Estimates || !p.Central.Moves || p.Central.Comparator != opportunistic.QueueWaitTime {
		t.Errorf("with all rules: %+v, %+v", p.Queue, p.Central)
	}
	for _, bad := range []string{"wait,length", "long", "long=0", "long=x"} {
		if _, err := ParseRules(bad); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}

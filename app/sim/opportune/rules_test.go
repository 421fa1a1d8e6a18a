// SPDX-License-Identifier: Apache-2.0

package opportune

import (
	"testing"

	"github.com/creelrm/creel/subcluster/rm/opportunistic"
)

func TestRulesChangeQueuesAndOrder(t *testing.T) {
	p := New(0.3, nil, nil, nil)
	p.Follow(Rules{})
	if p.Queue.Estimates || p.Central.Moves || p.Central.Comparator != opportunistic.QueueLength {
		t.Errorf("without rules: %+v, %+v", p.Queue, p.Central)
	}
	r, err := ParseRules("wait,move")
	if err != nil {
		t.Fatal(err)
	}
	if p.Follow(r); !p.Queue.Estimates || !p.Central.Moves || p.Central.Comparator != opportunistic.QueueWaitTime {
		t.Errorf("with all rules: %+v, %+v", p.Queue, p.Central)
	}
	if _, err := ParseRules("wait,length"); err == nil {
		t.Error("an unknown rule was accepted")
	}
}

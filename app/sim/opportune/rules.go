// SPDX-License-Identifier: Apache-2.0

package opportune

import (
	"fmt"
	"strings"

	"github.com/creelrm/creel/subcluster/rm/opportunistic"
)

// Rules are rules of queues that Hadoop does not have. The zero value is Hadoop's.
type Rules struct {
	Wait bool // nodes estimate the wait in their queues, and ResourceManagers sort nodes by it
	Move bool // nodes shed only containers for which a shorter queue has a place
}

// RuleNames lists what ParseRules reads.
func RuleNames() []string { return []string{"wait", "move"} }

// ParseRules reads a list of names, separated by commas.
func ParseRules(list string) (r Rules, err error) {
	for name := range strings.SplitSeq(list, ",") {
		switch name {
		case "":
		case "wait":
			r.Wait = true
		case "move":
			r.Move = true
		default:
			return r, fmt.Errorf("%q is no rule of queues; the rules are %s", name, strings.Join(RuleNames(), ", "))
		}
	}
	return r, nil
}

// Follow adds the rules to the configuration of nodes and ResourceManagers.
func (p *Play) Follow(r Rules) {
	if p == nil {
		return
	}
	if r.Wait {
		p.Queue.Estimates, p.Central.Comparator = true, opportunistic.QueueWaitTime
	}
	p.Central.Moves = p.Central.Moves || r.Move
}

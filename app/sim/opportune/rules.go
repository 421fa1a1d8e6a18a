// SPDX-License-Identifier: Apache-2.0

package opportune

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/creelrm/creel/subcluster/rm/opportunistic"
)

// Rules are rules of queues that Hadoop does not have. The zero value is Hadoop's.
type Rules struct {
	Wait bool // nodes estimate the wait in their queues, and ResourceManagers sort nodes by it
	Move bool // nodes shed only containers for which a shorter queue has a place
	// Long is the length from which on proxies avoid queues, see amrmproxy.Config.LongQueue; 0: they do not.
	Long int32
}

// RuleNames lists the words of ParseRules, with an example of a length.
func RuleNames() []string { return []string{"wait", "move", "long=5"} }

// ParseRules reads a list of names, separated by commas.
func ParseRules(list string) (r Rules, err error) {
	for name := range strings.SplitSeq(list, ",") {
		name, value, _ := strings.Cut(name, "=")
		switch name {
		case "":
		case "wait":
			r.Wait = true
		case "move":
			r.Move = true
		case "long":
			n, err := strconv.ParseInt(value, 10, 32)
			if err != nil || n < 1 {
				return r, fmt.Errorf("long=%s has no length of at least 1", value)
			}
			r.Long = int32(n)
		default:
			return r, fmt.Errorf("%q is no rule of queues; the rules are %s", name, strings.Join(RuleNames(), ", "))
		}
	}
	return r, nil
}

// Follow adds the rules to the configuration of nodes, ResourceManagers and proxies.
func (p *Play) Follow(r Rules) {
	if p == nil {
		return
	}
	if r.Wait {
		p.Queue.Estimates, p.Central.Comparator = true, opportunistic.QueueWaitTime
	}
	p.Central.Moves = p.Central.Moves || r.Move
	p.LongQueue = max(p.LongQueue, r.Long)
}

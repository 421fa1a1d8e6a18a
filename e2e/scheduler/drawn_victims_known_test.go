// SPDX-License-Identifier: Apache-2.0

package scheduler

import "strings"

// A knownVictims is a difference in the first round's victims that is meant, with a condition of the state. Most
// conditions are about a feature of the state, so a state with the feature may hide another difference.
type knownVictims struct {
	where, hadoop, creel, why string

	when func(d *drawnState, leaves map[string]*sums) bool
}

var victimsKnown = []knownVictims{
	{
		where:  "a queue whose surplus is no whole number of containers",
		hadoop: "takes the container that crosses the guarantee",
		creel:  "keeps it",
		why:    "A queue keeps its guarantee.",
		when: func(_ *drawnState, leaves map[string]*sums) bool {
			for _, x := range leaves {
				if x.theirs > x.ours && x.used-x.theirs < x.guarantee {
					return true
				}
			}
			return false
		},
	},
	{
		where:  "a queue below its guarantee, with asks and a `minimum-user-limit-percent`",
		hadoop: "takes this percent of the guarantee for each user, and more in later rounds",
		creel:  "takes an equal part of the guarantee for each waiting user",
		why:    "The users may have it as soon as it is free.",
		when: func(_ *drawnState, leaves map[string]*sums) bool {
			for _, x := range leaves {
				if x.limited && x.wants > 0 && x.used < x.guarantee {
					return true
				}
			}
			return false
		},
	},
	{
		where:  "DominantResourceCalculator, where a queue has a surplus of only one type",
		hadoop: "the other type changes the amount that is taken",
		creel:  "counts types with a surplus",
		why:    "The asks of other queues need these types.",
		when: func(d *drawnState, leaves map[string]*sums) bool {
			for _, x := range leaves {
				if x.unequal && x.oneType && d.keys["resource-calculator"] != "" {
					return true
				}
			}
			return false
		},
	},
	{
		where:  "containers and asks of different sizes",
		hadoop: "takes containers by amount, those of the application that is served last first",
		creel:  "takes containers whose end makes room for an ask on their node",
		why:    "Otherwise the room is on nodes where the ask does not fit.",
		when:   func(d *drawnState, _ map[string]*sums) bool { return d.mixed() },
	},
	{
		where:  "several queues lose, and together as much as a round may take",
		hadoop: "divides the round's limit level by level, and takes first from the first queues of its list",
		creel:  "divides it in proportion, and takes first from the queues that are furthest above their guarantees",
		why:    "No queue loses all of a round for the others.",
		when: func(d *drawnState, leaves map[string]*sums) bool {
			var losers int
			var theirs, ours int64
			for _, x := range leaves {
				if x.theirs+x.ours > 0 {
					losers++
				}
				theirs, ours = theirs+x.theirs, ours+x.ours
			}
			most := d.number("total_preemption_per_round") * d.cluster()
			return losers > 1 && float64(max(theirs, ours)+d.size.MemoryMB) > most
		},
	},
	{
		where:  "a parent whose queues ask for more than their guarantees",
		hadoop: "takes for the parent's guarantee, and its part of idle guarantees",
		creel:  "takes for the guarantees of the parent's queues",
		why:    "Beyond its guarantee a queue waits for containers that end.",
		when: func(_ *drawnState, leaves map[string]*sums) bool {
			var theirs, ours int64
			for _, x := range leaves {
				theirs, ours = theirs+x.theirs, ours+x.ours
			}
			for q, x := range leaves {
				if theirs < ours {
					return false
				}
				if strings.Count(q, ".") > 1 && x.wants > 0 && x.used+x.wants > x.guarantee {
					return true
				}
			}
			return false
		},
	},
	{
		where:  "a queue that loses to others, while an application in it waits for one of a lower priority",
		hadoop: "takes fewer within the queue",
		creel:  "takes for both, each up to its own limit",
		why:    "The application gets nothing of the part for the other queues.",
		when: func(d *drawnState, leaves map[string]*sums) bool {
			for _, x := range leaves {
				if x.unequal && x.within && x.theirs > 0 && d.keys[monitorPrefix+"intra-queue-preemption.enabled"] == "true" {
					return true
				}
			}
			return false
		},
	},
	{
		where:  "a shortage that is a whole number of containers",
		hadoop: "takes one more in some states",
		creel:  "takes as many as are short",
		why:    "Hadoop rounds parts of the cluster.",
		when: func(d *drawnState, leaves map[string]*sums) bool {
			var short, theirs, ours int64
			for _, x := range leaves {
				short += min(x.wants, max(0, x.guarantee-x.used))
				theirs, ours = theirs+x.theirs, ours+x.ours
			}
			return ours == short && theirs == ours+d.size.MemoryMB
		},
	},
}

// mixed reports whether the state has containers or asks of different sizes.
func (d *drawnState) mixed() bool {
	for _, a := range d.apps {
		if !a.size.Equal(d.size) {
			return true
		}
	}
	return false
}

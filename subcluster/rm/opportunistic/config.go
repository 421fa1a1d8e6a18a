// SPDX-License-Identifier: Apache-2.0

package opportunistic

import "time"

// Comparator is the order of nodes by load.
type Comparator uint8

// Comparators, with Hadoop's names.
const (
	QueueLength Comparator = iota
	QueueWaitTime
	QueueLengthThenResources
)

var comparators = [...]string{"QUEUE_LENGTH", "QUEUE_WAIT_TIME", "QUEUE_LENGTH_THEN_RESOURCES"}

func (c Comparator) String() string { return comparators[c] }

// ParseComparator reads a comparator's name; an unknown one is QUEUE_LENGTH.
func ParseComparator(name string) Comparator {
	for i, c := range comparators {
		if c == name {
			return Comparator(i)
		}
	}
	return QueueLength
}

// Placing chooses the node of a container whose ask names no place.
type Placing uint8

// Placings; RandomStart is Hadoop's.
const (
	// RandomStart is the first of the least loaded nodes that admits the container, from a random one on.
	RandomStart Placing = iota
	// LeastFilled is, of all nodes that admit it, the one whose containers fill the smallest part of its size.
	LeastFilled
)

// ParsePlacing reads a placing's name; an unknown one is random.
func ParsePlacing(name string) Placing {
	if name == "least-filled" {
		return LeastFilled
	}
	return RandomStart
}

// Config is the configuration of opportunistic allocation; see Defaults.
type Config struct {
	Comparator Comparator    // yarn.resourcemanager.nm-container-queuing.load-comparator
	Placing    Placing       // creel.rm.opportunistic.placement
	Period     time.Duration // between two sorts: nm-container-queuing.sorting-nodes-interval-ms
	NodesUsed  int           // least loaded nodes for asks without a place: nodes-used
	PerCall    int           // containers per allocate call; 0 or less: no limit
	Sigma      float64       // nm-container-queuing.queue-limit-stdev
	Lengths    Range         // of the queue limit, in containers
	Waits      Range         // of the queue limit of QueueWaitTime, in ms
	// Moves sheds only the waiting containers for which a shorter queue has a place (creel.rm.opportunistic.shed).
	Moves bool
	// MostLent is the most that a node may have of opportunistic containers when it lends allocated resources, over its
	// size (overallocation.per-node-max-ratio); 0: nothing is lent, whatever nodes report.
	MostLent float64
}

// Range bounds a queue limit.
type Range struct{ Min, Max int32 }

// Defaults returns Hadoop's values.
func Defaults() Config {
	return Config{
		Period: time.Second, NodesUsed: 10, PerCall: -1, Sigma: 1,
		Lengths: Range{5, 15}, Waits: Range{10, 100},
	}
}

// SPDX-License-Identifier: Apache-2.0

package opportunistic

import "strings"

// ExitKilled is the exit status of an opportunistic container that its node killed or rejected.
const ExitKilled = -108

// Kill is a node's reason to kill or to reject an opportunistic container. YARN has one exit status for all reasons.
type Kill uint8

// Reasons, in the order of metrics.
const (
	ForRoom   Kill = iota // a guaranteed container needed its resources
	QueueFull             // the queue was full when it arrived
	OverLimit             // the ResourceManager lowered the limit of the queue
	ForUse                // the node's use was too high
	Kills     = iota
)

var killNames = [Kills]string{"room", "queue_full", "queue_limit", "use"}

func (k Kill) String() string { return killNames[k] }

// KillOf returns the reason by the diagnostics that Hadoop's and creel's nodes write.
func KillOf(diagnostics string) Kill {
	switch {
	case strings.Contains(diagnostics, "queue is full"):
		return QueueFull
	case strings.Contains(diagnostics, "De-queued"):
		return OverLimit
	case strings.Contains(diagnostics, "resource utilization"):
		return ForUse
	}
	return ForRoom
}

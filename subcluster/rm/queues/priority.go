// SPDX-License-Identifier: Apache-2.0

package queues

// PriorityLimit says which priorities applications of some users may have in a leaf
// queue.
type PriorityLimit struct {
	Who        ACL
	Max        int32
	Default    int32 // of their applications that name none
	HasDefault bool  // false: the queue's default holds
}

// MayHavePriority reports whether an application of a user may have a priority in
// the queue. Where there are limits, who is in none of them has no application there.
func (q *Queue) MayHavePriority(user string, groups []string, priority int32) bool {
	for _, l := range q.PriorityLimits {
		if priority <= l.Max && l.Who.Allows(user, groups) {
			return true
		}
	}
	return len(q.PriorityLimits) == 0
}

// DefaultPriorityOf is the priority of a user's applications that name none; limits says
// whether the limits of priorities hold. The highest of several limits counts.
func (q *Queue) DefaultPriorityOf(user string, groups []string, limits bool) int32 {
	out := q.DefaultPriority
	for _, l := range q.PriorityLimits {
		if limits && l.HasDefault && l.Who.Allows(user, groups) {
			out = l.Default
		}
	}
	return out
}

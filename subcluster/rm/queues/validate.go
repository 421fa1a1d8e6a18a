// SPDX-License-Identifier: Apache-2.0

package queues

import (
	"fmt"
	"math"
	"strings"

	"github.com/creelrm/creel"
)

// Validate checks a queue tree as a whole. The error names the wrong queue and the reason. A tree it accepts can be
// loaded.
func (s *Spec) Validate() error {
	if s.Root.Name != string(creel.RootQueue) {
		return badSpec(fmt.Sprintf("the top queue is named %q", s.Root.Name), "it must be root", "")
	}
	if err := s.check(&s.Root, creel.RootQueue, 0); err != nil {
		return err
	}
	for _, label := range s.LabelNames() {
		part := s.Partition(label)
		err := part.check(&part.Root, creel.RootQueue, 0)
		if err != nil { // Hadoop adds the shares of queues that may not use the label
			part = s.partition(label, true)
			err = part.check(&part.Root, creel.RootQueue, 0)
		}
		if err != nil {
			return fmt.Errorf("capacities of node label %s: %w", label, err)
		}
	}
	return nil
}

func (s *Spec) check(q *Queue, path creel.QueuePath, depth int) error {
	bad := func(format string, args ...any) error {
		return badSpec(fmt.Sprintf("queue %s: ", path)+fmt.Sprintf(format, args...), "", "")
	}
	if depth > 64 {
		return bad("the tree is deeper than 64 levels")
	}
	if q.Name == "" || strings.ContainsAny(q.Name, ".\n\t") {
		return bad("invalid name %q", q.Name)
	}
	if _, err := creel.ParseQueuePath(string(path)); err != nil {
		return err
	}
	for what, a := range map[string]*Amount{
		"capacity":         &q.Capacity,
		"maximum capacity": &q.MaxCapacity,
		"minimum":          &q.Minimum,
	} {
		if math.IsNaN(a.Value) || a.Value < 0 || a.Resource.IsNegative() {
			return bad("%s is negative", what)
		}
		for _, t := range a.Mixed {
			if math.IsNaN(t.Value) || t.Value < 0 {
				return bad("%s of %s is negative", what, t.Type)
			}
		}
		if a.Unit == Mixed && !s.Vectors {
			return bad("%s is given in several units", what)
		}
		for _, t := range a.Types {
			if math.IsNaN(t.Percent) || t.Percent < 0 {
				return bad("%s of %s is negative", what, t.Type)
			}
		}
	}
	if s.Scheduler == CapacityScheduler && q.Capacity.Unit == Percent && q.MaxCapacity.Unit == Percent && depth > 0 &&
		q.Capacity.Value > 100 {
		return bad("illegal capacity of %g%%", q.Capacity.Value)
	}
	if q.MaxCapacity.Unit == Percent && s.Scheduler == CapacityScheduler && q.MaxCapacity.Value > 100 {
		return bad("illegal maximum capacity of %g%%", q.MaxCapacity.Value)
	}
	if q.MinUserPercent < 0 || q.MinUserPercent > 100 {
		return bad("minimum user limit percent is %g, not in 0..100", q.MinUserPercent)
	}
	if q.MaxAMPercent > 1 {
		return bad("maximum share for application masters is %g, above 1", q.MaxAMPercent)
	}
	if q.MaxApps < 0 {
		return bad("a limit of applications is negative")
	}
	names := make(map[string]bool, len(q.Children))
	percents, weights, absolutes, sum := 0, 0, 0, 0.0
	for i := range q.Children {
		c := &q.Children[i]
		if names[c.Name] {
			return bad("two children are named %q", c.Name)
		}
		names[c.Name] = true
		switch c.Capacity.Unit {
		case Percent, Unset:
			percents++
			sum += c.Capacity.Value
		case Weight:
			weights++
		case Absolute:
			absolutes++
		}
		if err := s.check(c, path.Child(c.Name), depth+1); err != nil {
			return err
		}
	}
	if s.Scheduler == CapacityScheduler && len(q.Children) > 0 && !s.Vectors {
		if percents > 0 && weights > 0 || percents > 0 && absolutes > 0 || weights > 0 && absolutes > 0 {
			return bad("children mix percentages, weights and absolute resources")
		}
		// Hadoop allows 0 for all children, and otherwise requires 100.
		if percents > 0 && sum != 0 && math.Abs(sum-100) > 0.05 {
			return bad("illegal capacity sum of %g%% for its children, not 100%%", sum)
		}
	}
	return nil
}

func badSpec(what, why, try string) error {
	return &creel.Error{Kind: creel.ErrInvalidRequest, What: what, Why: why, Try: try}
}

// SPDX-License-Identifier: Apache-2.0

package queueconf

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// priorityLimits parses the priorities that users may have in a leaf: "[user=a,b group=g max_priority=7
// default_priority=4] [user=* max_priority=2]", the lowest maximum first. "*" means no limit.
func (r *capacityReader) priorityLimits(text string) ([]queues.PriorityLimit, error) {
	if text == "*" {
		return nil, nil
	}
	var out []queues.PriorityLimit
	for rest := text; rest != ""; {
		inner, after, ok := strings.Cut(rest, "]")
		inner, open := strings.CutPrefix(strings.TrimSpace(inner), "[")
		if !ok || !open {
			return nil, fmt.Errorf("%q is not a list of [user=.. group=.. max_priority=.. default_priority=..]", text)
		}
		l, err := r.priorityLimit(inner)
		if err != nil {
			return nil, err
		}
		out = append(out, l)
		rest = strings.TrimSpace(after)
	}
	slices.SortStableFunc(out, func(a, b queues.PriorityLimit) int { return int(a.Max) - int(b.Max) })
	return out, nil
}

func (r *capacityReader) priorityLimit(text string) (queues.PriorityLimit, error) {
	most := r.opt.MaxClusterPriority
	l := queues.PriorityLimit{Max: most}
	users, groups := "", ""
	for _, field := range strings.Fields(text) {
		key, value, _ := strings.Cut(field, "=")
		switch key {
		case "user":
			users = value
		case "group":
			groups = value
		case "max_priority", "default_priority":
			n, err := atLeast(0)(value)
			if err != nil {
				return l, fmt.Errorf("%s: %w", key, err)
			}
			if key == "max_priority" {
				l.Max = min(int32(n), most)
			} else {
				l.Default, l.HasDefault = int32(n), true
			}
		default:
			return l, fmt.Errorf("%q is none of user, group, max_priority, default_priority", key)
		}
	}
	if users == "" && groups == "" {
		return l, fmt.Errorf("[%s] names neither a user nor a group", text)
	}
	l.Who = queues.ParseACL(users + " " + groups)
	l.Default = min(l.Default, l.Max)
	return l, nil
}

// workflowPriorities parses "workflow:queue:priority,..".
func workflowPriorities(text string) (out []queues.WorkflowPriority, err error) {
	for _, item := range splitList(text) {
		parts := strings.Split(item, ":")
		for i := range parts {
			parts[i] = strings.TrimSpace(parts[i])
		}
		if len(parts) != 3 || slices.Contains(parts, "") {
			return nil, fmt.Errorf("%q is not workflow:queue:priority", item)
		}
		n, err := strconv.ParseInt(parts[2], 10, 32)
		if err != nil {
			return nil, fmt.Errorf("%q: the priority is not a whole number", item)
		}
		out = append(out, queues.WorkflowPriority{
			Workflow: strings.ToLower(parts[0]), Queue: creel.QueuePath(parts[1]), Priority: int32(n),
		})
	}
	return out, nil
}

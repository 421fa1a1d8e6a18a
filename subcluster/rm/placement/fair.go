// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// FairRules are the FairScheduler's queuePlacementPolicy: the first rule that
// names a queue wins.
type FairRules struct {
	Tree  *Tree
	Rules []FairRule
}

// FairRule is a rule of queuePlacementPolicy.
type FairRule struct {
	Kind   string // from the file: specified, user, primaryGroup, ...
	Create bool   // may name a queue that does not exist
	Parent *FairRule
	Queue  string // of a default rule
}

// Place tries the rules in order. A submission that no rule places is rejected; queueconf accepts no such policy.
func (f *FairRules) Place(s queues.PlacementRequest, live func(creel.QueuePath) bool) (queues.PlacementResult, error) {
	for i := range f.Rules {
		rule := &f.Rules[i]
		if rule.Kind == "reject" {
			return queues.PlacementResult{}, refused("no rule before reject found a queue")
		}
		path, err := f.apply(rule, s, live)
		if err != nil {
			return queues.PlacementResult{}, err
		}
		if path == "" {
			continue
		}
		return queues.PlacementResult{Queue: path, Create: !f.Tree.exists(path, live), Rule: rule.String()}, nil
	}
	return queues.PlacementResult{}, refused("no rule found a queue")
}

// KeepsNamed implements queues.Placement: the first rule creates the named queue if it is missing.
func (f *FairRules) KeepsNamed() bool {
	return len(f.Rules) > 0 && f.Rules[0].Kind == "specified" && f.Rules[0].Create
}

func (r *FairRule) String() string {
	text := r.Kind
	if r.Parent != nil {
		text += " under " + r.Parent.String()
	}
	if !r.Create {
		text += ", existing"
	}
	return text
}

// apply returns the queue that a rule names, "" if it passes.
func (f *FairRules) apply(
	r *FairRule,
	s queues.PlacementRequest,
	live func(creel.QueuePath) bool,
) (creel.QueuePath, error) {
	under := creel.RootQueue
	if r.Parent != nil {
		parent, err := f.apply(r.Parent, s, live)
		if err != nil || parent == "" {
			return "", err
		}
		// A queue that accepts applications itself can have no children.
		if q := f.Tree.byPath[parent]; q != nil && q.IsLeaf() || q == nil && live(parent) {
			return "", nil
		}
		under = parent
	}
	switch r.Kind {
	case "default":
		return f.pass(creel.QueuePath(r.Queue), r.Create, live)
	case "specified":
		if s.Queue == "" || s.Queue == "default" {
			return "", nil
		}
		if strings.HasPrefix(s.Queue, ".") || strings.HasSuffix(s.Queue, ".") {
			return "", refused(fmt.Sprintf("queue name %q begins or ends with a dot", s.Queue))
		}
		path := creel.QueuePath(s.Queue)
		if !path.IsFull() {
			path = creel.RootQueue.Child(s.Queue)
		}
		return f.pass(path, r.Create, live)
	case "user", "nestedUserQueue":
		return f.named(under, s.User, r.Create, live)
	case "primaryGroup":
		if len(s.Groups) == 0 {
			return "", nil
		}
		return f.named(under, s.Groups[0], r.Create, live)
	case "secondaryGroupExistingQueue":
		for _, g := range secondaryGroups(s.Groups) {
			if path, err := f.named(under, g, false, live); err != nil || path != "" {
				return path, err
			}
		}
	}
	return "", nil
}

func (f *FairRules) named(
	under creel.QueuePath,
	name string,
	create bool,
	live func(creel.QueuePath) bool,
) (creel.QueuePath, error) {
	if name = cleanName(strings.TrimSpace(name)); name == "" {
		return "", nil
	}
	return f.pass(under.Child(name), create, live)
}

// pass returns the path if the rule may name it. It rejects a path that no queue can have, so that a mistyped name is
// reported.
func (f *FairRules) pass(path creel.QueuePath, create bool, live func(creel.QueuePath) bool) (creel.QueuePath, error) {
	if _, err := creel.ParseQueuePath(string(path)); err != nil {
		return "", refused(fmt.Sprintf("%q is not a queue path", path))
	}
	if create || f.Tree.exists(path, live) {
		return path, nil
	}
	return "", nil
}

// FairRuleKinds are the known names of rules.
var FairRuleKinds = []string{
	"specified",
	"user",
	"primaryGroup",
	"secondaryGroupExistingQueue",
	"nestedUserQueue",
	"default",
	"reject",
}

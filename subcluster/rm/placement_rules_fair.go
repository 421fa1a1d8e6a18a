// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"strings"

	"github.com/creelrm/creel"
)

// fairRules are the FairScheduler's queuePlacementPolicy: the first rule that
// names a queue wins.
type fairRules struct {
	names *queueNames
	rules []fairRule
}

type fairRule struct {
	kind   string // as in the file: specified, user, primaryGroup, ...
	create bool   // may name a queue that does not exist
	parent *fairRule
	queue  string // of the rule default
}

// Place runs the rules in their order. A submission past the last rule is
// refused; ReadFair takes no such policy.
func (f *fairRules) Place(s PlacementRequest, live func(creel.QueuePath) bool) (Placed, error) {
	for i := range f.rules {
		rule := &f.rules[i]
		if rule.kind == "reject" {
			return Placed{}, refused("no rule before reject found a queue")
		}
		path, err := f.apply(rule, s, live)
		if err != nil {
			return Placed{}, err
		}
		if path == "" {
			continue
		}
		return Placed{Queue: path, Create: !f.names.exists(path, live), Rule: rule.String()}, nil
	}
	return Placed{}, refused("no rule found a queue")
}

func (r *fairRule) String() string {
	text := r.kind
	if r.parent != nil {
		text += " under " + r.parent.String()
	}
	if !r.create {
		text += ", existing"
	}
	return text
}

// apply gives the queue that a rule names, "" when it passes.
func (f *fairRules) apply(r *fairRule, s PlacementRequest, live func(creel.QueuePath) bool) (creel.QueuePath, error) {
	under := creel.RootQueue
	if r.parent != nil {
		parent, err := f.apply(r.parent, s, live)
		if err != nil || parent == "" {
			return "", err
		}
		// Below a queue that takes applications itself there is no room for another.
		if q := f.names.byPath[parent]; q != nil && q.leaf() || q == nil && live(parent) {
			return "", nil
		}
		under = parent
	}
	switch r.kind {
	case "default":
		return f.pass(creel.QueuePath(r.queue), r.create, live)
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
		return f.pass(path, r.create, live)
	case "user", "nestedUserQueue":
		return f.named(under, s.User, r.create, live)
	case "primaryGroup":
		if len(s.Groups) == 0 {
			return "", nil
		}
		return f.named(under, s.Groups[0], r.create, live)
	case "secondaryGroupExistingQueue":
		for _, g := range secondaryGroups(s.Groups) {
			if path, err := f.named(under, g, false, live); err != nil || path != "" {
				return path, err
			}
		}
	}
	return "", nil
}

func (f *fairRules) named(
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

// pass gives the path back when the rule may name it. A path that no queue can
// have is refused rather than passed on, so that a mistyped name is told.
func (f *fairRules) pass(path creel.QueuePath, create bool, live func(creel.QueuePath) bool) (creel.QueuePath, error) {
	if _, err := creel.ParseQueuePath(string(path)); err != nil {
		return "", refused(fmt.Sprintf("%q is not a queue path", path))
	}
	if create || f.names.exists(path, live) {
		return path, nil
	}
	return "", nil
}

var fairRuleNames = []string{
	"specified",
	"user",
	"primaryGroup",
	"secondaryGroupExistingQueue",
	"nestedUserQueue",
	"default",
	"reject",
}

// placement reads the queuePlacementPolicy, or builds the one that Hadoop uses
// without it.
func (r *fairReader) placement(doc *confElement, names *queueNames) Placement {
	f := &fairRules{names: names}
	if r.rules == nil {
		undeclared := r.opt.Fair.AllowUndeclaredPools
		f.rules = append(f.rules, fairRule{kind: "specified", create: undeclared})
		if r.opt.Fair.UserAsDefaultQueue {
			f.rules = append(f.rules, fairRule{kind: "user", create: undeclared})
		}
		if !r.opt.Fair.UserAsDefaultQueue || !undeclared {
			f.rules = append(f.rules, fairRule{kind: "default", create: true, queue: "root.default"})
		}
		return f
	}
	ended := ""
	for _, e := range r.rules.children {
		if e.name != "rule" {
			r.at(e, "<%s> inside <queuePlacementPolicy>; only <rule> belongs there", e.name)
			continue
		}
		rule, ok := r.rule(e)
		if !ok {
			continue
		}
		if ended != "" {
			r.at(e, "this rule is never reached: rule %s before it always ends the search", ended)
			continue
		}
		if rule.kind == "default" || rule.kind == "reject" ||
			rule.create && (rule.kind == "user" || rule.kind == "primaryGroup") {
			ended = rule.kind
		}
		f.rules = append(f.rules, rule)
	}
	if ended == "" && len(r.errs) == 0 {
		r.at(r.rules, "<queuePlacementPolicy>: a submission could pass the last rule; end with default or reject")
	}
	return f
}

func (r *fairReader) rule(e *confElement) (fairRule, bool) {
	rule := fairRule{kind: e.attr("name"), create: true}
	ok := true
	known := false
	for _, name := range fairRuleNames {
		known = known || name == rule.kind
	}
	if !known {
		hint := ""
		if near := confClosest(rule.kind, fairRuleNames); near != "" {
			hint = "; did you mean " + near + "?"
		}
		r.at(e, "placement rule %q is not known%s", rule.kind, hint)
		return rule, false
	}
	switch text := e.attr("create"); text {
	case "", "true":
	case "false":
		rule.create = false
	default:
		r.at(e, "create=%q is neither true nor false", text)
		ok = false
	}
	if rule.kind == "default" {
		rule.queue = "root.default"
		if q := e.attr("queue"); q != "" {
			rule.queue = q
			if path := creel.QueuePath(q); !path.IsFull() {
				rule.queue = string(creel.RootQueue.Child(q))
			}
		}
		if _, err := creel.ParseQueuePath(rule.queue); err != nil {
			r.at(e, "%q is not a queue path", rule.queue)
			ok = false
		}
	}
	var nested []*confElement
	for _, c := range e.children {
		if c.name == "rule" {
			nested = append(nested, c)
		} else {
			r.at(c, "<%s> inside <rule>", c.name)
			ok = false
		}
	}
	switch {
	case rule.kind == "nestedUserQueue" && len(nested) != 1:
		r.at(e, "nestedUserQueue needs one rule inside it, that names the parent queue")
		return rule, false
	case len(nested) > 1 || len(nested) == 1 && rule.kind == "reject":
		r.at(e, "rule %s cannot have these rules inside it", rule.kind)
		return rule, false
	case len(nested) == 1:
		parent, good := r.rule(nested[0])
		if parent.kind == "reject" {
			r.at(nested[0], "rule reject names no parent queue")
			good = false
		}
		if !good {
			return rule, false
		}
		rule.parent = &parent
	}
	return rule, ok
}

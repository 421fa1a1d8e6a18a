// SPDX-License-Identifier: Apache-2.0

package queueconf

import (
	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/placement"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// placement reads the queuePlacementPolicy, or makes Hadoop's default one.
func (r *fairReader) placement(doc *element, names *placement.Tree) queues.Placement {
	f := &placement.FairRules{Tree: names}
	if r.rules == nil {
		undeclared := r.opt.Fair.AllowUndeclaredPools
		f.Rules = append(f.Rules, placement.FairRule{Kind: "specified", Create: undeclared})
		if r.opt.Fair.UserAsDefaultQueue {
			f.Rules = append(f.Rules, placement.FairRule{Kind: "user", Create: undeclared})
		}
		if !r.opt.Fair.UserAsDefaultQueue || !undeclared {
			f.Rules = append(f.Rules, placement.FairRule{Kind: "default", Create: true, Queue: "root.default"})
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
		if ends(&rule) {
			ended = rule.Kind
		}
		f.Rules = append(f.Rules, rule)
	}
	if ended == "" && len(r.errs) == 0 {
		r.at(r.rules, "<queuePlacementPolicy>: a submission could pass the last rule; end with default or reject")
	}
	return f
}

// ends reports whether a rule always decides, so that later rules are never tried.
func ends(rule *placement.FairRule) bool {
	switch rule.Kind {
	case "reject":
		return true
	case "specified", "secondaryGroupExistingQueue":
		return false
	}
	return rule.Create && (rule.Parent == nil || ends(rule.Parent))
}

func (r *fairReader) rule(e *element) (placement.FairRule, bool) {
	rule := placement.FairRule{Kind: e.attr("name"), Create: true}
	ok := true
	known := false
	for _, name := range placement.FairRuleKinds {
		known = known || name == rule.Kind
	}
	if !known {
		hint := ""
		if near := closest(rule.Kind, placement.FairRuleKinds); near != "" {
			hint = "; did you mean " + near + "?"
		}
		r.at(e, "placement rule %q is not known%s", rule.Kind, hint)
		return rule, false
	}
	switch text := e.attr("create"); text {
	case "", "true":
	case "false":
		rule.Create = false
	default:
		r.at(e, "create=%q is neither true nor false", text)
		ok = false
	}
	if rule.Kind == "default" {
		rule.Queue = "root.default"
		if q := e.attr("queue"); q != "" {
			rule.Queue = q
			if path := creel.QueuePath(q); !path.IsFull() {
				rule.Queue = string(creel.RootQueue.Child(q))
			}
		}
		if _, err := creel.ParseQueuePath(rule.Queue); err != nil {
			r.at(e, "%q is not a queue path", rule.Queue)
			ok = false
		}
	}
	var nested []*element
	for _, c := range e.children {
		if c.name == "rule" {
			nested = append(nested, c)
		} else {
			r.at(c, "<%s> inside <rule>", c.name)
			ok = false
		}
	}
	switch {
	case rule.Kind == "nestedUserQueue" && len(nested) != 1:
		r.at(e, "nestedUserQueue needs one rule inside it, that names the parent queue")
		return rule, false
	case len(nested) > 1 || len(nested) == 1 && rule.Kind == "reject":
		r.at(e, "rule %s cannot have these rules inside it", rule.Kind)
		return rule, false
	case len(nested) == 1:
		parent, good := r.rule(nested[0])
		if parent.Kind == "reject" {
			r.at(nested[0], "rule reject names no parent queue")
			good = false
		}
		if !good {
			return rule, false
		}
		rule.Parent = &parent
	}
	return rule, ok
}

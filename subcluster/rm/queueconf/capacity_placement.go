// SPDX-License-Identifier: Apache-2.0

package queueconf

import (
	"strings"

	"github.com/creelrm/creel/subcluster/rm/placement"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// placement reads the mapping rules of a capacity-scheduler.xml.
func (r *capacityReader) placement(q *queues.Spec) queues.Placement {
	m := &placement.Mappings{
		Tree:     placement.NewTree(&q.Root),
		Override: global(r, "queue-mappings-override.enable", parseBool, false),
	}
	format := strings.ToLower(strings.TrimSpace(r.props[capacityPrefix+"mapping-rule-format"].Value))
	switch format {
	case "", "legacy":
		for _, key := range [...]string{capacityPrefix + "queue-mappings", appNameMappings} {
			if p, ok := r.props[key]; ok {
				m.Rules = append(m.Rules, r.legacyRules(p, m.Tree)...)
			}
		}
	case "json":
		p, inline := r.props[capacityPrefix+"mapping-rule-json"]
		text := []byte(p.Value)
		if !inline || strings.TrimSpace(p.Value) == "" {
			p = r.props[capacityPrefix+"mapping-rule-json-file"]
			text = r.opt.MappingRules
			if p.Value != "" && text == nil {
				r.failAt(p, "%s cannot be read", p.Value)
				return nil
			}
		}
		if len(text) == 0 {
			r.warnAt(
				r.props[capacityPrefix+"mapping-rule-format"],
				"is json, but there are no rules in mapping-rule-json or mapping-rule-json-file",
			)
			return nil
		}
		m.Rules = r.jsonRules(p, text)
	default:
		r.failAt(r.props[capacityPrefix+"mapping-rule-format"], "%q is neither legacy nor json", format)
	}
	if len(m.Rules) > placement.MaxMappings {
		r.failAt(r.props[capacityPrefix+"queue-mappings"], "more than %d mapping rules", placement.MaxMappings)
	}
	if len(m.Rules) == 0 {
		return nil
	}
	return m
}

// legacyRules reads u:user:queue, g:group:queue, and application:queue.
func (r *capacityReader) legacyRules(p Property, names *placement.Tree) []placement.Mapping {
	parse := placement.ParseMapping
	if p.Name == appNameMappings {
		parse = placement.ParseApplicationMapping
	}
	var rules []placement.Mapping
	for _, item := range splitList(p.Value) {
		rule, err := parse(item, names)
		if err != nil {
			r.failAt(p, "%v", err)
			continue
		}
		rules = append(rules, rule)
	}
	return rules
}

func (r *capacityReader) jsonRules(p Property, text []byte) []placement.Mapping {
	rules, errs := placement.ParseMappingRules(text)
	for _, err := range errs {
		r.failAt(p, "%v", err)
	}
	return rules
}

// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// MaxMappings limits the rules of one configuration.
const MaxMappings = 10_000

// Mappings are the CapacityScheduler's queue mappings, in either format.
type Mappings struct {
	Tree     *Tree
	Rules    []Mapping
	Override bool // rules apply even if the submission names a queue
}

// Mapping is one item of yarn.scheduler.capacity.queue-mappings, or one object of the JSON format; the former is a
// special case of the latter.
type Mapping struct {
	kind     matchKind
	matches  string
	action   ruleAction
	target   string // with %variables
	create   bool
	fallback ruleFallback
	text     string // name of the rule in reasons
}

type (
	matchKind    uint8
	ruleAction   uint8
	ruleFallback uint8
)

const (
	matchUser matchKind = iota
	matchGroup
	matchApplication
	matchAll
)

const (
	placeAt ruleAction = iota
	placeDefault
	setDefault
	rejectSubmission
)

const (
	fallbackSkip ruleFallback = iota
	fallbackDefault
	fallbackReject
)

// Place tries the rules in order. A submission that names a queue other than "default" keeps it unless mappings
// override.
func (m *Mappings) Place(s queues.PlacementRequest, live func(creel.QueuePath) bool) (queues.PlacementResult, error) {
	if !m.Override && s.Queue != "" && s.Queue != "default" {
		return queues.PlacementResult{}, nil
	}
	vars := variables(s)
	for i := range m.Rules {
		rule := &m.Rules[i]
		if !rule.match(s, vars) {
			continue
		}
		switch rule.action {
		case rejectSubmission:
			return queues.PlacementResult{}, refused(fmt.Sprintf("rule %s rejects", rule.text))
		case setDefault:
			vars["%default"] = replaceWhole(rule.target, vars)
			continue
		case placeDefault:
			placed, err := m.toDefault(vars, live)
			if err == nil {
				placed.Rule = rule.text
				return placed, nil
			}
			if stop, placed, err := m.fall(rule, err, vars, live); stop {
				return placed, err
			}
			continue
		}
		placed, err := m.placeBy(rule, s, vars, live)
		if err == nil {
			placed.Rule = rule.text
			return placed, nil
		}
		if stop, placed, err := m.fall(rule, err, vars, live); stop {
			return placed, err
		}
	}
	return queues.PlacementResult{}, nil
}

// KeepsNamed implements queues.Placement.
func (m *Mappings) KeepsNamed() bool { return !m.Override }

// fall applies a rule's fallback after its queue was unavailable. stop ends the search.
func (m *Mappings) fall(
	rule *Mapping,
	why error,
	vars map[string]string,
	live func(creel.QueuePath) bool,
) (stop bool, placed queues.PlacementResult, err error) {
	switch rule.fallback {
	case fallbackReject:
		return true, queues.PlacementResult{}, refused(fmt.Sprintf("rule %s: %v", rule.text, why))
	case fallbackDefault:
		placed, err := m.toDefault(vars, live)
		if err != nil {
			return true, queues.PlacementResult{}, refused(
				fmt.Sprintf("rule %s: %v; and the default queue: %v", rule.text, why, err),
			)
		}
		placed.Rule = fmt.Sprintf("%s, default because %v", rule.text, why)
		return true, placed, nil
	}
	return false, queues.PlacementResult{}, nil
}

func (m *Mappings) toDefault(vars map[string]string, live func(creel.QueuePath) bool) (queues.PlacementResult, error) {
	return m.Tree.Target(vars["%default"], false, live)
}

func (m *Mappings) placeBy(
	rule *Mapping,
	s queues.PlacementRequest,
	vars map[string]string,
	live func(creel.QueuePath) bool,
) (queues.PlacementResult, error) {
	if !strings.Contains(rule.target, "%secondary_group") {
		return m.Tree.Target(replaceParts(rule.target, vars), rule.create, live)
	}
	// The secondary group is the first one with an existing queue at the rule's path.
	before, after, _ := strings.Cut(rule.target, "%secondary_group")
	before = strings.TrimSuffix(before, ".")
	for _, group := range secondaryGroups(s.Groups) {
		name := cleanName(group)
		if before == "" {
			if len(m.Tree.byName[name]) == 0 {
				continue
			}
		} else {
			parent, err := m.Tree.full(replaceParts(before, vars))
			if err != nil {
				return queues.PlacementResult{}, err
			}
			if at := parent.Child(name); !m.Tree.exists(at, live) {
				continue
			}
		}
		vars["%secondary_group"] = name
		if before == "" {
			return m.Tree.Target(replaceParts("%secondary_group"+after, vars), rule.create, live)
		}
		return m.Tree.Target(replaceParts(before+".%secondary_group"+after, vars), rule.create, live)
	}
	return queues.PlacementResult{}, fmt.Errorf("none of the user's secondary groups has a queue for %s", rule.target)
}

func secondaryGroups(groups []string) []string {
	if len(groups) < 2 {
		return nil
	}
	return groups[1:]
}

func (r *Mapping) match(s queues.PlacementRequest, vars map[string]string) bool {
	switch r.kind {
	case matchAll:
		return true
	case matchUser:
		return r.matches == "%user" || replaceWhole(r.matches, vars) == s.User
	case matchGroup:
		if r.matches == "%primary_group" {
			return len(s.Groups) > 0
		}
		return slices.Contains(s.Groups, r.matches)
	default:
		return r.matches == "%application" || r.matches == s.Name
	}
}

func variables(s queues.PlacementRequest) map[string]string {
	vars := map[string]string{
		"%user":        cleanName(s.User),
		"%application": cleanName(s.Name),
		"%default":     "root.default",
		"%specified":   "",
	}
	if len(s.Groups) > 0 {
		vars["%primary_group"] = cleanName(s.Groups[0])
	}
	if s.Queue != "default" {
		vars["%specified"] = s.Queue // with "default", the submission named none
	}
	return vars
}

// replaceParts substitutes the values of variables that are whole parts of a path. An unknown variable stays, and the
// path then names no queue.
func replaceParts(path string, vars map[string]string) string {
	if !strings.Contains(path, "%") {
		return path
	}
	parts := strings.Split(path, ".")
	for i, p := range parts {
		if v, ok := vars[strings.TrimSpace(p)]; ok {
			parts[i] = v
		}
	}
	return strings.Join(parts, ".")
}

func replaceWhole(text string, vars map[string]string) string {
	if v, ok := vars[text]; ok {
		return v
	}
	return replaceParts(text, vars)
}

// ParseMapping parses an item of yarn.scheduler.capacity.queue-mappings: u:user:queue or g:group:queue.
func ParseMapping(item string, names *Tree) (Mapping, error) {
	rule := Mapping{create: true, fallback: fallbackDefault, text: item}
	fields := trimmedFields(item)
	if len(fields) != 3 || fields[0] != "u" && fields[0] != "g" {
		return rule, fmt.Errorf("%q is neither u:user:queue nor g:group:queue", item)
	}
	if rule.matches, rule.target = fields[1], fields[2]; fields[0] == "g" {
		rule.kind = matchGroup
	}
	return rule, rule.check(names)
}

// ParseApplicationMapping parses an item of yarn.scheduler.queue-placement-rules.app-name: application:queue.
func ParseApplicationMapping(item string, names *Tree) (Mapping, error) {
	rule := Mapping{kind: matchApplication, create: true, fallback: fallbackDefault, text: item}
	fields := trimmedFields(item)
	if len(fields) != 2 {
		return rule, fmt.Errorf("%q is not application:queue", item)
	}
	rule.matches, rule.target = fields[0], fields[1]
	return rule, rule.check(names)
}

func trimmedFields(item string) []string {
	fields := strings.Split(item, ":")
	for i := range fields {
		fields[i] = strings.TrimSpace(fields[i])
	}
	return fields
}

func (r *Mapping) check(names *Tree) error {
	if r.matches == "" || r.target == "" {
		return fmt.Errorf("%q has an empty part", r.text)
	}
	if err := checkTarget(r.target, names); err != nil {
		return fmt.Errorf("%q: %w", r.text, err)
	}
	return nil
}

var ruleVariables = []string{"%user", "%primary_group", "%secondary_group", "%application", "%default", "%specified"}

// checkTarget rejects, when the rules are read, targets that can never name a queue: unknown variables, and fixed
// paths that neither exist nor can be created.
func checkTarget(target string, names *Tree) error {
	fixed := true
	for part := range strings.SplitSeq(target, ".") {
		part = strings.TrimSpace(part)
		if part == "" {
			return errors.New("the queue path has an empty part")
		}
		if strings.HasPrefix(part, "%") {
			fixed = false
			if !slices.Contains(ruleVariables, part) {
				return fmt.Errorf("unknown variable %s; known are %s", part, strings.Join(ruleVariables, ", "))
			}
		}
	}
	if fixed && names != nil {
		_, err := names.Target(target, true, func(creel.QueuePath) bool { return false })
		return err
	}
	return nil
}

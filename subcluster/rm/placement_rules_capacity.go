// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/creelrm/creel"
)

const (
	maxMappingRules = 10_000
	maxMappingBytes = 4 << 20
)

// mappingRules are the CapacityScheduler's queue mappings, of either format.
type mappingRules struct {
	names    *queueNames
	rules    []mappingRule
	override bool // rules count even when the submission names a queue
}

// mappingRule is one line of yarn.scheduler.capacity.queue-mappings, or one
// object of the JSON format; the first is a special case of the second.
type mappingRule struct {
	kind     matchKind
	matches  string
	action   ruleAction
	target   string // with %variables
	create   bool
	fallback ruleFallback
	text     string // names the rule in reasons
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

// Place runs the rules from the first to the last. A submission that names a
// queue other than "default" keeps it unless mappings override.
func (m *mappingRules) Place(s PlacementRequest, live func(creel.QueuePath) bool) (Placed, error) {
	if !m.override && s.Queue != "" && s.Queue != "default" {
		return Placed{}, nil
	}
	vars := placementVariables(s)
	for i := range m.rules {
		rule := &m.rules[i]
		if !rule.match(s, vars) {
			continue
		}
		switch rule.action {
		case rejectSubmission:
			return Placed{}, refused(fmt.Sprintf("rule %s rejects", rule.text))
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
	return Placed{}, nil
}

// fall does what a rule wants done when its queue cannot be had; stop ends the
// search.
func (m *mappingRules) fall(
	rule *mappingRule,
	why error,
	vars map[string]string,
	live func(creel.QueuePath) bool,
) (stop bool, placed Placed, err error) {
	switch rule.fallback {
	case fallbackReject:
		return true, Placed{}, refused(fmt.Sprintf("rule %s: %v", rule.text, why))
	case fallbackDefault:
		placed, err := m.toDefault(vars, live)
		if err != nil {
			return true, Placed{}, refused(fmt.Sprintf("rule %s: %v; and the default queue: %v", rule.text, why, err))
		}
		placed.Rule = fmt.Sprintf("%s, default because %v", rule.text, why)
		return true, placed, nil
	}
	return false, Placed{}, nil
}

func (m *mappingRules) toDefault(vars map[string]string, live func(creel.QueuePath) bool) (Placed, error) {
	return m.names.target(vars["%default"], false, live)
}

func (m *mappingRules) placeBy(
	rule *mappingRule,
	s PlacementRequest,
	vars map[string]string,
	live func(creel.QueuePath) bool,
) (Placed, error) {
	if !strings.Contains(rule.target, "%secondary_group") {
		return m.names.target(replaceParts(rule.target, vars), rule.create, live)
	}
	// The secondary group is the first whose queue exists where the rule looks.
	before, after, _ := strings.Cut(rule.target, "%secondary_group")
	before = strings.TrimSuffix(before, ".")
	for _, group := range secondaryGroups(s.Groups) {
		name := cleanName(group)
		if before == "" {
			if len(m.names.byName[name]) == 0 {
				continue
			}
		} else {
			parent, err := m.names.full(replaceParts(before, vars))
			if err != nil {
				return Placed{}, err
			}
			if at := parent.Child(name); !m.names.exists(at, live) {
				continue
			}
		}
		vars["%secondary_group"] = name
		if before == "" {
			return m.names.target(replaceParts("%secondary_group"+after, vars), rule.create, live)
		}
		return m.names.target(replaceParts(before+".%secondary_group"+after, vars), rule.create, live)
	}
	return Placed{}, fmt.Errorf("none of the user's secondary groups has a queue for %s", rule.target)
}

func secondaryGroups(groups []string) []string {
	if len(groups) < 2 {
		return nil
	}
	return groups[1:]
}

func (r *mappingRule) match(s PlacementRequest, vars map[string]string) bool {
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

func placementVariables(s PlacementRequest) map[string]string {
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
		vars["%specified"] = s.Queue // with "default", nothing was specified
	}
	return vars
}

// replaceParts puts values in place of the variables that are whole parts of a
// path. An unknown one stays, and the path then names no queue.
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

// placement reads the mapping rules of a capacity-scheduler.xml.
func (r *capacityReader) placement(q *Queues) Placement {
	m := &mappingRules{
		names:    namesOf(&q.Root),
		override: confGlobal(r, "queue-mappings-override.enable", confBool, false),
	}
	format := strings.ToLower(strings.TrimSpace(r.props[capacityPrefix+"mapping-rule-format"].Value))
	switch format {
	case "", "legacy":
		for _, key := range [...]string{capacityPrefix + "queue-mappings", appNameMappings} {
			if p, ok := r.props[key]; ok {
				m.rules = append(m.rules, r.legacyRules(p, m.names)...)
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
			r.noteAt(
				r.props[capacityPrefix+"mapping-rule-format"],
				"is json, but there are no rules in mapping-rule-json or mapping-rule-json-file",
			)
			return nil
		}
		m.rules = r.jsonRules(p, text)
	default:
		r.failAt(r.props[capacityPrefix+"mapping-rule-format"], "%q is neither legacy nor json", format)
	}
	if len(m.rules) > maxMappingRules {
		r.failAt(r.props[capacityPrefix+"queue-mappings"], "more than %d mapping rules", maxMappingRules)
	}
	if len(m.rules) == 0 {
		return nil
	}
	return m
}

// legacyRules reads u:user:queue, g:group:queue, and application:queue.
func (r *capacityReader) legacyRules(p Property, names *queueNames) []mappingRule {
	var rules []mappingRule
	for _, item := range confList(p.Value) {
		fields := strings.Split(item, ":")
		for i := range fields {
			fields[i] = strings.TrimSpace(fields[i])
		}
		rule := mappingRule{create: true, fallback: fallbackDefault, text: item}
		switch {
		case p.Name == appNameMappings && len(fields) == 2:
			rule.kind, rule.matches, rule.target = matchApplication, fields[0], fields[1]
		case p.Name == appNameMappings:
			r.failAt(p, "%q is not application:queue", item)
			continue
		case len(fields) != 3 || fields[0] != "u" && fields[0] != "g":
			r.failAt(p, "%q is neither u:user:queue nor g:group:queue", item)
			continue
		default:
			rule.matches, rule.target = fields[1], fields[2]
			if fields[0] == "g" {
				rule.kind = matchGroup
			}
		}
		if rule.matches == "" || rule.target == "" {
			r.failAt(p, "%q has an empty part", item)
			continue
		}
		if err := checkTarget(rule.target, names); err != nil {
			r.failAt(p, "%q: %v", item, err)
			continue
		}
		rules = append(rules, rule)
	}
	return rules
}

var ruleVariables = []string{"%user", "%primary_group", "%secondary_group", "%application", "%default", "%specified"}

// checkTarget refuses at load what can never name a queue: unknown variables,
// and fixed paths that do not exist and that nothing creates.
func checkTarget(target string, names *queueNames) error {
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
		_, err := names.target(target, true, func(creel.QueuePath) bool { return false })
		return err
	}
	return nil
}

// jsonRule is a rule of the JSON format as written.
type jsonRule struct {
	Type            string `json:"type"`
	Matches         string `json:"matches"`
	Policy          string `json:"policy"`
	ParentQueue     string `json:"parentQueue"`
	FallbackResult  string `json:"fallbackResult"`
	Create          *bool  `json:"create"`
	Value           string `json:"value"`
	CustomPlacement string `json:"customPlacement"`
}

func (r *capacityReader) jsonRules(p Property, text []byte) []mappingRule {
	if len(text) > maxMappingBytes {
		r.failAt(p, "mapping rules larger than %d MiB", maxMappingBytes>>20)
		return nil
	}
	rules, err := parseMappingRules(text)
	for _, e := range err {
		r.failAt(p, "%v", e)
	}
	return rules
}

// parseMappingRules reads the JSON format of mapping rules and reports
// everything that is wrong with them.
func parseMappingRules(text []byte) ([]mappingRule, []error) {
	var doc struct {
		Rules []jsonRule `json:"rules"`
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&doc); err != nil {
		at := dec.InputOffset()
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			at = syntax.Offset
		}
		line := 1 + bytes.Count(text[:min(at, int64(len(text)))], []byte("\n"))
		return nil, []error{fmt.Errorf("line %d of the JSON: %s", line, strings.TrimPrefix(err.Error(), "json: "))}
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, []error{errors.New("something follows the JSON object")}
	}
	var rules []mappingRule
	var errs []error
	for i, j := range doc.Rules {
		rule, err := j.rule()
		if err != nil {
			errs = append(errs, fmt.Errorf("rule %d: %w", i+1, err))
			continue
		}
		rule.text = fmt.Sprintf("%d (%s %s: %s)", i+1, j.Type, j.Matches, j.Policy)
		rules = append(rules, rule)
	}
	return rules, errs
}

func (j *jsonRule) rule() (mappingRule, error) {
	rule := mappingRule{matches: j.Matches, create: j.Create == nil || *j.Create}
	if j.Matches == "" {
		return rule, errors.New("matches is missing")
	}
	switch j.Type {
	case "user":
		if rule.kind = matchUser; j.Matches == "*" {
			rule.kind = matchAll
		}
	case "group":
		if rule.kind = matchGroup; j.Matches == "*" {
			return rule, errors.New(`"*" does not work with groups`)
		}
	case "application":
		if rule.kind = matchApplication; j.Matches == "*" {
			rule.kind = matchAll
		}
	default:
		return rule, fmt.Errorf("type %q is none of user, group, application", j.Type)
	}
	switch j.FallbackResult {
	case "", "skip":
	case "reject":
		rule.fallback = fallbackReject
	case "placeDefault":
		rule.fallback = fallbackDefault
	default:
		return rule, fmt.Errorf("fallbackResult %q is none of skip, reject, placeDefault", j.FallbackResult)
	}
	under := func(path string) string {
		if j.ParentQueue == "" {
			return path
		}
		return j.ParentQueue + "." + path
	}
	switch j.Policy {
	case "specified":
		rule.target = "%specified"
	case "reject":
		rule.action = rejectSubmission
	case "defaultQueue":
		rule.action = placeDefault
	case "user":
		rule.target = under("%user")
	case "primaryGroup":
		rule.target = under("%primary_group")
	case "secondaryGroup":
		rule.target = under("%secondary_group")
	case "primaryGroupUser":
		rule.target = under("%primary_group.%user")
	case "secondaryGroupUser":
		rule.target = under("%secondary_group.%user")
	case "applicationName":
		rule.target = under("%application")
	case "custom":
		if rule.target = j.CustomPlacement; rule.target == "" {
			return rule, errors.New("policy custom needs customPlacement")
		}
	case "setDefaultQueue":
		if rule.action, rule.target = setDefault, j.Value; rule.target == "" {
			return rule, errors.New("policy setDefaultQueue needs value")
		}
	case "":
		return rule, errors.New("policy is missing")
	default:
		return rule, fmt.Errorf(
			"policy %q is none of specified, reject, defaultQueue, user, primaryGroup, secondaryGroup, primaryGroupUser, secondaryGroupUser, applicationName, setDefaultQueue, custom",
			j.Policy,
		)
	}
	if rule.target == "" {
		return rule, nil
	}
	return rule, checkTarget(rule.target, nil)
}

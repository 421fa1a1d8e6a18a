// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/creelrm/creel/internal/strictjson"
)

// maxMappingBytes limits the file named by mapping-rule-json-file.
const maxMappingBytes = 4 << 20

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

// ParseMappingRules parses the JSON format of mapping rules and returns all errors in them.
func ParseMappingRules(text []byte) ([]Mapping, []error) {
	if len(text) > maxMappingBytes {
		return nil, []error{fmt.Errorf("mapping rules larger than %d MiB", maxMappingBytes>>20)}
	}
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
		return nil, []error{fmt.Errorf("line %d of the JSON: %w", line, strictjson.Worded(err))}
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, []error{errors.New("something follows the JSON object")}
	}
	var rules []Mapping
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

func (j *jsonRule) rule() (Mapping, error) {
	rule := Mapping{matches: j.Matches, create: j.Create == nil || *j.Create}
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

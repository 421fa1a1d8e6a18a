// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/strictjson"
	"github.com/creelrm/creel/subcluster"
)

// maxDocument bounds the size of a document that Parse accepts, in bytes.
const maxDocument = 256 << 10

// document is creel's own format. Unknown keys are rejected, so that a misspelt key is not ignored silently.
type document struct {
	Home  *ruleDoc `json:"home"`
	Split *ruleDoc `json:"split"`
}

type ruleDoc struct {
	Policy        string                         `json:"policy"`
	Weights       map[creel.SubclusterID]float64 `json:"weights"`
	HeadroomAlpha *float64                       `json:"headroomAlpha"`
	UAMAt         int64                          `json:"twinAt"`
}

// hadoopDocument is the format of Hadoop's stores: the class of a policy manager, and its parameters. Parameters are
// a JSON object, a string of JSON, or base64 of JSON. Parameters without a manager belong to WeightedLocality:
// Hadoop's own tools write them for that manager.
type hadoopDocument struct {
	Type    string          `json:"type"`
	Manager string          `json:"policyManager"`
	Queue   string          `json:"queue"`
	Params  json.RawMessage `json:"params"`
	hadoopParams
}

type hadoopParams struct {
	Router json.RawMessage `json:"routerPolicyWeights"`
	AMRM   json.RawMessage `json:"amrmPolicyWeights"`
	Alpha  json.RawMessage `json:"headroomAlpha"`
}

// Parse reads a policy document in creel's or Hadoop's format (see the package and hadoopDocument). Omitted parts get
// their defaults. The error is a *creel.Error of kind creel.ErrInvalidRequest.
func Parse(doc []byte) (Policy, error) {
	if len(doc) > maxDocument {
		return Policy{}, bad("it is longer than 256 KiB", "weights of some thousand members fit")
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(doc, &keys); err != nil {
		return Policy{}, bad(
			"it is not a JSON object: "+strictjson.Worded(err).Error(),
			`try {"home":{"policy":"balanced"},"split":{"policy":"balanced"}}`,
		)
	}
	for _, k := range []string{
		"type",
		"policyManager",
		"params",
		"routerPolicyWeights",
		"amrmPolicyWeights",
		"headroomAlpha",
	} {
		if _, ok := keys[k]; ok {
			return parseHadoop(doc)
		}
	}
	var d document
	if err := strictjson.Unmarshal(doc, &d); err != nil {
		return Policy{}, bad(
			err.Error(),
			`a document has "home" and "split", each with "policy", "weights", "headroomAlpha", "twinAt"`,
		)
	}
	p := Default()
	var err error
	if d.Home != nil {
		if p.home, err = homeFrom(*d.Home); err != nil {
			return Policy{}, err
		}
	}
	if d.Split != nil {
		if p.split, err = splitFrom(*d.Split); err != nil {
			return Policy{}, err
		}
	}
	return p, nil
}

func bad(why, try string) error {
	return &creel.Error{Kind: creel.ErrInvalidRequest, What: "invalid policy document", Why: why, Try: try}
}

// homeFrom makes a home rule by its name.
func homeFrom(d ruleDoc) (homeRule, error) {
	if d.HeadroomAlpha != nil || d.UAMAt != 0 {
		return nil, bad("headroomAlpha and twinAt do not apply to a home", `put them under "split"`)
	}
	w, err := checkWeights(d.Weights)
	if err != nil {
		return nil, err
	}
	name := cmp.Or(d.Policy, Default().HomeName())
	for _, rule := range homeRules {
		if rule.name() != name {
			continue
		}
		if w == nil {
			return rule, nil
		}
		if rule = rule.with(w); rule == nil {
			return nil, bad(name+" takes no weights", `name it "weighted"`)
		}
		return rule, nil
	}
	return nil, bad(
		fmt.Sprintf("unknown home policy %.40q", d.Policy),
		"one of "+strings.Join(HomeNames(), ", "),
	)
}

// splitFrom makes a split rule by its name.
func splitFrom(d ruleDoc) (splitRule, error) {
	w, err := checkWeights(d.Weights)
	if err != nil {
		return nil, err
	}
	alpha := 0.5
	if d.HeadroomAlpha != nil {
		alpha = *d.HeadroomAlpha
	}
	if !(alpha >= 0 && alpha <= 1) {
		return nil, bad("headroomAlpha is not in 0..1", "0 uses weights alone, 1 headroom alone")
	}
	if d.UAMAt < 0 || d.UAMAt > 1<<20 {
		return nil, bad("twinAt is not in 0..1048576", "it is how many containers are worth a UAM")
	}
	if d.UAMAt != 0 && d.Policy != "balanced" && d.Policy != "" {
		return nil, bad("twinAt applies to balanced only", "leave it out")
	}
	if d.HeadroomAlpha != nil && d.Policy != "locality" {
		return nil, bad("headroomAlpha applies to locality only", "leave it out")
	}
	name := cmp.Or(d.Policy, Default().SplitName())
	for _, rule := range splitRules {
		if rule.name() == name {
			return rule.from(w, alpha, d.UAMAt), nil
		}
	}
	return nil, bad(
		fmt.Sprintf("unknown split policy %.40q", d.Policy),
		"one of "+strings.Join(SplitNames(), ", "),
	)
}

// checkWeights accepts weights of any scale if at least one is positive.
func checkWeights(w map[creel.SubclusterID]float64) (Weights, error) {
	if len(w) == 0 {
		return nil, nil
	}
	any := false
	ids := make([]creel.SubclusterID, 0, len(w))
	for id := range w {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		v := w[id]
		if err := subcluster.ValidID(id); err != nil {
			return nil, bad(err.Error(), "weights are named by subcluster")
		}
		if math.IsNaN(v) || v < 0 || v > 1e12 {
			return nil, bad(fmt.Sprintf("the weight of %s is %g", id, v), "use numbers from 0 up, of any scale")
		}
		any = any || v > 0
	}
	if !any {
		return nil, bad("every weight is 0", `to refuse all, use the policy "reject"`)
	}
	return w, nil
}

// parseHadoop translates a document of Hadoop's policy managers.
func parseHadoop(doc []byte) (Policy, error) {
	var d hadoopDocument
	if err := strictjson.Unmarshal(doc, &d); err != nil {
		return Policy{}, bad(err.Error(), `a Hadoop document has "type", "queue" and "params"`)
	}
	params := d.hadoopParams
	if len(d.Params) > 0 && string(d.Params) != "null" {
		if err := readParams(d.Params, &params); err != nil {
			return Policy{}, err
		}
	}
	router, err := hadoopWeights(params.Router)
	if err != nil {
		return Policy{}, err
	}
	amrm, err := hadoopWeights(params.AMRM)
	if err != nil {
		return Policy{}, err
	}
	alpha := 0.0 // Hadoop's default
	if len(params.Alpha) > 0 {
		if alpha, err = hadoopNumber(params.Alpha); err != nil || !(alpha >= 0 && alpha <= 1) {
			return Policy{}, bad("headroomAlpha is not in 0..1", "0 uses weights alone, 1 headroom alone")
		}
	}
	class := d.Type
	if class == "" {
		class = d.Manager
	}
	// org.apache.hadoop.yarn.server.federation.policies.manager.XPolicyManager
	name := strings.TrimSuffix(class[strings.LastIndexByte(class, '.')+1:], "PolicyManager")
	switch name {
	case "UniformBroadcast":
		return Policy{home: uniformHome{}, split: broadcastSplit{}}, nil
	case "HashBroadcast":
		return Policy{home: hashHome{}, split: broadcastSplit{}}, nil
	case "PriorityBroadcast":
		return Policy{home: priorityHome{router}, split: broadcastSplit{}}, nil
	case "WeightedLocality", "":
		return Policy{home: localityHome{router}, split: localitySplit{amrm, alpha}}, nil
	case "WeightedHome":
		return Policy{home: weightedHome{router}, split: homeSplit{}}, nil
	case "Home":
		return Policy{home: uniformHome{}, split: homeSplit{}}, nil
	case "RejectAll":
		return Policy{home: rejectHome{}, split: rejectSplit{}}, nil
	}
	return Policy{}, bad(
		fmt.Sprintf("the policy manager %.120q is not known", class),
		"one of UniformBroadcast, HashBroadcast, PriorityBroadcast, WeightedLocality, WeightedHome, Home, RejectAll, each followed by PolicyManager",
	)
}

// readParams reads parameters in the forms that stores and tools use.
func readParams(raw json.RawMessage, into *hadoopParams) error {
	if raw[0] == '"' {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return bad("params: "+strictjson.Worded(err).Error(), "")
		}
		if text = strings.TrimSpace(text); text == "" {
			return nil
		}
		if text[0] != '{' {
			var decoded []byte
			if err := json.Unmarshal(raw, &decoded); err != nil { // []byte reads base64
				return bad("params are neither JSON nor base64", "give them as a JSON object")
			}
			text = string(decoded)
		}
		raw = json.RawMessage(text)
	}
	if err := strictjson.Unmarshal(raw, into); err != nil {
		return bad("params: "+err.Error(), `they have "routerPolicyWeights", "amrmPolicyWeights" and "headroomAlpha"`)
	}
	return nil
}

// hadoopWeights reads {"entry":[{"key":{"id":"sc-1"},"value":"1.0"}]} and {"sc-1":1.0}. In the first form a single
// entry may lack the brackets.
func hadoopWeights(raw json.RawMessage) (Weights, error) {
	if len(raw) == 0 || string(raw) == "null" || string(raw) == `""` {
		return nil, nil
	}
	wrong := func(err error) (Weights, error) {
		return nil, bad("weights: "+strictjson.Worded(err).Error(), `as {"entry":[{"key":{"id":"sc-1"},"value":"1.0"}]} or {"sc-1":1.0}`)
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil {
		return wrong(err)
	}
	out := map[creel.SubclusterID]float64{}
	entries, ok := keys["entry"]
	if !ok {
		for id, v := range keys {
			n, err := hadoopNumber(v)
			if err != nil {
				return wrong(err)
			}
			out[creel.SubclusterID(id)] = n
		}
		return checkWeights(out)
	}
	type entry struct {
		Key   struct{ ID creel.SubclusterID }
		Value json.RawMessage
	}
	var list []entry
	if len(entries) > 0 && entries[0] == '{' {
		list = make([]entry, 1)
		if err := json.Unmarshal(entries, &list[0]); err != nil {
			return wrong(err)
		}
	} else if err := json.Unmarshal(entries, &list); err != nil {
		return wrong(err)
	}
	for _, e := range list {
		n, err := hadoopNumber(e.Value)
		if err != nil {
			return wrong(err)
		}
		if _, twice := out[e.Key.ID]; twice {
			return wrong(fmt.Errorf("%q occurs twice", e.Key.ID))
		}
		out[e.Key.ID] = n
	}
	return checkWeights(out)
}

func hadoopNumber(raw json.RawMessage) (float64, error) {
	s := strings.Trim(string(raw), `"`)
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, fmt.Errorf("%.40q is not a number", s)
	}
	return v, nil
}

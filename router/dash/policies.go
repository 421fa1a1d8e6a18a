// SPDX-License-Identifier: Apache-2.0

package dash

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/creelrm/creel/internal/pages"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/rest"
)

var policiesPage = pages.Page{
	Path: "/policies", Name: "policies", Title: "Policies", Section: "policies", Load: loadPolicies,
	Command: func(*pages.Call) string { return "creel policy list" },
}

var policyPage = pages.Page{
	Path: "/policies/{queue}", Name: "policy", Title: "Policy", Section: "policies", Load: loadPolicy,
	Command: func(c *pages.Call) string { return "creel policy get " + pages.ShellWord(c.Param("queue")) },
}

// policyList is the page of all documents.
type policyList struct {
	Policies []rest.PolicyDoc
	Note     string // set if the state store does not answer
	// Without has the queues without their own document.
	Without []string
}

func loadPolicies(c *pages.Call) (any, error) {
	var doc rest.PoliciesDoc
	if err := c.Get("/api/v1/policies", &doc); err != nil {
		return nil, err
	}
	list := policyList{Policies: doc.Policies, Note: doc.Note}
	own := map[string]bool{}
	for _, p := range doc.Policies {
		own[string(p.Queue)] = own[string(p.Queue)] || !p.Removed
	}
	var tree rest.QueueTreeDoc
	if err := c.Get("/api/v1/queues", &tree); err != nil && !pages.IsStatus(err, http.StatusServiceUnavailable) {
		return nil, err
	}
	for _, q := range leavesOf(tree.Queues) {
		if !own[string(q.Queue)] {
			list.Without = append(list.Without, string(q.Queue))
		}
	}
	return &list, nil
}

// policyView is the page of one queue's policy: the document in force, its history, and a comparison of two versions.
type policyView struct {
	Queue     string
	Note      string          // set if the state store does not answer
	Effective *rest.PolicyDoc // nil: the settings' policies apply
	Text      string          // its document, indented
	History   []rest.PolicyDoc
	From, To  int64 // the compared versions
	Diff      []diffLine
	Preview   *preview
	Draft     string // the document to preview
	// Change is the difference between the draft and the document in force, empty if there is none or the draft is
	// invalid. It is applied only while version Expect is the queue's newest.
	Change []diffLine
	Expect int64
	Fields []schemaField // the possible fields of a document
}

// schemaField is a field that a policy document may have.
type schemaField struct {
	Name, Takes, Says string
}

// policyFields has the schema's fields, sorted by name.
var policyFields = fieldsOf([]byte(policies.Schema))

// fieldsOf returns the fields of a schema's objects, in the form "home.policy".
func fieldsOf(text []byte) (out []schemaField) {
	type node struct {
		Ref         string   `json:"$ref"`
		Description string   `json:"description"`
		Type        string   `json:"type"`
		Enum        []string `json:"enum"`
		Properties  map[string]*node
		Defs        map[string]*node `json:"$defs"`
	}
	var root node
	if err := json.Unmarshal(text, &root); err != nil {
		panic(err) // the schema is embedded and tested
	}
	var walk func(path string, n *node)
	walk = func(path string, n *node) {
		if of := root.Defs[strings.TrimPrefix(n.Ref, "#/$defs/")]; of != nil {
			n = of
		}
		if path != "" {
			takes := n.Type
			if len(n.Enum) > 0 {
				takes = strings.Join(n.Enum, ", ")
			}
			out = append(out, schemaField{path, takes, n.Description})
		}
		for _, key := range slices.Sorted(maps.Keys(n.Properties)) {
			walk(strings.TrimPrefix(path+"."+key, "."), n.Properties[key])
		}
	}
	walk("", &root)
	return out
}

func (p *policyView) PageTitle() string { return "Policy of " + p.Queue }

// preview has the decisions about the last submissions under another document.
type preview struct {
	Problem string
	router.Preview
}

// maxDraft bounds a draft in bytes, since it is part of the address.
const maxDraft = 16 << 10

func loadPolicy(c *pages.Call) (any, error) {
	p := policyView{Queue: c.Param("queue"), Draft: c.Query("draft"), Fields: policyFields}
	path := "/api/v1/policies/" + url.PathEscape(p.Queue)
	var effective rest.PolicyDoc
	switch err := c.Get(path, &effective); {
	case err == nil:
		p.Effective, p.Text = &effective, indented(effective.Document)
	case !pages.IsStatus(err, http.StatusNotFound):
		return nil, err
	}
	var history rest.PoliciesDoc
	err := c.Get(path+"/history?limit=50", &history)
	switch {
	case pages.IsStatus(err, http.StatusServiceUnavailable):
		p.Note = "Its history is unknown: the state store does not answer."
	case err != nil:
		return nil, err
	}
	p.History, p.Note = history.Policies, cmp.Or(history.Note, p.Note)
	if len(p.History) > 0 {
		p.Expect = p.History[0].Version
	}
	p.compare(c.Query("from"), c.Query("to"))
	if p.Draft != "" {
		p.Preview = previewOf(c, path, p.Draft)
		now, draft := []byte(p.Text), []byte(p.Draft)
		if p.Preview.Problem == "" && indented(now) != indented(draft) {
			p.Change = diff(lines(now), lines(draft))
		}
	} else {
		p.Draft = p.Text
	}
	return &p, nil
}

// compare selects two versions of the history, by default the newest two.
func (p *policyView) compare(from, to string) {
	if len(p.History) < 2 && from == "" {
		return
	}
	find := func(text string, otherwise int) *rest.PolicyDoc {
		n, err := strconv.ParseInt(text, 10, 64)
		for i := range p.History {
			if err == nil && p.History[i].Version == n {
				return &p.History[i]
			}
		}
		if otherwise < len(p.History) {
			return &p.History[otherwise]
		}
		return nil
	}
	a, b := find(from, 1), find(to, 0)
	if a == nil || b == nil {
		return
	}
	p.From, p.To = a.Version, b.Version
	p.Diff = diff(lines(a.Document), lines(b.Document))
}

// previewOf decides the last submissions of the queue again under a document. Only users with access to these
// submissions may call it.
func previewOf(c *pages.Call, path, draft string) *preview {
	out := &preview{}
	switch {
	case len(draft) > maxDraft:
		out.Problem = fmt.Sprintf("The document is longer than %d bytes: use creel policy preview.", maxDraft)
	case !json.Valid([]byte(draft)):
		out.Problem = "The document is not JSON."
	default:
		order := map[string]json.RawMessage{"document": json.RawMessage(draft)}
		if err := c.Post(path+"/preview", order, &out.Preview); err != nil {
			out.Problem = err.Error()
		}
	}
	return out
}

func indented(document []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, document, "", "  ") != nil {
		return string(document)
	}
	return b.String()
}

func lines(document []byte) []string {
	if len(document) == 0 {
		return nil
	}
	return strings.Split(indented(document), "\n")
}

// diffLine is a line of a comparison: ' ' in both, '-' only before, '+' only after.
type diffLine struct {
	Sign string
	Text string
}

// maxDiff bounds the compared lines of a document.
const maxDiff = 1000

// diff compares by the longest common subsequence of lines. Its quadratic table is cheap for documents of some dozen
// lines.
func diff(x, y []string) (out []diffLine) {
	x, y = x[:min(len(x), maxDiff)], y[:min(len(y), maxDiff)]
	common := make([][]int, len(x)+1)
	for i := range common {
		common[i] = make([]int, len(y)+1)
	}
	for i := len(x) - 1; i >= 0; i-- {
		for j := len(y) - 1; j >= 0; j-- {
			if x[i] == y[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	for i, j := 0, 0; i < len(x) || j < len(y); {
		switch {
		case i < len(x) && j < len(y) && x[i] == y[j]:
			out = append(out, diffLine{" ", x[i]})
			i, j = i+1, j+1
		case j == len(y) || i < len(x) && common[i+1][j] >= common[i][j+1]:
			out = append(out, diffLine{"-", x[i]})
			i++
		default:
			out = append(out, diffLine{"+", y[j]})
			j++
		}
	}
	return out
}

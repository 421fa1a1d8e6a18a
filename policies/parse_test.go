// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster"
)

const entries = `{"entry":[{"key":{"id":"sc-a"},"value":"0.7"},{"key":{"id":"sc-b"},"value":"0.3"}]}`

func TestDocumentsAreRead(t *testing.T) {
	ab := Weights{"sc-a": 0.7, "sc-b": 0.3}
	const pkg = "org.apache.hadoop.yarn.server.federation.policies.manager."
	for doc, want := range map[string]Policy{
		`{}`: Default(),
		`{"home":{"policy":"hash"},"split":{"policy":"home"}}`:                                                                           {home: hashHome{}, split: homeSplit{}},
		`{"home":{"policy":"weighted","weights":{"sc-a":0.7,"sc-b":0.3}}}`:                                                               {home: weightedHome{ab}, split: balancedSplit{}},
		`{"split":{"policy":"locality","headroomAlpha":1}}`:                                                                              {home: balancedHome{}, split: localitySplit{alpha: 1}},
		`{"split":{"twinAt":8}}`:                                                                                                         {home: balancedHome{}, split: balancedSplit{uamAt: 8}},
		`{"type":"` + pkg + `UniformBroadcastPolicyManager","queue":"*"}`:                                                                {home: uniformHome{}, split: broadcastSplit{}},
		`{"type":"HashBroadcastPolicyManager"}`:                                                                                          {home: hashHome{}, split: broadcastSplit{}},
		`{"type":"HomePolicyManager","params":""}`:                                                                                       {home: uniformHome{}, split: homeSplit{}},
		`{"type":"RejectAllPolicyManager","params":null}`:                                                                                {home: rejectHome{}, split: rejectSplit{}},
		`{"type":"` + pkg + `PriorityBroadcastPolicyManager","params":{"routerPolicyWeights":` + entries + `}}`:                          {home: priorityHome{ab}, split: broadcastSplit{}},
		`{"type":"WeightedHomePolicyManager","params":"{\"routerPolicyWeights\":{\"sc-a\":0.7,\"sc-b\":\"0.3\"}}"}`:                      {home: weightedHome{ab}, split: homeSplit{}},
		`{"routerPolicyWeights":` + entries + `,"amrmPolicyWeights":{"entry":{"key":{"id":"sc-b"},"value":"1"}},"headroomAlpha":"0.25"}`: {home: localityHome{ab}, split: localitySplit{Weights{"sc-b": 1}, 0.25}},
		// {"headroomAlpha":"1.0"} in base64, as the store's bytes come through JSON.
		`{"type":"WeightedLocalityPolicyManager","params":"eyJoZWFkcm9vbUFscGhhIjoiMS4wIn0="}`: {home: localityHome{}, split: localitySplit{alpha: 1}},
	} {
		got, err := Parse([]byte(doc))
		if err != nil {
			t.Errorf("%s: %v", doc, err)
		} else if !reflect.DeepEqual(got, want) {
			t.Errorf("%s\n got %+v\nwant %+v", doc, got, want)
		}
	}
}

func TestInvalidDocumentErrors(t *testing.T) {
	for doc, want := range map[string]string{
		``:                             "not a JSON object",
		`[]`:                           "not a JSON object",
		`{"home":{"policy":"hsah"}}`:   "balanced, hash",
		`{"hom":{}}`:                   "unknown field",
		`{"home":{"policy":"hash"}} x`: "invalid character",
		`{"home":{"headroomAlpha":1}}`: "do not apply to a home",
		`{"split":{"policy":"locality","headroomAlpha":1.5}}`:                                               "0..1",
		`{"home":{"weights":{"sc-a":-1}}}`:                                                                  "weight of sc-a is -1",
		`{"home":{"weights":{"sc-a":0}}}`:                                                                   "every weight is 0",
		`{"home":{"weights":{"a b":1}}}`:                                                                    "subcluster id",
		`{"type":"FastestPolicyManager"}`:                                                                   "not known",
		`{"routerPolicyWeights":{"entry":[{"key":{"id":"a"},"value":"x"}]}}`:                                "not a number",
		`{"routerPolicyWeights":{"entry":[{"key":{"id":"a"},"value":"1"},{"key":{"id":"a"},"value":"1"}]}}`: "twice",
		`{"home":{"policy":"uniform","weights":{"a":1}}}`:                                                   "takes no weights",
	} {
		_, err := Parse([]byte(doc))
		if !errors.Is(err, creel.ErrInvalidRequest) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", doc, err, want)
		}
	}
}

func TestATableKeepsTheLastGoodDocument(t *testing.T) {
	doc := func(q creel.QueuePath, version int64, text string) subcluster.Policy {
		return subcluster.Policy{Queue: q, Version: version, Document: []byte(text)}
	}
	first := NewTable(nil, subcluster.NewPolicies([]subcluster.Policy{
		doc("root.a", 1, `{"home":{"policy":"hash"}}`),
		doc("root.default", 2, `{"home":{"policy":"load"}}`),
		doc("*", 3, `{"home":{"policy":"uniform"}}`),
	}))
	for q, want := range map[creel.QueuePath]string{"root.a": "hash", "root.a.b.c": "hash", "default": "load", "root.x": "uniform", "": "uniform", "a": "hash"} {
		if p, at := first.For(q); p.HomeName() != want {
			t.Errorf("queue %q: %s from %q, want %s", q, p.HomeName(), at, want)
		}
	}
	second := NewTable(first, subcluster.NewPolicies([]subcluster.Policy{
		doc("root.a", 4, `{"home":{"policy":"nonsense"}}`),
		doc("root.b", 5, `also nonsense`),
		doc("*", 3, `{"home":{"policy":"uniform"}}`),
	}))
	if p, _ := second.For("root.a"); p.HomeName() != "hash" {
		t.Errorf("a bad document replaced a good one: %s", p.HomeName())
	}
	if p, at := second.For("root.b"); p.HomeName() != "uniform" || at != "*" {
		t.Errorf("root.b: %s from %q", p.HomeName(), at)
	}
	if len(second.Bad()) != 2 || NewTable(second, second.set) != second {
		t.Errorf("bad: %q", second.Bad())
	}
	home := Policy{home: hashHome{}, split: homeSplit{}}
	for _, b := range []*Table{EmptyTable(home), NewTable(EmptyTable(home), subcluster.NewPolicies([]subcluster.Policy{doc("root.a", 1, `{}`)}))} {
		if p, at := b.For("root.b"); p.HomeName() != "hash" || p.SplitName() != "home" || at != "" {
			t.Errorf("a queue without a document: %+v from %q", p, at)
		}
	}
	var none *Table
	if p, at := none.For("root.a"); p.HomeName() != "balanced" || at != "" {
		t.Errorf("no table: %s from %q", p.HomeName(), at)
	}
}

// The names that settings and messages offer are those that Parse takes.
func TestEveryNameIsAPolicy(t *testing.T) {
	for _, name := range HomeNames() {
		if p, err := Parse([]byte(`{"home":{"policy":"` + name + `"}}`)); err != nil || p.HomeName() != name {
			t.Errorf("home %s: %s, %v", name, p.HomeName(), err)
		}
	}
	for _, name := range SplitNames() {
		if p, err := Parse([]byte(`{"split":{"policy":"` + name + `"}}`)); err != nil || p.SplitName() != name {
			t.Errorf("split %s: %s, %v", name, p.SplitName(), err)
		}
	}
	_, err := Parse([]byte(`{"home":{"policy":"x"}}`))
	if err == nil || !strings.Contains(err.Error(), strings.Join(HomeNames(), ", ")) {
		t.Errorf("%v does not name all home policies", err)
	}
	_, err = Parse([]byte(`{"split":{"policy":"x"}}`))
	if err == nil || !strings.Contains(err.Error(), strings.Join(SplitNames(), ", ")) {
		t.Errorf("%v does not name all split policies", err)
	}
}

func FuzzParse(t *testing.F) {
	f := propertytest.Fuzz(t)
	f.Add(
		[]byte(`{"home":{"policy":"weighted","weights":{"sc-a":1}},"split":{"policy":"locality","headroomAlpha":0.5}}`),
	)
	f.Add([]byte(`{"type":"WeightedLocalityPolicyManager","params":{"routerPolicyWeights":` + entries + `}}`))
	f.Add([]byte(`{"type":"x","params":"eyJoZWFkcm9vbUFscGhhIjoiMS4wIn0="}`))
	f.Add([]byte(`{"params":"\"\""}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		p, err := Parse(doc)
		if err != nil {
			if !errors.Is(err, creel.ErrInvalidRequest) {
				t.Fatalf("%v", err)
			}
			return
		}
		// A document that parses must decide without a panic.
		_, _, _ = p.Home(view(member("sc-a", 10_000)), small, nil, seeded(1))
		_, _ = p.Split(
			view(member("sc-a", 10_000)),
			"root.a",
			Group{Count: 5},
			[]Reach{{Member: "sc-a", Home: true}},
			seeded(1),
		)
	})
}

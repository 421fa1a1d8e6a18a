// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/policies/rebalancer"
)

// schemaOf is the schema that a command prints.
func schemaOf(t *testing.T, command string) *jsonschema.Schema {
	t.Helper()
	var out bytes.Buffer
	root := rootCommand()
	root.SetOut(&out)
	root.SetArgs([]string{command, "schema"})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(&out)
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// validate checks a document against a schema, and returns the document as text.
func validate(t *rapid.T, schema *jsonschema.Schema, document any) (text []byte, invalid error) {
	text, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	read, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return text, schema.Validate(read)
}

// maybe sets a key in one of three draws.
func maybe(t *rapid.T, m map[string]any, key string, values ...any) {
	if rapid.IntRange(0, 2).Draw(t, key+"?") == 0 {
		m[key] = rapid.SampledFrom(values).Draw(t, key)
	}
}

// The schema of policies accepts valid policies and rejects others.
func TestPolicySchema(t *testing.T) {
	schema := schemaOf(t, "policy")
	var names []any
	for _, name := range slices.Concat(policies.HomeNames(), policies.SplitNames(), []string{"nonsense"}) {
		names = append(names, name)
	}
	weights := rapid.MapOfN(rapid.SampledFrom([]string{"sc-1", "sc-2", "a b", ""}),
		rapid.SampledFrom([]any{0, 1, 2.5, -1, 1e13, "1"}), 0, 3)
	rule := rapid.Custom(func(t *rapid.T) map[string]any {
		m := map[string]any{}
		maybe(t, m, "policy", names...)
		maybe(t, m, "weights", weights.Draw(t, "weights"))
		maybe(t, m, "headroomAlpha", 0, 0.5, 1, 1.5, "x")
		maybe(t, m, "twinAt", 1, 20, -1, 1<<21, 1.5)
		maybe(t, m, "other", 1)
		return m
	})
	taken := 0
	propertytest.Check(t, func(t *rapid.T) {
		d := map[string]any{}
		for _, key := range []string{"home", "split", "more"} {
			if rapid.IntRange(0, map[string]int{"home": 1, "split": 1, "more": 9}[key]).Draw(t, key+"?") == 0 {
				d[key] = rule.Draw(t, key)
			}
		}
		text, invalid := validate(t, schema, d)
		_, refused := policies.Parse(text)
		if (invalid == nil) != (refused == nil) {
			t.Fatalf("%s: Parse says %v, the schema %v", text, refused, invalid)
		}
		if refused == nil {
			taken++
		}
	})
	if taken < 5 {
		t.Errorf("only %d documents were taken", taken)
	}
}

// The schema of the queue tree accepts valid trees. Only Parse detects a guarantee above its maximum, a queue named
// twice, and bad seconds of a budget.
func TestQueueTreeSchema(t *testing.T) {
	schema := schemaOf(t, "queue")
	amounts := []any{"40%", map[string]any{"memory": 1024, "vCores": 2}, map[string]any{"percent": 40.5}}
	noAmounts := []any{
		"0%", "x", map[string]any{"percent": 0}, map[string]any{"memory": -1}, map[string]any{"gpu": 1.5}, 7,
	}
	keys := []struct {
		name        string
		good, wrong []any
	}{
		{"guarantee", amounts, noAmounts},
		{"maximum", amounts, noAmounts},
		{"preemption", amounts, noAmounts},
		{"preemption_seconds", []any{60}, []any{-1, 1.5}},
		{"weight", []any{1, 2.5}, []any{0, -1, "1"}},
		{"optout", []any{true, false}, []any{"yes"}},
		{"user_limit", amounts, noAmounts},
		{"labels", []any{
			map[string]any{}, map[string]any{"gpu": map[string]any{}},
			map[string]any{"gpu": map[string]any{"guarantee": "10%", "weight": 2, "maximum": map[string]any{"memory": 1}},
				"a-b_C1": map[string]any{"user_limit": "5%"}},
		}, []any{
			7, map[string]any{"": map[string]any{}}, map[string]any{"a b": map[string]any{}},
			map[string]any{"gpu": map[string]any{"preemption": "5%"}}, map[string]any{"gpu": map[string]any{"weight": 0}},
			map[string]any{"gpu": map[string]any{"maximum": "0%"}}, map[string]any{"gpu": 1},
		}},
	}
	taken := 0
	propertytest.Check(t, func(t *rapid.T) {
		queue := map[string]any{"queue": rapid.SampledFrom([]any{"root.a", "root.a.b"}).Draw(t, "queue")}
		careful := rapid.Bool().Draw(t, "careful")
		for _, key := range keys {
			if careful {
				maybe(t, queue, key.name, key.good...)
			} else {
				maybe(t, queue, key.name, slices.Concat(key.good, key.wrong)...)
			}
		}
		if !careful {
			maybe(t, queue, "typo", 1)
			maybe(t, queue, "queue", "root", "a", 1)
		}
		text, invalid := validate(t, schema, map[string]any{"queues": []any{queue}})
		_, refused := rebalancer.ParseTree(text, 1)
		if refused == nil {
			taken++
		} else if slices.ContainsFunc([]string{"more than its maximum", "preemption_seconds"}, func(why string) bool {
			return strings.Contains(refused.Error(), why)
		}) {
			return
		}
		if (invalid == nil) != (refused == nil) {
			t.Fatalf("%s: ParseTree says %v, the schema %v", text, refused, invalid)
		}
	})
	if taken < 5 {
		t.Errorf("only %d documents were taken", taken)
	}
}

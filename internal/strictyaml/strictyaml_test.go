// SPDX-License-Identifier: Apache-2.0

package strictyaml_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/internal/strictyaml"
)

type limits struct {
	Guarantee json.RawMessage `json:"guarantee,omitempty"`
	Weight    *float64        `json:"weight,omitempty"`
	Seconds   int64           `json:"seconds"`
}

type document struct {
	Queues []struct {
		Queue string `json:"queue"`
		limits
		Labels map[string]limits `json:"labels"`
		Optout bool              `json:"optout"`
	} `json:"queues"`
}

var shape = reflect.TypeFor[document]()

func TestErrorsHaveLineAndNearestField(t *testing.T) {
	for text, want := range map[string]string{
		"queues:\n- queue: a\n  garantee: 3%":           `line 3: unknown field "garantee"; did you mean "guarantee"?`,
		"queues:\n- queue: a\n  owner: me":              `line 3: unknown field "owner"`,
		"labels: {}":                                    `line 1: field "labels" is in the wrong place`,
		"queues:\n- queue: a\n labels: {}":              "line 3: did not find expected key",
		"queues:\n- queue: a\n\tx: 1":                   "line 3: found a tab character that violates indentation",
		"queues:\n- queue: \"a":                         "line 2: found unexpected end of stream",
		"queues:\n- queue: a\n  weight: [1]":            "line 3: weight has a list where a number is expected",
		"queues:\n- queue: a\n  weight: two":            "line 3: weight has a text where a number is expected",
		"queues:\n- queue: 7":                           "line 2: queue has the number 7 where a text is expected",
		"queues:\n- queue: a\n  seconds: 1.5":           "line 3: seconds has the number 1.5 where a whole number is expected",
		"queues:\n- queue: a\n  optout: 1":              "line 3: optout has the number 1 where true or false is expected",
		"queues:\n  queue: a":                           "line 2: queues has an object where a list is expected",
		"- queue: a":                                    "line 1: it has a list where an object is expected",
		"queues:\n- queue: a\n  labels:\n    1: {}":     "line 4: the name of a field of labels is not a text; quote it",
		"queues:\n- queue: a\n  guarantee: .nan":        "line 3: guarantee is not a finite number",
		"queues:\n- queue: *b":                          "line 2: unknown anchor 'b' referenced",
		"queues: &q\n- queue: a\n  guarantee: *q":       "line 3: *q is part of itself",
		"queues:\n- queue: a\n  queue: b":               "mapping key \"queue\" already defined",
		"{queues: []} }":                                "line 1: trailing text after the document",
		"queues: []\n---\nqueues: []":                   "trailing text after the document",
		"queues:\n- queue: a\n  labels:\n    g: {w: 1}": `line 4: unknown field "w"`,
	} {
		b, err := strictyaml.JSON([]byte(text), shape)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "yaml:") {
			t.Errorf("%q: %s, %v, want %s", text, b, err, want)
		}
	}
}

func TestDocumentsBecomeJSON(t *testing.T) {
	for text, want := range map[string]string{
		"":           "null",
		"queues: []": `{"queues":[]}`,
		"queues:\n- queue: root.a\n  guarantee: {memory: 5}\n  weight: 2\n  labels: {gpu: {guarantee: 3%}}\n  optout: true": `{"queues":[{"guarantee":{"memory":5},"labels":{"gpu":{"guarantee":"3%"}},"optout":true,"queue":"root.a","weight":2}]}`,
		"queues:\n- &a {queue: b, weight: 1.5}\n- <<: *a\n  queue: c":                                                       `{"queues":[{"queue":"b","weight":1.5},{"queue":"c","weight":1.5}]}`,
		`{"queues":[{"Queue":"d","weight":null}]}`:                                                                          `{"queues":[{"Queue":"d","weight":null}]}`,
	} {
		b, err := strictyaml.JSON([]byte(text), shape)
		if err != nil || string(b) != want {
			t.Errorf("%q: %s, %v, want %s", text, b, err, want)
		}
	}
}

// Aliases of aliases would become gigabytes.
func TestAliasesCostBoundedMemory(t *testing.T) {
	text := "queues:\n- queue: a\n  labels:\n    l0: &l0 {guarantee: [x, x, x, x, x, x, x, x, x, x]}\n"
	for i := '1'; i <= '9'; i++ {
		one := "*l" + string(i-1)
		text += "    l" + string(i) + ": &l" + string(i) + " {guarantee: [" + strings.Repeat(one+", ", 9) + one + "]}\n"
	}
	if b, err := strictyaml.JSON([]byte(text), shape); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

// An error names a part of a long name or value.
func TestErrorsAreShort(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	for _, text := range []string{
		"queues:\n- queue: a\n  labels:\n    " + long + ": 7",
		"queues:\n- queue: 0." + strings.Repeat("7", 100_000),
		"queues:\n- queue: a\n  " + long + ": 1",
		"queues:\n- queue: *" + long,
		"queues:\n- queue: !" + long + " a",
	} {
		if b, err := strictyaml.JSON([]byte(text), shape); err == nil || len(err.Error()) > 300 {
			t.Errorf("%.40q: %.40s, an error of %d bytes", text, b, len(fmt.Sprint(err)))
		}
	}
}

func FuzzJSON(t *testing.F) {
	f := propertytest.Fuzz(t)
	f.Add("queues:\n- queue: a\n  labels: {gpu: {guarantee: 3%}}")
	f.Add("queues: &q\n- queue: a\n  guarantee: *q")
	f.Add("a: &a [1, .inf, 2001-01-01, !!binary aGk=, 0x1f, 1_000]\n<<: *a")
	f.Fuzz(func(t *testing.T, text string) {
		b, err := strictyaml.JSON([]byte(text), shape)
		if err != nil {
			if strings.Contains(err.Error(), "yaml:") || strings.Contains(err.Error(), "json:") {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if err := json.Unmarshal(b, new(document)); err != nil && !strings.Contains(err.Error(), "of type int64") {
			t.Errorf("%q: %s: %v", text, b, err)
		}
	})
}

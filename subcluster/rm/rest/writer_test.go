// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/creelrm/creel/internal/propertytest"
)

func made(form regime, asXML bool, fields func(w *writer)) string {
	w := &writer{xml: asXML}
	w.document("root", form, fields)
	return string(w.buf)
}

// The three ways in which YARN 3.4 writes one document as JSON, and the one
// for XML.
func TestRegimes(t *testing.T) {
	doc := func(w *writer) {
		w.Int("n", 7)
		w.Bool("b", true)
		w.Float("f", 12)
		w.Text("s", "a<\"&\n\x00é")
		w.Texts("none", nil)
		w.Texts("one", []string{"x"})
		w.Texts("two", []string{"x", "y"})
		w.List("o", 1, func(w *writer, i int) { w.Int("i", int64(i)) })
		w.Object("empty", func(*writer) {})
		w.Map("map", 2, func(i int) (string, string) { return string(rune('a' + i)), "v" })
	}
	for _, c := range []struct {
		form  regime
		asXML bool
		want  string
	}{
		{rooted, false, `{"root":{"n":7,"b":true,"f":12.0,"s":"a<\"&\n\u0000é","one":["x"],"two":["x","y"],"o":[{"i":0}],"empty":{},"map":{"entry":[{"key":"a","value":"v"},{"key":"b","value":"v"}]}}}`},
		{natural, false, `{"n":7,"b":true,"f":12.0,"s":"a<\"&\n\u0000é","one":["x"],"two":["x","y"],"o":[{"i":0}],"empty":{},"map":{"entry":[{"key":"a","value":"v"},{"key":"b","value":"v"}]}}`},
		{mapped, false, `{"n":"7","b":"true","f":"12.0","s":"a<\"&\n\u0000é","one":"x","two":["x","y"],"o":{"i":"0"},"empty":null,"map":{"entry":[{"key":"a","value":"v"},{"key":"b","value":"v"}]}}`},
		{mapped, true, `<?xml version="1.0" encoding="UTF-8" standalone="yes"?><root><n>7</n><b>true</b><f>12.0</f><s>a&lt;"&amp;` + "\n" + `é</s><one>x</one><two>x</two><two>y</two><o><i>0</i></o><empty/><map><entry><key>a</key><value>v</value></entry><entry><key>b</key><value>v</value></entry></map></root>`},
	} {
		if got := made(c.form, c.asXML, doc); got != c.want {
			t.Errorf("regime %d, XML %v:\n got %s\nwant %s", c.form, c.asXML, got, c.want)
		}
	}
}

func TestSubclassesAreMarked(t *testing.T) {
	doc := func(w *writer) {
		w.Typed("info", "capacityScheduler", func(w *writer) {
			w.TypedList(
				"queue",
				2,
				func(i int) string { return []string{"leaf", ""}[i] },
				func(w *writer, i int) { w.Int("i", int64(i)) },
			)
		})
	}
	if got, want := made(
		rooted,
		false,
		doc,
	), `{"root":{"info":{"type":"capacityScheduler","queue":[{"type":"leaf","i":0},{"i":1}]}}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	const xsi = ` xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"`
	if got, want := made(
		rooted,
		true,
		doc,
	), `<?xml version="1.0" encoding="UTF-8" standalone="yes"?><root><info`+xsi+` xsi:type="capacityScheduler"><queue xsi:type="leaf"><i>0</i></queue><queue><i>1</i></queue></info></root>`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Floats as Java prints them.
func TestFloats(t *testing.T) {
	for v, want := range map[float64]string{0: "0.0", 100: "100.0", 12.5: "12.5", -1: "-1.0", 1e7: "1.0E7", 1.5e8: "1.5E8", 0.0001: "1.0E-4", 0.001: "0.001", float64(float32(0.6)) * 100: "60.000004"} {
		got := string(appendFloat(nil, v))
		if want == "60.000004" {
			got = string(appendFloat(nil, float64(float32(0.6)*100)))
		}
		if got != want {
			t.Errorf("%v is written %s, want %s", v, got, want)
		}
	}
}

// Numbers that are NaN or overflow 32 bits are written as 0: JSON has no infinities, and a reader would reject the
// whole document.
func TestInvalidJSONFloatsAreZero(t *testing.T) {
	for v, want := range map[float64]string{
		math.MaxFloat32: "3.4028235E38", 1e39: "0.0", -1e39: "0.0", math.MaxFloat64: "0.0", math.Inf(-1): "0.0", 1e-60: "0.0",
	} {
		got := made(natural, false, func(w *writer) { w.Float("f", v) })
		if !json.Valid([]byte(got)) || got != `{"f":`+want+`}` {
			t.Errorf("%v is written %s, want %s", v, got, want)
		}
	}
	if got := string(appendFloat(nil, math.NaN())); got != "0.0" {
		t.Errorf("NaN is written %s", got)
	}
}

// With any name or diagnosis, both documents can be parsed and are equal.
func FuzzText(t *testing.F) {
	f := propertytest.Fuzz(t)
	for _, s := range []string{"", "plain", "<&>\"'", "\x00\x1f\n\r\t", "\xff\xfe", "é\u2028\ufffe\U0001F600", "]]>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		doc := func(w *writer) { w.Text("s", s) }
		var fromJSON struct{ S string }
		if err := json.Unmarshal([]byte(made(natural, false, doc)), &fromJSON); err != nil {
			t.Fatalf("JSON of %q: %v", s, err)
		}
		if want := strings.ToValidUTF8(
			s,
			"\ufffd",
		); strings.ReplaceAll(
			fromJSON.S,
			"\ufffd",
			"",
		) != strings.ReplaceAll(
			want,
			"\ufffd",
			"",
		) {
			t.Fatalf("JSON of %q reads %q", s, fromJSON.S)
		}
		d := xml.NewDecoder(strings.NewReader(made(rooted, true, doc)))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("XML of %q: %v", s, err)
			}
		}
	})
}

// A submission as JSON of any shape either reads or is refused, and never
// takes the process with it.
func FuzzSubmission(t *testing.F) {
	f := propertytest.Fuzz(t)
	f.Add(
		`{"application-id":"application_1_0001","resource":{"memory":"128","vCores":1},"am-container-spec":{"commands":{"command":"x"}}}`,
		false,
	)
	f.Add(
		`{"application-id":"application_1_0001","am-container-spec":{"environment":{"entry":{"key":"A","value":"1"}},"commands":{"command":["x","y"]}}}`,
		false,
	)
	f.Add(`{"application-id":null,"priority":{},"application-tags":{"tag":[1]}}`, false)
	f.Add(
		`<application-submission-context><application-id>application_1_0001</application-id><priority></priority><unmanaged-AM>x</unmanaged-AM></application-submission-context>`,
		true,
	)
	f.Fuzz(func(t *testing.T, text string, asXML bool) {
		var doc submission
		var err error
		if asXML {
			err = xml.Unmarshal([]byte(text), &doc)
		} else {
			err = json.Unmarshal([]byte(text), &doc)
		}
		if err != nil {
			return
		}
		if c, err := doc.context(); err == nil && c.GetApplicationId() == nil {
			t.Fatalf("%q gives a submission without an id", text)
		}
	})
}

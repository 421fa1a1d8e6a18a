// SPDX-License-Identifier: Apache-2.0

package rawjson

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/creelrm/creel/internal/propertytest"
)

// For every object or list that encoding/json accepts, the scanner finds the same fields and items. On other bytes it
// ends, without reading past them.
func FuzzScanner(t *testing.F) {
	f := propertytest.Fuzz(t)
	for _, s := range []string{
		`{"apps":{"app":[{"id":"a","b":[1,2,{"c":"}]\\\""}]},{}]}}`, `{}`, `[]`, `[1,"\\",null,true,-1.5e3]`, `{"a\u0041":"\"","b" : [ ] }`,
		`{"a":1`, `{"a"}`, `[1,`, `{"apps":null}`, `{"apps":""}`, `"`, `{"a":"\`, `[[[[[[]]]]]]`, " { \n\"x\" :\t1 } ",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		listed, _ := Items(b)
		var fields []string
		var values [][]byte
		isObject := EachField(b, func(name, value []byte) bool {
			fields, values = append(fields, string(name)), append(values, value)
			return true
		})
		if _, err := ListAt(b, "apps", "app"); err == nil {
			Get(b, "apps")
		}
		if !json.Valid(b) || !utf8.Valid(b) {
			return // JSON is UTF-8; encoding/json repairs invalid bytes, which here pass unchanged
		}
		switch trimmed := bytes.TrimSpace(b); trimmed[0] {
		case '[':
			var want []json.RawMessage
			if err := json.Unmarshal(b, &want); err != nil {
				return // too deep for encoding/json
			}
			if !slices.EqualFunc(listed, want, func(a []byte, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
				t.Fatalf("%q: items %q, want %q", b, listed, want)
			}
		case '{':
			d := json.NewDecoder(bytes.NewReader(b))
			if _, err := d.Token(); err != nil || !isObject {
				t.Fatalf("%q is an object: %v, %v", b, isObject, err)
			}
			for i := 0; d.More(); i++ {
				name, err := d.Token()
				if err != nil {
					return
				}
				var value json.RawMessage
				if err := d.Decode(&value); err != nil {
					return
				}
				if i >= len(fields) || Text([]byte(`"`+fields[i]+`"`)) != name || !bytes.Equal(values[i], value) {
					t.Fatalf("%q: field %d is %q, want %q: %q", b, i, fields, name, value)
				}
			}
		}
	})
}

// A list is found in every form that members write, and a missing one is reported.
func TestListsAreFoundInEveryShape(t *testing.T) {
	for doc, want := range map[string][]string{
		`{"apps":{"app":[{"id":"1"},{"id":"2"}]}}`:                      {`{"id":"1"}`, `{"id":"2"}`},
		`{"apps":{"app":{"id":"1"}}}`:                                   {`{"id":"1"}`},
		`{"other":[1,{"apps":2}],"apps":{"x":{},"app":[ {"id":"1"} ]}}`: {`{"id":"1"}`},
		`{"apps":{}}`: nil, `{"apps":null}`: nil, `{"apps":""}`: nil, `{}`: nil, `{"apps":{"app":null}}`: nil, `{"apps":{"app":[]}}`: nil,
	} {
		got, err := ListAt([]byte(doc), "apps", "app")
		if err != nil || !slices.EqualFunc(got, want, func(a []byte, b string) bool { return string(a) == b }) {
			t.Errorf("%s: %q, %v, want %q", doc, got, err, want)
		}
	}
	for _, doc := range []string{``, `<html>`, `[]`, `{"apps":{"app":7}}`, `{"apps":{"app":[{"id":"1"}`} {
		if got, err := ListAt([]byte(doc), "apps", "app"); err == nil {
			t.Errorf("%s: %q", doc, got)
		}
	}
}

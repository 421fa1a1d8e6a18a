// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/creelrm/creel/router"
)

// JSON is cut apart and joined as the bytes the members sent: what no rule
// looks at is neither decoded nor encoded. encoding/json went over the same
// bytes about five times, which was nearly all that a list of applications cost
// (BenchmarkMergeApps, BenchmarkMergeNodes).
//
// The scanner finds where values begin and end; it is not a validator. What it
// cuts out is balanced, and of that the members are believed.

// skipSpace is the index of the first byte from i on that is no white space.
func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString is the index after the string that begins at i, -1 when it does
// not end.
func skipString(b []byte, i int) int {
	for i++; ; i++ {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return -1
		}
		i += n
		escapes := 0
		for b[i-1-escapes] == '\\' { // it stops at the opening quote at the latest
			escapes++
		}
		if escapes%2 == 0 {
			return i + 1
		}
	}
}

// skipValue is the index after the value that begins at i, -1 when it does not
// end or is none.
func skipValue(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		for depth := 0; i < len(b); i++ {
			switch b[i] {
			case '"':
				if i = skipString(b, i); i < 0 {
					return -1
				}
				i--
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
		return -1
	case ',', ':', '}', ']':
		return -1
	}
	for i < len(b) {
		switch b[i] {
		case ',', '}', ']', ' ', '\n', '\t', '\r':
			return i
		}
		i++
	}
	return i
}

// eachField calls f with the fields of the object in b, in their order, until f
// returns false. The name is what stands between its quotes, escapes and all.
// It reports whether b began as an object, up to where f ended it.
func eachField(b []byte, f func(name, value []byte) bool) bool {
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != '{' {
		return false
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return true
	}
	for {
		if i >= len(b) || b[i] != '"' {
			return false
		}
		end := skipString(b, i)
		if end < 0 {
			return false
		}
		name := b[i+1 : end-1]
		i = skipSpace(b, end)
		if i >= len(b) || b[i] != ':' {
			return false
		}
		i = skipSpace(b, i+1)
		if end = skipValue(b, i); end < 0 {
			return false
		}
		if !f(name, b[i:end]) {
			return true
		}
		i = skipSpace(b, end)
		switch {
		case i >= len(b):
			return false
		case b[i] == '}':
			return true
		case b[i] != ',':
			return false
		}
		i = skipSpace(b, i+1)
	}
}

// items cuts a list apart; ok is false for anything else.
func items(b []byte) (out [][]byte, ok bool) {
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != '[' {
		return nil, false
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == ']' {
		return nil, true
	}
	for {
		end := skipValue(b, i)
		if end < 0 {
			return nil, false
		}
		out = append(out, b[i:end])
		i = skipSpace(b, end)
		switch {
		case i >= len(b):
			return nil, false
		case b[i] == ']':
			return out, true
		case b[i] != ',':
			return nil, false
		}
		i = skipSpace(b, i+1)
	}
}

// get is a field's value as it stands, nil without one.
func get(b []byte, name string) (value []byte) {
	eachField(b, func(n, v []byte) bool {
		if string(n) == name {
			value = v
			return false
		}
		return true
	})
	return value
}

// text is a text's content; of other values, what stands there.
func text(v []byte) string {
	if len(v) < 2 || v[0] != '"' {
		return string(v)
	}
	if bytes.IndexByte(v, '\\') < 0 {
		return string(v[1 : len(v)-1])
	}
	var s string
	if json.Unmarshal(v, &s) != nil {
		return string(v)
	}
	return s
}

func flag(v []byte) bool { return string(bytes.Trim(v, `"`)) == "true" }

// whole is a whole number, quoted or not; 0 when it is none.
func whole(v []byte) int64 {
	n, err := strconv.ParseInt(string(bytes.Trim(v, `"`)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// empty reports whether a value stands for an empty list or object: YARN's JSON
// writes them in all these ways, or leaves the field out.
func empty(v []byte) bool {
	switch string(bytes.TrimSpace(v)) {
	case "", "null", `""`:
		return true
	}
	return false
}

// enter is the index of a field's value in the object that begins at i, -1
// without one. What follows it is not looked at.
func enter(b []byte, i int, name string) int {
	if i = skipSpace(b, i); i >= len(b) || b[i] != '{' {
		return -1
	}
	for i = skipSpace(b, i+1); i < len(b) && b[i] == '"'; i = skipSpace(b, i+1) {
		end := skipString(b, i)
		if end < 0 {
			return -1
		}
		at := string(b[i+1:end-1]) == name
		if i = skipSpace(b, end); i >= len(b) || b[i] != ':' {
			return -1
		}
		i = skipSpace(b, i+1)
		if at {
			return i
		}
		if i = skipValue(b, i); i < 0 {
			return -1
		}
		if i = skipSpace(b, i); i >= len(b) || b[i] != ',' {
			return -1
		}
	}
	return -1
}

// listAt cuts apart the list at root.name of a document ({"apps":{"app":[...]}}),
// which may be a single object, empty, null or missing. It goes over the bytes
// once.
func listAt(doc []byte, root, name string) ([][]byte, error) {
	if i := skipSpace(doc, 0); i >= len(doc) || doc[i] != '{' {
		return nil, fmt.Errorf("it answered no JSON object: %.60q", doc)
	}
	i := enter(doc, 0, root)
	if i < 0 {
		return nil, nil
	}
	if i = enter(doc, i, name); i < 0 {
		return nil, nil
	}
	if out, ok := items(doc[i:]); ok {
		return out, nil
	}
	end := skipValue(doc, i)
	switch {
	case end > 0 && empty(doc[i:end]):
		return nil, nil
	case end > 0 && doc[i] == '{':
		return [][]byte{doc[i:end]}, nil
	}
	return nil, fmt.Errorf("%s.%s is no list: %.60q", root, name, doc[i:])
}

// join makes {"root":{"name":[...]}}, or {"root":{}} for an empty list, as a
// ResourceManager writes it. after, if there is one, stands in each object
// before its closing brace.
func join(root, name string, list [][]byte, after func(i int) []byte) []byte {
	size := len(root) + len(name) + 16
	for i := range list {
		size += len(list[i]) + 1
		if after != nil {
			size += len(after(i))
		}
	}
	b := append(make([]byte, 0, size), `{"`...)
	b = append(append(b, root...), `":{`...)
	if len(list) > 0 {
		b = append(append(append(b, '"'), name...), `":[`...)
		for i, item := range list {
			if i > 0 {
				b = append(b, ',')
			}
			if after == nil {
				b = append(b, item...)
				continue
			}
			b = append(b, item[:len(item)-1]...)
			b = append(append(b, after(i)...), '}')
		}
		b = append(b, ']')
	}
	return append(b, "}}"...)
}

// jsonForm reads and makes the JSON of documents for the rules of package
// router.
type jsonForm struct{}

var _ router.Form[[]byte] = jsonForm{}

// Object implements router.Form.
func (jsonForm) Object(v []byte) ([]router.Named[[]byte], bool) {
	if v = bytes.TrimSpace(v); len(v) == 0 || v[0] != '{' {
		return nil, false
	}
	out := make([]router.Named[[]byte], 0, min(max(len(v)/32, 3), 64))
	ok := eachField(v, func(name, value []byte) bool {
		n, listed := fieldNames[string(name)]
		if !listed {
			n = string(name)
		}
		out = append(out, router.Named[[]byte]{Name: n, Value: value})
		return true
	})
	return out, ok
}

// fieldNames are the names that rules know, so that each field met needs no
// copy of its name.
var fieldNames = func() map[string]string {
	names := map[string]string{}
	for _, t := range router.Types {
		for _, f := range t.Fields {
			names[f.Name] = f.Name
		}
	}
	return names
}()

// Get implements router.Form.
func (jsonForm) Get(v []byte, name string) ([]byte, bool) {
	found := get(v, name)
	return found, found != nil
}

// List implements router.Form.
func (jsonForm) List(v []byte) ([][]byte, bool) {
	if empty(v) {
		return nil, true
	}
	return items(v)
}

// Number implements router.Form. A number in quotes is one: 3.4's JSON has them.
func (jsonForm) Number(v []byte) (n router.Number, ok bool) {
	s := string(bytes.Trim(v, `"`))
	if s == "" || s[0] != '-' && (s[0] < '0' || s[0] > '9') {
		return n, false
	}
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return router.Number{Int: i, Float: float64(i)}, true
	}
	f, err := strconv.ParseFloat(s, 64)
	return router.Number{Float: f, IsFloat: true}, err == nil
}

// Text implements router.Form.
func (jsonForm) Text(v []byte) string { return text(v) }

// MakeObject implements router.Form.
func (jsonForm) MakeObject(_ []byte, fields []router.Named[[]byte]) []byte {
	size := 2
	for _, f := range fields {
		size += len(f.Name) + len(f.Value) + 4
	}
	b := append(make([]byte, 0, size), '{')
	for i, f := range fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), f.Name...), `":`...)
		b = append(b, f.Value...)
	}
	return append(b, '}')
}

// MakeList implements router.Form: where members wrote a list of one as its
// single item, one item is written so too.
func (jsonForm) MakeList(from, list [][]byte) []byte {
	bracketed := len(list) != 1
	size := 2
	for _, v := range from {
		bracketed = bracketed || len(v) > 0 && v[0] == '['
	}
	for _, v := range list {
		size += len(v) + 1
	}
	if !bracketed {
		return list[0]
	}
	if len(list) == 0 {
		return from[0]
	}
	b := append(make([]byte, 0, size), '[')
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, v...)
	}
	return append(b, ']')
}

// MakeNumber implements router.Form.
func (jsonForm) MakeNumber(like []byte, n router.Number) []byte {
	var b []byte
	if n.IsFloat {
		b = float(n.Float)
	} else {
		b = strconv.AppendInt(nil, n.Int, 10)
	}
	if len(like) > 0 && like[0] == '"' {
		return append(append([]byte{'"'}, b...), '"')
	}
	return b
}

// float is a number that YARN writes with a point even when it is whole.
func float(v float64) []byte {
	b := strconv.AppendFloat(nil, v, 'f', -1, 32)
	if !bytes.ContainsRune(b, '.') {
		b = append(b, ".0"...)
	}
	return b
}

// SPDX-License-Identifier: Apache-2.0

// Package rawjson splits and joins JSON as the original bytes: unused parts are neither decoded nor encoded, and
// unknown fields survive. encoding/json processed the same bytes about five times. That was nearly the whole cost of a
// list of applications (BenchmarkMergeApps, BenchmarkMergeNodes of router/rest).
//
// The scanner finds the begin and end of values; it is not a validator. The values it returns are balanced, and
// otherwise trusted.
package rawjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strconv"
)

// skipSpace returns the index of the first byte from i on that is not white space.
func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the index after the string that begins at i, or -1 if it does not end. Nearly all strings are
// short: a loop is quicker than bytes.IndexByte.
func skipString(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return -1
}

// structural are the bytes at which a scan of an object or a list stops.
var structural = [256]bool{'"': true, '{': true, '[': true, '}': true, ']': true}

// skipValue returns the index after the value that begins at i, or -1 if it is incomplete or no value.
func skipValue(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		for depth := 0; i < len(b); i++ {
			if !structural[b[i]] {
				continue
			}
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

// EachField calls f with the fields of the object in b, in order, until f returns false. The name is the raw text
// between its quotes, escapes included. EachField reports whether b is an object, as far as it read.
func EachField(b []byte, f func(name, value []byte) bool) bool {
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

// Items splits a list; ok is false for any other value.
func Items(b []byte) (out [][]byte, ok bool) {
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

// Get returns a field's value unchanged, nil if there is none.
func Get(b []byte, name string) (value []byte) {
	EachField(b, func(n, v []byte) bool {
		if string(n) == name {
			value = v
			return false
		}
		return true
	})
	return value
}

// Text returns a string's content; for other values, their raw text.
func Text(v []byte) string {
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

func Flag(v []byte) bool { return string(bytes.Trim(v, `"`)) == "true" }

// Whole returns a whole number, quoted or not; 0 for any other value.
func Whole(v []byte) int64 {
	n, err := strconv.ParseInt(string(bytes.Trim(v, `"`)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Empty reports whether a value represents an empty list or object. YARN's JSON uses all these forms, or omits the
// field.
func Empty(v []byte) bool {
	switch string(bytes.TrimSpace(v)) {
	case "", "null", `""`:
		return true
	}
	return false
}

// enter returns the index of a field's value in the object that begins at i, or -1 without one. It does not scan the
// rest.
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

// ListAt splits the list at root.name of a document ({"apps":{"app":[...]}}). The list may be a single object, empty,
// null or missing. ListAt scans the bytes once.
func ListAt(doc []byte, root, name string) ([][]byte, error) {
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
	if out, ok := Items(doc[i:]); ok {
		return out, nil
	}
	end := skipValue(doc, i)
	switch {
	case end > 0 && Empty(doc[i:end]):
		return nil, nil
	case end > 0 && doc[i] == '{':
		return [][]byte{doc[i:end]}, nil
	}
	return nil, fmt.Errorf("%s.%s is no list: %.60q", root, name, doc[i:])
}

// List is a document {"Root":{"Name":[...]}} of raw items; without items it is {"Root":{}}. After, if set, returns
// fields to append to item i, each with a leading comma.
type List struct {
	Root, Name string
	Items      [][]byte
	After      func(i int) []byte
}

// Len returns the document's length in bytes.
func (l List) Len() int {
	n := len(`{"":{}}`) + len(l.Root)
	if len(l.Items) == 0 {
		return n
	}
	n += len(`"":[]`) + len(l.Name) + len(l.Items) - 1
	for i, item := range l.Items {
		n += len(item)
		if l.After != nil {
			n += len(l.After(i))
		}
	}
	return n
}

// Append appends the document.
func (l List) Append(b []byte) []byte {
	b, _ = l.each(b, func(b []byte) ([]byte, error) { return b, nil })
	return b
}

// Places returns the place of each item in a document that Append made of a list without After.
func (l List) Places(doc []byte) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		at := len(`{"":{"":[`) + len(l.Root) + len(l.Name)
		for i, item := range l.Items {
			if !yield(i, doc[at:at+len(item)]) {
				return
			}
			at += len(item) + len(",")
		}
	}
}

// piece is the approximate number of bytes per write.
const piece = 64 << 10

// WriteTo writes the document piece by piece.
func (l List) WriteTo(w io.Writer) (n int64, err error) {
	flush := func(b []byte) ([]byte, error) {
		if len(b) < piece {
			return b, nil
		}
		k, err := w.Write(b)
		n += int64(k)
		return b[:0], err
	}
	b, err := l.each(make([]byte, 0, piece+piece/4), flush)
	if err != nil {
		return n, err
	}
	k, err := w.Write(b)
	return n + int64(k), err
}

// each appends the document. After each item it calls then with the bytes so far.
func (l List) each(b []byte, then func([]byte) ([]byte, error)) ([]byte, error) {
	b = append(append(append(b, `{"`...), l.Root...), `":{`...)
	if len(l.Items) == 0 {
		return append(b, "}}"...), nil
	}
	b = append(append(append(b, '"'), l.Name...), `":[`...)
	for i, item := range l.Items {
		if i > 0 {
			b = append(b, ',')
		}
		if l.After == nil {
			b = append(b, item...)
		} else {
			b = append(b, item[:len(item)-1]...)
			b = append(append(b, l.After(i)...), '}')
		}
		var err error
		if b, err = then(b); err != nil {
			return b, err
		}
	}
	return append(b, "]}}"...), nil
}

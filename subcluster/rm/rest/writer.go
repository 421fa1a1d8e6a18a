// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"math"
	"strconv"
	"unicode/utf8"
)

// writer builds one document, as JSON or as XML. Calls nest: what is written
// within the function given to Object or List belongs to it. In the root form
// of JSON the name of the outermost object is kept or dropped as YARN does for
// the class (Document).
type writer struct {
	buf   []byte
	xml   bool
	comma bool // JSON: a field stands before the next one
	quote bool // JSON regime C: numbers and flags are strings
}

// document is one whole document with its root. dropRoot leaves the root's
// name out of JSON, as Jersey does for classes without a root in its list.
func (w *writer) document(root string, dropRoot bool, fields func(w *writer)) {
	if w.xml {
		w.buf = append(w.buf, `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>`...)
		w.Object(root, fields)
		return
	}
	w.buf = append(w.buf, '{')
	w.comma = false
	if dropRoot {
		fields(w)
	} else {
		w.Object(root, fields)
	}
	w.buf = append(w.buf, '}')
}

func (w *writer) name(name string) {
	if w.comma {
		w.buf = append(w.buf, ',')
	}
	w.comma = true
	w.buf = append(w.buf, '"')
	w.buf = append(w.buf, name...)
	w.buf = append(w.buf, '"', ':')
}

func (w *writer) open(name string)  { w.buf = append(append(append(w.buf, '<'), name...), '>') }
func (w *writer) close(name string) { w.buf = append(append(append(w.buf, '<', '/'), name...), '>') }

// body writes the fields of an object within its braces or tags.
func (w *writer) body(name string, fields func(w *writer)) {
	if w.xml {
		w.open(name)
		fields(w)
		w.close(name)
		return
	}
	w.buf = append(w.buf, '{')
	w.comma = false
	fields(w)
	w.buf = append(w.buf, '}')
	w.comma = true
}

// Object writes a field that is an object.
func (w *writer) Object(name string, fields func(w *writer)) {
	if !w.xml {
		w.name(name)
	}
	w.body(name, fields)
}

// List writes n objects: an array in JSON, repeated elements in XML. An empty
// list is left out, as in YARN.
func (w *writer) List(name string, n int, fields func(w *writer, i int)) {
	if n == 0 {
		return
	}
	if w.xml {
		for i := range n {
			w.body(name, func(w *writer) { fields(w, i) })
		}
		return
	}
	w.name(name)
	single := w.quote && n == 1 // regime C writes a list of one as its element
	if !single {
		w.buf = append(w.buf, '[')
	}
	for i := range n {
		if i > 0 {
			w.buf = append(w.buf, ',')
		}
		w.body(name, func(w *writer) { fields(w, i) })
	}
	if !single {
		w.buf = append(w.buf, ']')
	}
	w.comma = true
}

// Texts writes a list of strings.
func (w *writer) Texts(name string, list []string) {
	if len(list) == 0 {
		return
	}
	if w.xml {
		for _, s := range list {
			w.Text(name, s)
		}
		return
	}
	w.name(name)
	single := w.quote && len(list) == 1
	if !single {
		w.buf = append(w.buf, '[')
	}
	for i, s := range list {
		if i > 0 {
			w.buf = append(w.buf, ',')
		}
		w.buf = appendJSON(w.buf, s)
	}
	if !single {
		w.buf = append(w.buf, ']')
	}
}

// Text writes a string field.
func (w *writer) Text(name, v string) {
	if w.xml {
		w.open(name)
		w.buf = appendXML(w.buf, v)
		w.close(name)
		return
	}
	w.name(name)
	w.buf = appendJSON(w.buf, v)
}

// OptText writes a string field unless it is empty.
func (w *writer) OptText(name, v string) {
	if v != "" {
		w.Text(name, v)
	}
}

func (w *writer) bare(name string, value func(b []byte) []byte) {
	if w.xml {
		w.open(name)
		w.buf = value(w.buf)
		w.close(name)
		return
	}
	w.name(name)
	if w.quote {
		w.buf = append(value(append(w.buf, '"')), '"')
		return
	}
	w.buf = value(w.buf)
}

// Int writes a whole number.
func (w *writer) Int(name string, v int64) {
	w.bare(name, func(b []byte) []byte { return strconv.AppendInt(b, v, 10) })
}

// Bool writes a flag.
func (w *writer) Bool(name string, v bool) {
	w.bare(name, func(b []byte) []byte { return strconv.AppendBool(b, v) })
}

// Float writes a number that always has a point, as Java prints a float.
func (w *writer) Float(name string, v float64) {
	w.bare(name, func(b []byte) []byte { return appendFloat(b, v) })
}

func appendFloat(b []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(b, "0.0"...)
	}
	at := len(b)
	b = strconv.AppendFloat(b, v, 'f', -1, 32)
	for _, c := range b[at:] {
		if c == '.' {
			return b
		}
	}
	return append(b, ".0"...)
}

const hex = "0123456789abcdef"

// appendJSON quotes s. Bytes that are no UTF-8 become the replacement
// character, as in encoding/json.
func appendJSON(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			b = append(b, s[start:i]...)
			switch c {
			case '"', '\\':
				b = append(b, '\\', c)
			case '\n':
				b = append(b, '\\', 'n')
			case '\r':
				b = append(b, '\\', 'r')
			case '\t':
				b = append(b, '\\', 't')
			default:
				b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			}
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			b = append(append(b, s[start:i]...), "\ufffd"...)
			start = i + 1
		}
		i += size
	}
	return append(append(b, s[start:]...), '"')
}

// appendXML escapes s. Characters that XML 1.0 forbids are left out.
func appendXML(b []byte, s string) []byte {
	for _, r := range s {
		switch {
		case r == '&':
			b = append(b, "&amp;"...)
		case r == '<':
			b = append(b, "&lt;"...)
		case r == '>':
			b = append(b, "&gt;"...)
		case r == '\r':
			b = append(b, "&#xD;"...)
		case r < ' ' && r != '\t' && r != '\n', r == 0xFFFE, r == 0xFFFF:
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return b
}

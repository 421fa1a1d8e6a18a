// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// writer builds one document, as JSON or as XML. Calls nest: the function passed to Object or List writes the content
// of that element. In JSON the root form decides whether the name of the outermost object is written, as YARN does for
// the class (Document).
type writer struct {
	buf   []byte
	xml   bool
	comma bool // JSON: the next field needs a comma
	quote bool // JSON regime C: numbers and flags are strings
	xsi   bool // XML: the namespace of type markers is declared
}

// regime is the JSON form of a class in YARN 3.4. YARN has two ways to write JSON, and only one of them writes the
// root's name.
type regime uint8

const (
	rooted  regime = iota // bare numbers, lists as arrays, with the root's name
	natural               // the same without the root's name
	mapped                // texts only; a list of one is its element; no nulls, no root
)

// document is one whole document with its root.
func (w *writer) document(root string, form regime, fields func(w *writer)) {
	w.quote = form == mapped && !w.xml
	if w.xml {
		w.buf = append(w.buf, `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>`...)
		w.Object(root, fields)
		return
	}
	w.buf = append(w.buf, '{')
	w.comma = false
	if form != rooted {
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

// body writes the fields of an object between its braces or tags.
func (w *writer) body(name string, fields func(w *writer)) {
	if w.xml {
		at := len(w.buf)
		w.open(name)
		inner := len(w.buf)
		fields(w)
		if len(w.buf) == inner {
			w.buf = append(append(append(w.buf[:at], '<'), name...), '/', '>')
			return
		}
		w.close(name)
		return
	}
	at := len(w.buf)
	w.buf = append(w.buf, '{')
	w.comma = false
	fields(w)
	if w.quote && len(w.buf) == at+1 {
		w.buf = append(w.buf[:at], "null"...) // regime C writes an empty object as null
	} else {
		w.buf = append(w.buf, '}')
	}
	w.comma = true
}

// Object writes a field that is an object.
func (w *writer) Object(name string, fields func(w *writer)) {
	if !w.xml {
		w.name(name)
	}
	w.body(name, fields)
}

// Typed writes an object of a subclass. YARN's name of the subclass is a field in JSON, an attribute in XML.
func (w *writer) Typed(name, class string, fields func(w *writer)) {
	if w.xml {
		w.typed(name, class, fields)
		return
	}
	w.Object(name, func(w *writer) { w.Text("type", class); fields(w) })
}

func (w *writer) typed(name, class string, fields func(w *writer)) {
	w.buf = append(append(w.buf, '<'), name...)
	if !w.xsi {
		w.buf = append(w.buf, ` xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"`...)
		w.xsi = true
		defer func() { w.xsi = false }() // the declaration applies within this element
	}
	w.buf = append(append(append(w.buf, ` xsi:type="`...), class...), '"', '>')
	fields(w)
	w.close(name)
}

// TypedList writes n objects, some of a subclass; class returns "" for objects without one.
func (w *writer) TypedList(name string, n int, class func(i int) string, fields func(w *writer, i int)) {
	if !w.xml {
		w.List(name, n, func(w *writer, i int) {
			if c := class(i); c != "" {
				w.Text("type", c)
			}
			fields(w, i)
		})
		return
	}
	for i := range n {
		if c := class(i); c != "" {
			w.typed(name, c, func(w *writer) { fields(w, i) })
		} else {
			w.body(name, func(w *writer) { fields(w, i) })
		}
	}
}

// Null writes a map that is null in regime C of YARN: null in JSON, an empty element in XML.
func (w *writer) Null(name string) { w.Object(name, func(*writer) {}) }

// Map writes the entries of a map.
func (w *writer) Map(name string, n int, entry func(i int) (key string, value string)) {
	w.Object(name, func(w *writer) {
		w.List("entry", n, func(w *writer, i int) {
			k, v := entry(i)
			w.Text("key", k)
			w.Text("value", v)
		})
	})
}

// List writes n objects: an array in JSON, repeated elements in XML. As in YARN, it omits an empty list.
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

// Float writes a number, always with a decimal point, as Java prints a float.
func (w *writer) Float(name string, v float64) {
	w.bare(name, func(b []byte) []byte { return appendFloat(b, v) })
}

func appendFloat(b []byte, v float64) []byte { return appendNumber(b, v, 32) }

// appendNumber writes a number of the given bits as Java does. It writes 0 for NaN, infinite and out-of-range numbers,
// because JSON has no form for them.
func appendNumber(b []byte, v float64, bits int) []byte {
	if bits == 32 {
		v = float64(float32(v)) // infinite beyond MaxFloat32; FormatFloat would write that
	}
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(b, "0.0"...)
	}
	at := len(b)
	if abs := math.Abs(v); abs != 0 && (abs >= 1e7 || abs < 1e-3) {
		return appendScientific(b, v, bits)
	}
	b = strconv.AppendFloat(b, v, 'f', -1, bits)
	for _, c := range b[at:] {
		if c == '.' {
			return b
		}
	}
	return append(b, ".0"...)
}

// appendScientific writes very large and very small numbers, as 1.0E7.
func appendScientific(b []byte, v float64, bits int) []byte {
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'E', -1, bits), "E")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	n, _ := strconv.Atoi(exponent) // cannot fail: FormatFloat wrote it
	return append(append(append(b, mantissa...), 'E'), strconv.Itoa(n)...)
}

const hex = "0123456789abcdef"

// appendJSON quotes s. Bytes that are not UTF-8 become the replacement character, as in encoding/json.
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

// appendXML escapes s. It omits characters that XML 1.0 forbids.
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

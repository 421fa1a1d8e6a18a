// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// object is a JSON object that keeps the order of its fields and the bytes of
// those nobody looks at.
type object []field

type field struct {
	name  string
	value json.RawMessage
}

// UnmarshalJSON reads an object; of equal names both are kept.
func (o *object) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	t, err := d.Token()
	if err != nil {
		return err
	}
	if t != json.Delim('{') {
		return fmt.Errorf("expected an object, not %v", t)
	}
	*o = (*o)[:0]
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		var f field
		f.name, _ = t.(string)
		if err := d.Decode(&f.value); err != nil {
			return err
		}
		*o = append(*o, f)
	}
	return nil
}

// MarshalJSON writes the fields in their order.
func (o object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, f := range o {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := json.Marshal(f.name)
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, name...), ':'), f.value...)
	}
	return append(b, '}'), nil
}

func (o object) get(name string) json.RawMessage {
	for _, f := range o {
		if f.name == name {
			return f.value
		}
	}
	return nil
}

func (o *object) set(name string, value json.RawMessage) {
	for i, f := range *o {
		if f.name == name {
			(*o)[i].value = value
			return
		}
	}
	*o = append(*o, field{name, value})
}

// text is a string field, unquoted; numbers come as their digits.
func (o object) text(name string) string {
	raw := o.get(name)
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// number is a numeric field, quoted or not; 0 when it is neither.
func (o object) number(name string) float64 {
	f, err := strconv.ParseFloat(strings.Trim(string(o.get(name)), `"`), 64)
	if err != nil {
		return 0
	}
	return f
}

func (o object) flag(name string) bool { return strings.Trim(string(o.get(name)), `"`) == "true" }

// list reads what may be an array, a single object, null or missing: YARN's
// JSON writes lists in all these ways.
func list(raw json.RawMessage) ([]object, error) {
	switch trimmed := bytes.TrimSpace(raw); {
	case len(trimmed) == 0, string(trimmed) == "null", string(trimmed) == `""`:
		return nil, nil
	case trimmed[0] == '[':
		var out []object
		err := json.Unmarshal(trimmed, &out)
		return out, err
	default:
		var one object
		err := json.Unmarshal(trimmed, &one)
		return []object{one}, err
	}
}

// inside reads the list at root.name of a document ({"apps":{"app":[...]}}).
func inside(doc []byte, root, name string) ([]object, error) {
	var o object
	if err := json.Unmarshal(doc, &o); err != nil {
		return nil, err
	}
	raw := o.get(root)
	if raw == nil || string(raw) == "null" || string(raw) == `""` {
		return nil, nil
	}
	var inner object
	if err := json.Unmarshal(raw, &inner); err != nil {
		return nil, err
	}
	return list(inner.get(name))
}

// wrap makes {"root":{"name":[...]}}, or {"root":{}} for an empty list, as a
// ResourceManager writes it.
func wrap(root, name string, items []object) ([]byte, error) {
	inner := object{}
	if len(items) > 0 {
		b, err := json.Marshal(items)
		if err != nil {
			return nil, err
		}
		inner.set(name, b)
	}
	return json.Marshal(map[string]object{root: inner})
}

// float is a number that YARN writes with a point even when it is whole.
func float(v float64) json.RawMessage {
	b := strconv.AppendFloat(nil, v, 'f', -1, 32)
	if !bytes.ContainsRune(b, '.') {
		b = append(b, ".0"...)
	}
	return b
}

func num(v float64) json.RawMessage {
	if v == float64(int64(v)) {
		return strconv.AppendInt(nil, int64(v), 10)
	}
	return strconv.AppendFloat(nil, v, 'f', -1, 64)
}

// toXML writes a JSON document with one root as YARN writes XML: an element
// for each field, lists as repeated elements.
func toXML(w io.Writer, doc []byte) error {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var b bytes.Buffer
	b.WriteString(`<?xml version="1.0" encoding="UTF-8" standalone="yes"?>`)
	t, err := d.Token()
	if err != nil {
		return err
	}
	if t != json.Delim('{') {
		return fmt.Errorf("expected an object, not %v", t)
	}
	if _, err := xmlFields(&b, d); err != nil {
		return err
	}
	_, err = w.Write(b.Bytes())
	return err
}

// xmlFields writes the fields of an object whose brace is read. The field that
// names a subclass of the scheduler's documents is given back instead.
func xmlFields(b *bytes.Buffer, d *json.Decoder) (class string, err error) {
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return "", err
		}
		name, _ := t.(string)
		at := b.Len()
		if err := xmlValue(b, d, name); err != nil {
			return "", err
		}
		if name == "type" {
			text := strings.TrimSuffix(strings.TrimPrefix(string(b.Bytes()[at:]), "<type>"), "</type>")
			if strings.HasSuffix(text, "Scheduler") || strings.HasSuffix(text, "QueueInfo") {
				class = text
				b.Truncate(at)
			}
		}
	}
	_, err = d.Token()
	return class, err
}

func xmlValue(b *bytes.Buffer, d *json.Decoder, name string) error {
	t, err := d.Token()
	if err != nil {
		return err
	}
	switch v := t.(type) {
	case json.Delim:
		if v == '[' {
			for d.More() {
				if err := xmlValue(b, d, name); err != nil {
					return err
				}
			}
			_, err := d.Token()
			return err
		}
		at := b.Len()
		b.WriteString("<" + name + ">")
		inner := b.Len()
		class, err := xmlFields(b, d)
		if err != nil {
			return err
		}
		switch {
		case class != "": // a subclass is named in an attribute
			body := bytes.Clone(b.Bytes()[inner:])
			b.Truncate(at)
			b.WriteString(
				"<" + name + ` xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="` + class + `">`,
			)
			b.Write(body)
		case b.Len() == inner:
			b.Truncate(at)
			b.WriteString("<" + name + "/>")
			return nil
		}
		b.WriteString("</" + name + ">")
	case nil:
	default:
		b.WriteString("<" + name + ">")
		if err := xml.EscapeText(b, []byte(fmt.Sprint(v))); err != nil {
			return err
		}
		b.WriteString("</" + name + ">")
	}
	return nil
}

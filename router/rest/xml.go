// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// toXML writes a JSON document with one root in YARN's XML form: an element for each field, lists as repeated
// elements.
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

// xmlFields writes the fields of an object after its opening brace. It does not write the field with the subclass in
// scheduler documents, but returns it.
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
		case class != "": // an attribute has the subclass
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
		b.WriteString("<" + name + "/>")
	default:
		b.WriteString("<" + name + ">")
		if err := xml.EscapeText(b, []byte(fmt.Sprint(v))); err != nil {
			return err
		}
		b.WriteString("</" + name + ">")
	}
	return nil
}

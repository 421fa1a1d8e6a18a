// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// facts is a document as the values of its fields by path. Objects in a list are identified by their name field, not
// by their position. JSON values keep their kind: a number differs from its digits in quotes, and a list of one from
// its element.
type facts map[string]string

// names are the fields that identify objects of a list; the first that an object has counts.
var names = []string{
	"containerId",
	"appAttemptId",
	"username",
	"queueName",
	"resourceName",
	"partitionName",
	"accessType",
	"operation",
	"name",
	"key",
	"id",
	"state",
}

func (f facts) add(path, value string) {
	for n := 2; ; n++ {
		if _, taken := f[path]; !taken {
			f[path] = value
			return
		}
		base, _, _ := strings.Cut(path, "#")
		path = base + "#" + strconv.Itoa(n)
	}
}

type field struct {
	key   string
	value any // string, json.Number, bool, nil, []any, object
}

type object []field

func (o object) name() (string, bool) {
	for _, n := range names {
		for _, f := range o {
			if f.key == n {
				switch v := f.value.(type) {
				case string:
					return v, true
				case json.Number:
					return v.String(), true
				}
			}
		}
	}
	return "", false
}

// readJSON keeps the order of keys and keys that come twice: Hadoop writes a
// map of two entries as two fields called entry.
func readJSON(b []byte) (facts, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	v, err := value(d)
	if err == nil {
		_, err = d.Token()
	}
	if !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("no JSON document: %w: %.200s", err, b)
	}
	f := facts{}
	f.walk("", v)
	return f, nil
}

func value(d *json.Decoder) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		o := object{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := value(d)
			if err != nil {
				return nil, err
			}
			o = append(o, field{key.(string), v})
		}
		_, err := d.Token()
		return o, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := value(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.Token()
		return list, err
	}
	return t, nil
}

func (f facts) walk(path string, v any) {
	switch v := v.(type) {
	case object:
		if len(v) == 0 {
			f.add(path, "{}")
		}
		entries, form := []any{}, ""
		for _, e := range v {
			if e.key == "entry" {
				if list, ok := e.value.([]any); ok {
					entries, form = append(entries, list...), "array"
				} else {
					entries, form = append(entries, e.value), cmp.Or(strings.Repeat("repeated", min(len(entries), 1)), "object")
				}
				continue
			}
			f.walk(path+"."+e.key, e.value)
		}
		if len(entries) > 0 {
			if strings.HasSuffix(path, ".resourceSecondsMap") {
				f.add(path+".entry's form", form)
			}
			f.walk(path+".entry", entries)
		}
	case []any:
		if len(v) == 0 {
			f.add(path, "[]")
		}
		for i, e := range v {
			key := strconv.Itoa(i)
			if o, ok := e.(object); ok {
				if name, ok := o.name(); ok {
					key = name
				}
			}
			f.walk(path+"["+key+"]", e)
		}
	case string:
		f.add(path, strconv.Quote(v))
	case nil:
		f.add(path, "null")
	default:
		f.add(path, fmt.Sprint(v))
	}
}

// readXML makes the same of an XML document: every repeated element is a list.
func readXML(b []byte) (facts, error) {
	if !bytes.HasPrefix(b, []byte(`<?xml version="1.0" encoding="UTF-8" standalone="yes"?>`)) {
		return nil, fmt.Errorf("no XML document of YARN's: %.200s", b)
	}
	f := facts{}
	d := xml.NewDecoder(bytes.NewReader(b))
	for {
		t, err := d.Token()
		if errors.Is(err, io.EOF) {
			return f, nil
		}
		if err != nil {
			return nil, err
		}
		if start, ok := t.(xml.StartElement); ok {
			v, err := element(d, start)
			if err != nil {
				return nil, err
			}
			f.walkXML("."+start.Name.Local, v)
		}
	}
}

func element(d *xml.Decoder, start xml.StartElement) (any, error) {
	o, text := object{}, ""
	for _, a := range start.Attr {
		if a.Name.Local != "xsi" { // the place of a name space declaration does not matter
			o = append(o, field{"@" + a.Name.Local, a.Value})
		}
	}
	for {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		switch t := t.(type) {
		case xml.CharData:
			text += string(t)
		case xml.StartElement:
			v, err := element(d, t)
			if err != nil {
				return nil, err
			}
			o = append(o, field{t.Name.Local, v})
		case xml.EndElement:
			if len(o) == 0 {
				return text, nil
			}
			return o, nil
		}
	}
}

func (f facts) walkXML(path string, v any) {
	o, ok := v.(object)
	if !ok {
		f.add(path, strconv.Quote(v.(string)))
		return
	}
	count := map[string]int{}
	for _, e := range o {
		count[e.key]++
	}
	for i, e := range o {
		p := path + "." + e.key
		if child, ok := e.value.(object); ok {
			if name, named := child.name(); named {
				p += "[" + name + "]"
			} else if count[e.key] > 1 {
				p += "[" + strconv.Itoa(i) + "]"
			}
		}
		f.walkXML(p, e.value)
	}
}

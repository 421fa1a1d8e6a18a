// SPDX-License-Identifier: Apache-2.0

// Package strictyaml reads YAML documents written by people. It converts one to JSON after a check against the Go type
// that the JSON is for, so its errors have the line in the author's text, which the JSON has lost.
package strictyaml

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/creelrm/creel/internal/strictjson"
)

// valuesMost bounds the values of a document, each counted as often as aliases repeat it.
const valuesMost = 1 << 18

// JSON converts a document to JSON for a value of type t. It returns "null" for an empty document. It rejects text
// after the document, unknown and duplicate fields, and values of the wrong kind.
func JSON(text []byte, t reflect.Type) ([]byte, error) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	var doc yaml.Node
	switch err := d.Decode(&doc); {
	case err == io.EOF:
		return []byte("null"), nil
	case err != nil:
		return nil, worded(err)
	}
	c := checker{}
	if err := c.check(&doc, t, "it"); err != nil {
		return nil, err
	}
	if err := d.Decode(new(yaml.Node)); err != io.EOF {
		return nil, errors.New("trailing text after the document")
	}
	var v any
	if err := doc.Decode(&v); err != nil {
		return nil, worded(err)
	}
	return json.Marshal(v)
}

// worded removes the library's name from an error, and the rest of a long one.
func worded(err error) error {
	_, text, _ := strings.Cut(err.Error(), "yaml: ")
	text = strings.TrimPrefix(text, "construct errors:\n  ")
	if text == "" {
		return err
	}
	text = strings.Replace(text, "did not find expected <document start>", "trailing text after the document", 1)
	return fmt.Errorf("%.200s", strings.ReplaceAll(text, "\n  ", "; "))
}

type checker struct {
	values int
	inside int // aliases
}

// check compares a node with a type; nil accepts everything that JSON can express. The name is that of the value.
func (c *checker) check(n *yaml.Node, t reflect.Type, name string) error {
	if c.values++; c.values > valuesMost {
		return fmt.Errorf("line %d: it has more than %d values", n.Line, valuesMost)
	}
	if n.Kind == yaml.AliasNode {
		// The alias of a value that it is part of has no end.
		if c.inside++; c.inside > 100 {
			return fmt.Errorf("line %d: *%.80s is part of itself", n.Line, n.Value)
		}
		defer func() { c.inside-- }()
		n = n.Alias
	}
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t != nil && (t.Kind() == reflect.Interface || reads[json.Unmarshaler](t)) {
		t = nil
	}
	switch n.Kind {
	case yaml.DocumentNode:
		return c.check(n.Content[0], t, name)
	case yaml.MappingNode:
		return c.mapping(n, t, name)
	case yaml.SequenceNode:
		if t != nil && t.Kind() != reflect.Slice && t.Kind() != reflect.Array {
			return wrong(n, name, "a list", t)
		}
		var of reflect.Type
		if t != nil {
			of = t.Elem()
		}
		for _, e := range n.Content {
			if err := c.check(e, of, name); err != nil {
				return err
			}
		}
		return nil
	}
	return scalar(n, t, name)
}

func reads[T any](t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[T]())
}

func (c *checker) mapping(n *yaml.Node, t reflect.Type, name string) error {
	var fields map[string]reflect.Type
	var of reflect.Type
	switch {
	case t == nil:
	case t.Kind() == reflect.Struct && !reads[encoding.TextUnmarshaler](t):
		fields = strictjson.Fields(t)
	case t.Kind() == reflect.Map:
		of = t.Elem()
	default:
		return wrong(n, name, "an object", t)
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.ShortTag() == "!!merge" {
			if err := c.check(value, t, name); err != nil {
				return err
			}
			continue
		}
		if key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str" {
			return fmt.Errorf("line %d: the name of a field of %.80s is not a text; quote it", key.Line, name)
		}
		inner := of
		if fields != nil {
			if inner = fieldOf(fields, key.Value); inner == nil {
				return fmt.Errorf("line %d: %w", key.Line, strictjson.UnknownField(key.Value, t))
			}
		}
		if err := c.check(value, inner, key.Value); err != nil {
			return err
		}
	}
	return nil
}

// fieldOf finds a field as encoding/json does: capitals do not matter. It returns nil if there is none.
func fieldOf(fields map[string]reflect.Type, name string) reflect.Type {
	if t, ok := fields[name]; ok {
		return t
	}
	for of, t := range fields {
		if strings.EqualFold(of, name) {
			return t
		}
	}
	return nil
}

// scalar checks a single value.
func scalar(n *yaml.Node, t reflect.Type, name string) error {
	tag := n.ShortTag()
	if tag == "!!float" {
		f, _ := strconv.ParseFloat(strings.Trim(n.Value, "+-."), 64) // an error leaves 0, or an infinity
		if math.IsInf(f, 0) || math.IsNaN(f) {
			return fmt.Errorf("line %d: %.80s is not a finite number", n.Line, name)
		}
	}
	if t == nil || tag == "!!null" {
		return nil
	}
	kind, fits := t.Kind(), false
	switch {
	case reads[encoding.TextUnmarshaler](t), kind == reflect.String:
		fits = tag == "!!str" || tag == "!!timestamp"
	case kind == reflect.Bool:
		fits = tag == "!!bool"
	case kind == reflect.Float32, kind == reflect.Float64:
		fits = tag == "!!int" || tag == "!!float"
	case reflect.Int <= kind && kind <= reflect.Uintptr:
		fits = tag == "!!int"
	}
	if fits {
		return nil
	}
	given := "a value of " + tag
	switch tag {
	case "!!str":
		given = "a text"
	case "!!bool":
		given = "true or false"
	case "!!int", "!!float":
		given = "the number " + n.Value
	case "!!timestamp":
		given = "a time"
	}
	return wrong(n, name, given, t)
}

func wrong(n *yaml.Node, name, given string, t reflect.Type) error {
	return fmt.Errorf("line %d: %.80s has %.80s where %s is expected", n.Line, name, given, strictjson.Wanted(t))
}

// SPDX-License-Identifier: Apache-2.0

// Package strictjson reads JSON documents written by people. It rejects unknown fields and text after the document. Its
// errors use the document's terms; those of encoding/json use Go's types.
package strictjson

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/creelrm/creel/internal/nearest"
)

// Unmarshal reads a document into the value that v points to. Its errors come from Worded.
func Unmarshal(document []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(document))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		if field, ok := unknownField(err); ok {
			return UnknownField(field, reflect.TypeOf(v))
		}
		return Worded(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("trailing text after the document")
	}
	return nil
}

// Worded rewrites an error of reading a document, from encoding/json or about a number in it, for the document's
// author. Other errors are returned unchanged.
func Worded(err error) error {
	var kind *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	var number *strconv.NumError
	switch {
	case errors.As(err, &kind):
		if kind.Field == "" {
			return fmt.Errorf("it is %s, not %s", given(kind.Value), Wanted(kind.Type))
		}
		if n, ok := strings.CutPrefix(kind.Value, "number "); ok && !strings.ContainsAny(n, ".eE") {
			return fmt.Errorf("%s has the number %s, which is out of range", kind.Field, n)
		}
		// The field may be a list or an object with one wrong element.
		return fmt.Errorf("%s has %s where %s is expected", kind.Field, given(kind.Value), Wanted(kind.Type))
	case err == io.EOF:
		return errors.New("it is empty")
	case err == io.ErrUnexpectedEOF, errors.As(err, &syntax) && syntax.Error() == "unexpected end of JSON input":
		return errors.New("it ends too early")
	case errors.As(err, &number):
		return fmt.Errorf("%.80q is not %s", number.Num, wantedBy[number.Func])
	}
	if field, ok := unknownField(err); ok {
		return UnknownField(field, nil)
	}
	return err
}

// unknownField returns the name in encoding/json's error about an unknown field.
func unknownField(err error) (string, bool) {
	quoted, ok := strings.CutPrefix(err.Error(), "json: unknown field ")
	if !ok {
		return "", false
	}
	field, err := strconv.Unquote(quoted)
	return field, err == nil
}

// UnknownField is the error about a field that a document for a value of type t, or nil, does not have. It names the
// nearest one that t has, at any depth.
func UnknownField(field string, t reflect.Type) error {
	switch near := nearest.Word(field, names(t)); near {
	case "":
		return fmt.Errorf("unknown field %.80q", field)
	case field:
		return fmt.Errorf("field %q is in the wrong place", field)
	default:
		return fmt.Errorf("unknown field %.80q; did you mean %q?", field, near)
	}
}

// names are the names of all fields of a type and of the types within it.
func names(t reflect.Type) iter.Seq[string] {
	found, seen := map[string]bool{}, map[reflect.Type]bool{}
	var add func(t reflect.Type)
	add = func(t reflect.Type) {
		for t != nil && (t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array ||
			t.Kind() == reflect.Map) {
			t = t.Elem()
		}
		if t == nil || t.Kind() != reflect.Struct || seen[t] {
			return
		}
		seen[t] = true
		for name, of := range Fields(t) {
			found[name] = true
			add(of)
		}
	}
	add(t)
	return slices.Values(slices.Sorted(maps.Keys(found)))
}

// Fields are the fields of a struct as encoding/json names them, with those of embedded structs.
func Fields(t reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		of := f.Type
		if of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		switch {
		case name == "-":
		case f.Anonymous && name == "" && of.Kind() == reflect.Struct:
			maps.Copy(out, Fields(of))
		case f.IsExported():
			out[cmp.Or(name, f.Name)] = f.Type
		}
	}
	return out
}

var wantedBy = map[string]string{
	"ParseInt": "a whole number", "ParseUint": "a whole number", "Atoi": "a whole number",
	"ParseFloat": "a number", "ParseBool": "true or false",
}

// given describes a document's value, from the terms of json.UnmarshalTypeError.
func given(value string) string {
	kind, rest, _ := strings.Cut(value, " ")
	switch {
	case rest != "":
		return "the " + value // "number 1.5"
	case kind == "array":
		return "a list"
	case kind == "object":
		return "an object"
	case kind == "string":
		return "a text"
	case kind == "bool":
		return "true or false"
	}
	return "a " + value
}

var textType = reflect.TypeFor[encoding.TextUnmarshaler]()

// Wanted describes the value that a document should have for a type.
func Wanted(t reflect.Type) string {
	if reflect.PointerTo(t).Implements(textType) {
		return "a text"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.String:
		return "a text"
	case reflect.Slice, reflect.Array:
		return "a list"
	}
	return "an object"
}

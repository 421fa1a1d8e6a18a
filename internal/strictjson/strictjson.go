// SPDX-License-Identifier: Apache-2.0

// Package strictjson reads JSON documents written by people. It rejects unknown fields and text after the document. Its
// errors use the document's terms; those of encoding/json use Go's types.
package strictjson

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
)

// Unmarshal reads a document into the value that v points to. Its errors come from Worded.
func Unmarshal(document []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(document))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
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
			return fmt.Errorf("it is %s, not %s", given(kind.Value), wanted(kind.Type))
		}
		if n, ok := strings.CutPrefix(kind.Value, "number "); ok && !strings.ContainsAny(n, ".eE") {
			return fmt.Errorf("%s has the number %s, which is out of range", kind.Field, n)
		}
		// The field may be a list or an object with one wrong element.
		return fmt.Errorf("%s has %s where %s is expected", kind.Field, given(kind.Value), wanted(kind.Type))
	case err == io.EOF:
		return errors.New("it is empty")
	case err == io.ErrUnexpectedEOF, errors.As(err, &syntax) && syntax.Error() == "unexpected end of JSON input":
		return errors.New("it ends too early")
	case errors.As(err, &number):
		return fmt.Errorf("%.80q is not %s", number.Num, wantedBy[number.Func])
	}
	if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return errors.New("unknown field " + field)
	}
	return err
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

// wanted describes the value that a document should have for a type.
func wanted(t reflect.Type) string {
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

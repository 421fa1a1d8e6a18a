// SPDX-License-Identifier: Apache-2.0

// Package strictjson reads JSON documents that people write. A field that is not known, and
// text behind the document, are mistakes of theirs, and what is wrong is said in words of the
// document, where encoding/json has Go's types.
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

// Unmarshal reads a document into what v points to. Its errors are those of Worded.
func Unmarshal(document []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(document))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return Worded(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("text follows the document")
	}
	return nil
}

// Worded returns an error of reading a document, of encoding/json or of a number in it, in words for who wrote the
// document. Other errors are returned as they are.
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
		// The field may be a list or an object, and what is wrong one of its elements.
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

// given says what a document has, by the words of json.UnmarshalTypeError.
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

// wanted says what a document should have where it is read as a type.
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

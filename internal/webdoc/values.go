// SPDX-License-Identifier: Apache-2.0

package webdoc

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// The values of documents. Hadoop reads JSON as if it were XML. A number may be a text with blanks around it. A list of
// one element may be the element alone. Hadoop reads an invalid value as 0 or ignores it; here it is an error.
type (
	// Int is a whole number of 32 bits; a blank text is 0.
	Int int32
	// Long is a whole number of 64 bits.
	Long int64
	// Flag is true or false, or 1 or 0.
	Flag bool
	// Text is a text, or the digits of a number, or true or false.
	Text string
)

// UnmarshalJSON implements json.Unmarshaler.
func (n *Int) UnmarshalJSON(b []byte) error { return fromJSON(b, n.set) }

// UnmarshalXML implements xml.Unmarshaler.
func (n *Int) UnmarshalXML(d *xml.Decoder, start xml.StartElement) error {
	return fromXML(d, start, n.set)
}

func (n *Int) set(text string) error {
	if text == "" {
		*n = 0
		return nil
	}
	v, err := whole(text, 32)
	*n = Int(v)
	return err
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *Long) UnmarshalJSON(b []byte) error { return fromJSON(b, n.set) }

// UnmarshalXML implements xml.Unmarshaler.
func (n *Long) UnmarshalXML(d *xml.Decoder, start xml.StartElement) error {
	return fromXML(d, start, n.set)
}

func (n *Long) set(text string) error {
	v, err := whole(text, 64)
	*n = Long(v)
	return err
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *Flag) UnmarshalJSON(b []byte) error { return fromJSON(b, f.set) }

// UnmarshalXML implements xml.Unmarshaler.
func (f *Flag) UnmarshalXML(d *xml.Decoder, start xml.StartElement) error {
	return fromXML(d, start, f.set)
}

func (f *Flag) set(text string) error {
	switch text {
	case "true", "1":
		*f = true
	case "false", "0", "":
		*f = false
	default:
		return wrong(text, reflect.TypeFor[bool]())
	}
	return nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Text) UnmarshalJSON(b []byte) error {
	return scalar(b, reflect.TypeFor[string](), func(text string) error { *t = Text(text); return nil })
}

// Texts returns the texts of a list.
func Texts(list Many[Text]) []string {
	if list == nil {
		return nil
	}
	out := make([]string, len(list))
	for i, t := range list {
		out[i] = string(t)
	}
	return out
}

func whole(text string, bits int) (int64, error) {
	digits := text
	if len(text) > 1 && text[0] == '+' && text[1] != '-' {
		digits = text[1:]
	}
	v, err := strconv.ParseInt(digits, 10, bits)
	if err != nil {
		return 0, wrong(text, reflect.TypeFor[int64]())
	}
	return v, nil
}

// wrong makes an error to which the JSON decoder adds the field's name.
func wrong(text string, want reflect.Type) error {
	if _, err := strconv.ParseFloat(text, 64); text != "" && (err == nil || strings.Trim(text, "0123456789") == "") {
		return &json.UnmarshalTypeError{Value: fmt.Sprintf("number %.40s", text), Type: want}
	}
	return &json.UnmarshalTypeError{Value: fmt.Sprintf("text %.40q", text), Type: want}
}

func fromJSON(b []byte, set func(text string) error) error {
	return scalar(b, reflect.TypeFor[int64](), func(text string) error { return set(strings.TrimSpace(text)) })
}

// scalar sets a value from its text, a literal, or a list of one of these.
func scalar(b []byte, want reflect.Type, set func(text string) error) error {
	switch {
	case string(b) == "null":
		return nil
	case b[0] == '"':
		var text string
		if err := json.Unmarshal(b, &text); err != nil {
			return err
		}
		return set(text)
	case b[0] == '[':
		var list []json.RawMessage
		if err := json.Unmarshal(b, &list); err != nil {
			return err
		}
		switch {
		case len(list) == 0:
			return nil
		case len(list) == 1 && list[0][0] != '[':
			return scalar(list[0], want, set)
		}
		return &json.UnmarshalTypeError{Value: "array", Type: want}
	case b[0] == '{':
		return &json.UnmarshalTypeError{Value: "object", Type: want}
	}
	return set(string(b))
}

func fromXML(d *xml.Decoder, start xml.StartElement, set func(text string) error) error {
	var text string
	if err := d.DecodeElement(&text, &start); err != nil {
		return err
	}
	err := set(strings.TrimSpace(text))
	if kind, ok := err.(*json.UnmarshalTypeError); ok {
		kind.Field = start.Name.Local
	}
	return err
}

// Many is a list. A document may write the only element of a list alone. A repeated field adds to it.
type Many[T any] []T

// UnmarshalJSON implements json.Unmarshaler.
func (m *Many[T]) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		var list []T
		err := json.Unmarshal(b, &list)
		*m = append(*m, list...)
		return err
	}
	var one T
	if err := json.Unmarshal(b, &one); err != nil || string(b) == "null" {
		return err
	}
	*m = append(*m, one)
	return nil
}

// Pairs is a map in YARN's form: {"entry":[{"key","value"}]}.
type Pairs[V any] struct {
	Entry Many[Entry[V]] `json:"entry" xml:"entry"`
}

// Entry is an entry of Pairs.
type Entry[V any] struct {
	Key   Text `json:"key" xml:"key"`
	Value V    `json:"value" xml:"value"`
}

// SPDX-License-Identifier: Apache-2.0

package statestore

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"sync"
)

// OtherFields returns the fields of a JSON document that T does not name, nil if there are none. Another version wrote
// them; WithFields writes them back.
func OtherFields[T any](document []byte) (map[string]json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(document, &fields); err != nil {
		return nil, err
	}
	for _, name := range namedBy(reflect.TypeFor[T]()) {
		delete(fields, name)
	}
	if len(fields) == 0 {
		return nil, nil
	}
	return fields, nil
}

// named caches the field names of each type: computing them takes longer than reading a document.
var named sync.Map

func namedBy(of reflect.Type) []string {
	if names, ok := named.Load(of); ok {
		return names.([]string)
	}
	var names []string
	for _, f := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	named.Store(of, names)
	return names
}

// WithFields encodes a value as a document with fields that its type does not name.
func WithFields(value any, others map[string]json.RawMessage) ([]byte, error) {
	data, err := json.Marshal(value)
	if err != nil || len(others) == 0 {
		return data, err
	}
	fields := maps.Clone(others)
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}

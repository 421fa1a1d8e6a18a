// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"

	"github.com/creelrm/creel/internal/rawjson"
	"github.com/creelrm/creel/router"
)

// jsonForm reads and writes JSON values for the rules of package router.
type jsonForm struct{}

var _ router.Form[[]byte] = jsonForm{}

// Object implements router.Form.
func (jsonForm) Object(v []byte, to []router.Named[[]byte]) ([]router.Named[[]byte], bool) {
	if v = bytes.TrimSpace(v); len(v) == 0 || v[0] != '{' {
		return nil, false
	}
	ok := rawjson.EachField(v, func(name, value []byte) bool {
		n, listed := fieldNames[string(name)]
		if !listed {
			n = string(name)
		}
		to = append(to, router.Named[[]byte]{Name: n, Value: value})
		return true
	})
	return to, ok
}

// fieldNames has the field names in rules, so that names need not be copied from documents.
var fieldNames = func() map[string]string {
	names := map[string]string{}
	for _, t := range router.Types {
		for _, f := range t.Fields {
			names[f.Name] = f.Name
		}
	}
	return names
}()

// Get implements router.Form.
func (jsonForm) Get(v []byte, name string) ([]byte, bool) {
	found := rawjson.Get(v, name)
	return found, found != nil
}

// List implements router.Form.
func (jsonForm) List(v []byte) ([][]byte, bool) {
	if rawjson.Empty(v) {
		return nil, true
	}
	return rawjson.Items(v)
}

// Number implements router.Form. It accepts quoted numbers, which Hadoop 3.4 writes.
func (jsonForm) Number(v []byte) (n router.Number, ok bool) {
	v = bytes.Trim(v, `"`)
	if len(v) == 0 || v[0] != '-' && (v[0] < '0' || v[0] > '9') {
		return n, false
	}
	if i, ok := wholeNumber(v); ok {
		return router.Number{Int: i, Float: float64(i)}, true
	}
	s := string(v)
	// For a fraction ParseInt would allocate an error, which costs more than parsing it.
	if bytes.IndexByte(v, '.') < 0 {
		if i, err := strconv.ParseInt(s, 10, 64); err == nil {
			return router.Number{Int: i, Float: float64(i)}, true
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	return router.Number{Float: f, IsFloat: true}, err == nil
}

// wholeNumber reads a whole number that certainly fits into 64 bits.
func wholeNumber(v []byte) (n int64, ok bool) {
	negative := v[0] == '-'
	if negative {
		v = v[1:]
	}
	if len(v) == 0 || len(v) > 18 {
		return 0, false
	}
	for _, c := range v {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int64(c-'0')
	}
	if negative {
		n = -n
	}
	return n, true
}

// Text implements router.Form.
func (jsonForm) Text(v []byte) string { return rawjson.Text(v) }

// MakeObject implements router.Form.
func (jsonForm) MakeObject(_ []byte, fields []router.Named[[]byte]) []byte {
	size := 2
	for _, f := range fields {
		size += len(f.Name) + len(f.Value) + 4
	}
	b := append(make([]byte, 0, size), '{')
	for i, f := range fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), f.Name...), `":`...)
		b = append(b, f.Value...)
	}
	return append(b, '}')
}

// MakeList implements router.Form. If members wrote a list of one as its single item, it does the same.
func (jsonForm) MakeList(from, list [][]byte) []byte {
	bracketed := len(list) != 1
	size := 2
	for _, v := range from {
		bracketed = bracketed || len(v) > 0 && v[0] == '['
	}
	for _, v := range list {
		size += len(v) + 1
	}
	if !bracketed {
		return list[0]
	}
	if len(list) == 0 {
		return from[0]
	}
	b := append(make([]byte, 0, size), '[')
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, v...)
	}
	return append(b, ']')
}

// MakeNumber implements router.Form.
func (jsonForm) MakeNumber(like []byte, n router.Number) []byte {
	var b []byte
	if n.IsFloat {
		b = float(n.Float)
	} else {
		b = strconv.AppendInt(make([]byte, 0, 24), n.Int, 10)
	}
	if len(like) > 0 && like[0] == '"' {
		return append(append([]byte{'"'}, b...), '"')
	}
	return b
}

// MakeText implements router.Form.
func (jsonForm) MakeText(_ []byte, text string) []byte {
	b, err := json.Marshal(text)
	if err != nil {
		return []byte(`""`)
	}
	return b
}

// float writes a fraction; YARN writes a point even for whole values. A sum over members may not be finite in 32
// bits, which JSON cannot represent; it becomes 0.
func float(v float64) []byte {
	if narrow := float64(float32(v)); math.IsNaN(narrow) || math.IsInf(narrow, 0) {
		v = 0
	}
	b := strconv.AppendFloat(make([]byte, 0, 24), v, 'f', -1, 32)
	if !bytes.ContainsRune(b, '.') {
		b = append(b, ".0"...)
	}
	return b
}

// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"reflect"
	"testing"
)

// A list added to Answer and forgotten in Clone would be written by the machine
// while a responder reads it.
func TestACloneSharesNoListWithItsAnswer(t *testing.T) {
	var a Answer
	lists := 0
	from := reflect.ValueOf(&a).Elem()
	for i := range from.NumField() {
		if f := from.Field(i); f.Kind() == reflect.Slice {
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
			lists++
		}
	}
	clone := a.Clone()
	to := reflect.ValueOf(&clone).Elem()
	for i := range from.NumField() {
		if f := from.Field(i); f.Kind() == reflect.Slice &&
			(to.Field(i).Len() != 1 || to.Field(i).Pointer() == f.Pointer()) {
			t.Errorf("%s is the same list, or lost", from.Type().Field(i).Name)
		}
	}
	if lists < 9 {
		t.Errorf("only %d lists were looked at", lists)
	}
}

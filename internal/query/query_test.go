// SPDX-License-Identifier: Apache-2.0

package query

import (
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/creelrm/creel/internal/propertytest"
)

// For every query the result equals that of net/url.
func FuzzPairs(t *testing.F) {
	f := propertytest.Fuzz(t)
	for _, raw := range []string{"", "user.name=ann", "user.name=ann+b%20c&states=A&states=B", "&&a=&=b&c", "a=1;b=2&c=3", "%zz=1&a=%zz&b=1", "user%2ename=x&a=b=c", "?a=\xff&ä=%C3%A4",
		strings.Repeat("&", most-2) + "a=1", strings.Repeat("&", most) + "a=1"} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		want, _ := url.ParseQuery(raw) // rejected pairs are not in its values either
		got := url.Values{}
		for name, value := range Pairs(raw) {
			got.Add(name, value)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%q gives %v, net/url %v", raw, got, want)
		}
		for name := range want {
			if first := First(raw, name); first != want.Get(name) {
				t.Fatalf("the first %q of %q is %q, net/url's %q", name, raw, first, want.Get(name))
			}
		}
	})
}

func TestNothingIsAllocated(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() {
		if First("states=A&user.name=ann", "user.name") != "ann" {
			t.Fatal("not found")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

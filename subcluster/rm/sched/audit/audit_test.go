// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"reflect"
	"strings"
	"testing"

	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/places"
)

const all = Begun<<1 - 1

// each calls f for accounts that differ from the zero one in a single entry, with that entry.
func each(t *testing.T, f func(name string, e Entries, s *Sums)) {
	of := map[string]Entries{
		"Used": Used, "Held": Held, "Pending": Pending, "AM": AM, "Containers": Containers, "Asked": Asked, "Apps": Apps,
		"Running": Running, "Waiting": Waiting, "Begun": Begun,
	}
	for i := range reflect.TypeFor[Sums]().NumField() {
		name := reflect.TypeFor[Sums]().Field(i).Name
		if of[name] == 0 {
			t.Fatalf("%s is not compared", name)
		}
		s := &Sums{}
		if x := reflect.ValueOf(s).Elem().Field(i); x.CanInt() {
			x.SetInt(3)
		} else {
			x.Set(reflect.ValueOf(amounts.Vec{Memory: 3}))
		}
		f(name, of[name], s)
	}
}

func TestDifferNamesTheWrongEntry(t *testing.T) {
	each(t, func(name string, e Entries, s *Sums) {
		if got := Differ(s, s, all); got != "" {
			t.Errorf("%s: equal accounts differ: %s", name, got)
		}
		if got := Differ(&Sums{}, s, all&^e); got != "" {
			t.Errorf("%s is not among the compared entries: %s", name, got)
		}
		if got := Differ(&Sums{}, s, e); strings.Count(got, "in truth") != 1 {
			t.Errorf("%s differs: %q", name, got)
		}
	})
	books, truth := &Sums{Containers: 1, Running: 2}, &Sums{Containers: 3, Running: 4}
	if got, want := Differ(books, truth, all), "containers 1, in truth 3; running 2, in truth 4"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestLedgerAddsEntriesByOwner(t *testing.T) {
	l := Ledger[string]{}
	each(t, func(_ string, _ Entries, s *Sums) {
		l.Add("a", s)
		l.Add("a", s)
	})
	l.Add("b", &Sums{Apps: 1})
	six := amounts.Vec{Memory: 6}
	want := &Sums{
		Used: six, Held: six, Pending: six, AM: six, Containers: 6, Asked: 6, Apps: 6, Running: 6, Waiting: 6, Begun: 6,
	}
	if wrong := Differ(l.Of("a"), want, all); wrong != "" {
		t.Error(wrong)
	}
	if wrong := Differ(l.Of("b"), &Sums{Apps: 1}, all); wrong != "" {
		t.Error(wrong)
	}
	if wrong := Differ(l.Of("c"), &Sums{}, all); wrong != "" {
		t.Error(wrong)
	}
}

func TestAskTakesPermittedNodes(t *testing.T) {
	types, err := amounts.NewTypes(nil, true)
	if err != nil {
		t.Fatal(err)
	}
	h, r, strict := []Place{{Name: "h"}}, []Place{{Name: "r"}}, []Place{{Name: "r", Strict: true}}
	other := []Place{{Name: "other"}}
	for name, c := range map[string]struct {
		ask  Ask
		free int64
		want string
	}{
		"no place":                  {Ask{}, 2, "any"},
		"no place, too little free": {Ask{}, 1, ""},
		"no place, strict":          {Ask{Strict: true}, 2, ""},
		"the host":                  {Ask{Hosts: h, Strict: true}, 2, "local"},
		"the host and its rack":     {Ask{Hosts: h, Racks: strict, Strict: true}, 2, "local"},
		"the host, too little free": {Ask{Hosts: h}, 1, ""},
		"the host, not its rack":    {Ask{Hosts: h, Racks: other, Level: places.AtRack}, 2, ""},
		"another host":              {Ask{Hosts: other}, 2, ""},
		"another host, long wait":   {Ask{Hosts: other, Level: places.AtAny}, 2, "any"},
		"another host, strict":      {Ask{Hosts: other, Level: places.AtAny, Strict: true}, 2, ""},
		"the rack":                  {Ask{Racks: r, Strict: true}, 2, "rack"},
		"the rack's named hosts":    {Ask{Racks: strict, Hosts: other, Level: places.AtRack}, 2, ""},
		"the rack of another host":  {Ask{Racks: r, Hosts: other}, 2, ""},
		"the rack after a wait":     {Ask{Racks: r, Hosts: other, Level: places.AtRack}, 2, "rack"},
		"another rack":              {Ask{Racks: other, Level: places.AtRack}, 2, ""},
		"an avoided host":           {Ask{Avoids: func(name string) bool { return name == "h" }}, 2, ""},
		"an avoided rack":           {Ask{Avoids: func(name string) bool { return name == "r" }}, 2, ""},
	} {
		c.ask.Size = &amounts.Vec{Memory: 2}
		if c.ask.Avoids == nil {
			c.ask.Avoids = func(string) bool { return false }
		}
		n := &Node{Host: "h", Rack: "r", Free: amounts.Vec{Memory: c.free}}
		if got := c.ask.Takes(&amounts.Sizes{Types: types}, n); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

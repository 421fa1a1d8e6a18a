// SPDX-License-Identifier: Apache-2.0

package apps

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"github.com/creelrm/creel"
)

// order is an order of the list of applications. Exactly one function is set. Equal ones are sorted newest first.
type order struct {
	text   func(a *Row) string // ascending
	number func(a *Row) int64  // descending
	down   bool                // texts are descending
}

// reversed returns the other direction of an order, which a query has as "-" before the name.
func (o order) reversed(name string) order {
	o.down = true
	switch number := o.number; {
	case name == "started":
		o.number = func(a *Row) int64 { return -a.Started }
	case number != nil:
		o.number = func(a *Row) int64 { return -number(a) }
	}
	return o
}

// orders are the orders by their name in a query. A list without one has the order "state".
var orders = map[string]order{
	"state":      {number: func(a *Row) int64 { return -int64(a.rank) }},
	"started":    {number: func(*Row) int64 { return 0 }},
	"name":       {text: func(a *Row) string { return a.Name }},
	"user":       {text: func(a *Row) string { return a.User }},
	"queue":      {text: func(a *Row) string { return a.Queue }},
	"memory":     {number: func(a *Row) int64 { return a.MemoryMB }},
	"containers": {number: func(a *Row) int64 { return a.Containers }},
	"id":         {text: func(a *Row) string { return a.ID }},
	"yarn_state": {text: func(a *Row) string { return a.State }},
	"outcome":    {text: func(a *Row) string { return a.Outcome }},
	"home":       {text: func(a *Row) string { return string(a.Home) }},
	"members":    {number: func(a *Row) int64 { return int64(len(a.Elsewhere)) }},
	"waits_for":  {text: func(a *Row) string { return a.Waits }},
}

// placed is an application with its place in an order.
type placed struct {
	row    *Row // complete, also if the viewer may not see all of it
	seen   bool // the viewer may see all of it
	text   string
	down   bool // texts are descending
	number int64
}

// guardedNumbers are the orders by a number that only permitted viewers may know. To others it is 0.
var guardedNumbers = []string{"memory", "containers", "started"}

func (f *Filter) placeOf(a *Row, seen bool) placed {
	p := placed{row: a, seen: seen, down: f.order.down}
	switch {
	case f.order.text != nil:
		p.text = f.order.text(a)
	case seen || !slices.Contains(guardedNumbers, f.sort):
		p.number = f.order.number(a)
	}
	return p
}

func (p *placed) compare(q *placed) int {
	x, y := p.text, q.text
	if p.down {
		x, y = y, x
	}
	return cmp.Or(strings.Compare(x, y), cmp.Compare(q.number, p.number),
		cmp.Compare(q.row.Started, p.row.Started), q.row.id.Compare(p.row.id))
}

// cursor names the place. It does not contain the start time, which the viewer may not know.
func (p *placed) cursor(by order) string {
	key := strconv.FormatInt(p.number, 10)
	if by.text != nil {
		key = base64.RawURLEncoding.EncodeToString([]byte(p.text))
	}
	return key + "." + p.row.ID
}

func parseCursor(text string, by order) (*placed, error) {
	bad := invalid("invalid cursor", "leave it out to start again, and sort all pages alike")
	key, id, _ := strings.Cut(text, ".")
	p := &placed{row: &Row{}, down: by.down}
	var err error
	if by.text != nil {
		var b []byte
		b, err = base64.RawURLEncoding.DecodeString(key)
		p.text = string(b)
	} else {
		p.number, err = strconv.ParseInt(key, 10, 64)
	}
	if err != nil {
		return nil, bad
	}
	if p.row.id, err = creel.ParseApplicationID(id); err != nil {
		return nil, bad
	}
	return p, nil
}

// firstRows collects the first rows of an order, and one more.
type firstRows struct {
	limit  int
	rows   []placed
	sorted bool // rows has limit+1 rows in order: only a smaller one belongs to the page
}

func (g *firstRows) add(p placed) {
	if g.sorted && p.compare(&g.rows[g.limit]) >= 0 {
		return
	}
	g.rows = append(g.rows, p)
	if g.sorted = false; len(g.rows) > 2*g.limit+1 {
		g.cut()
	}
}

func (g *firstRows) cut() {
	slices.SortFunc(g.rows, func(p, q placed) int { return p.compare(&q) })
	if g.sorted = len(g.rows) > g.limit; g.sorted {
		g.rows = g.rows[:g.limit+1]
	}
}

// end returns the page's rows, and whether there is a next page.
func (g *firstRows) end() (rows []placed, more bool) {
	g.cut()
	return g.rows[:min(len(g.rows), g.limit)], len(g.rows) > g.limit
}

// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"html/template"
	"slices"
	"strings"
)

// Order is the order of a list that the API sorts. The page's address has it as ?sort=NAME, or ?sort=-NAME for the
// reverse, as the API: texts are ascending, numbers and times descending. Tables in one piece are sorted by the script
// tables.js instead.
type Order struct {
	path string
	kept []string // the other parts of the query
	by   string   // "" is the list's own order
	back bool     // reversed
}

// NewOrder reads the order of a list from the request. Links to other orders keep the pairs.
func NewOrder(c *Call, path string, pairs ...string) Order {
	o := Order{path: path, kept: pairs}
	o.by, o.back = strings.CutPrefix(c.Query("sort"), "-")
	return o
}

// Value is the order as a value of sort.
func (o Order) Value() string { return value(o.by, o.back) }

func value(by string, back bool) string {
	if back && by != "" {
		return "-" + by
	}
	return by
}

// Head returns the head of a column, with a link that sorts by it: first one way, then the other, then the list's own
// order. A number and a time begin with the greatest.
func (o Order) Head(name, title, kind string) template.HTML {
	next, state := name, "none"
	if o.by == name {
		state = "ascending"
		if o.back != (kind != "") {
			state = "descending"
		}
		if next = "-" + name; o.back {
			next = ""
		}
	}
	class := ""
	if kind == "num" {
		class = ` class="num"`
	}
	to := WithQuery(o.path, append(slices.Clone(o.kept), "sort", next)...)
	return template.HTML(`<th scope="col"` + class + ` aria-sort="` + state + `"><a class="sort" href="` +
		template.HTMLEscapeString(to) + `">` + template.HTMLEscapeString(title) + `</a></th>`)
}

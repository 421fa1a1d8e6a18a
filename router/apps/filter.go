// SPDX-License-Identifier: Apache-2.0

package apps

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/creelrm/creel"
)

// MaxPage is the greatest number of rows, and of groups, in a page.
const MaxPage = 1000

// Query selects a page. Fields that are not set select all applications.
type Query struct {
	States                    []string // "running", "waiting", "ended", or YARN's
	Queue                     string   // a path, with the queues below it, or a leaf's name
	User, Type, Home, Outcome string
	Tags                      []string // an application with one of them matches
	Search                    string   // in the id, name, user or queue
	WaitsFor, WaitsIn         string   // a code, and a queue with the limit
	Sort                      string   // a name of an order, "-" before it for the reverse; default "state"
	Group                     string   // a field to count by
	Cursor                    string   // Page.Next of the page before
	Limit                     int      // greatest number of rows, up to MaxPage
}

// Filter is a valid Query.
type Filter struct {
	query Query
	sort  string // a name of orders
	order order
	after *placed // the row before the page, from the cursor; without its start time
	group func(a *Row) []string
}

// groupings are the fields by which applications are grouped.
var groupings = map[string]func(a *Row) []string{
	"queue": func(a *Row) []string { return []string{a.Queue} },
	"user":  func(a *Row) []string { return []string{a.User} },
	"state": func(a *Row) []string { return []string{a.State} },
	"home":  func(a *Row) []string { return []string{string(a.Home)} },
	"type":  func(a *Row) []string { return []string{a.Type} },
	"tag":   func(a *Row) []string { return a.Tags }, // an application is in the group of each tag
}

func invalid(what, try string) error {
	return &creel.Error{Kind: creel.ErrInvalidRequest, What: what, Try: try}
}

// NewFilter checks a query.
func NewFilter(q Query) (*Filter, error) {
	f := &Filter{query: q}
	var known, reverse bool
	f.sort, reverse = strings.CutPrefix(cmp.Or(q.Sort, "state"), "-")
	if f.order, known = orders[f.sort]; !known {
		return nil, invalid("applications cannot be sorted by "+strconv.Quote(f.sort),
			strings.Join(slices.Sorted(maps.Keys(orders)), ", "))
	}
	if reverse {
		f.order = f.order.reversed(f.sort)
	}
	f.query.Search = strings.ToLower(strings.TrimSpace(q.Search))
	if q.Limit < 1 || q.Limit > MaxPage {
		return nil, invalid("limit is not a number from 1 to 1000", "")
	}
	if q.Group != "" {
		if f.group, known = groupings[q.Group]; !known {
			return nil, invalid(
				"applications cannot be grouped by "+strconv.Quote(q.Group),
				"queue, user, state, home, type or tag",
			)
		}
	}
	if q.Cursor != "" {
		var err error
		if f.after, err = parseCursor(q.Cursor, f.order); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// start returns the place of the cursor's application among rows, nil without a cursor. The cursor does not contain its
// start time, since not all viewers may know it.
func (f *Filter) start(rows []*Row) (*placed, error) {
	if f.after == nil {
		return nil, nil
	}
	i := slices.IndexFunc(rows, func(a *Row) bool { return a.id == f.after.row.id })
	if i < 0 {
		return nil, invalid("the cursor's application is no longer known", "leave it out to start again")
	}
	after, row := *f.after, *f.after.row
	row.Started = rows[i].Started
	after.row = &row
	return &after, nil
}

func (f *Filter) keeps(a *Row) bool {
	q := &f.query
	if len(q.States) > 0 && !slices.ContainsFunc(q.States, a.isIn) {
		return false
	}
	if q.Queue != "" && a.Queue != q.Queue && !strings.HasPrefix(a.Queue, q.Queue+".") &&
		creel.QueuePath(a.Queue).Leaf() != q.Queue {
		return false
	}
	// Hadoop stores tags in lower case.
	if len(q.Tags) > 0 && !slices.ContainsFunc(a.Tags, func(tag string) bool {
		return slices.ContainsFunc(q.Tags, func(other string) bool {
			return strings.EqualFold(other, strings.TrimSpace(tag))
		})
	}) {
		return false
	}
	for _, field := range [...]struct{ want, is string }{
		{q.User, a.User}, {q.Type, a.Type}, {q.Home, string(a.Home)}, {q.Outcome, a.Outcome},
		{q.WaitsFor, a.Waits}, {q.WaitsIn, a.WaitsIn},
	} {
		if field.want != "" && field.want != field.is {
			return false
		}
	}
	if q.Search == "" {
		return true
	}
	for _, text := range [...]string{a.ID, a.Name, a.User, a.Queue} {
		if strings.Contains(strings.ToLower(text), q.Search) {
			return true
		}
	}
	return false
}

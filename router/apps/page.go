// SPDX-License-Identifier: Apache-2.0

package apps

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// View is the list of applications as one viewer may read it.
type View struct {
	Rows   []*Row // with all fields; only counts and pages may be shown
	Parts  []Part
	viewer viewer
}

// Page is a part of a View in an order.
type Page struct {
	Rows     []Row // with the fields that the viewer may see
	Matching Counts
	Groups   []Group
	Next     string // the cursor of the next page
}

// Group counts the applications with the same value of a field.
type Group struct {
	Key string `json:"key"`
	Counts
}

// Page returns the page of a filter.
func (v *View) Page(f *Filter, now time.Time) (*Page, error) {
	after, err := f.start(v.Rows)
	if err != nil {
		return nil, err
	}
	p := &Page{}
	groups := map[string]*Group{}
	page := firstRows{limit: f.query.Limit}
	for _, a := range v.Rows {
		if !f.keeps(a) || !v.viewer.lists(a) {
			continue
		}
		seen := v.viewer.sees(a)
		p.Matching.add(a, seen, now)
		if f.group != nil {
			for _, key := range f.group(a) {
				if groups[key] == nil {
					groups[key] = &Group{Key: key}
				}
				groups[key].add(a, seen, now)
			}
		}
		if at := f.placeOf(a, seen); after == nil || after.compare(&at) < 0 {
			page.add(at)
		}
	}
	p.Rows, p.Next = page.show(f.order, now)
	for _, g := range groups {
		p.Groups = append(p.Groups, *g)
	}
	slices.SortFunc(p.Groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Running+b.Waiting, a.Running+a.Waiting), cmp.Compare(b.Ended, a.Ended),
			strings.Compare(a.Key, b.Key))
	})
	p.Groups = p.Groups[:min(len(p.Groups), MaxPage)]
	return p, nil
}

// show returns the rows as the viewer may see them, and the cursor of the next page, "" if there is none.
func (g *firstRows) show(by order, now time.Time) (out []Row, next string) {
	rows, more := g.end()
	out = make([]Row, len(rows))
	for i, p := range rows {
		out[i] = *p.row
		if !p.seen {
			out[i] = *guarded(p.row)
		}
		if at := p.row.at; !at.IsZero() {
			out[i].AgeSeconds = now.Sub(at).Round(100 * time.Millisecond).Seconds()
		}
		out[i].WaitsSeconds = out[i].waitsFor(now)
	}
	if more {
		next = rows[len(rows)-1].cursor(by)
	}
	return out, next
}

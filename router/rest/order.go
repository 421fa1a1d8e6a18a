// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// orderOf reads the order of a list from a query: a name of orders, with "-" before it for the reverse. It returns nil
// without one. As in appOrders, texts are ascending and numbers descending.
func orderOf[T any](q url.Values, orders map[string]func(a, b *T) int) (func(a, b *T) int, error) {
	text := q.Get("sort")
	if text == "" {
		return nil, nil
	}
	name, reverse := strings.CutPrefix(text, "-")
	order := orders[name]
	if order == nil {
		names := strings.Join(slices.Sorted(maps.Keys(orders)), ", ")
		return nil, invalid("the list cannot be sorted by "+strconv.Quote(name), names+"; - before a name reverses it")
	}
	if reverse {
		return func(a, b *T) int { return order(b, a) }, nil
	}
	return order, nil
}

// by returns the ascending order of a text, most the descending order of a number.
func by[T any](field func(a *T) string) func(a, b *T) int {
	return func(a, b *T) int { return strings.Compare(field(a), field(b)) }
}

func most[T any, V cmp.Ordered](field func(a *T) V) func(a, b *T) int {
	return func(a, b *T) int { return cmp.Compare(field(b), field(a)) }
}

// NodeOrders returns the names of the orders of a list of nodes.
func NodeOrders() []string { return slices.Sorted(maps.Keys(nodeOrders)) }

// nodeOrders are the orders of a list of nodes, by name.
var nodeOrders = map[string]func(a, b *NodeRow) int{
	"id":         by(func(n *NodeRow) string { return n.ID }),
	"subcluster": by(func(n *NodeRow) string { return string(n.Member) }),
	"state":      by(func(n *NodeRow) string { return n.State }),
	"rack":       by(func(n *NodeRow) string { return n.Rack }),
	"containers": most(func(n *NodeRow) int64 { return n.Containers }),
	"used_mb":    most(func(n *NodeRow) int64 { return n.UsedMB }),
	"health":     by(func(n *NodeRow) string { return n.Health }),
	"used": most(func(n *NodeRow) float64 {
		return float64(n.UsedMB) / float64(max(n.UsedMB+n.FreeMB, 1))
	}),
}

// byMember is the order of a list of nodes without another one.
func byMember(a, b *NodeRow) int {
	return cmp.Or(cmp.Compare(a.Member, b.Member), cmp.Compare(a.ID, b.ID))
}

// sheet collects the rows of a page. It keeps only these, so a page of a long list costs one pass.
type sheet[T any] struct {
	order func(a, b *T) int // nil: rows are added in order
	limit int
	rows  []*T
	more  bool // rows follow the page
}

func (s *sheet[T]) add(row *T) {
	at := len(s.rows)
	if s.order != nil {
		at, _ = slices.BinarySearchFunc(s.rows, row, s.order)
	}
	if at == s.limit {
		s.more = true
		return
	}
	s.rows = slices.Insert(s.rows, at, row)
	if len(s.rows) > s.limit {
		s.rows, s.more = s.rows[:s.limit], true
	}
}

// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"

	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/nodeindex"
)

// Ahead returns the nodes that a search visits first; see nodeindex.Index.Ahead.
func (m *Map[N]) Ahead(need *amounts.Vec, order nodeindex.Order, list []int32) int {
	return m.index.Ahead(need, order, list)
}

// Prefetch reads a node's position and free memory, before an Update; see nodeindex.Links.Prefetch.
func (m *Map[N]) Prefetch(serial int32) int32 {
	return m.links.Prefetch(serial) + int32(m.room[serial])
}

// PrefetchNeighbours reads the positions before and after a node's.
func (m *Map[N]) PrefetchNeighbours(serial int32) int32 { return m.links.PrefetchNeighbours(serial) }

// Cell returns a node's grid and cell in the index of all nodes, or false if it is in none.
func (m *Map[N]) Cell(serial int32) (mask uint32, cell int32, in bool) { return m.index.Cell(serial) }

// Position is a node's place in the indexes.
type Position struct{ all, rack nodeindex.Position }

// Position returns a node's position.
func (m *Map[N]) Position(serial int32, r *Rack) Position {
	p := Position{all: m.index.Position(serial)}
	if r.index != nil {
		p.rack = r.index.Position(serial)
	}
	return p
}

// Restore returns a node to a saved position, between its old neighbours, which must not have moved.
func (m *Map[N]) Restore(serial int32, r *Rack, to Position) {
	m.index.Restore(serial, to.all)
	if r.index != nil {
		r.index.Restore(serial, to.rack)
	}
}

// Check returns the first difference between the stored position of a node and its free resources, "" for none.
func (m *Map[N]) Check(serial int32, r *Rack, free *amounts.Vec, usable bool) string {
	room := int64(-1)
	if usable {
		room = free.Memory
	}
	switch {
	case m.room[serial] != room:
		return fmt.Sprintf("has room for %d MiB, known as %d", room, m.room[serial])
	case !m.index.Check(serial, free, usable):
		return "not where it belongs in the index"
	case r.index != nil && !r.index.Check(serial, free, usable):
		return "not where it belongs in the index of its rack"
	}
	return ""
}

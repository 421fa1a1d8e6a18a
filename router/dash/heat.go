// SPDX-License-Identifier: Apache-2.0

package dash

import (
	"fmt"

	"github.com/creelrm/creel/internal/pages"
	"github.com/creelrm/creel/router/rest"
)

// heat is a map of a member's nodes: a square for each, darker with the part of its memory that is in use.
type heat struct {
	Cells  []heatCell
	Height int    // of the picture
	Label  string // the same in words
	More   int64  // nodes without a square
}

// heatCell is the square of one node.
type heatCell struct {
	X, Y  int
	Class string // h0 to h4, by fifths of the memory in use, or bad
	Title string
}

const (
	heatNodes   = 1000 // a page of the API
	heatColumns = 50
	heatSize    = 10 // of a square and its margin
)

// newHeat draws nodes in their order.
func newHeat(doc *rest.NodesDoc) (h heat) {
	var levels [5]int
	bad := 0
	for i := range doc.Nodes {
		n := &doc.Nodes[i]
		level := min(int(pages.Share(n.UsedMB, n.UsedMB+n.FreeMB)/20), 4)
		c := heatCell{X: i % heatColumns * heatSize, Y: i / heatColumns * heatSize}
		c.Class = fmt.Sprint("h", max(level, 0))
		c.Title = fmt.Sprintf("%s on %s, %d to %d%% used", n.ID, n.Rack, 20*level, 20*level+20)
		if n.State != "RUNNING" {
			c.Class, c.Title = "bad", fmt.Sprintf("%s on %s, %s", n.ID, n.Rack, n.State)
			bad++
		} else {
			levels[max(level, 0)]++
		}
		h.Cells = append(h.Cells, c)
	}
	h.Height = (len(h.Cells) + heatColumns - 1) / heatColumns * heatSize
	h.More = doc.Matching - int64(len(h.Cells))
	h.Label = fmt.Sprintf("%d nodes: %d use less than a fifth of their memory, %d more than four fifths, %d do not run",
		len(h.Cells), levels[0], levels[4], bad)
	return h
}

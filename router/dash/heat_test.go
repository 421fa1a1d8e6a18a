// SPDX-License-Identifier: Apache-2.0

package dash

import (
	"fmt"
	"slices"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router/rest"
)

// node returns a node of 100 MB.
func node(id int, used int64, state string) (n rest.NodeRow) {
	n.ID, n.State, n.Rack, n.UsedMB, n.FreeMB = fmt.Sprint("n", id), state, "/r", used, 100-used
	return n
}

func TestHeatMapHasASquareForEachNode(t *testing.T) {
	doc := rest.NodesDoc{Matching: 70}
	for i := range 60 {
		doc.Nodes = append(doc.Nodes, node(i, int64(i)*2, "RUNNING"))
	}
	doc.Nodes[3].State = "LOST"
	doc.Nodes[59].UsedMB, doc.Nodes[59].FreeMB = 0, 0 // it has reported nothing
	h := newHeat(&doc)
	if len(h.Cells) != 60 || h.Height != 20 || h.More != 10 {
		t.Fatalf("%d squares, %d high, %d more", len(h.Cells), h.Height, h.More)
	}
	for i, want := range map[int]heatCell{
		0:  {0, 0, "h0", "n0 on /r, 0 to 20% used"},
		3:  {30, 0, "bad", "n3 on /r, LOST"},
		10: {100, 0, "h1", "n10 on /r, 20 to 40% used"},
		50: {0, 10, "h4", "n50 on /r, 80 to 100% used"},
		59: {90, 10, "h0", "n59 on /r, 0 to 20% used"},
	} {
		if h.Cells[i] != want {
			t.Errorf("node %d: %+v, want %+v", i, h.Cells[i], want)
		}
	}
	if h.Label != "60 nodes: 10 use less than a fifth of their memory, 19 more than four fifths, 1 do not run" {
		t.Errorf("in words: %s", h.Label)
	}
}

func TestChartHasTheGreatestEntitlements(t *testing.T) {
	var rows []planRow
	for i := range 8 {
		rows = append(rows, planRow{Queue: creel.QueuePath(fmt.Sprint("root.q", i)), Entitled: float64(i)})
	}
	rows[7].Label = "gpu"
	want := []string{"root.q6", "root.q5", "root.q4", "root.q3", "root.q2", "root.q1"}
	if got := charted(rows); !slices.Equal(got, want) {
		t.Errorf("charted: %q", got)
	}
}

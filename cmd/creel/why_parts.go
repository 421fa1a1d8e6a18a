// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/subcluster"
)

// namedMembers bounds the names in a row of equal members.
const namedMembers = 3

// writeParts writes the table of an application's parts. A member with nothing of it is left out unless wide is set.
// Members with equal rows share one.
func writeParts(w io.Writer, parts []rest.MemberWait, wide bool) {
	var rows []string
	members := map[string][]string{}
	for i := range parts {
		m := &parts[i]
		if m.Error != "" || !wide && !m.Home && m.Containers == 0 && m.Wait == nil {
			continue
		}
		row := partRow(m)
		if members[row] == nil {
			rows = append(rows, row)
		}
		members[row] = append(members[row], string(m.Member))
	}
	if len(rows) == 0 || len(rows) == 1 && !wide && parts[0].Wait == nil {
		return
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "MEMBER\tSTATE\tCONTAINERS\tASKS\tWAITS FOR\tUSED, LIMIT (* EXCEEDED)")
	for _, row := range rows {
		names := members[row]
		text := strings.Join(names[:min(len(names), namedMembers)], ", ")
		if more := len(names) - namedMembers; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		fmt.Fprintf(t, "%s\t%s\n", cmp.Or(text, "-"), row)
	}
	_ = t.Flush()
}

// writeOpportunistic writes a line for each member with opportunistic containers of the application.
func writeOpportunistic(w io.Writer, parts []rest.MemberWait) {
	for i := range parts {
		if o := parts[i].Opportunistic; o != nil {
			at := ""
			if parts[i].Member != "" {
				at = string(parts[i].Member) + ": "
			}
			fmt.Fprintf(w, "%s%s\n", at, o.Sentence())
		}
	}
}

// partRow returns the cells of one member's part, without its name.
func partRow(m *rest.MemberWait) string {
	cells := []string{cmp.Or(m.State, "-"), strconv.Itoa(int(m.Containers)), "-", "-", "-"}
	if n := m.Wait; n != nil {
		cells[2] = strconv.Itoa(int(n.Asked))
		if cells[3] = cmp.Or(n.Code, "-"); n.Queue != "" && n.Queue != m.Queue {
			cells[3] += " in " + string(n.Queue)
		}
		cells[4] = cmp.Or(limitText(n), nodesText(n.Nodes), "-")
	}
	return strings.Join(cells, "\t")
}

// limitText writes use and limit of each unit, and marks those that one more container would exceed.
func limitText(n *subcluster.Wait) string {
	var units []string
	binding := n.Binding()
	for _, unit := range slices.Sorted(maps.Keys(n.Limit)) {
		if n.Limit[unit] == 0 && n.Used[unit] == 0 && n.Needs[unit] == 0 {
			continue
		}
		text := fmt.Sprintf("%s %d of %d", unit, n.Used[unit], n.Limit[unit])
		if slices.Contains(binding, unit) {
			text += "*"
		}
		units = append(units, text)
	}
	return strings.Join(units, ", ")
}

// nodesText counts the nodes by the reason that excludes them, without zeros.
func nodesText(n *subcluster.NodeCounts) string {
	if n == nil {
		return ""
	}
	text := fmt.Sprintf("%d nodes", n.Open)
	for _, c := range []struct {
		count int
		what  string
	}{
		{n.TooSmall, "too small"}, {n.Blacklisted, "blacklisted"}, {n.Refused, "refused"}, {n.Full, "full"},
		{n.Reserved, "reserved"}, {n.Elsewhere, "elsewhere"},
	} {
		if c.count > 0 {
			text += fmt.Sprintf(", %d %s", c.count, c.what)
		}
	}
	return text
}

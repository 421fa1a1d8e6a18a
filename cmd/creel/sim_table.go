// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/creelrm/creel/app/sim/compare"
)

// printRuns prints the resources of queues and members, with the lines of both runs below each other.
func printRuns(w io.Writer, notes []string, runs []compare.Run) error {
	for _, n := range notes {
		fmt.Fprintln(w, n)
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	line := func(cells ...string) { fmt.Fprintln(t, strings.Join(cells, "\t")) }
	percent := func(v float64) string { return fmt.Sprintf("%.1f%%", 100*v) }
	verdict := map[bool]string{true: "good", false: "BAD"}
	line("")
	line("RUN", "VERDICT", "IN-USE", "TAKEN-BACK", "LOST-GiB-HOURS", "LOST-CORE-HOURS")
	for i := range runs {
		l := &runs[i].WorkLost
		line(runs[i].Name, verdict[runs[i].Good], percent(runs[i].Utilisation), strconv.FormatInt(l.Containers, 10),
			fmt.Sprintf("%.2f", l.MemoryGiBHours), fmt.Sprintf("%.2f", l.CoreHours))
	}
	line("")
	line("QUEUE", "RUN", "APPS", "CONTAINERS", "WAIT-P50", "WAIT-P99", "START-P50", "START-P99",
		"USED", "ENTITLED", "SHORT", "MEMBERS/APP", "TAKEN-BACK")
	for _, name := range namesOf(runs, func(r *compare.Run) (out []string) {
		for _, q := range r.Queues {
			out = append(out, string(q.Queue))
		}
		return out
	}) {
		for i := range runs {
			for _, q := range runs[i].Queues {
				if string(q.Queue) == name {
					line(name, runs[i].Name, strconv.Itoa(q.Applications), strconv.FormatInt(q.Containers, 10),
						compare.Seconds(q.WaitS.P50), compare.Seconds(q.WaitS.P99),
						compare.Seconds(q.StartS.P50), compare.Seconds(q.StartS.P99),
						percent(q.Used), percent(q.Entitled), percent(q.Short), fmt.Sprintf("%.2f", q.MembersOfApp),
						strconv.FormatInt(q.WorkLost.Containers, 10))
				}
			}
		}
	}
	line("")
	line("MEMBER", "RUN", "NODES", "APPS", "CONTAINERS", "WAIT-P50", "WAIT-P99", "IN-USE", "TAKEN-BACK")
	for j := range runs[0].Members { // both runs have the same members
		for i := range runs {
			m := &runs[i].Members[j]
			line(string(m.Member), runs[i].Name, strconv.Itoa(m.Nodes), strconv.Itoa(m.Applications),
				strconv.FormatInt(m.Containers, 10), compare.Seconds(m.WaitS.P50), compare.Seconds(m.WaitS.P99),
				percent(m.Utilisation), strconv.FormatInt(m.Preempted, 10))
		}
	}
	return t.Flush()
}

func namesOf(runs []compare.Run, of func(*compare.Run) []string) (out []string) {
	for i := range runs {
		out = append(out, of(&runs[i])...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

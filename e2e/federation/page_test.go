// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/clients"
)

var update = flag.Bool("update", false, "rewrite docs/reference/clients.md")

const page = "../../docs/reference/clients.md"

// The page matches the table of TestClients: each client's work, its federation, and its disturbance.
func TestTheClientsPage(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Clients

Made from the table of e2e/federation: ` + "`go test ./e2e/federation -run TestTheClientsPage -update`" + `.

What Hadoop's own programs, Tez, Flink, Skein, Spark and REST clients do with one YARN cluster, done by them, unmodified, with two
members behind a router, AMs through the AM-RM proxies. ` + "`./test table`" + ` runs each row against each federation three times: undisturbed; while one
member after the other is **killed** with kill -9 and started again; while one after the other is **drained** until nothing is left
in it, and undrained. A case in **bold** is part of every run of ` + "`./test`" + `, for the disturbances that are named.

| federation | members |
| --- | --- |
`)
	for _, f := range federations {
		fmt.Fprintf(&b, "| %s | %s |\n", f.name, f.what)
	}
	b.WriteString("\nClients are of Hadoop 3.4.2 where no version is named; those of 3.3.6 bring AMs and tasks of 3.3.6.\n\n| case |")
	for _, r := range rows {
		fmt.Fprintf(&b, " %s |", r.name())
	}
	b.WriteString("\n|" + strings.Repeat(" --- |", len(rows)+1) + "\n")
	for _, c := range clients.Cases() {
		fmt.Fprintf(&b, "| `%s` |", c.Name)
		for _, r := range rows {
			fmt.Fprintf(&b, " %s |", r.cell(c.Name))
		}
		b.WriteString("\n")
	}
	b.WriteString(`
What a user meets while a member is away, which no federation can mend:

* A container that was granted and not begun when its ResourceManager died is refused by its node ("allocated by a previous RM"), as
  in a cluster of Hadoop's. MapReduce, Tez, Flink, Skein and Spark ask for another; a distributed shell counts it as failed, and is run again.
* The distributed shell's client asks for all nodes before it submits. With Hadoop's default,
  ` + "`yarn.router.interceptor.allow-partial-result.enable`" + ` false, it is told which member is missing and ends; the table is run with true,
  where lists lack what is in that member.
* Cases that read the state of the whole cluster are run after a disturbance, when all are back.
* An AM at home in a member of Hadoop's that is away tries for ` + "`yarn.resourcemanager.connect.max-wait.ms`" + ` (Hadoop's default: 15 minutes).
* An attempt of an AM that begins while a member is away hears of containers of the attempt before that live there when the member
  is back (` + "`dshell_keep`" + `), and may have asked for others by then.
* Two containers that may not meet (` + "`dshell_placement`" + `) come one after the other where their home has one node alone, as here.
`)
	if *update {
		if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if text, err := os.ReadFile(page); err != nil || string(text) != b.String() {
		t.Errorf("%s is not what the table says (%v): go test ./e2e/federation -run TestTheClientsPage -update", page, err)
	}
}

// cell returns a row's text for a case.
func (r *row) cell(name string) string {
	if why, no := r.without[name]; no && name == "dshell_placement" {
		return "is told \"" + why + "\""
	} else if no {
		return why
	}
	var always []string
	for _, d := range disturbances {
		if slices.Contains(r.usual[d.name], name) {
			always = append(always, d.name)
		}
	}
	if len(always) == 0 {
		return "works"
	}
	return "**works** (" + strings.Join(always, ", ") + ")"
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// exampleLines are the examples of commands without examples of their own, by command, one a line.
var exampleLines = map[string]string{
	"admin refresh-acls":   "creel admin refresh-acls --admin router1:8033",
	"admin refresh-nodes":  "creel admin refresh-nodes\ncreel admin refresh-nodes --subcluster sc-a",
	"admin refresh-queues": "creel admin refresh-queues\ncreel admin refresh-queues --subcluster sc-a",

	"agent":  "creel agent --conf /etc/hadoop/conf --store redis://store:6379 --subcluster sc-a",
	"demo":   "creel demo\ncreel demo --faults --seed 7\ncreel demo --hours 9-11 --keep --summary figures.json",
	"nm":     "creel nm --simulate 20\ncreel nm --conf /etc/hadoop/conf --simulate 100 --first 101",
	"proxy":  "creel proxy --conf /etc/hadoop/conf --store redis://store:6379",
	"router": "creel router --conf /etc/hadoop/conf --store redis://store:6379",
	"rm": "creel rm --data /var/lib/creel/rm\n" +
		"creel rm --conf /etc/hadoop/conf --data /var/lib/creel/rm --subcluster sc-a --store redis://store:6379",
	"rm export": "creel rm export state.txt --data /var/lib/creel/rm\n" +
		"creel rm export --to zk://z1:2181,z2:2181,z3:2181/rmstore --data /var/lib/creel/rm",
	"rm forget": "creel rm forget application_1764353628120_0042 --data /var/lib/creel/rm",
	"rm format": "creel rm format --data /var/lib/creel/rm --yes",
	"rm import": "creel rm import state.txt --conf /etc/hadoop/conf -D creel.rm.state.url=redis://state:6379\n" +
		"creel rm import --from zk://z1:2181,z2:2181,z3:2181/rmstore --data /var/lib/creel/rm",
	"rm repair": "creel rm repair --data /var/lib/creel/rm",
	"ready":     "creel ready http://router1:8089\ncreel ready http://router1:8089 --wait 1m",
	"status":    "creel status\ncreel status -o json",
	"top":       "creel top\ncreel top --queue root.prod --sort containers --once",
	"system":    "creel system\ncreel system --kind router --watch",
	"up":        "creel up\ncreel up --subclusters 2 --nodes 50\ncreel up --nodes 0 --data ~/creel",
	"version":   "creel version",

	"app attempts":   "creel app attempts application_1764353628120_0042",
	"app containers": "creel app containers application_1764353628120_0042 -o wide",
	"app kill":       "creel app kill application_1764353628120_0042 application_1764353628120_0043",
	"app priority":   "creel app priority application_1764353628120_0042 10",
	"app signal":     "creel app signal container_1764353628120_0042_01_000002 OUTPUT_THREAD_DUMP",
	"app status":     "creel app status application_1764353628120_0042 -o json",
	"app submit":     "creel app submit --name nightly --queue root.prod -- sleep 60",
	"app why":        "creel app why application_1764353628120_0042",

	"doctor":         "creel doctor --role router --conf /etc/hadoop/conf --store redis://store-1:6379",
	"config check":   "creel config check --conf /etc/hadoop/conf --strict\ncreel config check --role router",
	"config explain": "creel config explain yarn.resourcemanager.address",
	"config print":   "creel config print --origin\ncreel config print --effective --conf /etc/hadoop/conf",

	"context list":   "creel context list",
	"context remove": "creel context remove east",
	"context set":    "creel context set east --server http://router1:8089 --user alice",
	"context use":    "creel context use east",

	"load alloc":  "creel load alloc --nodes 1000 --masters 100 --rate 5000 --duration 30s",
	"load nodes":  "creel load nodes --nodes 5000 --period 1s --duration 1m",
	"load report": "creel load report --call list --applications 1000 --rate 200",
	"load rest":   "creel load rest http://127.0.0.1:8089/ws/v1/cluster/apps --rate 100",
	"load submit": "creel load submit --unmanaged --rate 50 --duration 30s",

	"node containers":   "creel node containers worker7.example:8041 -o wide",
	"node decommission": "creel node decommission worker7.example",
	"node drain":        "creel node drain worker7.example worker8.example --timeout 1h --wait",
	"node drains":       "creel node drains",
	"node list":         "creel node list --state RUNNING\ncreel node list --subcluster sc-1 --sort -used\ncreel node list --watch",
	"node recommission": "creel node recommission worker7.example",
	"node show":         "creel node show worker7.example:8041",

	"policy apply": "creel policy apply policies.yaml --dry-run\n" +
		"creel policy apply policies.yaml --comment 'prod to the east'",
	"policy edit":    "creel policy edit root.prod --comment 'prod to the east'",
	"policy get":     "creel policy get root.prod\ncreel policy get root.prod --version 3",
	"policy history": "creel policy history root.prod --limit 5",
	"policy list":    "creel policy list\ncreel policy list --store redis://store:6379",
	"policy schema":  "creel policy schema",
	"policy view":    "creel policy view",

	"queue acl": "creel queue acl root.prod\ncreel queue acl root.prod --of bob",
	"queue apply": "creel queue apply -f tree.yaml --dry-run\n" +
		"creel queue apply -f tree.yaml --comment 'more for prod'",
	"queue diff":    "creel queue diff\ncreel queue diff 3",
	"queue history": "creel queue history --limit 5",
	"queue list":    "creel queue list -o wide",
	"queue mend":    "creel queue mend --dry-run\ncreel queue mend --subcluster sc-a\ncreel queue mend --undo 3",
	"queue preempt": "creel queue preempt --dry-run root.prod",
	"queue schema":  "creel queue schema",
	"queue show":    "creel queue show root.prod\ncreel queue show root.prod --federation",
	"queue tree":    "creel queue tree",

	"rebalancer":          "creel rebalancer --conf /etc/hadoop/conf --store redis://store:6379",
	"rebalancer audit":    "creel rebalancer audit",
	"rebalancer escrow":   "creel rebalancer escrow -o wide",
	"rebalancer history":  "creel rebalancer history --limit 10",
	"rebalancer moves":    "creel rebalancer moves",
	"rebalancer pause":    "creel rebalancer pause --reason 'until the new racks are in'",
	"rebalancer plan":     "creel rebalancer plan\ncreel rebalancer plan --dry-run",
	"rebalancer resume":   "creel rebalancer resume",
	"rebalancer rollback": "creel rebalancer rollback\ncreel rebalancer rollback application_1764353628120_0042",
	"rebalancer why":      "creel rebalancer why root.prod",

	"store rebuild": "creel store rebuild --conf /etc/hadoop/conf --store redis://store:6379\n" +
		"creel store rebuild --store redis://store:6379 --accept-missing sc-b",
	"store rename": "creel store rename old-name new-name --store redis://store:6379",

	"subcluster deregister": "creel subcluster deregister sc-b",
	"subcluster list":       "creel subcluster list -o wide\ncreel subcluster list --watch",
	"subcluster remove":     "creel subcluster remove sc-b",
	"subcluster show":       "creel subcluster show sc-a",
	"subcluster undrain":    "creel subcluster undrain sc-a",
}

// addExamples sets the examples of commands that have none.
func addExamples(c *cobra.Command) {
	for _, child := range c.Commands() {
		lines := exampleLines[strings.TrimPrefix(child.CommandPath(), "creel ")]
		if child.Example == "" && lines != "" {
			child.Example = "  " + strings.ReplaceAll(lines, "\n", "\n  ")
		}
		addExamples(child)
	}
}

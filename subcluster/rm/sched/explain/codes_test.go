// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite "+codesPage)

const codesPage = "../../../../docs/reference/wait-codes.md"

// causes are the cause and the remedy of each reason to wait.
var causes = [...][2]string{
	LimitSaving:       {"The ResourceManager is writing the submission to its journal.", "Wait; if it lasts, check the disk of `--data` and `creel_rm_journal_full`."},
	LimitQueueStopped: {"The queue is stopped and takes no new work.", "Start the queue (`creel queue start`), or move the application (`creel app move`)."},
	LimitParallelApps: {"The queue or the user runs as many applications at once as allowed.", "Wait until one ends, or raise the limit of parallel applications."},
	LimitAM:           {"AMs of the queue use the share of resources that AMs may use.", "Wait until an application ends, ask for a smaller AM, or raise `maximum-am-resource-percent` (CapacityScheduler) or `maxAMShare` (FairScheduler)."},
	LimitUserAM:       {"AMs of the user use the share of resources that the user's AMs may use in the queue.", "Wait until an application of the user ends, ask for a smaller AM, or raise the user's limit."},
	LimitUnregistered: {"The AM is being started, or has not registered.", "Check the AM's log (`creel app logs`) and the node that runs it."},
	LimitQueue:        {"The queue, or a queue above it, uses its maximum.", "Wait until containers of the queue end, move the application, or raise the maximum."},
	LimitUser:         {"The user uses the user limit of the queue.", "Wait until containers of the user end, or raise `user-limit-factor` or `minimum-user-limit-percent`."},
	LimitNoNode:       {"No node is large enough for the ask, even when it is empty.", "Ask for smaller containers, or add larger nodes."},
	LimitRoom:         {"No node has enough free resources now.", "Wait until containers end, or add nodes; `creel queue list` shows which queues are above their guarantee."},
	LimitLocality:     {"Nodes with free resources are not the requested hosts or racks: the ask is strict, or waits for a local node.", "Relax the locality of the ask, or wait."},
	LimitBlacklist:    {"The application has blacklisted every node with free resources.", "Remove nodes from the application's blacklist."},
	LimitReservation:  {"A node is reserved for the ask and does not have enough free resources yet, or every node with free resources is reserved for other asks.", "Wait until containers on that node end."},
	LimitLabel:        {"No node has the label of the ask.", "Correct the label, or assign it to nodes (`yarn rmadmin -replaceLabelsOnNode`)."},
	LimitConstraint:   {"The placement constraint of the ask refuses every node that it may use.", "Relax the constraint."},
	LimitOrder:        {"Other applications are first in the order of the queue.", "Wait until they have started, or raise the application's priority (`creel app priority`)."},
	LimitNodes:        {"Each node is excluded by one of the reasons above; used in lists only.", "`creel app why ID` counts the nodes by reason."},
}

// TestEachReasonToWaitHasItsRow generates docs/reference/wait-codes.md.
func TestEachReasonToWaitHasItsRow(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Why an application waits

Look up the code that ` + "`creel app why ID`, `creel app list` and `/api/v1/apps`" + ` show, and what to do about it.

Made from subcluster/rm/sched/explain: ` + "`go test ./subcluster/rm/sched/explain -run TestEachReasonToWaitHasItsRow -update`" + `.

| code | cause | remedy |
| --- | --- | --- |
`)
	for l := LimitNone + 1; int(l) < len(limits); l++ {
		if int(l) >= len(causes) || causes[l][0] == "" || causes[l][1] == "" {
			t.Errorf("%s has no cause and remedy", l.Code())
			continue
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", l.Code(), causes[l][0], causes[l][1])
	}
	b.WriteString("| `diagnostics` | A member that runs Hadoop's ResourceManager: the code is unknown, the text is Hadoop's. | Read the text. |\n")
	if *update {
		if err := os.WriteFile(codesPage, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if page, err := os.ReadFile(codesPage); err != nil || string(page) != b.String() {
		t.Errorf("docs/reference/wait-codes.md differs from the table (%v): run this test with -update", err)
	}
}

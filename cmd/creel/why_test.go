// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/subcluster"
)

// One line of cause, one of remedy, then the table: the exceeded unit is marked, members with nothing are left out, and
// equal ones share a row.
func TestWhyFoldsMembersAndMarksTheLimit(t *testing.T) {
	part := func(id creel.SubclusterID, containers int32, w *subcluster.Wait) rest.MemberWait {
		return rest.MemberWait{Member: id, AppWait: subcluster.AppWait{
			State: "RUNNING", Queue: "root.a", Containers: containers, Wait: w,
		}}
	}
	home := part("sc-1", 4, &subcluster.Wait{
		Code: "queue_limit", Queue: "root", Text: "Queue root is full.", Unlock: "wait", Asked: 7,
		Limit: subcluster.Amounts{"memory-mb": 100, "vcores": 50, "gpu": 0},
		Used:  subcluster.Amounts{"memory-mb": 100, "vcores": 2}, Needs: subcluster.Amounts{"memory-mb": 10, "vcores": 1},
	})
	home.Home = true
	full := &subcluster.Wait{Code: "no_node_has_room", Text: "No room.", Asked: 1, Nodes: &subcluster.NodeCounts{Open: 20, Full: 20}}
	d := whyDoc{rest.WhyDoc{State: "RUNNING", Home: "sc-1", Queue: "root.a", Waits: []rest.MemberWait{
		home, part("sc-2", 0, nil), part("sc-3", 0, full), part("sc-4", 0, full), part("sc-5", 0, full), part("sc-6", 0, full),
	}}}
	d.Explain(nil)
	var b strings.Builder
	d.write(&b, false)
	_, out, _ := strings.Cut(b.String(), "\n")
	const want = "cause     waits at sc-1 (queue_limit): Queue root is full. Only memory-mb exceeds the limit.\n" +
		"remedy    wait\n" +
		"MEMBER                       STATE    CONTAINERS  ASKS  WAITS FOR            USED, LIMIT (* EXCEEDED)\n" +
		"sc-1                         RUNNING  4           7     queue_limit in root  memory-mb 100 of 100*, vcores 2 of 50\n" +
		"sc-3, sc-4, sc-5 and 1 more  RUNNING  0           1     no_node_has_room     20 nodes, 20 full\n"
	if out != want {
		t.Errorf("it prints\n%s\nwant\n%s", out, want)
	}
	b.Reset()
	if d.write(&b, true); !strings.Contains(b.String(), "sc-2") {
		t.Errorf("the wide form leaves a member out:\n%s", b.String())
	}
}

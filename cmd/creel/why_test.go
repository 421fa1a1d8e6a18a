// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
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

// A line for each member has its opportunistic containers. An application with all guaranteed containers and a missing
// opportunistic one waits.
func TestWhyListsOpportunisticContainers(t *testing.T) {
	d := whyDoc{rest.WhyDoc{State: "RUNNING", Home: "sc-1", Queue: "root.a", Waits: []rest.MemberWait{{
		Member: "sc-1", Home: true, AppWait: subcluster.AppWait{State: "RUNNING", Queue: "root.a", Containers: 4,
			Opportunistic: &subcluster.Opportunistic{Containers: 3, Waiting: 2, Asked: 1, NodesWaiting: 1,
				Nodes: []subcluster.NodeWait{{Node: "n1:1", Waiting: 2, Longest: 12}}}},
	}}}}
	var b strings.Builder
	d.write(&b, false)
	_, out, _ := strings.Cut(b.String(), "\n")
	const want = "no node has a queue that is short enough for its opportunistic containers\n" +
		"sc-1: 3 opportunistic containers and 1 more asked for; 2 of them wait in queues: " +
		"2 at n1:1 for up to 12 s.\n"
	if out != want {
		t.Errorf("it prints\n%s\nwant\n%s", out, want)
	}

	d.Waits[0].Opportunistic.Held = "queue root.a has its maximum of 3"
	b.Reset()
	d.write(&b, false)
	for _, line := range []string{
		"it gets no more opportunistic containers: queue root.a has its maximum of 3\n",
		"up to 12 s. No more are granted: queue root.a has its maximum of 3.\n",
	} {
		if !strings.Contains(b.String(), line) {
			t.Errorf("it prints\n%s\nwithout %q", b.String(), line)
		}
	}
}

// Both schedulers' documents have a queue's containers of both kinds.
func TestQueueRowHasBothKindsOfContainers(t *testing.T) {
	for _, count := range []string{"numContainers", "allocatedContainers"} {
		list := flattened(map[string]any{"queueName": "root", count: 5.0,
			"opportunisticContainers": 3.0, "opportunisticMemoryMB": 3072.0, "opportunisticVCores": 4.0,
			"maxOpportunisticContainers": 0.0})
		if len(list) == 1 && (list[0].MostOpportunistic == nil || *list[0].MostOpportunistic != 0) {
			t.Errorf("%s: the maximum is %v", count, list[0].MostOpportunistic)
		}
		if len(list) != 1 || list[0].Containers != 5 || list[0].Opportunistic != 3 ||
			list[0].OpportunisticMB != 3072 || list[0].OpportunisticVCores != 4 {
			t.Errorf("%s: %+v", count, list)
		}
	}
}

// The row of a node that lends has its thresholds and the peak that it predicts.
func TestNodeRowHasItsOffer(t *testing.T) {
	var n nodeDoc
	text := `{"id":"n1:1","resourceUtilization":{"aggregatedContainersPhysicalMemoryMB":1024,"containersCPUUsage":1.5},` +
		`"overallocation":{"memoryThreshold":0.75,"cpuThreshold":0.5,"predictedMemoryMB":2048,"predictedCPUUsage":2.5}}`
	if err := json.Unmarshal([]byte(text), &n); err != nil {
		t.Fatal(err)
	}
	if n.Measured.MB != 1024 || n.Measured.VCores != 1.5 {
		t.Errorf("measured %+v", n.Measured)
	}
	const want = "75% of memory, 50% of vcores, predicted peak 2.0 GiB and 2.5 vcores"
	if got := lendsUpTo(n); got != want {
		t.Errorf("it lends up to %q, want %q", got, want)
	}
	if got := lendsUpTo(nodeDoc{}); got != "-" {
		t.Errorf("a node without an offer lends up to %q", got)
	}
}

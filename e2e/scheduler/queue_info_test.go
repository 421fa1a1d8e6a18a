// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm/rpc"
)

// queueInfo returns the root's description with all queues below it, as facts.
func queueInfo(t *testing.T, address string) map[string]string {
	t.Helper()
	client := yarnrpc.NewApplicationClientProtocolClient(newClient(t), address, hrpc.Login{User: hadoop.OSUser(t)})
	r, err := client.GetQueueInfo(t.Context(), &pb.GetQueueInfoRequestProto{
		QueueName: new("root"), IncludeChildQueues: new(true), Recursive: new(true),
	})
	if err != nil {
		t.Fatal(err)
	}
	body, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return factsOf(t, http.StatusOK, body)
}

// listen opens creel's ports and returns the clients' one.
func (c *creelTrees) listen(t *testing.T) string {
	t.Helper()
	const free = "127.0.0.1:0"
	p, err := rpc.Listen(c.s, rpc.Config{Client: free, Scheduler: free, Tracker: free, Admin: free})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	stop := c.stop
	c.stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		stop()
	}
	return c.s.Addresses().Client
}

// shownCases are trees whose documents are compared, with and without nodes.
var shownCases = map[string]string{
	"percentages": `
root.queues = a,b,c
root.a.capacity = 33.33
root.a.maximum-capacity = 66.6
root.a.queues = a1,a2
root.a.a1.capacity = 12.5
root.a.a2.capacity = 87.5
root.a.a2.disable_preemption = true
root.b.capacity = 50.17
root.b.disable_preemption = true
root.b.intra-queue-preemption.disable_preemption = true
root.b.maximum-am-resource-percent = 0.3
root.b.max-parallel-apps = 7
root.c.capacity = 16.5
root.c.state = STOPPED`,
	"weights": `
root.queues = a,b,c
root.a.capacity = 3w
root.a.queues = a1,a2
root.a.a1.capacity = 2w
root.a.a2.capacity = 5w
root.b.capacity = 1.5w
root.b.maximum-capacity = 60
root.c.capacity = 2w`,
	"amounts": `
root.queues = a,b
root.a.capacity = [memory=8192,vcores=8]
root.a.maximum-capacity = [memory=16384,vcores=16]
root.a.queues = a1,a2
root.a.a1.capacity = [memory=2048,vcores=2]
root.a.a2.capacity = [memory=6000,vcores=4]
root.a.a2.maximum-capacity = [memory=8192,vcores=8]
root.b.capacity = [memory=12288,vcores=4]`,
	"lifetimes": `
root.queues = a,b
root.maximum-application-lifetime = 500
root.a.capacity = 50
root.a.queues = a1,a2,a3
root.a.maximum-application-lifetime = 0
root.a.a1.capacity = 30
root.a.a1.default-application-lifetime = 0
root.a.a2.capacity = 30
root.a.a2.maximum-application-lifetime = 90
root.a.a2.default-application-lifetime = 0
root.a.a3.capacity = 40
root.a.a3.maximum-application-lifetime = 0
root.b.capacity = 50
root.b.default-application-lifetime = 0`,
	"shares of labels": `
root.queues = a,b
root.accessible-node-labels = x,gone
root.accessible-node-labels.x.capacity = 100
root.accessible-node-labels.gone.capacity = 100
root.a.capacity = 40
root.a.accessible-node-labels = x,gone
root.a.accessible-node-labels.x.capacity = 30
root.a.accessible-node-labels.gone.capacity = 70
root.a.accessible-node-labels.gone.maximum-capacity = 80
root.b.capacity = 60
root.b.accessible-node-labels = x,gone
root.b.accessible-node-labels.x.capacity = 70
root.b.accessible-node-labels.gone.capacity = 30
root.b.default-node-label-expression = x`,
	"labels without shares": `
root.queues = a,b
root.a.capacity = 40
root.a.accessible-node-labels = x
root.b.capacity = 60`,
	"absent labels without shares": `
root.queues = a,b
root.a.capacity = 40
root.a.accessible-node-labels = gone
root.b.capacity = 60
root.b.accessible-node-labels = *`,
	"vectors of percentages": vectors("[memory=50%,vcores=50%]", "[memory=50%,vcores=50%]"),
	"vectors of weights":     vectors("[memory=4w,vcores=4w]", "[memory=1w,vcores=3w]"),
	"vectors of amounts":     vectors("[memory=4000,vcores=4]", "[memory=3000,vcores=3]"),
	"mixed vectors":          vectors("[memory=4000,vcores=40%]", "[memory=3w,vcores=3]"),
	"percentages of the new mode": newMode + `
root.queues = a,b
root.a.capacity = 40
root.a.maximum-capacity = 70
root.a.queues = a1,a2
root.a.a1.capacity = 50
root.a.a1.maximum-capacity = 60
root.a.a2.capacity = 50
root.b.capacity = 60`,
	"weights of the new mode": newMode + `
root.queues = a,b
root.a.capacity = 4w
root.a.maximum-capacity = 70
root.b.capacity = 6w`,
	"amounts of the new mode": newMode + `
root.queues = a,b
root.a.capacity = [memory=4000,vcores=4]
root.a.maximum-capacity = [memory=9000,vcores=9]
root.b.capacity = [memory=1000,vcores=1]
root.b.maximum-capacity = [memory=50%,vcores=30%]`,
	"amounts in units": `
root.queues = a,b
root.a.capacity = [memory=3 G,vcores=2]
root.b.capacity = [memory=2048 Mi,vcores=2]`,
	"amounts in units without spaces": `
root.queues = a,b
root.a.capacity = [memory=3G,vcores=2]
root.b.capacity = [memory=2048Mi,vcores=2]`,
	"amounts in units of the new mode": newMode + `
root.queues = a,b
root.a.capacity = [memory=3G,vcores=2]
root.a.maximum-capacity = [memory=4Gi,vcores=3]
root.b.capacity = [memory=2048Mi,vcores=2]`,
}

const newMode = "\nlegacy-queue-mode.enabled = false" +
	"\nresource-calculator = org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"

// vectors are two queues of these capacities.
func vectors(a, b string) string {
	return newMode + "\nroot.queues = a,b\nroot.a.capacity = " + a + "\nroot.b.capacity = " + b
}

// shownKnown are the differences that are meant. A kind is a moment, the tree and a field; * stands for any text.
var shownKnown = []knownKind{
	{
		kind:   "none *amounts*",
		where:  "limits of a queue with an amount, before the first node",
		hadoop: "some are those of the configured amount, some 0, some NaN",
		creel:  "0 or 1 application, and shares of 0 or 100 percent",
		why:    "They are parts of a cluster without resources.",
	},
	{
		kind:   "none *new mode*apacity",
		where:  "shares of a queue with `legacy-queue-mode.enabled` of false, before the first node",
		hadoop: "NaN",
		creel:  "0",
		why:    "Hadoop divides by 0 resources of the cluster.",
	},
	{
		kind:   "none *vectors*apacity",
		where:  "shares of a queue with a list of capacities, before the first node",
		hadoop: "NaN",
		creel:  "0",
		why:    "Hadoop divides by 0 resources of the cluster.",
	},
	{
		kind:   "start amounts in units",
		where:  "a capacity with a space before its unit, such as `[memory=3 G]`",
		hadoop: "rejected",
		creel:  "the same as `3G`, which both show as 2861 MB",
		why:    "The meaning is clear.",
	},
	{
		kind:   "* REST.scheduler.schedulerInfo.capacities.*[x].*",
		where:  "the root's row of a label without a share, in REST",
		hadoop: "after a later change of the queues",
		creel:  "always",
		why:    "The label exists, and the root has all of it.",
	},
	{
		kind:   "* RPC.queueInfo.queueConfigurationsMap[x].*",
		where:  "the root's row of a label without a share, in RPC",
		hadoop: "after a later change of the queues",
		creel:  "always",
		why:    "The label exists, and the root has all of it.",
	},
	{
		kind:   "*labels without shares *",
		where:  "a label in `accessible-node-labels` of a queue without a capacity for it",
		hadoop: "rows with a maximum of 0",
		creel:  "no row in REST, and a maximum of 100 percent in RPC",
		why:    "In creel the queue may use the label's idle nodes.",
	},
}

// listed reports whether a list has a kind of difference, and notes the entry as used.
func listed(list []knownKind, kind string, used map[string]bool) bool {
	for _, k := range list {
		if k.match(kind) {
			used[k.kind] = true
			return true
		}
	}
	return false
}

// Trees of many notations are shown as by Hadoop, by both protocols, with and without nodes.
func TestQueueDocumentsMatchHadoop(t *testing.T) {
	address := process.FreeAddress(t, "127.0.0.1")
	h := startTrees(t, hadoop.Conf{
		"yarn.node-labels.enabled": "true", "yarn.resourcemanager.address": address,
		"yarn.resourcemanager.scheduler.monitor.enable": "true", monitorPrefix + "monitoring_interval": "1000000000",
		monitorPrefix + intra + "enabled": "true",
	})
	if no := h.call(t, "POST", "add-node-labels", labelX); no != "" {
		t.Fatal(no)
	}
	used := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(shownCases)) {
		t.Run(name, func(t *testing.T) {
			h.write(t, queueConf(shownCases[name]))
			theirs := h.do(t, "start", "file")
			c, err := startOurs(t, h.conf, false)
			if (theirs == "") != (err == nil) && !listed(shownKnown, "start "+name, used) {
				t.Errorf("Hadoop %q, creel %v", theirs, err)
			}
			if err == nil {
				defer func() { c.stop() }()
			}
			defer h.do(t, "end")
			if theirs != "" || err != nil {
				return
			}
			mine := c.listen(t)
			for _, moment := range []string{"none", "nodes"} {
				if moment == "nodes" {
					if no := h.do(t, "nodes", len(drawnNodes)); no != "" {
						t.Fatal(no)
					}
					c.addNodes(t, len(drawnNodes))
				}
				theirs, ours := shown(t, h.document(t), address), shown(t, c.document(t), mine)
				var lines []string
				for _, d := range compareDocuments(moment, theirs, ours) {
					kind := moment + " " + name + " " + d.where
					if !listed(shownKnown, kind, used) {
						lines = append(lines, fmt.Sprintf("%s %s: Hadoop %s, creel %s", moment, d.where, d.theirs, d.ours))
					}
				}
				slices.Sort(lines)
				if len(lines) > 0 {
					t.Errorf("%s", strings.Join(lines[:min(len(lines), 50)], "\n"))
				}
			}
		})
	}
	if t.Failed() {
		return
	}
	for _, k := range shownKnown {
		if !used[k.kind] {
			t.Errorf("no tree has the difference %q: remove it from the list", k.kind)
		}
	}
}

// shown are the facts of both protocols. The order of labels has no meaning.
func shown(t *testing.T, rest map[string]string, address string) map[string]string {
	t.Helper()
	out := map[string]string{}
	labels := map[string][]string{}
	for protocol, facts := range map[string]map[string]string{"REST": rest, "RPC": queueInfo(t, address)} {
		for path, value := range facts {
			if before, _, ok := strings.Cut(path, "odeLabels["); ok {
				labels[protocol+before] = append(labels[protocol+before], value)
				continue
			}
			out[protocol+path] = value
		}
	}
	for path, list := range labels {
		slices.Sort(list)
		out[path] = strings.Join(list, ",")
	}
	return out
}

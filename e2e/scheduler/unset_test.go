// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
)

// unsetKeys are the settings of a queue, and unsetGlobals those of all queues, for which files have -1 as "not set".
var (
	unsetKeys = []string{
		"capacity", "maximum-capacity", "maximum-applications", "maximum-am-resource-percent", "user-limit-factor",
		"minimum-user-limit-percent", "max-parallel-apps", "maximum-application-lifetime", "default-application-lifetime",
		"maximum-allocation-mb", "maximum-allocation-vcores", "priority", "default-application-priority",
		"accessible-node-labels.x.capacity", "accessible-node-labels.x.maximum-capacity",
		"accessible-node-labels.x.maximum-am-resource-percent",
	}
	unsetGlobals = []string{
		"maximum-applications", "maximum-am-resource-percent", "user-limit-factor", "minimum-user-limit-percent",
		"max-parallel-apps", "global-queue-max-application", "node-locality-delay", "rack-locality-additional-delay",
	}
)

// unsetKnown are the differences that are meant. Their kind is a pattern of keys, * for any text, and the side that
// rejects -1.
var unsetKnown = []knownKind{
	{
		kind: "creel *maximum-applications", where: "`maximum-applications` of all queues",
		hadoop: "each queue's `maxApplications` is 0", creel: "rejected",
		why: "Only for one queue -1 means that it is not set.",
	},
	{
		kind: "creel *maximum-am-resource-percent", where: "`maximum-am-resource-percent`, also of a label",
		hadoop: "`maxAMLimitPercentage` is -100", creel: "rejected",
		why: "In Hadoop -1 is a number here.",
	},
	{
		kind: "creel *minimum-user-limit-percent", where: "`minimum-user-limit-percent`",
		hadoop: "`userLimit` is -1", creel: "rejected", why: "In Hadoop -1 is a number here.",
	},
	{
		kind: "creel *max-parallel-apps", where: "`max-parallel-apps`",
		hadoop: "`maxParallelApps` is -1", creel: "rejected",
		why: "In Hadoop -1 is a number here.",
	},
	{
		kind: "creel *default-application-priority", where: "`default-application-priority`",
		hadoop: "`defaultPriority` is -1", creel: "rejected", why: "The least priority is 0.",
	},
	{
		kind: "Hadoop *accessible-node-labels.x.maximum-capacity", where: "`maximum-capacity` of a label below the root",
		hadoop: "rejected", creel: "100 percent", why: "It is read as the queue's own `maximum-capacity`.",
	},
}

// labelX is the document that adds the label x.
const labelX = `{"nodeLabelInfo":[{"name":"x","exclusivity":true}]}`

// unsetRun is a tree of two levels with one key of -1.
func unsetRun(unit, key string) *drawnRun {
	conf := hadoop.Conf{}
	for key := range hadoop.Queues() {
		conf[key] = ""
	}
	for key, value := range map[string]string{
		"root.queues": "a,b", "root.a.queues": "c,d",
		"root.a.capacity": "60" + unit, "root.b.capacity": "40" + unit,
		"root.a.c.capacity": "30" + unit, "root.a.d.capacity": "70" + unit,
		"root.a.maximum-allocation-mb": "4096", // the leaves inherit it
		"resource-calculator":          "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
	} {
		conf[prefix+key] = value
	}
	if strings.Contains(key, ".x.") {
		for q, part := range map[string]string{"root": "100", "root.a": "100" + unit, "root.a.c": "80" + unit, "root.a.d": "20" + unit} {
			conf[prefix+q+".accessible-node-labels"] = "x"
			conf[prefix+q+".accessible-node-labels.x.capacity"] = part
		}
	}
	conf[prefix+key] = "-1"
	return &drawnRun{nodes: 2, steps: []hadoop.Conf{conf}}
}

// With -1 for one key both start, or neither, and show the same queues.
func TestMinusOneMatchesHadoop(t *testing.T) {
	h := startTrees(t, hadoop.Conf{"yarn.node-labels.enabled": "true"})
	if no := h.call(t, "POST", "add-node-labels", labelX); no != "" {
		t.Fatal(no)
	}
	keys := slices.Clone(unsetGlobals)
	for _, q := range []string{"root", "root.a", "root.a.c"} {
		for _, key := range unsetKeys {
			keys = append(keys, q+"."+key)
		}
	}
	var started, rejected int
	used := map[string]bool{}
	for _, key := range keys {
		for _, unit := range []string{"", "w"} {
			x := unsetRun(unit, key)
			var found []string
			kinds := map[string]bool{}
			for _, d := range h.beside(t, x) {
				if strings.Contains(d.where, "[x]") && !strings.Contains(key, ".x.") {
					continue // Hadoop's root shows a label without parts only after a later change
				}
				who := "creel"
				if d.theirs != "" {
					who = "Hadoop"
				}
				if d.where == "" && meant(who+" "+key, used) {
					continue
				}
				if !kinds[d.kind] {
					kinds[d.kind] = true
					found = append(found, fmt.Sprintf("%s: %s: Hadoop %.200q, creel %.200q", d.kind, d.where, d.theirs, d.ours))
				}
			}
			if started, rejected = started+x.accepted, rejected+x.refused; len(found) > 0 {
				t.Errorf("%s = -1 (60%s)\n%s", key, unit, strings.Join(found, "\n"))
			}
		}
	}
	for _, k := range unsetKnown {
		if !used[k.kind] {
			t.Errorf("no key has the difference %q: remove it from the list", k.kind)
		}
	}
	t.Logf("%d configurations accepted by both, %d rejected by one or both", started, rejected)
}

func meant(kind string, used map[string]bool) bool {
	for _, k := range unsetKnown {
		if k.match(kind) {
			used[k.kind] = true
			return true
		}
	}
	return false
}

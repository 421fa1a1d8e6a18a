// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"encoding/xml"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
)

// fairPrefix is that of the keys that become the allocation file: a queue's path and an element, or an element of
// all queues.
const (
	fairPrefix     = "fair."
	allocationFile = "fair-scheduler.xml"
)

// allocations writes an allocation file.
func allocations(keys hadoop.Conf) []byte {
	var b strings.Builder
	text := func(name, value string) {
		fmt.Fprintf(&b, "<%s>", name)
		_ = xml.EscapeText(&b, []byte(value))
		fmt.Fprintf(&b, "</%s>\n", name)
	}
	var queue func(path string)
	queue = func(path string) {
		fmt.Fprintf(&b, "<queue name=%q", path[strings.LastIndexByte(path, '.')+1:])
		if kind := keys[path+".type"]; kind != "" {
			fmt.Fprintf(&b, " type=%q", kind)
		}
		b.WriteString(">\n")
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			name, own := strings.CutPrefix(key, path+".")
			if own && !strings.Contains(name, ".") && name != "queues" && name != "type" {
				text(name, keys[key])
			}
		}
		for name := range strings.SplitSeq(keys[path+".queues"], ",") {
			if name != "" {
				queue(path + "." + name)
			}
		}
		b.WriteString("</queue>\n")
	}
	b.WriteString("<allocations>\n")
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		name, user := strings.CutPrefix(key, "user.")
		switch {
		case user:
			fmt.Fprintf(&b, "<user name=%q><maxRunningApps>%s</maxRunningApps></user>\n", name, keys[key])
		case !strings.Contains(key, "."):
			text(key, keys[key])
		}
	}
	queue("root")
	b.WriteString("</allocations>\n")
	return []byte(b.String())
}

// A drawnFair is an allocation file, as it is changed step by step.
type drawnFair struct {
	r    *rand.Rand
	keys map[string]string
}

var (
	fairAmounts = []string{
		"memory-mb=1000, vcores=3", "memory-mb=5000", "vcores=2", "2048 mb, 4 vcores", "3000mb,1vcores",
		"vcores=7,memory-mb=0", "memory-mb=4 Gi, vcores=5", "0 mb, 0 vcores",
	}
	fairShares = []string{
		"50%", "33.3%", "20% memory, 60% cpu", "60% cpu, 20.5% memory", "memory-mb=30%, vcores=75%", "memory-mb=40%",
		"vcores=0%", "100%", "120%",
	}
	fairBroken = []string{"1000", "memory-mb=-5", "50% memory", "10 mb, 20%", "-1%", "memory-mb=10%, vcores=3", "", "gpu=2"}

	fairGlobals = map[string][]string{
		"userMaxAppsDefault":                  {"5", "0", "-1"},
		"queueMaxAppsDefault":                 {"7", "0", "-1"},
		"queueMaxAMShareDefault":              {"0.3", "0", "-1", "1.5", "-0.5"},
		"queueMaxResourcesDefault":            append(slices.Clone(fairAmounts), fairShares...),
		"defaultQueueSchedulingPolicy":        {"fair", "drf", "FAIR", "fifo"},
		"defaultQueueSchedulingMode":          {"drf"},
		"defaultMinSharePreemptionTimeout":    {"10", "0", "-1"},
		"defaultFairSharePreemptionTimeout":   {"10", "0"},
		"fairSharePreemptionTimeout":          {"20"},
		"defaultFairSharePreemptionThreshold": {"0.4", "2", "-1"},
		"user.u1":                             {"3", "0"},
		"unknownElement":                      {"1"},
	}
	fairElements = map[string][]string{
		"minResources":                 append(slices.Clone(fairAmounts), fairShares...),
		"maxResources":                 append(slices.Clone(fairAmounts), fairShares...),
		"maxChildResources":            append(slices.Clone(fairAmounts), fairShares...),
		"maxContainerAllocation":       {"memory-mb=2048, vcores=3", "1024 mb, 1 vcores", "memory-mb=100000", "50%"},
		"maxRunningApps":               {"4", "0", "-1"},
		"maxAMShare":                   {"0.3", "0", "-1", "1.5", "-0.5"},
		"weight":                       {"2", "0.5", "0", "-1", "3.7", "100000"},
		"schedulingPolicy":             {"fair", "drf", "fifo", "DRF", "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.policies.FairSharePolicy"},
		"schedulingMode":               {"fair"},
		"aclSubmitApps":                {"u1,u2 g1", " ", "*"},
		"aclAdministerApps":            {"u1"},
		"minSharePreemptionTimeout":    {"5", "0"},
		"fairSharePreemptionTimeout":   {"5", "0"},
		"fairSharePreemptionThreshold": {"0.5", "1.5", "-3"},
		"allowPreemptionFrom":          {"false", "true", "no"},
	}
)

func drawFair(r *rand.Rand) *drawnFair {
	d := &drawnFair{r: r, keys: map[string]string{}}
	for _, key := range slices.Sorted(maps.Keys(fairGlobals)) {
		if d.chance(10) {
			d.keys[key] = pick(r, fairGlobals[key]...)
		}
	}
	d.children("root", 1)
	for _, q := range d.paths() {
		d.settings(q, 10)
	}
	return d
}

func (d *drawnFair) chance(percent int) bool { return d.r.IntN(100) < percent }

func (d *drawnFair) children(path string, depth int) {
	var names []string
	for i := range 1 + d.r.IntN(3) {
		names = append(names, string(rune('a'+i))+strings.Repeat("x", depth-1))
	}
	d.keys[path+".queues"] = strings.Join(names, ",")
	for _, name := range names {
		if depth < 3 && d.chance(35) {
			d.children(path+"."+name, depth+1)
		} else if d.chance(10) {
			d.keys[path+"."+name+".type"] = "parent"
		}
	}
}

func (d *drawnFair) paths() []string { return pathsBelow(d.keys) }

func (d *drawnFair) settings(q string, percent int) {
	leaf := d.keys[q+".queues"] == "" && d.keys[q+".type"] == ""
	for _, name := range slices.Sorted(maps.Keys(fairElements)) {
		if !leaf && slices.Contains([]string{"maxAMShare", "schedulingPolicy"}, name) && !d.chance(40) {
			continue // most files with them are rejected
		}
		if d.chance(percent) {
			d.keys[q+"."+name] = pick(d.r, fairElements[name]...)
			if strings.HasSuffix(name, "Resources") && d.chance(3) {
				d.keys[q+"."+name] = pick(d.r, fairBroken...)
			}
		}
	}
}

// change makes one or several changes of the file.
func (d *drawnFair) change() {
	for range 1 + d.r.IntN(3) {
		q := pick(d.r, d.paths()...)
		switch d.r.IntN(5) {
		case 0, 1:
			d.settings(q, 15)
		case 2: // an element goes
			var own []string
			for _, key := range slices.Sorted(maps.Keys(d.keys)) {
				if strings.HasPrefix(key, q+".") && !strings.HasSuffix(key, "queues") {
					own = append(own, key)
				}
			}
			if len(own) > 0 {
				delete(d.keys, pick(d.r, own...))
			}
		case 3: // a queue more
			if list := d.keys[q+".queues"]; list != "" || d.chance(30) {
				if !slices.Contains(strings.Split(list, ","), "new") {
					d.keys[q+".queues"] = strings.Trim(list+",new", ",")
				}
			}
		case 4: // a queue less
			if q != "root" {
				d.remove(q)
			}
		}
	}
}

func (d *drawnFair) remove(q string) {
	i := strings.LastIndexByte(q, '.')
	names := slices.DeleteFunc(strings.Split(d.keys[q[:i]+".queues"], ","), func(s string) bool { return s == q[i+1:] })
	for key := range d.keys {
		if strings.HasPrefix(key, q+".") {
			delete(d.keys, key)
		}
	}
	if d.keys[q[:i]+".queues"] = strings.Join(names, ","); len(names) == 0 {
		delete(d.keys, q[:i]+".queues")
	}
}

func (d *drawnFair) conf() hadoop.Conf {
	out := hadoop.Conf{}
	for key, value := range d.keys {
		out[fairPrefix+key] = value
	}
	return out
}

var fairConf = hadoop.Conf{
	"yarn.resourcemanager.scheduler.class":               "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.FairScheduler",
	"yarn.resource-types.memory-mb.increment-allocation": "128",
}

// TestDrawnFairTrees compares drawn allocation files, and changes of them, with a real ResourceManager.
func TestDrawnFairTrees(t *testing.T) {
	h := startTrees(t, fairConf)
	h.compareDrawn(t, fairKnown, 0, func(r *rand.Rand) drawer { return drawFair(r) })
}

var fairKnown = []knownKind{
	{
		kind:   "left over: *",
		where:  "after a change: `steadyFairResources`, and queues below a queue that was a leaf",
		hadoop: "some values are those of the file before, until a restart or the next change",
		creel:  "those of the present file",
		why:    "A real ResourceManager that starts with the same file shows what creel shows.",
	},
	{
		kind:   "* queue.amMaxResources*",
		where:  "`amMaxResources` of a leaf",
		hadoop: "0 until an AM asks to start, then the limit of that moment",
		creel:  "the present limit",
		why:    "The limit is known before the first AM.",
	},
	{
		kind:   "* *.maxContainerAllocation*",
		where:  "`maxContainerAllocation` that names memory alone",
		hadoop: "-1 cores",
		creel:  "the cluster's maximum of cores",
		why:    "Hadoop's number is too large for its field.",
		with:   "maxContainerAllocation=memory-mb=[0-9]+$",
	},
	{
		kind:   "* *Resources*",
		where:  "`maxResources` or `queueMaxResourcesDefault` that names memory alone",
		hadoop: "no cores: the queue runs no container",
		creel:  "any number of cores",
		why:    "Hadoop's number is too large for its field. Cores alone do not limit memory.",
		with:   "axResources(Default)?=memory-mb=[0-9]+$",
	},
	{
		kind:   "* refused by creel: *neither true nor false*",
		where:  "`allowPreemptionFrom` that is neither `true` nor `false`",
		hadoop: "read as `false`",
		creel:  "rejected",
		why:    "Also `yes` would be read as `false`.",
	},
	{
		kind:   "* refused by creel: *is drf below * which is fair*",
		where:  "`drf` below a parent with `fair`",
		hadoop: "the queue does not exist",
		creel:  "rejected",
		why:    "Only the log of Hadoop names the queue that is missing.",
	},
	{
		kind:   "* refused by creel: *has queues below it and cannot be fifo*",
		where:  "`fifo` at a parent",
		hadoop: "the queues below it do not exist",
		creel:  "rejected",
		why:    "Only the log of Hadoop names the queues that are missing.",
	},
	{
		kind:   "* refused by Hadoop: *FSQueue.setDynamic*",
		where:  "a file after one with such queues",
		hadoop: "rejected",
		creel:  "accepted",
		why:    "Hadoop looks for the queue that it did not make.",
	},
	{
		kind:   "* refused by Hadoop: *is not an integer*",
		where:  "an amount with a unit, `memory-mb=4 Gi`",
		hadoop: "rejected",
		creel:  "accepted",
		why:    "CapacityScheduler of Hadoop reads units too.",
	},
	{
		kind:   "* refused by Hadoop: *cannot also include a maxAMShare element*",
		where:  "`maxAMShare` at a parent",
		hadoop: "rejected",
		creel:  "accepted, without effect",
		why:    "The example in Hadoop's documentation has it.",
	},
}

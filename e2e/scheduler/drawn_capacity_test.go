// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/creelrm/creel/e2e/hadoop"
)

// A drawnTree is a CapacityScheduler's configuration below yarn.scheduler.capacity, as it is changed step by step.
type drawnTree struct {
	r        *rand.Rand
	keys     map[string]string
	absolute bool // capacities are amounts
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func (d *drawnTree) chance(percent int) bool { return d.r.IntN(100) < percent }

func drawTree(r *rand.Rand, absolute bool) *drawnTree {
	d := &drawnTree{r: r, keys: map[string]string{}, absolute: absolute}
	if d.chance(70) {
		d.keys["resource-calculator"] = "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"
	}
	for _, key := range slices.Sorted(maps.Keys(globalDraws)) {
		if d.chance(12) {
			d.keys[key] = pick(d.r, globalDraws[key]...)
		}
	}
	d.children("root", 1)
	for _, q := range d.paths() {
		d.settings(q, 12)
	}
	return d
}

var globalDraws = map[string][]string{
	"maximum-applications":         {"1000", "37"},
	"maximum-am-resource-percent":  {"0.3", "1"},
	"user-limit-factor":            {"2", "-1"},
	"minimum-user-limit-percent":   {"25", "33.3"},
	"max-parallel-apps":            {"9"},
	"global-queue-max-application": {"50"},
}

// children lists queues below a path and divides its capacity among them.
func (d *drawnTree) children(path string, depth int) {
	n := 1 + d.r.IntN(3)
	var names []string
	for i := range n {
		names = append(names, string(rune('a'+i))+strings.Repeat("x", depth-1))
	}
	d.keys[path+".queues"] = strings.Join(names, ",")
	d.divide(path)
	for _, name := range names {
		if depth < 3 && d.chance(35) {
			d.children(path+"."+name, depth+1)
		}
	}
}

// divide draws the capacities of the queues below a path.
func (d *drawnTree) divide(path string) {
	names := strings.Split(d.keys[path+".queues"], ",")
	unit := pick(d.r, "percent", "weight")
	left := 100.0
	for i, name := range names {
		v := pick(d.r, "1w", "2w", "0.7w", "3.5w", "0w")
		if unit == "percent" {
			part := left
			if i < len(names)-1 {
				part = min(pick(d.r, left/2, left/3, 12.5, 0, 33.3), left)
			}
			if d.chance(3) {
				part++
			}
			part, _ = strconv.ParseFloat(strconv.FormatFloat(part, 'f', 2, 64), 64)
			left -= part
			v = strconv.FormatFloat(part, 'f', -1, 64)
		}
		if d.absolute {
			v = pick(d.r, "[memory=1000,vcores=2]", "[memory=2500,vcores=1]", "[memory=333,vcores=3]", "[memory=4096,vcores=4]",
				"[memory=9000,vcores=9]")
		}
		if d.chance(3) {
			delete(d.keys, path+"."+name+".capacity")
			continue
		}
		d.keys[path+"."+name+".capacity"] = v
	}
}

// paths are all queues, the root first.
func (d *drawnTree) paths() []string { return pathsBelow(d.keys) }

func pathsBelow(keys map[string]string) []string {
	out := []string{"root"}
	for i := 0; i < len(out); i++ {
		for name := range strings.SplitSeq(keys[out[i]+".queues"], ",") {
			if name != "" {
				out = append(out, out[i]+"."+name)
			}
		}
	}
	return out
}

// settings draws a queue's other settings.
func (d *drawnTree) settings(q string, percent int) {
	leaf := d.keys[q+".queues"] == ""
	set := func(key string, values ...string) {
		if d.chance(percent) {
			d.keys[q+"."+key] = pick(d.r, values...)
		}
	}
	if q != "root" {
		if d.absolute {
			set("maximum-capacity", "[memory=10000,vcores=10]", "[memory=5000,vcores=5]", "[memory=3000,vcores=2]")
		} else {
			set("maximum-capacity", "100", "60", "80.5", "-1", "33.3")
		}
		set("state", "RUNNING", "STOPPED")
		set("priority", "3", "-1")
		set("maximum-allocation-mb", "1024", "4096")
		set("maximum-allocation-vcores", "2")
		set("auto-queue-creation-v2.enabled", "true", "false")
	}
	set("user-limit-factor", "0.5", "3", "-1", "0")
	set("minimum-user-limit-percent", "12.5", "50", "100")
	set("maximum-am-resource-percent", "0.5", "1", "0.05", "0")
	set("maximum-applications", "11", "500")
	set("max-parallel-apps", "5")
	set("default-application-priority", "2")
	if leaf {
		set("ordering-policy", "fifo", "fair", "fifo-with-partitions")
	} else {
		set("ordering-policy", "utilization", "priority-utilization")
	}
	set("disable_preemption", "true", "false")
	set("intra-queue-preemption.disable_preemption", "true", "false")
	set("maximum-application-lifetime", "0", "-1", "100", "500")
	set("default-application-lifetime", "0", "-1", "50", "100", "200")
	set("acl_submit_applications", "u1,u2 g1", " ", "*")
	set("acl_administer_queue", "u1", " g1")
}

// change makes one or several changes of the configuration.
func (d *drawnTree) change() {
	for range 1 + d.r.IntN(3) {
		all := d.paths()
		q := pick(d.r, all...)
		switch d.r.IntN(6) {
		case 0:
			if d.keys[q+".queues"] != "" {
				d.divide(q)
			}
		case 1:
			d.settings(q, 15)
		case 2: // a setting goes
			var own []string
			for _, key := range slices.Sorted(maps.Keys(d.keys)) {
				if strings.HasPrefix(key, q+".") && !strings.HasSuffix(key, "queues") && !strings.HasSuffix(key, "capacity") {
					own = append(own, key)
				}
			}
			if len(own) > 0 {
				delete(d.keys, pick(d.r, own...))
			}
		case 3: // a queue more
			if list := d.keys[q+".queues"]; list != "" || d.chance(30) {
				d.keys[q+".queues"] = strings.Trim(list+",new", ",")
				if !slices.Contains(strings.Split(list, ","), "new") {
					d.divide(q)
				}
			}
		case 4: // a queue less, mostly one that is stopped
			if q != "root" && (d.keys[q+".state"] == "STOPPED" || d.chance(20)) {
				d.remove(q)
			}
		case 5:
			if q != "root" {
				d.keys[q+".state"] = pick(d.r, "STOPPED", "RUNNING")
			}
		}
	}
}

func (d *drawnTree) remove(q string) {
	i := strings.LastIndexByte(q, '.')
	above := q[:i]
	var rest []string
	for name := range strings.SplitSeq(d.keys[above+".queues"], ",") {
		if name != q[i+1:] {
			rest = append(rest, name)
		}
	}
	if len(rest) == 0 && above == "root" {
		return
	}
	for key := range d.keys {
		if strings.HasPrefix(key, q+".") {
			delete(d.keys, key)
		}
	}
	d.keys[above+".queues"] = strings.Join(rest, ",")
	if len(rest) == 0 {
		delete(d.keys, above+".queues")
		return
	}
	d.divide(above)
}

// conf are the properties of a configuration.
func (d *drawnTree) conf() hadoop.Conf {
	out := hadoop.Conf{}
	for key := range hadoop.Queues() {
		out[key] = ""
	}
	for key, value := range d.keys {
		out[prefix+key] = value
	}
	return out
}

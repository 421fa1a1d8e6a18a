// SPDX-License-Identifier: Apache-2.0

package rebalancer

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// confQueue is a queue of a member's configuration.
type confQueue struct {
	MemberQueue
	above    creel.QueuePath
	kind     unitOf
	value    float64 // percent or weight
	most     float64 // percent of the most that the queue above may use
	children bool
}

// makesQueues are the settings that make a queue create child queues on demand.
var makesQueues = [...]string{"auto-create-child-queue.enabled", "auto-queue-creation-v2.enabled"}

// labelKey returns the name of a queue's setting on the nodes of a label, "" for nodes without one.
func labelKey(label, what string) string {
	if label == "" {
		return what
	}
	return labelList + "." + label + "." + what
}

// labels returns the labels on whose nodes capacities are configured, after "" for nodes without one.
func (c QueueConf) labels() []string {
	out := []string{""}
	for name := range c {
		if _, rest, ok := strings.Cut(name, "."+labelList+"."); ok {
			if label, what, _ := strings.Cut(rest, "."); what == "capacity" {
				out = append(out, label)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// queues returns the configured queues below root on the nodes of a label, sorted by path. ok is false if some
// capacities are amounts. Queues that create child queues automatically count as leaves: the children share their
// capacity. Queues that may not use the label are left out. So are the descendants of a queue with zero capacity on
// it whose children have zero too: Hadoop allows that.
func (c QueueConf) queues(label string) (out []confQueue, ok bool) {
	get := func(path creel.QueuePath, key string) string {
		return strings.TrimSpace(c[capacityPrefix+string(path)+"."+key])
	}
	may := func(path creel.QueuePath, above bool) bool {
		text, own := c[capacityPrefix+string(path)+"."+labelList]
		if label == "" || !own {
			return above
		}
		return slices.ContainsFunc(strings.Split(text, ","), func(name string) bool {
			name = strings.TrimSpace(name)
			return name == "*" || name == label
		})
	}
	var walk func(above creel.QueuePath, share, most float64, access bool) bool
	walk = func(above creel.QueuePath, share, most float64, access bool) bool {
		from, sum, level := len(out), 0.0, percentUnit
		for _, name := range strings.Split(get(above, "queues"), ",") {
			if name = strings.TrimSpace(name); name == "" {
				continue
			}
			q := confQueue{above: above, most: 100}
			q.Queue = above + "." + creel.QueuePath(name)
			if !may(q.Queue, access) {
				continue
			}
			q.kind, q.value = unit(get(q.Queue, labelKey(label, "capacity")))
			if q.kind == amountUnit || q.kind == mixedUnit {
				return false
			}
			if text := get(q.Queue, labelKey(label, "maximum-capacity")); text != "" {
				kind, v := unit(text)
				if kind != percentUnit {
					return false
				}
				if v >= 0 {
					q.most = min(100, v)
				}
			}
			if sum += q.value; q.value > 0 || label == "" {
				level = q.kind
			}
			out = append(out, q)
		}
		for i := from; i < len(out); i++ {
			q := &out[i]
			if label != "" && q.value == 0 {
				q.kind = level // a queue with zero of a label has zero in whatever unit its siblings have
			}
			if level != q.kind {
				return false
			} else if q.kind == percentUnit {
				q.Share = share * q.value / 100
			} else {
				q.Share = share * q.value / max(sum, 1e-9)
			}
			q.Maximum = most * q.most / 100
		}
		for i, to := from, len(out); i < to; i++ {
			q := out[i]
			if slices.ContainsFunc(makesQueues[:], func(key string) bool { return get(q.Queue, key) == "true" }) {
				continue
			}
			if out[i].children = get(q.Queue, "queues") != ""; out[i].children && label != "" && q.Share == 0 {
				out[i].Maximum = 0
				continue
			}
			if !walk(q.Queue, q.Share, q.Maximum, may(q.Queue, access)) {
				return false
			}
		}
		return true
	}
	if !walk(creel.RootQueue, 1, 1, true) {
		return nil, false
	}
	slices.SortFunc(out, func(a, b confQueue) int { return strings.Compare(string(a.Queue), string(b.Queue)) })
	return out, true
}

// ConfiguredShares returns the parts of a member that its configuration guarantees each queue, for nodes of each
// label. Capacities that are amounts are left out.
func (c QueueConf) ConfiguredShares() map[subcluster.QueueOn]float64 {
	configured, out := QueueConf(subcluster.ConfiguredQueues(c)), map[subcluster.QueueOn]float64{}
	for _, label := range configured.labels() {
		list, _ := configured.queues(label)
		for i := range list {
			out[subcluster.QueueOn{Queue: list[i].Queue, Label: label}] = list[i].Share
		}
	}
	return out
}

// poolQueues has a member's queues on the nodes of one label, and their target capacities there.
type poolQueues struct {
	label string
	list  []confQueue
	to    []QueueCapacity
}

// FollowPlan returns the configuration properties that make a member's queues follow a plan, as MemberCapacities
// computes it. It covers the nodes of each label for which the plan has capacities. Capacities keep their configured
// unit (percentages of siblings sum to 100 %). Limits that Hadoop derives from capacities are set too, so that a plan
// lowers no user's limits. These are user-limit-factor and maximum-applications of queues whose capacity falls below
// the configured one, and the share for AMs on nodes of a label. The properties include a record of the previous
// values. An empty value removes a property. The result is empty if no capacity would change by more than band of the
// nodes. ok is false if capacities are amounts, which stay unchanged.
func FollowPlan(
	conf QueueConf, p *subcluster.Plan, id creel.SubclusterID, band float64,
) (set map[string]string, ok bool) {
	configured := QueueConf(subcluster.ConfiguredQueues(conf))
	var pools []poolQueues
	furthest := 0.0
	for _, label := range configured.labels() {
		list, valid := configured.queues(label)
		now, same := conf.queues(label)
		if !valid || !same {
			if label == "" {
				return nil, false
			}
			continue // on these nodes they stay
		}
		x, own := poolQueues{label: label, list: list}, make([]MemberQueue, len(list))
		for i := range list {
			own[i] = list[i].MemberQueue
			x.to = append(x.to, QueueCapacity{own[i].Queue, own[i].Share})
		}
		if of := p.In(label); of != nil && of.Capacities {
			if to := MemberCapacities(of, id, own); len(to) > 0 {
				x.to = to
			} else if label == "" {
				return nil, true
			}
		}
		for i := range x.to {
			furthest = max(furthest, math.Abs(x.to[i].Share-now[i].Share))
		}
		pools = append(pools, x)
	}
	if furthest <= band {
		return nil, true
	}
	held := map[string]subcluster.SavedSetting{}
	hold := func(path creel.QueuePath, key, is string) {
		name := capacityPrefix + string(path) + "." + key
		if was := configured[name]; was != is && (was != "" || is != "0") {
			held[name] = subcluster.SavedSetting{Was: was, Is: is}
		}
	}
	for _, x := range pools {
		levels := map[creel.QueuePath][]int{}
		for i := range x.list {
			levels[x.list[i].above] = append(levels[x.list[i].above], i)
		}
		for _, level := range levels {
			for j, text := range levelTexts(x.list, x.to, level) {
				hold(x.list[level[j]].Queue, labelKey(x.label, "capacity"), text)
			}
		}
	}
	configured.keepLimits(pools, hold)
	set = Restored(conf)
	for name, h := range held {
		set[name] = h.Is
	}
	maps.DeleteFunc(set, func(name, value string) bool { return conf[name] == value })
	record, _ := json.Marshal(held) // of strings
	set[subcluster.SavedSettingsName] = string(record)
	return set, true
}

// levelTexts writes the capacities of the children of one queue. A percentage is at most the queue's
// maximum-capacity, which is a percentage of the most that the queue above may use.
func levelTexts(list []confQueue, to []QueueCapacity, level []int) []string {
	sum, weights, room := 0.0, 0.0, 0.0
	for _, i := range level {
		sum += to[i].Share
		weights += list[i].value
	}
	parts, out := make([]float64, len(level)), make([]string, len(level))
	entries := make([]levelEntry, len(level))
	for j, i := range level {
		parts[j] = list[i].value / max(weights, 1e-9)
		if sum > 1e-9 {
			parts[j] = to[i].Share / sum
		}
		most := math.Floor(list[i].most*100) / 10_000
		entries[j] = levelEntry{floor: min(parts[j], most), ceiling: most, weight: max(parts[j], 1e-9)}
		room += most
	}
	if list[level[0]].kind == weightUnit {
		for j := range level {
			out[j] = weightText(parts[j] * weights)
		}
		return out
	}
	if weights < 100-1e-3 || room < 1 { // nothing is configured, or the maxima sum to less than the parent
		for j, i := range level {
			out[j] = strconv.FormatFloat(list[i].value, 'f', -1, 64)
		}
		return out
	}
	water := waterLevel(entries, 1)
	for j := range entries {
		parts[j] = 100 * entries[j].at(water)
	}
	for j, n := range Round(parts, 0.01, nil) {
		out[j] = strconv.FormatFloat(float64(n)/100, 'f', -1, 64)
	}
	return out
}

// keepLimits keeps the limits that Hadoop derives from leaves' capacities at least as high as with the configured
// capacities. A queue has one user-limit-factor, and one number of applications, for all of its nodes.
func (c QueueConf) keepLimits(pools []poolQueues, hold func(path creel.QueuePath, key, is string)) {
	number := func(otherwise float64, names ...string) (float64, bool) {
		for _, name := range names {
			if v, err := strconv.ParseFloat(strings.TrimSpace(c[name]), 64); err == nil {
				return v, true
			}
		}
		return otherwise, false
	}
	const amPart = "maximum-am-resource-percent"
	type shrunk struct{ by, share float64 } // at most, and the largest part that is configured
	leaves := map[creel.QueuePath]shrunk{}
	for _, x := range pools {
		for i := range x.list {
			q, to := &x.list[i], x.to[i].Share
			if q.children {
				continue
			}
			s := leaves[q.Queue]
			s.share = max(s.share, q.Share)
			if to < q.Share && to > 0 {
				s.by = max(s.by, q.Share/to)
				if x.label != "" {
					own, key := capacityPrefix+string(q.Queue)+".", labelKey(x.label, amPart)
					ams, _ := number(0.1, own+key, own+amPart, capacityPrefix+amPart)
					part := math.Ceil(1000*min(1, ams*q.Share/to)) / 1000
					hold(q.Queue, key, strconv.FormatFloat(part, 'f', -1, 64))
				}
			}
			leaves[q.Queue] = s
		}
	}
	for path, s := range leaves {
		if s.by <= 1 {
			continue
		}
		own := capacityPrefix + string(path) + "."
		factor, _ := number(1, own+"user-limit-factor", capacityPrefix+"user-limit-factor")
		if factor > 0 { // -1 is no limit
			hold(path, "user-limit-factor", strconv.FormatFloat(math.Round(factor*s.by*1000)/1000, 'f', -1, 64))
		}
		if _, set := number(0, own+"maximum-applications", capacityPrefix+"global-queue-max-application"); !set {
			all, _ := number(10_000, capacityPrefix+"maximum-applications")
			hold(path, "maximum-applications", strconv.Itoa(int(all*s.share)))
		}
	}
}

// Restored returns the properties that restore the values configured before the member followed a plan. Values
// changed since then stay.
func Restored(conf QueueConf) map[string]string {
	set := map[string]string{}
	configured := subcluster.ConfiguredQueues(conf)
	for name := range subcluster.Held(conf) {
		if configured[name] != conf[name] {
			set[name] = configured[name]
		}
	}
	if conf[subcluster.SavedSettingsName] != "" {
		set[subcluster.SavedSettingsName] = ""
	}
	return set
}

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
	most     float64 // percent of what the queue above may use
	children bool
}

// makesQueues are the settings by which a queue makes queues on demand.
var makesQueues = [...]string{"auto-create-child-queue.enabled", "auto-queue-creation-v2.enabled"}

// queues are those of a configuration below root, by path, and false where capacities of some
// are amounts. Queues that make queues of their own count as leaves: what those get is theirs.
func (c QueueConf) queues() (out []confQueue, ok bool) {
	get := func(path creel.QueuePath, key string) string {
		return strings.TrimSpace(c[capacityPrefix+string(path)+"."+key])
	}
	var walk func(above creel.QueuePath, share, most float64) bool
	walk = func(above creel.QueuePath, share, most float64) bool {
		from, sum := len(out), 0.0
		for _, name := range strings.Split(get(above, "queues"), ",") {
			if name = strings.TrimSpace(name); name == "" {
				continue
			}
			q := confQueue{above: above, most: 100}
			q.Queue = above + "." + creel.QueuePath(name)
			if q.kind, q.value = unit(get(q.Queue, "capacity")); q.kind == amountUnit || q.kind == mixedUnit {
				return false
			}
			if text := get(q.Queue, "maximum-capacity"); text != "" {
				kind, v := unit(text)
				if kind != percentUnit {
					return false
				}
				if v >= 0 {
					q.most = min(100, v)
				}
			}
			sum += q.value
			out = append(out, q)
		}
		for i := from; i < len(out); i++ {
			if q := &out[i]; out[from].kind != q.kind {
				return false
			} else if q.kind == percentUnit {
				q.Share = share * q.value / 100
			} else {
				q.Share = share * q.value / max(sum, 1e-9)
			}
			out[i].Maximum = most * out[i].most / 100
		}
		for i, to := from, len(out); i < to; i++ {
			q := out[i]
			if slices.ContainsFunc(makesQueues[:], func(key string) bool { return get(q.Queue, key) == "true" }) {
				continue
			}
			if !walk(q.Queue, q.Share, q.Maximum) {
				return false
			}
			out[i].children = get(q.Queue, "queues") != ""
		}
		return true
	}
	if !walk(creel.RootQueue, 1, 1) {
		return nil, false
	}
	slices.SortFunc(out, func(a, b confQueue) int { return strings.Compare(string(a.Queue), string(b.Queue)) })
	return out, true
}

// ConfiguredShares are the parts of a member that its configuration guarantees its queues, nil
// where it gives amounts.
func (c QueueConf) ConfiguredShares() map[creel.QueuePath]float64 {
	list, _ := QueueConf(subcluster.ConfiguredQueues(c)).queues()
	out := make(map[creel.QueuePath]float64, len(list))
	for i := range list {
		out[list[i].Queue] = list[i].Share
	}
	return out
}

// FollowPlan is which properties of a member's configuration, with which values, have its
// queues follow a plan as MemberCapacities has it: capacities in the unit in which they are
// configured (of children of one queue they sum to 100 %), and what Hadoop makes of them,
// so that a plan narrows nobody's limits: user-limit-factor and maximum-applications of queues
// that are to have less than configured. With them comes the record of what they were. None
// where no capacity would change by more than band of the member; ok is false where capacities
// are amounts, which stay. An empty value takes a property away.
func FollowPlan(
	conf QueueConf, p *subcluster.Plan, id creel.SubclusterID, band float64,
) (set map[string]string, ok bool) {
	configured := QueueConf(subcluster.ConfiguredQueues(conf))
	list, ok := configured.queues()
	now, same := conf.queues()
	if !ok || !same {
		return nil, false
	}
	own, before := make([]MemberQueue, len(list)), make([]QueueCapacity, len(now))
	for i := range list {
		own[i] = list[i].MemberQueue
	}
	for i := range now {
		before[i] = QueueCapacity{now[i].Queue, now[i].Share}
	}
	to := MemberCapacities(p, id, own)
	if len(to) == 0 {
		return nil, true
	}
	furthest := 0.0
	for i := range to {
		furthest = max(furthest, math.Abs(to[i].Share-before[i].Share))
	}
	if furthest <= band {
		return nil, true
	}
	held := map[string]subcluster.HeldSetting{}
	hold := func(path creel.QueuePath, key, is string) {
		name := capacityPrefix + string(path) + "." + key
		if was := configured[name]; was != is {
			held[name] = subcluster.HeldSetting{Was: was, Is: is}
		}
	}
	levels := map[creel.QueuePath][]int{}
	for i := range list {
		levels[list[i].above] = append(levels[list[i].above], i)
	}
	for _, level := range levels {
		for j, text := range levelTexts(list, to, level) {
			hold(list[level[j]].Queue, "capacity", text)
		}
	}
	for i := range list {
		if q := &list[i]; !q.children && to[i].Share < q.Share {
			configured.keepLimits(q, to[i].Share, hold)
		}
	}
	set = Restored(conf)
	for name, h := range held {
		set[name] = h.Is
	}
	maps.DeleteFunc(set, func(name, value string) bool { return conf[name] == value })
	record, _ := json.Marshal(held) // of strings
	set[subcluster.HeldName] = string(record)
	return set, true
}

// levelTexts writes capacities of the children of one queue. A percentage is at most the
// queue's maximum-capacity, whose percentage is of what the queue above may use.
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
	if weights < 100-1e-3 || room < 1 { // nothing is configured, or their maxima do not let them have all of it
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

// keepLimits holds what Hadoop makes of a leaf's capacity at what it makes of the configured one.
func (c QueueConf) keepLimits(q *confQueue, to float64, hold func(path creel.QueuePath, key, is string)) {
	number := func(otherwise float64, names ...string) (float64, bool) {
		for _, name := range names {
			if v, err := strconv.ParseFloat(strings.TrimSpace(c[name]), 64); err == nil {
				return v, true
			}
		}
		return otherwise, false
	}
	own := capacityPrefix + string(q.Queue) + "."
	factor, _ := number(1, own+"user-limit-factor", capacityPrefix+"user-limit-factor")
	if factor > 0 && to > 0 { // -1 is no limit
		hold(q.Queue, "user-limit-factor", strconv.FormatFloat(math.Round(factor*q.Share/to*1000)/1000, 'f', -1, 64))
	}
	if _, set := number(0, own+"maximum-applications", capacityPrefix+"global-queue-max-application"); !set {
		all, _ := number(10_000, capacityPrefix+"maximum-applications")
		hold(q.Queue, "maximum-applications", strconv.Itoa(int(all*q.Share)))
	}
}

// Restored is which properties put back what was configured before a plan was followed. What
// was changed since stays.
func Restored(conf QueueConf) map[string]string {
	set := map[string]string{}
	configured := subcluster.ConfiguredQueues(conf)
	for name := range subcluster.Held(conf) {
		if configured[name] != conf[name] {
			set[name] = configured[name]
		}
	}
	if conf[subcluster.HeldName] != "" {
		set[subcluster.HeldName] = ""
	}
	return set
}

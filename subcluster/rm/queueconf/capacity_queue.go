// SPDX-License-Identifier: Apache-2.0

package queueconf

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// inheritance contains the settings that a queue of capacity-scheduler.xml inherits from its parent.
type inheritance struct {
	state     creel.QueueState
	largest   creel.Resource
	lifetimes lifetimes

	keeps, keepsWithin bool // preemption is disabled

	labels []string // accessible labels of the queue

	order     queues.Policy // between the children of a parent
	orderName string
}

// lookup finds one setting of a queue.
type lookup func(setting string) (Property, bool)

func setting[T any](r *capacityReader, get lookup, name string, f func(string) (T, error), otherwise T) T {
	p, ok := get(name)
	return read(r, p, ok, f, otherwise)
}

// queue makes one queue with all its descendants.
func (r *capacityReader) queue(path creel.QueuePath, parent inheritance) queues.Queue {
	own := r.perQueue[string(path)]
	get := func(name string) (Property, bool) {
		p, ok := own[name]
		return p, ok && !(path == creel.RootQueue && unsetCapacity(name, p.Value))
	}
	leaf := len(r.children[path]) == 0 && !r.makesQueues(get)
	q := r.settings(path, get, leaf, parent)
	q.Name = path.Leaf()
	r.labels(path, get, r.keys[string(path)], &q)
	labels := q.Labels
	if labels == nil {
		labels = parent.labels
	}
	r.checkAccess(path, get, labels, parent.labels)
	if p, ok := get(labelDefault); ok && !queues.Accesses(labels, q.DefaultLabel) {
		r.failAt(p, "%s may not use nodes of label %q; add it to %s", path, q.DefaultLabel, labelList)
	}
	q.AutoCreate = r.autoCreate(path, get)
	inherit(q.AutoCreate, &q)

	for _, name := range r.keys[string(path)] {
		if kept(name) {
			q.Settings = append(q.Settings, queues.Setting{Key: name, Value: own[name].Value})
			r.warnAt(own[name], "kept and not used yet")
		}
	}
	if p, ok := get("capacity"); path == creel.RootQueue {
		if ok && !isWhole(q.Capacity) {
			r.failAt(p, "the root has 100 percent; it cannot be given another capacity")
		}
		q.Capacity = queues.PercentOf(100)
		if p, ok := get("maximum-capacity"); ok && !isWhole(q.MaxCapacity) && q.MaxCapacity.Unit != queues.Unset {
			r.failAt(p, "the root cannot have less than 100 percent")
		}
	}

	down := inheritance{
		state: q.State, largest: q.MaxAllocation,
		lifetimes: lifetimes{q.MaxLifetime, q.DefaultLifetime, r.defaultGiven(path, get, parent)},
		keeps:     q.PreemptionDisabled, keepsWithin: q.IntraPreemptionDisabled,
		order: q.Policy, orderName: q.PolicyName, labels: labels,
	}
	for _, name := range r.children[path] {
		q.Children = append(q.Children, r.queue(path.Child(name), down))
	}
	r.checkChildren(path, &q, get)
	return q
}

// unsetCapacity reports whether a capacity, also of a label, is -1. At the root -1 means unset, as in Hadoop, where the
// root always has 100 percent.
func unsetCapacity(name, value string) bool {
	f, err := parseFloat(value)
	return err == nil && f == -1 && strings.HasSuffix(name, "capacity")
}

// settings reads the settings of one queue, or of a template.
func (r *capacityReader) settings(path creel.QueuePath, get lookup, leaf bool, parent inheritance) queues.Queue {
	if leaf {
		parent.order, parent.orderName = queues.PolicyDefault, ""
	}
	q := queues.Queue{
		MinUserPercent:  setting(r, get, "minimum-user-limit-percent", userPercent, r.minUserPercent),
		UserFactor:      setting(r, get, "user-limit-factor", userFactor, r.userFactor),
		MaxAMPercent:    setting(r, get, "maximum-am-resource-percent", share, r.maxAMPercent),
		MaxApps:         setting(r, get, "maximum-applications", positiveOrUnset, 0),
		MaxParallelApps: setting(r, get, "max-parallel-apps", positive, r.maxParallelApps),
		Priority:        int32(setting(r, get, "priority", parseInt, 0)),
		DefaultPriority: int32(setting(r, get, "default-application-priority", atLeast(0), 0)),
		Capacity:        setting(r, get, "capacity", r.capacity, queues.Amount{}),
		MaxCapacity:     setting(r, get, "maximum-capacity", r.maximum, queues.Amount{}),
		Policy:          setting(r, get, "ordering-policy", orderingPolicy(leaf), parent.order),

		SizeWeight: setting(r, get, "ordering-policy.fair.enable-size-based-weight", parseBool, false),

		PolicyName: setting(r, get, "ordering-policy", policyName, parent.orderName),

		PreemptionDisabled: setting(r, get, "disable_preemption", parseBool, parent.keeps),
		IntraPreemptionDisabled: setting(
			r, get, "intra-queue-preemption.disable_preemption", parseBool, parent.keepsWithin),
		NoOversubscription: !setting(r, get, "allow-oversubscription", parseBool, true),

		Opportunistic: queues.OpportunisticMaxima{
			All:      setting(r, get, "maximum-opportunistic-containers", maximumContainers, queues.Maximum{}),
			EachUser: setting(r, get, "maximum-opportunistic-containers-per-user", maximumContainers, queues.Maximum{}),
		},
	}
	if q.Capacity.Unit != queues.Absolute { // a queue with amounts gets its share of the limit
		q.MaxApps = cmp.Or(q.MaxApps, r.maxQueueApps)
	}
	if p, ok := get("acl_application_max_priority"); ok && leaf {
		q.PriorityLimits, q.PriorityACL = read(r, p, true, r.priorityLimits, nil), strings.TrimSpace(p.Value)
	} else if ok {
		r.warnAt(p, "has no effect: %s takes no applications itself", path)
	}
	r.access(path, get, &q)
	r.state(path, get, &q, parent)
	r.lifetimes(path, get, &q, parent)
	r.allocation(get, &q, parent)
	r.userWeights(path, get, &q)
	if p, ok := get("maximum-am-resource-percent"); ok && q.MaxAMPercent > 1 {
		r.warnAt(p, "%v is more than the whole queue; 0.1 means 10 percent", q.MaxAMPercent)
	}
	if p, ok := r.props[nodeOrderPrefix+string(path)+".node-order"]; ok {
		q.NodeOrder = read(r, p, true, nodeOrder, queues.NodeOrderDefault)
	}
	if p, ok := get("maximum-capacity"); ok {
		r.checkMaximum(p, q.Capacity, q.MaxCapacity)
	}
	return q
}

// capacity parses 12.5, 2w, [memory=1024,vcores=2], or without legacy mode [memory=50%,vcores=2w].
func (r *capacityReader) capacity(text string) (queues.Amount, error) {
	if list, ok := bracketed(text); ok {
		v, err := r.opt.parseVector(list, !r.legacyMode)
		if err != nil {
			return queues.Amount{}, err
		}
		return v.amount(r.opt.typeNames(), 0), nil
	}
	if w, ok := strings.CutSuffix(text, "w"); ok {
		f, err := parseFloat(w)
		if err != nil || f < 0 {
			return queues.Amount{}, fmt.Errorf("%q is not a weight; write a number with w, such as 2w", text)
		}
		if f > maxWeight {
			return queues.Amount{}, fmt.Errorf("the weight %v is above %d", f, maxWeight)
		}
		return queues.WeightOf(f), nil
	}
	return percent(text)
}

// maximum parses the same without weights; -1 is 100 percent.
func (r *capacityReader) maximum(text string) (queues.Amount, error) {
	weight := errors.New("a maximum cannot be a weight; write percent or [memory=..,vcores=..]")
	if list, ok := bracketed(text); ok {
		v, err := r.opt.parseVector(list, !r.legacyMode)
		if err == nil && len(v.weights) > 0 {
			err = weight
		}
		if err != nil {
			return queues.Amount{}, err
		}
		return v.amount(r.opt.typeNames(), unlimited), nil
	}
	if strings.HasSuffix(text, "w") {
		return queues.Amount{}, weight
	}
	if f, err := parseFloat(text); err == nil && f == -1 {
		return queues.PercentOf(100), nil
	}
	return percent(text)
}

func percent(text string) (queues.Amount, error) {
	f, err := parseFloat(strings.TrimSuffix(text, "%"))
	if err != nil {
		return queues.Amount{}, fmt.Errorf(
			"%q is none of: percent (25), a weight (2w), resources ([memory=1024,vcores=2])",
			text,
		)
	}
	if f < 0 || f > 100 {
		return queues.Amount{}, fmt.Errorf("%v is not a percentage from 0 to 100", f)
	}
	return queues.PercentOf(f), nil
}

func bracketed(text string) (string, bool) {
	if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") && len(text) >= 2 {
		return text[1 : len(text)-1], true
	}
	return "", false
}

// checkMaximum compares a maximum with the capacity. Without legacy mode, a maximum below the capacity reduces the
// guarantee, whatever their units.
func (r *capacityReader) checkMaximum(p Property, capacity, maximum queues.Amount) {
	switch {
	case !r.legacyMode:
	case capacity.Unit == queues.Percent && maximum.Unit == queues.Percent && maximum.Value < capacity.Value:
		r.failAt(p, "the maximum of %v percent is below the capacity of %v percent", maximum.Value, capacity.Value)
	case capacity.Unit == queues.Absolute && maximum.Unit == queues.Absolute && !within(
		capacity.Resource,
		maximum.Resource,
	):
		r.failAt(p, "the maximum %v is below the capacity %v", maximum.Resource, capacity.Resource)
	case capacity.Unit == queues.Absolute && maximum.Unit == queues.Percent && maximum.Value < 100:
		r.failAt(p, "capacity and maximum-capacity must both be percentages or both be resources")
	}
}

func policyName(text string) (string, error) {
	if class, ok := strings.CutPrefix(text, policyPackage); ok && policyClasses[class] != "" {
		return policyClasses[class], nil
	}
	return strings.ToLower(text), nil
}

const policyPackage = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.policy."

// policyClasses are the names of Hadoop's classes for the orders of leaf queues.
var policyClasses = map[string]string{
	"FifoOrderingPolicy":                        "fifo",
	"FifoOrderingPolicyWithExclusivePartitions": "fifo-with-partitions",
	"FifoOrderingPolicyForPendingApps":          "fifo-for-pending-apps",
	"FairOrderingPolicy":                        "fair",
}

func orderingPolicy(leaf bool) func(string) (queues.Policy, error) {
	return func(text string) (queues.Policy, error) {
		if leaf {
			short, _ := policyName(text)
			switch short {
			case "fifo", "fifo-with-partitions", "fifo-for-pending-apps":
				return queues.Fifo, nil
			case "fair":
				return queues.FairShare, nil
			case "drf":
				return queues.DRF, nil
			case "priority":
				return queues.PriorityFirst, nil
			}
			return queues.PolicyDefault, fmt.Errorf(
				"%q is not an order of a leaf queue: fifo, fair, drf, priority",
				text,
			)
		}
		switch strings.ToLower(text) {
		case "utilization":
			return queues.Utilization, nil
		case "priority-utilization":
			return queues.PriorityUtilization, nil
		}
		return queues.PolicyDefault, fmt.Errorf(
			"%q is not an order of a parent queue: utilization, priority-utilization",
			text,
		)
	}
}

func nodeOrder(text string) (queues.NodeOrder, error) {
	switch strings.ToLower(text) {
	case "spread":
		return queues.Spread, nil
	case "pack":
		return queues.Pack, nil
	}
	return queues.NodeOrderDefault, fmt.Errorf("%q is neither spread nor pack", text)
}

// access reads the ACLs; the root is open unless it has ACLs.
func (r *capacityReader) access(path creel.QueuePath, get lookup, q *queues.Queue) {
	if path == creel.RootQueue {
		q.Submit, q.Admin = queues.ACL{All: true}, queues.ACL{All: true}
	}
	if p, ok := get("acl_submit_applications"); ok {
		q.Submit = queues.ParseACL(p.Value)
	}
	if p, ok := get("acl_administer_queue"); ok {
		q.Admin = queues.ParseACL(p.Value)
	}
}

func (r *capacityReader) state(path creel.QueuePath, get lookup, q *queues.Queue, parent inheritance) {
	q.State = parent.state
	p, ok := get("state")
	if !ok {
		return
	}
	switch strings.ToUpper(strings.TrimSpace(p.Value)) {
	case "RUNNING":
		if parent.state == creel.QueueStopped {
			r.failAt(p, "queue %s cannot run below %s, which is stopped", path, path.Parent())
		}
		q.State = creel.QueueRunning
	case "STOPPED":
		q.State = creel.QueueStopped
	default:
		r.failAt(p, "%q is neither RUNNING nor STOPPED", p.Value)
	}
}

// lifetimes are the limits that a queue inherits.
type lifetimes struct {
	most, standard time.Duration
	given          bool // an ancestor has a default of its own
}

// lifetime reads one limit: 0 is explicitly none, and a negative value is ignored.
func (r *capacityReader) lifetime(get lookup, name string) time.Duration {
	switch v := setting(r, get, name, seconds, -1); {
	case v == 0:
		return queues.NoLifetime
	case v < 0:
		return 0
	default:
		return v
	}
}

func (r *capacityReader) defaultGiven(path creel.QueuePath, get lookup, parent inheritance) bool {
	return r.lifetime(get, "default-application-lifetime") != 0 || path != creel.RootQueue && parent.lifetimes.given
}

// lifetimes follows Hadoop: a maximum is inherited. An inherited default is at most the maximum, so it is none in a
// queue without a maximum. Without a default the maximum is the default.
func (r *capacityReader) lifetimes(path creel.QueuePath, get lookup, q *queues.Queue, parent inheritance) {
	q.MaxLifetime = r.lifetime(get, "maximum-application-lifetime")
	q.DefaultLifetime = r.lifetime(get, "default-application-lifetime")
	if path == creel.RootQueue {
		return
	}
	q.MaxLifetime = cmp.Or(q.MaxLifetime, parent.lifetimes.most)
	if q.DefaultLifetime == 0 && parent.lifetimes.given && q.MaxLifetime > 0 {
		q.DefaultLifetime = min(max(parent.lifetimes.standard, 0), q.MaxLifetime)
	}
	if p, written := get("default-application-lifetime"); written &&
		q.MaxLifetime > 0 && q.DefaultLifetime > q.MaxLifetime {
		r.failAt(
			p,
			"the default of %v is longer than maximum-application-lifetime of %v",
			q.DefaultLifetime,
			q.MaxLifetime,
		)
	}
	if q.DefaultLifetime <= 0 {
		q.DefaultLifetime = q.MaxLifetime
	}
}

// allocation reads the largest container of a queue. Types without a value keep the parent's maximum, or the cluster's.
func (r *capacityReader) allocation(get lookup, q *queues.Queue, parent inheritance) {
	cluster := r.opt.MaxAllocation
	given := false
	size := parent.largest
	if size.IsZero() {
		size = cluster
	}
	if p, ok := get("maximum-allocation"); ok && strings.TrimSpace(p.Value) != "" {
		list := strings.TrimSpace(p.Value)
		if inner, ok := bracketed(list); ok {
			list = inner
		}
		v, err := r.opt.parseVector(list, false)
		if err == nil && len(v.percents) > 0 {
			err = errors.New("percentages are not possible here")
		}
		if err != nil {
			r.failAt(p, "%v", err)
		} else {
			for _, n := range v.names {
				size, given = size.With(n, v.amounts[n]), true
			}
		}
	}
	for _, part := range [...]struct{ key, typ string }{
		{"maximum-allocation-mb", creel.MemoryName},
		{"maximum-allocation-vcores", creel.VCoresName},
	} {
		if p, ok := get(part.key); ok {
			if n := read(r, p, true, positiveOrUnset, 0); n > 0 {
				size, given = size.With(part.typ, int64(n)), true
			}
		}
	}
	if !given {
		q.MaxAllocation = parent.largest
		return
	}
	if cluster.MemoryMB > 0 && !within(size, cluster) {
		for _, key := range [...]string{"maximum-allocation-mb", "maximum-allocation-vcores", "maximum-allocation"} {
			if p, ok := get(key); ok {
				r.failAt(p, "the largest container of the queue, %v, exceeds the cluster's, %v", size, cluster)
				return
			}
		}
	}
	q.MaxAllocation = size
}

func (r *capacityReader) userWeights(path creel.QueuePath, get lookup, q *queues.Queue) {
	for _, name := range r.keys[string(path)] {
		rest, ok := strings.CutPrefix(name, "user-settings.")
		if !ok {
			continue
		}
		p, ok := get(name)
		if !ok {
			continue
		}
		user, ok := strings.CutSuffix(rest, ".weight")
		if !ok || user == "" {
			r.warnAt(p, "unknown setting of a user; known is weight")
			continue
		}
		w := read(r, p, true, parseFloat, 1)
		if w <= 0 || w > 100 {
			r.failAt(p, "the weight %v of user %s is not above 0 and at most 100", w, user)
			continue
		}
		q.UserWeights = append(q.UserWeights, queues.UserLimit{User: user, Weight: w})
	}
	slices.SortFunc(q.UserWeights, func(a, b queues.UserLimit) int { return strings.Compare(a.User, b.User) })
}

// checkChildren compares the capacities of one queue's children with each other and with the queue's.
func (r *capacityReader) checkChildren(path creel.QueuePath, q *queues.Queue, get lookup) {
	if len(q.Children) == 0 {
		return
	}
	where, _ := get("queues")
	at := func(child *queues.Queue) Property {
		if p, ok := r.perQueue[string(path.Child(child.Name))]["capacity"]; ok {
			return p
		}
		p := where
		p.Name = capacityPrefix + string(path.Child(child.Name)) + ".capacity"
		return p
	}
	if !r.legacyMode {
		for i := range q.Children {
			if c := &q.Children[i]; c.Capacity.Unit == queues.Unset {
				r.warn(at(c).File, at(c).Line, "queue %s has no capacity and gets none guaranteed", path.Child(c.Name))
				c.Capacity, c.Written = queues.PercentOf(0), &queues.Amount{}
			}
		}
		return
	}
	// A queue without a capacity, or with 0 percent, has no share, whatever the units of its siblings.
	sum, total, units := 0.0, creel.Resource{}, map[queues.Unit]bool{}
	for i := range q.Children {
		if c := q.Children[i].Capacity; c.Unit != queues.Unset && !(c.Unit == queues.Percent && c.Value == 0) {
			units[c.Unit] = true
			sum += c.Value
			total = total.Add(c.Resource)
		}
	}
	nothing := queues.PercentOf(0)
	switch {
	case units[queues.Weight]:
		nothing = queues.WeightOf(0)
	case units[queues.Absolute]:
		nothing = queues.AbsoluteOf(creel.Resource{})
	}
	for i := range q.Children {
		c := &q.Children[i]
		if c.Capacity.Unit == queues.Unset {
			r.warn(at(c).File, at(c).Line, "queue %s has no capacity and gets none guaranteed", path.Child(c.Name))
			c.Capacity, c.Written = nothing, &queues.Amount{}
		} else if c.Capacity.Unit == queues.Percent && c.Capacity.Value == 0 && nothing.Unit != queues.Percent {
			c.Capacity, c.Written = nothing, new(queues.PercentOf(0))
		}
	}
	if len(units) == 1 {
		r.checkLabelUnits(path, q, slices.Collect(maps.Keys(units))[0])
	}
	if len(units) == 0 {
		units[queues.Percent] = true
	}
	if len(units) > 1 {
		r.failAt(
			at(&q.Children[0]),
			"the queues below %s mix percentages, weights and resources; use one of them for all, or %s",
			path, vectorMode,
		)
		return
	}
	absoluteParent := q.Capacity.Unit == queues.Absolute
	switch {
	case units[queues.Percent]:
		zero := setting(r, get, "allow-zero-capacity-sum", parseBool, false) || q.Capacity.Unit == queues.Weight ||
			q.Capacity.Unit == queues.Percent && q.Capacity.Value == 0
		if math.Abs(sum-100) > 0.05 && !(zero && sum == 0) {
			r.failAt(
				at(&q.Children[0]),
				"the capacities of the queues below %s sum to %v percent, not to 100",
				path,
				math.Round(sum*1e4)/1e4,
			)
		}
		if absoluteParent && path != creel.RootQueue {
			r.failAt(at(&q.Children[0]), "%s is given in resources, so the queues below it must be", path)
		}
	case units[queues.Weight]:
		if absoluteParent && path != creel.RootQueue {
			r.failAt(at(&q.Children[0]), "%s is given in resources, so the queues below it must be", path)
		}
	case units[queues.Absolute]:
		if path == creel.RootQueue {
			break
		}
		if !absoluteParent {
			r.failAt(at(&q.Children[0]), "the queues below %s are given in resources, so it must be", path)
		} else if absoluteParent && !within(total, q.Capacity.Resource) {
			r.failAt(
				at(&q.Children[0]),
				"the queues below %s are promised %v in all, more than its own %v",
				path,
				total,
				q.Capacity.Resource,
			)
		}
	}
}

// makesQueues reports whether placement may create queues below a queue.
func (r *capacityReader) makesQueues(get lookup) bool {
	on := func(name string) bool {
		p, _ := get(name)
		v, err := parseBool(p.Value)
		return v || err != nil && strings.TrimSpace(p.Value) != ""
	}
	return on("auto-create-child-queue.enabled") || on("auto-queue-creation-v2.enabled")
}

// autoCreate reads the rules for creating queues below this one: managed parents of auto-create-child-queue, or
// flexible ones of auto-queue-creation-v2.
func (r *capacityReader) autoCreate(path creel.QueuePath, get lookup) *queues.AutoCreate {
	if !r.makesQueues(get) {
		return nil
	}
	v1 := setting(r, get, "auto-create-child-queue.enabled", parseBool, false)
	v2 := setting(r, get, "auto-queue-creation-v2.enabled", parseBool, false)
	if v1 && v2 {
		p, _ := get("auto-queue-creation-v2.enabled")
		r.failAt(p, "auto-create-child-queue is enabled too; enable one of them")
	}
	if v1 {
		if len(r.children[path]) > 0 {
			p, _ := get("auto-create-child-queue.enabled")
			r.failAt(p, "queue %s has queues of its own; leaf queues are made only below a queue without", path)
		}
		a := &queues.AutoCreate{
			Depth: 1, KeepIdle: -1, Managed: true, OfLeaves: r.written(path, "leaf-queue-template."),
			Max: setting(r, get, "auto-create-child-queue.max-queues", positive, 1000),
		}
		a.Leaf = r.settings(
			path,
			prefixed(get, "leaf-queue-template."),
			true,
			inheritance{state: creel.QueueRunning},
		)
		r.templateLabels(path, prefixed(get, "leaf-queue-template."), a.OfLeaves, &a.Leaf)
		if a.Leaf.Capacity.Unit == queues.Unset {
			p, _ := get("auto-create-child-queue.enabled")
			r.warnAt(p, "created queues have nothing guaranteed without leaf-queue-template.capacity")
			a.Leaf.Capacity = queues.PercentOf(0)
		}
		return a
	}
	a := &queues.AutoCreate{
		Depth:    setting(r, get, "auto-queue-creation-v2.maximum-queue-depth", positive, 2),
		Max:      setting(r, get, "auto-queue-creation-v2.max-queues", positive, 1000),
		KeepIdle: r.expireAfter,
	}
	if !setting(r, get, "auto-queue-creation-v2.queue-auto-removal.enable", parseBool, true) {
		a.KeepIdle = -1
	}
	r.templates(path, get, a)
	return a
}

// templates reads the templates of queues to be created below path, on all levels.
func (r *capacityReader) templates(path creel.QueuePath, get lookup, a *queues.AutoCreate) {
	a.Any = r.writtenTemplate(path, "template.")
	a.OfLeaves, a.OfParents = r.writtenTemplate(path, "leaf-template."), r.writtenTemplate(path, "parent-template.")
	a.Leaf, a.Parent = r.fromTemplates(path, get, path, nil, a)
	deeper := func(name string) *queues.AutoCreate {
		if a.Depth < 2 {
			return nil
		}
		at := path.Child(name)
		x := &queues.AutoCreate{Depth: min(a.Depth, maxDepth) - 1, Max: a.Max, KeepIdle: a.KeepIdle}
		r.templates(at, r.own(at), x)
		return x
	}
	a.Below = deeper("*")
	for _, name := range slices.Sorted(maps.Keys(r.made[path])) {
		n := queues.CreatedQueue{Name: name, Below: deeper(name)}
		at := path.Child(name)
		n.Leaf, n.Parent = r.fromTemplates(path, get, at, r.written(at, ""), a)
		a.Named = append(a.Named, n)
	}
}

// own returns a lookup of a queue's own settings.
func (r *capacityReader) own(path creel.QueuePath) lookup {
	of := r.perQueue[string(path)]
	return func(name string) (Property, bool) { p, ok := of[name]; return p, ok }
}

// fromTemplates returns a queue to be created below path, as a leaf and as a parent. at is its path. For queues without
// settings of their own at is path itself; own settings take precedence over templates.
func (r *capacityReader) fromTemplates(
	path creel.QueuePath, get lookup, at creel.QueuePath, own []queues.Setting, a *queues.AutoCreate,
) (leaf, parent queues.Queue) {
	with := func(kind string, leaf bool) lookup {
		t := r.template(path, get, kind)
		return func(name string) (Property, bool) {
			if at != path {
				if p, ok := r.own(at)(name); ok {
					return p, suits(p, name, leaf)
				}
			}
			p, ok := t(name)
			return p, ok && suits(p, name, leaf)
		}
	}
	// A created leaf may use idle capacity: Hadoop removes its user limit and its AM limit unless the template sets
	// them.
	find := with("leaf-template.", true)
	leaf = r.settings(at, find, true, inheritance{state: creel.QueueRunning})
	if _, ok := find("user-limit-factor"); !ok {
		leaf.UserFactor = -1
	}
	if _, ok := find("maximum-am-resource-percent"); !ok {
		leaf.MaxAMPercent = 1
	}
	r.templateLabels(path, find, slices.Concat(own, a.Any, a.OfLeaves), &leaf)
	find = with("parent-template.", false)
	parent = r.settings(at, find, false, inheritance{state: creel.QueueRunning})
	r.templateLabels(path, find, slices.Concat(own, a.Any, a.OfParents), &parent)
	for _, q := range [...]*queues.Queue{&leaf, &parent} {
		if q.Capacity.Unit == queues.Unset {
			q.Capacity = queues.WeightOf(1)
		}
	}
	return leaf, parent
}

// suits reports whether a setting of queues to be created applies to leaves, or to parents. Both read the same
// templates.
func suits(p Property, name string, leaf bool) bool {
	switch name {
	case "acl_application_max_priority":
		return leaf
	case "ordering-policy":
		text := strings.TrimSpace(p.Value)
		_, err := orderingPolicy(leaf)(text)
		_, other := orderingPolicy(!leaf)(text)
		return err == nil || other != nil
	}
	return true
}

// inherit applies a queue's settings to queues created below it.
func inherit(a *queues.AutoCreate, q *queues.Queue) {
	if a == nil {
		return
	}
	pair := func(leaf, parent *queues.Queue) {
		for _, made := range []*queues.Queue{leaf, parent} {
			made.PreemptionDisabled = made.PreemptionDisabled || q.PreemptionDisabled
			made.IntraPreemptionDisabled = made.IntraPreemptionDisabled || q.IntraPreemptionDisabled
			made.MaxLifetime = cmp.Or(made.MaxLifetime, q.MaxLifetime)
			made.DefaultLifetime = cmp.Or(made.DefaultLifetime, q.DefaultLifetime)
			if made.MaxAllocation.IsZero() {
				made.MaxAllocation = q.MaxAllocation
			}
		}
		if parent.Policy == queues.PolicyDefault {
			parent.Policy, parent.PolicyName = q.Policy, q.PolicyName
		}
	}
	pair(&a.Leaf, &a.Parent)
	inherit(a.Below, q)
	for i := range a.Named {
		n := &a.Named[i]
		pair(&n.Leaf, &n.Parent)
		inherit(n.Below, &n.Parent)
	}
}

// written returns the settings of a queue below a prefix.
func (r *capacityReader) written(path creel.QueuePath, prefix string) (out []queues.Setting) {
	for _, key := range r.keys[string(path)] {
		if name, ok := strings.CutPrefix(key, prefix); ok {
			out = append(out, queues.Setting{Key: name, Value: r.perQueue[string(path)][key].Value})
		}
	}
	return out
}

// writtenTemplate returns the settings of a kind of created queues: first the queue's own, then those of wildcard
// paths.
func (r *capacityReader) writtenTemplate(path creel.QueuePath, kind string) []queues.Setting {
	kind = "auto-queue-creation-v2." + kind
	out := r.written(path, kind)
	parts := path.Parts()
	for i := len(parts) - 1; i >= 1; i-- {
		parts[i] = "*"
		prefix := capacityPrefix + strings.Join(parts, ".") + "." + kind
		for _, key := range r.order {
			name, ok := strings.CutPrefix(key, prefix)
			if ok && !slices.ContainsFunc(out, func(s queues.Setting) bool { return s.Key == name }) {
				out = append(out, queues.Setting{Key: name, Value: r.props[key].Value})
			}
		}
	}
	return out
}

func prefixed(get lookup, prefix string) lookup {
	return func(name string) (Property, bool) { return get(prefix + name) }
}

// template returns a lookup of settings for queues created below path. It reads the template of their kind, then that
// of both kinds. Within each it reads the queue's own path first, then paths with * in place of parts.
func (r *capacityReader) template(path creel.QueuePath, get lookup, kind string) lookup {
	return func(name string) (Property, bool) {
		for _, t := range [...]string{kind, "template."} {
			full := "auto-queue-creation-v2." + t + name
			if p, ok := get(full); ok {
				return p, true
			}
			parts := path.Parts()
			for i := len(parts) - 1; i >= 1; i-- {
				parts[i] = "*"
				if p, ok := r.props[capacityPrefix+strings.Join(parts, ".")+"."+full]; ok {
					return p, true
				}
			}
		}
		return Property{}, false
	}
}

func isWhole(a queues.Amount) bool { return a.Unit == queues.Percent && a.Value == 100 }

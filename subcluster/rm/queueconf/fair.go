// SPDX-License-Identifier: Apache-2.0

package queueconf

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/placement"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// ReadFair builds a queue tree from the FairScheduler's allocation file, usually fair-scheduler.xml; messages name it
// by file. It reports all errors at once, each with its line; the caller then keeps its current tree. Without data
// the tree is a root below which submissions create queues, as in Hadoop without a file.
func ReadFair(file string, data []byte, opt Options) (Config, error) {
	r := &fairReader{file: file, opt: opt, amShare: 0.5, policy: queues.FairShare}
	out := Config{Queues: queues.Spec{
		Scheduler: queues.FairScheduler, Calculator: queues.Dominant, MaxClusterPriority: opt.MaxClusterPriority,
		NodeLocalityThreshold: opt.Fair.NodeLocalityThreshold, RackLocalityThreshold: opt.Fair.RackLocalityThreshold,
		SizeWeight:        opt.Fair.SizeBasedWeight,
		NodeLocalityDelay: -1, RackLocalityAdditionalDelay: -1,
	}}
	doc := &element{name: "allocations"}
	if len(data) > 0 {
		var err error
		if doc, err = parseElements(file, data); err != nil {
			return Config{}, err
		}
	}
	if doc.name != "allocations" {
		r.at(doc, "the root element is <%s>, not <allocations>", doc.name)
		return Config{}, r.err()
	}
	r.defaults(doc, &out.Queues)
	out.Queues.Root = r.root(doc)
	names := placement.NewTree(&out.Queues.Root)
	out.Placement = r.placement(doc, names)
	if err := r.err(); err != nil {
		return Config{}, err
	}
	out.Warnings = r.sortedWarnings()
	return out, nil
}

type fairReader struct {
	report
	file string
	opt  Options

	count     int
	amShare   float64
	maxApps   int
	maximum   queues.Amount
	policy    queues.Policy
	minTime   time.Duration // the root's preemption settings
	fairTime  time.Duration
	fairShare float64
	rules     *element
}

func (r *fairReader) at(e *element, format string, a ...any) {
	r.fail(r.file, e.line, format, a...)
}

func fairValue[T any](r *fairReader, e *element, f func(string) (T, error), otherwise T) T {
	v, err := f(e.value())
	if err != nil {
		r.at(e, "<%s>: %v", e.name, err)
		return otherwise
	}
	return v
}

// topElements are the children of <allocations>, queueElements those of <queue>.
var (
	topElements = []string{
		"queue",
		"pool",
		"user",
		"userMaxAppsDefault",
		"queueMaxAppsDefault",
		"queueMaxAMShareDefault",
		"queueMaxResourcesDefault",
		"defaultQueueSchedulingPolicy",
		"defaultQueueSchedulingMode",
		"queuePlacementPolicy",
		"defaultMinSharePreemptionTimeout",
		"defaultFairSharePreemptionTimeout",
		"fairSharePreemptionTimeout",
		"defaultFairSharePreemptionThreshold",
		"reservation-agent",
		"reservation-policy",
		"reservation-planner",
	}
	queueElements = []string{
		"queue",
		"pool",
		"minResources",
		"maxResources",
		"maxContainerAllocation",
		"maxChildResources",
		"maxRunningApps",
		"maxAMShare",
		"weight",
		"schedulingPolicy",
		"schedulingMode",
		"aclSubmitApps",
		"aclAdministerApps",
		"minSharePreemptionTimeout",
		"fairSharePreemptionTimeout",
		"fairSharePreemptionThreshold",
		"allowPreemptionFrom",
		"allowOversubscription",
		"maxOpportunisticContainers",
		"maxOpportunisticContainersPerUser",
		"reservation",
		"aclAdministerReservations",
		"aclListReservations",
		"aclSubmitReservations",
	}
)

// defaults reads the settings of all queues and users. They may be anywhere in the file, so they are read first.
func (r *fairReader) defaults(doc *element, q *queues.Spec) {
	for _, e := range doc.children {
		switch e.name {
		case "queue", "pool":
		case "user":
			r.user(e, q)
		case "userMaxAppsDefault":
			q.UserMaxAppsDefault = fairValue(r, e, fairApps, 0)
		case "queueMaxAppsDefault":
			r.maxApps = fairValue(r, e, fairApps, 0)
		case "queueMaxAMShareDefault":
			r.amShare = fairValue(r, e, fairAMShare, r.amShare)
		case "queueMaxResourcesDefault":
			r.maximum = fairValue(r, e, r.upper, queues.Amount{})
		case "defaultQueueSchedulingPolicy", "defaultQueueSchedulingMode":
			if r.policy = fairValue(r, e, fairPolicy, r.policy); r.policy == queues.Fifo {
				r.at(e, "<%s>: fifo cannot be the order of parent queues; give it to the leaf queues", e.name)
			}
		case "defaultMinSharePreemptionTimeout":
			r.minTime = fairValue(r, e, seconds, 0)
		case "defaultFairSharePreemptionTimeout", "fairSharePreemptionTimeout":
			r.fairTime = fairValue(r, e, seconds, 0)
		case "defaultFairSharePreemptionThreshold":
			r.fairShare = fairValue(r, e, fairThreshold, 0)
		case "queuePlacementPolicy":
			if r.rules != nil {
				r.at(e, "a second <queuePlacementPolicy>")
			}
			r.rules = e
		case "reservation-agent", "reservation-policy", "reservation-planner":
			r.warn(r.file, e.line, "<%s>: reservations are not used yet", e.name)
		default:
			r.unknown(e, topElements)
		}
	}
	slices.SortFunc(q.UserMaxApps, func(a, b queues.UserLimit) int { return strings.Compare(a.User, b.User) })
}

func (r *fairReader) unknown(e *element, names []string) {
	hint := ""
	if near := closest(e.name, names); near != "" {
		hint = "; did you mean <" + near + ">?"
	}
	r.warn(r.file, e.line, "<%s> is unknown and has no effect%s", e.name, hint)
}

func (r *fairReader) user(e *element, q *queues.Spec) {
	name := e.attr("name")
	if name == "" {
		r.at(e, "a <user> without a name")
		return
	}
	for _, f := range e.children {
		if f.name != "maxRunningApps" {
			r.unknown(f, []string{"maxRunningApps"})
			continue
		}
		if slices.ContainsFunc(q.UserMaxApps, func(u queues.UserLimit) bool { return u.User == name }) {
			r.at(f, "user %s has a <maxRunningApps> already", name)
			continue
		}
		q.UserMaxApps = append(q.UserMaxApps, queues.UserLimit{User: name, Max: fairValue(r, f, fairApps, 0)})
	}
}

// root collects the top-level queues below the root. <queue name="root"> contains the root's settings, and may contain
// queues too.
func (r *fairReader) root(doc *element) queues.Queue {
	whole := &element{name: "queue", line: doc.line}
	for _, e := range doc.children {
		if e.name != "queue" && e.name != "pool" {
			continue
		}
		if e.attr("name") != "root" {
			whole.children = append(whole.children, e)
			continue
		}
		whole.line = e.line
		whole.children = append(whole.children, e.children...)
	}
	root := r.queue(whole, creel.RootQueue, r.policy, 1)
	root.Name = "root"
	if root.MinSharePreemption == 0 {
		root.MinSharePreemption = r.minTime
	}
	if root.FairSharePreemption == 0 {
		root.FairSharePreemption = r.fairTime
	}
	if root.FairSharePreemptionAt == 0 {
		root.FairSharePreemptionAt = r.fairShare
	}
	// The root accepts undeclared queues if a rule creates them.
	root.AutoCreate = r.made(&root)
	return root
}

// made lets placement create queues below a parent with the defaults of the file, except the parent's limit. Hadoop
// does not limit their number; creel does, because a million names in a day must not fill the memory. Hadoop removes
// empty ones whenever it checks its file, every 10 s.
func (r *fairReader) made(parent *queues.Queue) *queues.AutoCreate {
	policy := r.policy
	if parent.Policy == queues.FairShare {
		policy = queues.FairShare // drf is not possible below FairShare
	}
	with := func(maximum queues.Amount) *queues.AutoCreate {
		q := queues.Queue{
			Capacity: queues.WeightOf(1), MaxCapacity: maximum, MaxParallelApps: r.maxApps, Policy: policy,
			MaxAMPercent: r.amShare,
		}
		return &queues.AutoCreate{Leaf: q, Parent: q, Depth: maxDepth, Max: 10_000, KeepIdle: 10 * time.Second}
	}
	all := with(r.maximum)
	if parent.MaxChild.Unit == queues.Unset {
		return all
	}
	out := with(parent.MaxChild)
	out.Below = all
	return out
}

func (r *fairReader) queue(e *element, path creel.QueuePath, parentPolicy queues.Policy, depth int) queues.Queue {
	isRoot := path == creel.RootQueue
	q := queues.Queue{
		Name:         path.Leaf(),
		Capacity:     queues.WeightOf(1),
		State:        creel.QueueRunning,
		Policy:       r.policy,
		MaxAMPercent: r.amShare,
	}
	// The defaults also apply to the root.
	q.MaxParallelApps, q.MaxCapacity = r.maxApps, r.maximum
	if isRoot {
		q.Submit, q.Admin = queues.ACL{All: true}, queues.ACL{All: true}
	}
	if r.count++; r.count > maxQueues || depth > maxDepth {
		if r.count == maxQueues+1 || depth == maxDepth+1 {
			r.at(e, "more than %d queues, or nested deeper than %d", maxQueues, maxDepth)
		}
		return q
	}
	var children []*element
	seen := map[string]int{}
	policyLine := e
	for _, f := range e.children {
		if f.name == "queue" || f.name == "pool" {
			children = append(children, f)
			continue
		}
		if line, again := seen[f.name]; again && slices.Contains(queueElements, f.name) {
			r.at(f, "queue %s has <%s> twice, first in line %d", path, f.name, line)
			continue
		}
		seen[f.name] = f.line
		if f.name == "schedulingPolicy" || f.name == "schedulingMode" {
			policyLine = f
		}
		r.element(f, &q)
	}
	if line, ok := seen["maxResources"]; ok && q.MaxCapacity.Unit == queues.Absolute &&
		q.Minimum.Unit == queues.Absolute &&
		!within(q.Minimum.Resource, q.MaxCapacity.Resource) {
		r.warn(r.file, line, "queue %s: the maximum %s is below the minimum %s", // as Hadoop does: the maximum applies
			path, shownAmount(q.MaxCapacity), shownAmount(q.Minimum))
	}
	r.checkKind(e, &q, path, parentPolicy, len(children) > 0, policyLine)
	for _, c := range children {
		if child, ok := r.childPath(c, path, q.Children); ok {
			q.Children = append(q.Children, r.queue(c, child, q.Policy, depth+1))
		}
	}
	if (len(children) > 0 || e.attr("type") == "parent") && !isRoot {
		q.AutoCreate = r.made(&q)
	}
	return q
}

// element reads one element of a queue that is no queue.
func (r *fairReader) element(f *element, q *queues.Queue) {
	switch f.name {
	case "minResources":
		q.Minimum = r.minimum(f)
	case "maxResources":
		q.MaxCapacity = fairValue(r, f, r.upper, q.MaxCapacity)
	case "maxChildResources":
		q.MaxChild = fairValue(r, f, r.upper, queues.Amount{})
	case "maxContainerAllocation":
		q.MaxAllocation = r.container(f)
	case "maxRunningApps":
		q.MaxParallelApps = fairValue(r, f, fairApps, 0)
	case "maxAMShare":
		q.MaxAMPercent = fairValue(r, f, fairAMShare, q.MaxAMPercent)
	case "weight":
		q.Capacity = fairValue(r, f, fairWeight, q.Capacity)
	case "schedulingPolicy", "schedulingMode":
		q.Policy = fairValue(r, f, fairPolicy, q.Policy)
	case "aclSubmitApps":
		q.Submit = queues.ParseACL(f.text)
	case "aclAdministerApps":
		q.Admin = queues.ParseACL(f.text)
	case "minSharePreemptionTimeout":
		q.MinSharePreemption = fairValue(r, f, seconds, 0)
	case "fairSharePreemptionTimeout":
		q.FairSharePreemption = fairValue(r, f, seconds, 0)
	case "fairSharePreemptionThreshold":
		q.FairSharePreemptionAt = fairValue(r, f, fairThreshold, 0)
	case "allowPreemptionFrom":
		q.PreemptionDisabled = !fairValue(r, f, parseBool, true)
	case "allowOversubscription":
		q.NoOversubscription = !fairValue(r, f, parseBool, true)
	case "maxOpportunisticContainers":
		q.Opportunistic.All = fairValue(r, f, maximumContainers, queues.Maximum{})
	case "maxOpportunisticContainersPerUser":
		q.Opportunistic.EachUser = fairValue(r, f, maximumContainers, queues.Maximum{})
	case "reservation", "aclAdministerReservations", "aclListReservations", "aclSubmitReservations":
		q.Settings = append(q.Settings, queues.Setting{Key: f.name, Value: f.value()})
		r.warn(r.file, f.line, "<%s>: reservations are kept and not used yet", f.name)
	default:
		r.unknown(f, queueElements)
	}
}

// childPath returns the path of a queue below another, whose children so far are siblings.
func (r *fairReader) childPath(c *element, path creel.QueuePath, siblings []queues.Queue) (creel.QueuePath, bool) {
	name := c.attr("name")
	switch {
	case name == "":
		r.at(c, "a queue below %s has no name", path)
		return "", false
	case strings.Contains(name, "."):
		r.at(c, "queue name %q has a dot; nest the queues instead", name)
		return "", false
	case name == "root":
		r.at(c, "a queue below %s is called root", path)
		return "", false
	}
	child := path.Child(name)
	if _, err := creel.ParseQueuePath(string(child)); err != nil {
		r.at(c, "%q is not a queue name", name)
		return "", false
	}
	if slices.ContainsFunc(siblings, func(o queues.Queue) bool { return o.Name == name }) {
		r.at(c, "queue %s stands in the file twice", child)
		return "", false
	}
	return child, true
}

// checkKind reports settings that contradict the kind of a queue: parent or leaf.
func (r *fairReader) checkKind(e *element, q *queues.Queue, path creel.QueuePath, parentPolicy queues.Policy,
	children bool, policyLine *element,
) {
	isRoot := path == creel.RootQueue
	kind := e.attr("type")
	if kind != "" && kind != "parent" {
		r.at(e, "type %q of queue %s is not parent", kind, path)
	}
	isParent := kind == "parent" || children
	if (isParent || isRoot) && q.Policy == queues.Fifo {
		r.at(policyLine, "queue %s has queues below it and cannot be fifo", path)
	}
	if q.Policy == queues.DRF && parentPolicy == queues.FairShare && !isRoot {
		r.at(policyLine, "queue %s is drf below %s, which is fair; make the parent drf", path, path.Parent())
	}
	if kind == "parent" &&
		slices.ContainsFunc(q.Settings, func(s queues.Setting) bool { return s.Key == "reservation" }) {
		r.at(e, "queue %s is a parent and cannot be for reservations", path)
	}
}

// minimum reads a guaranteed amount. As in Hadoop, a percentage guarantees nothing.
func (r *fairReader) minimum(e *element) queues.Amount {
	a := fairValue(r, e, r.lower, queues.Amount{})
	if a.Unit == queues.Unset || a.Unit == queues.Absolute {
		return a
	}
	r.warn(r.file, e.line, "<%s>: a percentage has no effect; write amounts, such as memory-mb=1024, vcores=2", e.name)
	return queues.Amount{}
}

func shownAmount(a queues.Amount) string { return a.Resource.String() }

// lower and upper parse resources: missing types are 0 in a minimum and unlimited in a maximum.
func (r *fairReader) lower(text string) (queues.Amount, error) { return r.resources(text, 0) }
func (r *fairReader) upper(text string) (queues.Amount, error) { return r.resources(text, unlimited) }

// resources parses the four notations of resources in an allocation file:
//
//	memory-mb=1024, vcores=2      memory-mb=50%, vcores=25%
//	1024 mb, 2 vcores             50% memory, 25% cpu       50%
func (r *fairReader) resources(text string, missing int64) (queues.Amount, error) {
	if strings.Contains(text, "=") {
		v, err := r.opt.parseVector(text, false)
		if err != nil {
			return queues.Amount{}, err
		}
		return v.amount(r.opt.typeNames(), missing), nil
	}
	lower := strings.ToLower(text)
	if strings.Contains(lower, "%") {
		return r.oldPercents(lower)
	}
	res := creel.Resource{}
	for _, t := range r.opt.ResourceTypes {
		// The old notation has only memory and cores. Hadoop reads the rest as zero. In a maximum, zero would forbid
		// types that the file never mentions.
		res = res.With(t.Name, missing)
	}
	found := map[string]bool{}
	for _, item := range splitList(lower) {
		digits := strings.TrimLeft(item, "0123456789. ")
		number, err := strconv.ParseFloat(strings.TrimSpace(item[:len(item)-len(digits)]), 64)
		unit := strings.TrimSpace(digits)
		if err != nil || number > 1<<53 {
			return queues.Amount{}, fmt.Errorf("%q: write memory-mb=1024, vcores=2", text)
		}
		switch unit {
		case "mb":
			res.MemoryMB = int64(number)
		case "vcores", "vcore":
			res.VCores, unit = int64(number), "vcores"
		default:
			return queues.Amount{}, fmt.Errorf(
				"%q has an amount without mb or vcores; write memory-mb=1024, vcores=2",
				text,
			)
		}
		if found[unit] {
			return queues.Amount{}, fmt.Errorf("%q names %s twice", text, unit)
		}
		found[unit] = true
	}
	if !found["mb"] || !found["vcores"] {
		return queues.Amount{}, fmt.Errorf("%q must name both mb and vcores; or write memory-mb=1024", text)
	}
	return queues.AbsoluteOf(res), nil
}

func (r *fairReader) oldPercents(text string) (queues.Amount, error) {
	items := splitList(text)
	parse := func(item string) (float64, string, error) {
		number, rest, ok := strings.Cut(item, "%")
		p, err := parseFloat(number)
		if !ok || err != nil || p < 0 {
			return 0, "", fmt.Errorf("%q is not a percentage", item)
		}
		return p, strings.TrimSpace(rest), nil
	}
	if len(items) == 1 {
		p, name, err := parse(items[0])
		if err != nil {
			return queues.Amount{}, err
		}
		if name == "" {
			return queues.PercentOf(p), nil
		}
	}
	a := queues.Amount{Unit: queues.PerType}
	for _, item := range items {
		p, name, err := parse(item)
		if err != nil {
			return queues.Amount{}, err
		}
		of, known := r.opt.typeNamed(name)
		full := of.Name
		if !known {
			return queues.Amount{}, fmt.Errorf("%q: resource type %q is not known", item, name)
		}
		if slices.ContainsFunc(a.Types, func(t queues.TypePercent) bool { return t.Type == full }) {
			return queues.Amount{}, fmt.Errorf("%q names %s twice", text, full)
		}
		a.Types = append(a.Types, queues.TypePercent{Type: full, Percent: p})
	}
	if len(a.Types) < 2 {
		return queues.Amount{}, fmt.Errorf("%q must name both memory and cpu, or be one percentage for all", text)
	}
	for _, t := range r.opt.ResourceTypes {
		if !slices.ContainsFunc(a.Types, func(p queues.TypePercent) bool { return p.Type == t.Name }) {
			a.Types = append(a.Types, queues.TypePercent{Type: t.Name, Percent: 100})
		}
	}
	return a, nil
}

// container reads the largest container of a queue. Types without a value keep the cluster's maximum. As in Hadoop, a
// percentage limits nothing.
func (r *fairReader) container(e *element) creel.Resource {
	a, err := r.resources(e.value(), unlimited)
	if err != nil {
		r.at(e, "<%s>: %v", e.name, err)
		return creel.Resource{}
	}
	if a.Unit != queues.Absolute {
		r.warn(r.file, e.line, "<%s>: a percentage has no effect; write amounts, such as memory-mb=1024", e.name)
		return creel.Resource{}
	}
	if r.opt.MaxAllocation.IsZero() {
		return a.Resource
	}
	return a.Resource.Min(r.opt.MaxAllocation)
}

func fairPolicy(text string) (queues.Policy, error) {
	name := strings.ToLower(text[strings.LastIndexByte(text, '.')+1:])
	switch name {
	case "fair", "fairsharepolicy":
		return queues.FairShare, nil
	case "fifo", "fifopolicy":
		return queues.Fifo, nil
	case "drf", "dominantresourcefairnesspolicy":
		return queues.DRF, nil
	}
	return queues.FairShare, fmt.Errorf("%q is none of fair, fifo, drf", text)
}

// fairWeight parses a weight. In Hadoop a negative one has the effect of 0.
func fairWeight(text string) (queues.Amount, error) {
	f, err := parseFloat(text)
	return queues.WeightOf(max(f, 0)), err
}

// fairApps parses a limit of running applications. With 0 or less none runs.
func fairApps(text string) (int, error) {
	n, err := parseInt(text)
	if err == nil && n == 0 {
		n = queues.NoApps
	}
	return n, err
}

// fairAMShare parses a share from 0 to 1, or -1 for no limit. As in Hadoop, more than 1 counts as 1, and another
// negative share as 0.
func fairAMShare(text string) (float64, error) {
	f, err := parseFloat(text)
	switch {
	case err != nil:
		return 0, err
	case f == -1:
		return -1, nil
	case f <= 0:
		return explicitZero, nil
	}
	return min(f, 1), nil
}

// fairThreshold parses a share from 0 to 1. As in Hadoop, other numbers become the nearer of these bounds.
func fairThreshold(text string) (float64, error) {
	f, err := parseFloat(text)
	return max(0, min(f, 1)), err
}

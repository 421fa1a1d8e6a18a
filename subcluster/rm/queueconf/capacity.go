// SPDX-License-Identifier: Apache-2.0

package queueconf

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

const (
	capacityPrefix  = "yarn.scheduler.capacity."
	nodeOrderPrefix = "creel.scheduler."
	appNameMappings = "yarn.scheduler.queue-placement-rules.app-name"
)

// ReadCapacity builds a queue tree from the properties of capacity-scheduler.xml, under the keys that Hadoop
// documents for the CapacityScheduler. It reports all errors at once, each with its line; the caller then keeps its
// current tree. Without properties the tree is one queue, root.default.
//
// Beyond Hadoop's keys, creel.scheduler.<queue path>.node-order = spread | pack sets the distribution of a queue's
// containers over nodes. ordering-policy may be drf or priority in a leaf. allow-oversubscription = false keeps a queue
// from lent resources. maximum-opportunistic-containers, also with -per-user, limits those at a time.
func ReadCapacity(props []Property, opt Options) (Config, error) {
	r := &capacityReader{opt: opt, props: map[string]Property{}, perQueue: map[string]map[string]Property{}}
	for _, p := range props {
		r.props[p.Name] = p
		r.order = append(r.order, p.Name)
	}
	if len(r.props) == 0 {
		r.put(Property{Name: capacityPrefix + "root.queues", Value: "default"})
		r.put(Property{Name: capacityPrefix + "root.default.capacity", Value: "100"})
	}
	out := Config{Queues: queues.Spec{
		Scheduler: queues.CapacityScheduler, Calculator: queues.MemoryOnly, MaxClusterPriority: opt.MaxClusterPriority,
		MaxApplications: 10000, NodeLocalityDelay: 40, RackLocalityAdditionalDelay: -1,
		NodeLocalityThreshold: -1, RackLocalityThreshold: -1,
	}}
	r.globals(&out.Queues)
	r.paths = map[creel.QueuePath]bool{}
	r.listQueues(creel.RootQueue, 1)
	r.sortKeys()
	out.Queues.Root = r.queue(creel.RootQueue, inheritance{
		state: creel.QueueRunning, labels: []string{queues.AnyLabel},
	})
	r.unusedKeys()
	out.Placement = r.placement(&out.Queues)
	if err := r.err(); err != nil {
		return Config{}, err
	}
	out.Warnings = r.sortedWarnings()
	return out, nil
}

type capacityReader struct {
	report
	opt      Options
	props    map[string]Property
	order    []string // names in the order of the file
	paths    map[creel.QueuePath]bool
	children map[creel.QueuePath][]string
	perQueue map[string]map[string]Property      // queue path -> setting -> property
	keys     map[string][]string                 // queue path -> its settings, sorted
	made     map[creel.QueuePath]map[string]bool // queue path -> names of future queues with settings

	maxAMPercent    float64
	maxQueueApps    int
	maxParallelApps int
	minUserPercent  float64
	userFactor      float64
	expireAfter     time.Duration
	legacyMode      bool
}

func (r *capacityReader) put(p Property) { r.props[p.Name] = p; r.order = append(r.order, p.Name) }

func (r *capacityReader) failAt(p Property, format string, a ...any) {
	r.fail(p.File, p.Line, "%s: "+format, append([]any{p.Name}, a...)...)
}

func (r *capacityReader) warnAt(p Property, format string, a ...any) {
	r.warn(p.File, p.Line, "%s: "+format, append([]any{p.Name}, a...)...)
}

// read parses a property with f if it is present and not blank.
func read[T any](r *capacityReader, p Property, ok bool, f func(string) (T, error), otherwise T) T {
	if !ok || strings.TrimSpace(p.Value) == "" {
		return otherwise
	}
	v, err := f(strings.TrimSpace(p.Value))
	if err != nil {
		r.failAt(p, "%v", err)
		return otherwise
	}
	return v
}

func global[T any](r *capacityReader, key string, f func(string) (T, error), otherwise T) T {
	p, ok := r.props[capacityPrefix+key]
	return read(r, p, ok, f, otherwise)
}

// globals reads the settings of the whole tree.
func (r *capacityReader) globals(q *queues.Spec) {
	q.MaxApplications = global(r, "maximum-applications", positive, q.MaxApplications)
	q.NodeLocalityDelay = global(r, "node-locality-delay", atLeast(-1), q.NodeLocalityDelay)
	q.RackLocalityAdditionalDelay = global(
		r,
		"rack-locality-additional-delay",
		atLeast(-1),
		q.RackLocalityAdditionalDelay,
	)
	q.Calculator = global(r, "resource-calculator", calculator, q.Calculator)
	r.maxAMPercent = global(r, "maximum-am-resource-percent", share, 0.1)
	r.maxQueueApps = min(max(0, global(r, "global-queue-max-application", atLeast(-1), 0)), q.MaxApplications)
	q.MaxQueueApps = r.maxQueueApps
	r.maxParallelApps = global(r, "max-parallel-apps", positive, 0)
	r.minUserPercent = global(r, "minimum-user-limit-percent", userPercent, 100)
	r.userFactor = global(r, "user-limit-factor", userFactor, 1)
	r.legacyMode = global(r, "legacy-queue-mode.enabled", parseBool, true)
	q.Vectors = !r.legacyMode
	workflows := global(r, "workflow-priority-mappings", workflowPriorities, nil)
	if global(r, "workflow-priority-mappings-override.enable", parseBool, false) {
		q.Workflows, q.WorkflowTag = workflows, r.opt.WorkflowTag
	}
	r.expireAfter = global(r, "auto-queue-creation-v2.queue-expiration-time", seconds, 300*time.Second)
	q.UserMaxAppsDefault = global(r, "user.max-parallel-apps", positive, 0)
	for _, name := range r.order {
		rest, ok := strings.CutPrefix(name, capacityPrefix+"user.")
		if !ok {
			continue
		}
		user, ok := strings.CutSuffix(rest, ".max-parallel-apps")
		if !ok || user == "" {
			continue
		}
		if n := read(r, r.props[name], true, positive, 0); n > 0 {
			q.UserMaxApps = append(q.UserMaxApps, queues.UserLimit{User: user, Max: n})
		}
	}
	slices.SortFunc(q.UserMaxApps, func(a, b queues.UserLimit) int { return strings.Compare(a.User, b.User) })
	q.UserMaxApps = slices.CompactFunc(q.UserMaxApps, func(a, b queues.UserLimit) bool { return a.User == b.User })
}

// globalKeys are the settings without a queue that this reader uses; others under yarn.scheduler.capacity are
// internals of Hadoop's scheduler.
var globalKeys = []string{
	"maximum-applications",
	"node-locality-delay",
	"rack-locality-additional-delay",
	"resource-calculator",
	"maximum-am-resource-percent",
	"global-queue-max-application",
	"max-parallel-apps",
	"minimum-user-limit-percent",
	"user-limit-factor",
	"legacy-queue-mode.enabled",
	"auto-queue-creation-v2.queue-expiration-time",
	"user.max-parallel-apps",
	"queue-mappings",
	"queue-mappings-override.enable",
	"mapping-rule-format",
	"mapping-rule-json",
	"mapping-rule-json-file",
	"workflow-priority-mappings",
	"workflow-priority-mappings-override.enable",
}

// hadoopsOwn are settings without a queue for internals of Hadoop's scheduler. creel does not use them.
var hadoopsOwn = []string{
	"schedule-asynchronously.",
	"per-node-heartbeat.",
	"multi-node-",
	"lazy-preemption-enabled", // every kill is lazy: it serves a waiting ask
	"reservations-continue-look-all-nodes",
	"skip-allocate-on-nodes-with-reserved-containers",
	"rack-locality-full-reset",
	"application.fail-fast",
	"user-metrics.enable",
	"queue.auto.refresh.",
	"auto-create-child-queue.",
	"configuration.",
}

// listQueues reads the .queues keys from the root down.
func (r *capacityReader) listQueues(path creel.QueuePath, depth int) {
	if r.children == nil {
		r.children = map[creel.QueuePath][]string{}
	}
	r.paths[path] = true
	p, ok := r.props[capacityPrefix+string(path)+".queues"]
	names := splitList(p.Value)
	if len(names) == 0 {
		if path == creel.RootQueue {
			if !ok {
				p.Name = capacityPrefix + "root.queues"
			}
			r.failAt(p, "the root has no queues; list them, separated by commas")
		}
		return
	}
	if depth > maxDepth {
		r.failAt(p, "queues nested deeper than %d", maxDepth)
		return
	}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			r.failAt(p, "queue %q is listed twice", name)
			continue
		}
		child := path.Child(name)
		if _, err := creel.ParseQueuePath(string(child)); err != nil || strings.Contains(name, ".") {
			r.failAt(p, "%q is not a queue name; it has no dots, and no spaces around it", name)
			continue
		}
		if len(r.paths) >= maxQueues {
			r.failAt(p, "more than %d queues", maxQueues)
			return
		}
		r.children[path] = append(r.children[path], name)
		r.listQueues(child, depth+1)
	}
}

// sortKeys assigns each property below the root to the queue with the longest path that the property starts with.
func (r *capacityReader) sortKeys() {
	r.keys, r.made = map[string][]string{}, map[creel.QueuePath]map[string]bool{}
	for _, name := range r.order {
		p := r.props[name]
		rest, ok := strings.CutPrefix(name, capacityPrefix)
		if !ok || rest != "root" && !strings.HasPrefix(rest, "root.") {
			continue
		}
		path, setting := r.owner(rest)
		if queue, of := r.toBeMade(path, setting); queue != "" {
			path, setting = path+"."+queue, of
		}
		own := r.perQueue[path]
		if own == nil {
			own = map[string]Property{}
			r.perQueue[path] = own
		}
		if _, again := own[setting]; !again {
			r.keys[path] = append(r.keys[path], setting)
		}
		own[setting] = p
	}
}

func (r *capacityReader) owner(rest string) (path, setting string) {
	for end := len(rest); end > 0; {
		i := strings.LastIndexByte(rest[:end], '.')
		if i < 0 {
			break
		}
		if r.paths[creel.QueuePath(rest[:i])] {
			return rest[:i], rest[i+1:]
		}
		end = i
	}
	return "root", ""
}

// toBeMade returns a queue that may be created below path, and its setting. It returns "" if path may not create queues
// down to that level.
func (r *capacityReader) toBeMade(path, setting string) (queue, of string) {
	if known(setting) {
		return "", ""
	}
	const flexible = ".auto-queue-creation-v2."
	on, err := parseBool(strings.TrimSpace(r.props[capacityPrefix+path+flexible+"enabled"].Value))
	if err != nil || !on {
		return "", ""
	}
	depth := 2
	if p, ok := r.props[capacityPrefix+path+flexible+"maximum-queue-depth"]; ok {
		depth, _ = positive(strings.TrimSpace(p.Value))
	}
	queue, of = splitKey(setting)
	names := strings.Split(queue, ".")
	if queue == "" || len(names) > depth {
		return "", ""
	}
	at := creel.QueuePath(path)
	for _, name := range names {
		if name == "*" {
			break
		}
		if r.made[at] == nil {
			r.made[at] = map[string]bool{}
		}
		r.made[at][name] = true
		at = at.Child(name)
	}
	return queue, of
}

// unusedKeys warns about properties that no reader has read.
func (r *capacityReader) unusedKeys() {
	for _, name := range r.order {
		p := r.props[name]
		rest, ok := strings.CutPrefix(name, capacityPrefix)
		switch {
		case !ok:
			if path, isOrder := strings.CutPrefix(name, nodeOrderPrefix); isOrder {
				path = strings.TrimSuffix(path, ".preemption.victims")
				if path = strings.TrimSuffix(path, ".node-order"); !r.paths[creel.QueuePath(path)] {
					r.warnAt(p, "there is no queue %s", path)
				}
			}
		case strings.HasPrefix(rest, "root."):
			path, setting := r.owner(rest)
			if known(setting) {
				continue
			}
			// A queue that is not listed appears as an unknown setting.
			queue, last := splitKey(setting)
			if queue != "" && last != "" {
				if made, _ := r.toBeMade(path, setting); made == "" && !strings.Contains(queue, "*") {
					r.warnAt(p, "queue %s.%s is not listed in %s.queues; it does not exist", path, queue, path)
				}
				continue
			}
			if near := nearestSetting(setting); near != "" {
				r.warnAt(p, "unknown setting %q of queue %s; did you mean %s?", setting, path, near)
			} else {
				r.warnAt(p, "unknown setting %q of queue %s", setting, path)
			}
		case slices.Contains(globalKeys, rest) || strings.HasPrefix(rest, "user.") && strings.HasSuffix(
			rest,
			".max-parallel-apps",
		):
		case slices.ContainsFunc(hadoopsOwn, func(own string) bool { return strings.HasPrefix(rest, own) }):
			r.warnAt(p, "has no effect: it configures internals of Hadoop's scheduler")
		default:
			if near := closest(rest, globalKeys); near != "" {
				r.warnAt(p, "unknown setting; did you mean %s%s?", capacityPrefix, near)
			} else {
				r.warnAt(p, "unknown setting")
			}
		}
	}
}

// queueSettings are the last parts of the keys of queues.
var queueSettings = []string{
	"queues",
	"capacity",
	"maximum-capacity",
	"minimum-user-limit-percent",
	"user-limit-factor",
	"maximum-am-resource-percent",
	"maximum-applications",
	"max-parallel-apps",
	"state",
	"acl_submit_applications",
	"acl_administer_queue",
	"acl_application_max_priority",
	"priority",
	"default-application-priority",
	"ordering-policy",
	"ordering-policy.fair.enable-size-based-weight",
	"maximum-allocation",
	"maximum-allocation-mb",
	"maximum-allocation-vcores",
	"maximum-application-lifetime",
	"default-application-lifetime",
	"disable_preemption",
	"intra-queue-preemption.disable_preemption",
	"allow-oversubscription",
	"maximum-opportunistic-containers",
	"maximum-opportunistic-containers-per-user",
	"allow-zero-capacity-sum",
	"auto-create-child-queue.enabled",
	"auto-create-child-queue.max-queues",
	"auto-create-child-queue.management-policy",
	"auto-create-child-queue.fail-on-exceeding-parent-capacity",
	"auto-queue-creation-v2.enabled",
	"auto-queue-creation-v2.max-queues",
	"auto-queue-creation-v2.maximum-queue-depth",
	"auto-queue-creation-v2.queue-auto-removal.enable",
}

// keptSettings are settings of Hadoop that are stored for reports. They have no effect here yet.
var keptSettings = []string{
	"reservable",
	"average-capacity",
	"reservation-window",
	"instantaneous-max-capacity",
	"reservation-policy",
	"reservation-agent",
	"show-reservations-as-queues",
	"reservation-planner",
	"reservation-move-on-expiry",
	"reservation-enforcement-window",
	"multi-node-sorting.policy",
	"ordering-policy.exclusive-enforced-partitions",
	"min-resource",
	"max-resource",
	"acl_reserve_administer",
	"acl_list_reservations",
	"acl_submit_reservations",
	"acl_administer_reservations",
}

var familySettings = []string{
	"user-settings.",
	"leaf-queue-template.",
	"auto-queue-creation-v2.template.",
	"auto-queue-creation-v2.leaf-template.",
	"auto-queue-creation-v2.parent-template.",
}

func known(setting string) bool {
	return slices.Contains(queueSettings, setting) || kept(setting) || isLabelSetting(setting) ||
		slices.ContainsFunc(familySettings, func(f string) bool { return strings.HasPrefix(setting, f) })
}

func kept(setting string) bool {
	return slices.Contains(keptSettings, setting) || strings.HasPrefix(setting, labelPrefix) && !isLabelSetting(setting)
}

// splitKey splits "x.y.capacity" into queue "x.y" and setting "capacity".
func splitKey(s string) (queue, setting string) {
	for i := 0; i < len(s); i++ {
		if s[i] == '.' && known(s[i+1:]) {
			return s[:i], s[i+1:]
		}
	}
	return "", ""
}

func nearestSetting(setting string) string { return closest(setting, queueSettings) }

// closest finds the name with the smallest edit distance, if that is small enough for a typing error.
func closest(s string, names []string) string {
	best, limit := "", max(2, len(s)/4)+1
	for _, n := range names {
		if d := editDistance(s, n); d < limit {
			best, limit = n, d
		}
	}
	return best
}

func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}

// Parsers of single values, with their permitted ranges.

func atLeast(least int) func(string) (int, error) {
	return func(text string) (int, error) {
		n, err := parseInt(text)
		if err == nil && n < least {
			err = fmt.Errorf("%d is below %d", n, least)
		}
		return n, err
	}
}

func positive(text string) (int, error) {
	n, err := parseInt(text)
	if err == nil && n <= 0 {
		err = fmt.Errorf("%d is not above 0", n)
	}
	return n, err
}

// positiveOrUnset parses a limit. A negative value is unset: 0.
func positiveOrUnset(text string) (int, error) {
	if n, err := parseInt(text); err == nil && n < 0 {
		return 0, nil
	}
	return positive(text)
}

// share is a fraction of 1; an explicit 0 differs from an absent value.
func share(text string) (float64, error) {
	f, err := parseFloat(text)
	switch {
	case err != nil:
		return 0, err
	case f < 0:
		return 0, fmt.Errorf("%v is below 0", f)
	}
	return cmp.Or(f, explicitZero), nil
}

func userPercent(text string) (float64, error) {
	f, err := parseFloat(text)
	switch {
	case err != nil:
		return 0, err
	case f < 0 || f > 100:
		return 0, fmt.Errorf("%v is not a percentage from 0 to 100", f)
	}
	return cmp.Or(f, explicitZero), nil
}

func userFactor(text string) (float64, error) {
	f, err := parseFloat(text)
	switch {
	case err != nil:
		return 0, err
	case f < 0 && f != -1:
		return 0, fmt.Errorf("%v is neither -1 nor at least 0", f)
	}
	return cmp.Or(f, explicitZero), nil
}

func seconds(text string) (time.Duration, error) {
	n, err := parseFloat(text)
	if err != nil {
		return 0, err
	}
	if n > 1e9 || n < -1e9 {
		return 0, fmt.Errorf("%v seconds are more than thirty years", n)
	}
	return time.Duration(n * float64(time.Second)), nil
}

func calculator(text string) (queues.Calculator, error) {
	switch text[strings.LastIndexByte(text, '.')+1:] {
	case "DefaultResourceCalculator":
		return queues.MemoryOnly, nil
	case "DominantResourceCalculator":
		return queues.Dominant, nil
	}
	return queues.MemoryOnly, errors.New(
		"known calculators are org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator and DominantResourceCalculator",
	)
}

// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
)

const (
	capacityPrefix  = "yarn.scheduler.capacity."
	nodeOrderPrefix = "creel.scheduler."
	appNameMappings = "yarn.scheduler.queue-placement-rules.app-name"
)

// ReadCapacity makes a queue tree of the properties of capacity-scheduler.xml,
// under the keys that Hadoop documents for the CapacityScheduler. Everything
// that is wrong is reported at once, with its line; the caller then keeps the
// tree it has. No properties at all give one queue, root.default.
//
// Beyond Hadoop's keys, creel.scheduler.<queue path>.node-order = spread | pack
// says how a queue's containers are laid over nodes, and ordering-policy may
// be drf or priority in a leaf.
func ReadCapacity(props []Property, opt ConfigOptions) (QueueConfig, error) {
	r := &capacityReader{opt: opt, props: map[string]Property{}, own: map[string]map[string]Property{}}
	for _, p := range props {
		r.props[p.Name] = p
		r.order = append(r.order, p.Name)
	}
	if len(r.props) == 0 {
		r.put(Property{Name: capacityPrefix + "root.queues", Value: "default"})
		r.put(Property{Name: capacityPrefix + "root.default.capacity", Value: "100"})
	}
	out := QueueConfig{Queues: Queues{
		Scheduler: Capacity, Calculator: MemoryOnly, MaxClusterPriority: opt.MaxClusterPriority,
		MaxApplications: 10000, NodeLocalityDelay: 40, RackLocalityAdditionalDelay: -1,
		NodeLocalityThreshold: -1, RackLocalityThreshold: -1,
	}}
	r.globals(&out.Queues)
	r.paths = map[creel.QueuePath]bool{}
	r.listQueues(creel.RootQueue, 1)
	r.sortKeys()
	out.Queues.Root = r.queue(creel.RootQueue, confInheritance{state: creel.QueueRunning})
	r.unusedKeys()
	out.Placement = r.placement(&out.Queues)
	if err := r.err(); err != nil {
		return QueueConfig{}, err
	}
	out.Notes = r.sortedNotes()
	return out, nil
}

type capacityReader struct {
	confReport
	opt      ConfigOptions
	props    map[string]Property
	order    []string // names as they came
	paths    map[creel.QueuePath]bool
	children map[creel.QueuePath][]string
	own      map[string]map[string]Property // queue path -> setting -> property
	keys     map[string][]string            // queue path -> its settings, sorted

	maxAMPercent    float64
	maxQueueApps    int
	maxParallelApps int
	minUserPercent  int
	userFactor      float64
	expireAfter     time.Duration
	legacyMode      bool
}

func (r *capacityReader) put(p Property) { r.props[p.Name] = p; r.order = append(r.order, p.Name) }

func (r *capacityReader) failAt(p Property, format string, a ...any) {
	r.fail(p.File, p.Line, "%s: "+format, append([]any{p.Name}, a...)...)
}

func (r *capacityReader) noteAt(p Property, format string, a ...any) {
	r.note(p.File, p.Line, "%s: "+format, append([]any{p.Name}, a...)...)
}

// read parses a property with f when it is there and not blank.
func confRead[T any](r *capacityReader, p Property, ok bool, f func(string) (T, error), otherwise T) T {
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

func confGlobal[T any](r *capacityReader, key string, f func(string) (T, error), otherwise T) T {
	p, ok := r.props[capacityPrefix+key]
	return confRead(r, p, ok, f, otherwise)
}

// globals reads the keys that hold for the whole tree.
func (r *capacityReader) globals(q *Queues) {
	q.MaxApplications = confGlobal(r, "maximum-applications", confPositive, q.MaxApplications)
	q.NodeLocalityDelay = confGlobal(r, "node-locality-delay", confAtLeast(-1), q.NodeLocalityDelay)
	q.RackLocalityAdditionalDelay = confGlobal(
		r,
		"rack-locality-additional-delay",
		confAtLeast(-1),
		q.RackLocalityAdditionalDelay,
	)
	q.Calculator = confGlobal(r, "resource-calculator", confCalculator, q.Calculator)
	r.maxAMPercent = confGlobal(r, "maximum-am-resource-percent", confShare, 0.1)
	r.maxQueueApps = confGlobal(r, "global-queue-max-application", confAtLeast(-1), 0)
	r.maxParallelApps = confGlobal(r, "max-parallel-apps", confPositive, 0)
	r.minUserPercent = confGlobal(r, "minimum-user-limit-percent", confUserPercent, 100)
	r.userFactor = confGlobal(r, "user-limit-factor", confUserFactor, 1)
	r.legacyMode = confGlobal(r, "legacy-queue-mode.enabled", confBool, true)
	r.expireAfter = confGlobal(r, "auto-queue-creation-v2.queue-expiration-time", confSeconds, 300*time.Second)
	q.UserMaxAppsDefault = confGlobal(r, "user.max-parallel-apps", confPositive, 0)
	for _, name := range r.order {
		rest, ok := strings.CutPrefix(name, capacityPrefix+"user.")
		if !ok {
			continue
		}
		user, ok := strings.CutSuffix(rest, ".max-parallel-apps")
		if !ok || user == "" {
			continue
		}
		if n := confRead(r, r.props[name], true, confPositive, 0); n > 0 {
			q.UserMaxApps = append(q.UserMaxApps, UserLimit{User: user, Max: n})
		}
	}
	slices.SortFunc(q.UserMaxApps, func(a, b UserLimit) int { return strings.Compare(a.User, b.User) })
	q.UserMaxApps = slices.CompactFunc(q.UserMaxApps, func(a, b UserLimit) bool { return a.User == b.User })
}

// globalKeys are the settings without a queue that this reader uses; others
// under yarn.scheduler.capacity belong to how Hadoop goes about scheduling.
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
}

// hadoopsOwn are settings without a queue that say how Hadoop's scheduler works
// inside; creel works another way and has no use for them.
var hadoopsOwn = []string{
	"schedule-asynchronously.",
	"per-node-heartbeat.",
	"multi-node-",
	"lazy-preemption-enabled",
	"reservations-continue-look-all-nodes",
	"skip-allocate-on-nodes-with-reserved-containers",
	"rack-locality-full-reset",
	"application.fail-fast",
	"user-metrics.enable",
	"workflow-priority-mappings",
	"queue.auto.refresh.",
	"auto-create-child-queue.",
	"configuration.",
}

// listQueues walks the .queues keys down from the root.
func (r *capacityReader) listQueues(path creel.QueuePath, depth int) {
	if r.children == nil {
		r.children = map[creel.QueuePath][]string{}
	}
	r.paths[path] = true
	p, ok := r.props[capacityPrefix+string(path)+".queues"]
	names := confList(p.Value)
	if len(names) == 0 {
		if path == creel.RootQueue {
			if !ok {
				p.Name = capacityPrefix + "root.queues"
			}
			r.failAt(p, "the root has no queues; list them, separated by commas")
		}
		return
	}
	if depth > maxConfigDepth {
		r.failAt(p, "queues nested deeper than %d", maxConfigDepth)
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
		if len(r.paths) >= maxConfigQueues {
			r.failAt(p, "more than %d queues", maxConfigQueues)
			return
		}
		r.children[path] = append(r.children[path], name)
		r.listQueues(child, depth+1)
	}
}

// sortKeys gives each property below the root to the longest queue path that
// it begins with.
func (r *capacityReader) sortKeys() {
	r.keys = map[string][]string{}
	for _, name := range r.order {
		p := r.props[name]
		rest, ok := strings.CutPrefix(name, capacityPrefix)
		if !ok || rest != "root" && !strings.HasPrefix(rest, "root.") {
			continue
		}
		path, setting := r.owner(rest)
		own := r.own[path]
		if own == nil {
			own = map[string]Property{}
			r.own[path] = own
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

// unusedKeys notes what nobody asked for.
func (r *capacityReader) unusedKeys() {
	for _, name := range r.order {
		p := r.props[name]
		rest, ok := strings.CutPrefix(name, capacityPrefix)
		switch {
		case !ok:
			if path, isOrder := strings.CutPrefix(name, nodeOrderPrefix); isOrder {
				if path, isOrder = strings.CutSuffix(path, ".node-order"); isOrder && !r.paths[creel.QueuePath(path)] {
					r.noteAt(p, "there is no queue %s", path)
				}
			}
		case strings.HasPrefix(rest, "root."):
			path, setting := r.owner(rest)
			if confKnown(setting) {
				continue
			}
			// A queue that is not listed looks like an unknown setting.
			queue, last := confSplit(setting)
			if queue != "" && last != "" {
				if !strings.Contains(queue, "*") {
					r.noteAt(p, "queue %s.%s is not listed in %s.queues; it does not exist", path, queue, path)
				}
				continue
			}
			if near := confNearest(setting); near != "" {
				r.noteAt(p, "unknown setting %q of queue %s; did you mean %s?", setting, path, near)
			} else {
				r.noteAt(p, "unknown setting %q of queue %s", setting, path)
			}
		case slices.Contains(globalKeys, rest) || strings.HasPrefix(rest, "user.") && strings.HasSuffix(rest, ".max-parallel-apps"):
		case slices.ContainsFunc(hadoopsOwn, func(own string) bool { return strings.HasPrefix(rest, own) }):
			r.noteAt(p, "has no effect: it says how Hadoop's scheduler works inside")
		default:
			if near := confClosest(rest, globalKeys); near != "" {
				r.noteAt(p, "unknown setting; did you mean %s%s?", capacityPrefix, near)
			} else {
				r.noteAt(p, "unknown setting")
			}
		}
	}
}

// queueSettings are the last parts of the keys of one queue.
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

// keptSettings are understood by Hadoop and kept for reports; nothing here acts on them yet.
var keptSettings = []string{
	"accessible-node-labels",
	"default-node-label-expression",
	"acl_application_max_priority",
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

func confKnown(setting string) bool {
	return slices.Contains(queueSettings, setting) || confKept(setting) ||
		slices.ContainsFunc(familySettings, func(f string) bool { return strings.HasPrefix(setting, f) })
}

func confKept(setting string) bool {
	return slices.Contains(keptSettings, setting) || strings.HasPrefix(setting, "accessible-node-labels.")
}

// confSplit cuts "x.y.capacity" into the queue part "x.y" and the setting.
func confSplit(s string) (queue, setting string) {
	for i := 0; i < len(s); i++ {
		if s[i] == '.' && confKnown(s[i+1:]) {
			return s[:i], s[i+1:]
		}
	}
	return "", ""
}

func confNearest(setting string) string { return confClosest(setting, queueSettings) }

// closest finds the name at the least edit distance, if that is small.
func confClosest(s string, names []string) string {
	best, limit := "", max(2, len(s)/4)+1
	for _, n := range names {
		if d := confEditDistance(s, n); d < limit {
			best, limit = n, d
		}
	}
	return best
}

func confEditDistance(a, b string) int {
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

// Parsers of single values, with the range that each may have.

func confAtLeast(least int) func(string) (int, error) {
	return func(text string) (int, error) {
		n, err := confInt(text)
		if err == nil && n < least {
			err = fmt.Errorf("%d is below %d", n, least)
		}
		return n, err
	}
}

func confPositive(text string) (int, error) {
	n, err := confInt(text)
	if err == nil && n <= 0 {
		err = fmt.Errorf("%d is not above 0", n)
	}
	return n, err
}

// share is a fraction of 1; a written 0 is kept apart from "not given".
func confShare(text string) (float64, error) {
	f, err := confFloat(text)
	switch {
	case err != nil:
		return 0, err
	case f < 0:
		return 0, fmt.Errorf("%v is below 0", f)
	}
	return cmp.Or(f, confZero), nil
}

func confUserPercent(text string) (int, error) {
	f, err := confFloat(text)
	switch {
	case err != nil:
		return 0, err
	case f < 0 || f > 100:
		return 0, fmt.Errorf("%v is not a percentage from 0 to 100", f)
	}
	return max(1, int(f)), nil
}

func confUserFactor(text string) (float64, error) {
	f, err := confFloat(text)
	switch {
	case err != nil:
		return 0, err
	case f < 0 && f != -1:
		return 0, fmt.Errorf("%v is neither -1 nor at least 0", f)
	}
	return cmp.Or(f, confZero), nil
}

func confSeconds(text string) (time.Duration, error) {
	n, err := confFloat(text)
	if err != nil {
		return 0, err
	}
	if n > 1e9 || n < -1e9 {
		return 0, fmt.Errorf("%v seconds are more than thirty years", n)
	}
	return time.Duration(n * float64(time.Second)), nil
}

func confCalculator(text string) (Calculator, error) {
	switch text[strings.LastIndexByte(text, '.')+1:] {
	case "DefaultResourceCalculator":
		return MemoryOnly, nil
	case "DominantResourceCalculator":
		return Dominant, nil
	}
	return MemoryOnly, errors.New(
		"known calculators are org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator and DominantResourceCalculator",
	)
}

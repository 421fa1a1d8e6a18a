// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/daemon/federation"
	"github.com/creelrm/creel/app/daemon/role"
	"github.com/creelrm/creel/app/sim"
	"github.com/creelrm/creel/internal/workload"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// configs returns the configurations of one or two runs.
func (f *compareFlags) configs(ctx context.Context, flags *simFlags, t *trial, doc *simDocument) ([]sim.Config, error) {
	members, inForce, err := f.members(ctx, t, doc)
	if err != nil {
		return nil, err
	}
	first, err := flags.config(flags.seed, members...)
	if err != nil {
		return nil, err
	}
	if f.own() {
		first.Policies, first.Refusals = inForce, true
		if flags.split == "" {
			first.Split = "" // the documents decide: draw no split
		}
	}
	if f.conf.given() {
		if first.Queues, err = confQueues(f.conf); err != nil {
			return nil, err
		}
	}
	if f.policy != "" {
		if first.Policies, err = readPolicies(t, "--policy", f.policy, &first); err != nil {
			return nil, err
		}
	}
	out := []sim.Config{first}
	if f.two() {
		second, err := f.second(t, first)
		if err != nil {
			return nil, err
		}
		out = append(out, second)
	}
	for i := range out {
		if out[i].Jobs, err = f.deal(out[i].Jobs, leavesOf(&out[i]), doc); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// members returns the members of the view, if requested, and the policies in force there.
func (f *compareFlags) members(ctx context.Context, t *trial, doc *simDocument) (
	out []sim.Member, inForce []sim.Policy, err error,
) {
	var view *subcluster.View
	switch f.view {
	case "":
		return nil, nil, nil
	case "live":
		if view, err = (routerPolicies{&f.clientFlags}).view(ctx); err != nil {
			return nil, nil, err
		}
	default:
		var file rest.ViewDoc
		if err := t.parse("--view", f.view, &file); err != nil {
			return nil, nil, err
		}
		if view, err = viewOf(file, "by the file", nil); err != nil {
			return nil, nil, usage(fmt.Errorf("--view %s: %w", f.view, err))
		}
	}
	for i := range view.Members {
		s := &view.Members[i]
		n, total := s.Load.Metrics.ActiveNodes, s.Load.Metrics.Total()
		if s.State != subcluster.StateActive || n < 1 {
			doc.note("%s is left out: it is %s and has %d nodes", s.ID, s.State, n)
			continue
		}
		m := sim.Member{ID: s.ID, Nodes: int(n), NodeSize: creel.NewResource(total.MemoryMB/n, total.VCores/n)}
		if !f.conf.given() {
			spec, err := queuesOf(s)
			if err != nil {
				return nil, nil, err
			}
			m.Queues = &spec
		}
		out = append(out, m)
	}
	if len(out) == 0 {
		return nil, nil, usage(fmt.Errorf("--view %s: no member is active and has nodes, so there is nothing to simulate", f.view))
	}
	doc.note("%d members of %s, each with nodes of its average size", len(out), f.view)
	if !f.conf.given() {
		doc.note("queues have the view's guarantees, but no maxima and no limits of users and AMs: give --conf")
	}
	for _, p := range view.Policies.All() {
		if len(p.Document) > 0 {
			inForce = append(inForce, sim.Policy{Queue: p.Queue, Document: string(p.Document)})
		}
	}
	return out, inForce, nil
}

// queuesOf builds a queue tree from a member's report. Weights are proportional to the guarantees; it sets no other
// limit.
func queuesOf(s *subcluster.Status) (queues.Spec, error) {
	spec := rm.Defaults().Queues
	spec.Calculator = queues.Dominant
	spec.Root = queues.Queue{Name: "root", Submit: queues.ACL{All: true}, UserFactor: -1, MaxAMPercent: 0.5}
	for _, q := range s.Load.Queues {
		names := q.Queue.Parts()
		if q.Label != "" || len(names) < 2 || names[0] != "root" {
			continue
		}
		at := &spec.Root
		for _, name := range names[1:] {
			i := slices.IndexFunc(at.Children, func(c queues.Queue) bool { return c.Name == name })
			if i < 0 {
				at.Children = append(at.Children, queues.Queue{
					Name: name, UserFactor: -1, MaxAMPercent: 0.5, Capacity: queues.WeightOf(0),
				})
				i = len(at.Children) - 1
			}
			at = &at.Children[i]
		}
		at.Capacity.Value = max(1, float64(q.Capacity.MemoryMB))
	}
	var fill func(q *queues.Queue) float64
	fill = func(q *queues.Queue) float64 { // a parent without a guarantee uses its children's sum
		sum := 0.0
		for i := range q.Children {
			sum += fill(&q.Children[i])
		}
		if q.Capacity.Value == 0 {
			q.Capacity.Value = max(1, sum)
		}
		return q.Capacity.Value
	}
	for i := range spec.Root.Children {
		fill(&spec.Root.Children[i])
	}
	if len(spec.Root.Children) == 0 {
		return spec, usage(fmt.Errorf("--view: %s reports no queues, like Hadoop's ResourceManagers; give --conf DIR", s.ID))
	}
	if err := spec.Validate(); err != nil {
		return spec, usage(fmt.Errorf("--view: the queues of %s: %w; give --conf DIR", s.ID, err))
	}
	return spec, nil
}

// second returns the first configuration with the second run's options.
func (f *compareFlags) second(t *trial, c sim.Config) (_ sim.Config, err error) {
	if f.against != "" {
		if c.Policies, err = readPolicies(t, "--against", f.against, &c); err != nil {
			return c, err
		}
	}
	if f.other.given() {
		from := simConf{f.conf.dir, slices.Concat(f.conf.defines, f.other.defines)}
		if f.other.dir != "" {
			from.dir = f.other.dir
		}
		if c.Queues, err = confQueues(from); err != nil {
			return c, err
		}
		c.Members = slices.Clone(c.Members)
		for i := range c.Members {
			if c.Members[i].Queues != nil && from.dir == "" {
				return c, usage(errors.New("--against-define with --view: give --conf DIR, whose queues both runs have"))
			}
			c.Members[i].Queues = nil
		}
	}
	return c, nil
}

// confFiles are the files of a Hadoop configuration that define queues.
var confFiles = []string{"capacity-scheduler.xml", "fair-scheduler.xml", "yarn-site.xml", "core-site.xml"}

// confQueues reads queues and their preemption settings.
func confQueues(from simConf) (queues.Spec, error) {
	dir, err := os.MkdirTemp("", "creel-sim-")
	if err != nil {
		return queues.Spec{}, err
	}
	defer os.RemoveAll(dir)
	if from.dir != "" && !slices.ContainsFunc(confFiles, func(name string) bool {
		_, err := os.Stat(filepath.Join(from.dir, name))
		return err == nil
	}) {
		return queues.Spec{}, usage(fmt.Errorf("%s is not a directory with a Hadoop configuration: it has none of %s",
			from.dir, strings.Join(confFiles, ", ")))
	}
	s, err := federation.Settings(dir, from.dir, from.defines)
	if err != nil {
		return queues.Spec{}, err
	}
	q, err := role.QueueConfig(s, false)
	if err != nil {
		return queues.Spec{}, usage(err)
	}
	q.Queues.Root.Submit = queues.ACL{All: true} // the day's users are in no access list
	return q.Queues, nil
}

// readPolicies reads one document for all queues, or one document for each of several queues.
func readPolicies(t *trial, flag, name string, c *sim.Config) ([]sim.Policy, error) {
	var keys map[string]json.RawMessage
	if err := t.parse(flag, name, &keys); err != nil {
		return nil, err
	}
	documents := map[creel.QueuePath]json.RawMessage{}
	for key, d := range keys {
		if key == "root" || strings.HasPrefix(key, "root.") {
			documents[creel.QueuePath(key)] = d
		}
	}
	switch len(documents) {
	case len(keys):
	case 0:
		whole, err := json.Marshal(keys)
		if err != nil {
			return nil, err
		}
		documents["root"] = whole
	default:
		return nil, usage(fmt.Errorf("%s %s: it is neither one document nor one for each queue, {\"root.prod\": DOCUMENT}", flag, name))
	}
	var members []creel.SubclusterID
	for _, m := range c.Members {
		members = append(members, m.ID)
	}
	for i := range c.Subclusters {
		if len(c.Members) == 0 {
			members = append(members, sim.MemberID(i))
		}
	}
	var out []sim.Policy
	for _, q := range slices.Sorted(maps.Keys(documents)) {
		parsed, err := policies.Parse(documents[q])
		if err == nil {
			err = parsed.CheckMembers(members)
		}
		if err != nil {
			return nil, usage(fmt.Errorf("%s %s: queue %s: %w", flag, name, q, err))
		}
		out = append(out, sim.Policy{Queue: q, Document: string(documents[q])})
	}
	return out, nil
}

// leavesOf returns the sorted leaf queues that accept applications, of all members.
func leavesOf(c *sim.Config) []creel.QueuePath {
	var out []creel.QueuePath
	var look func(q *queues.Queue, path creel.QueuePath)
	look = func(q *queues.Queue, path creel.QueuePath) {
		for i := range q.Children {
			look(&q.Children[i], path.Child(q.Children[i].Name))
		}
		if len(q.Children) == 0 && q.AutoCreate == nil && cmp.Or(q.State, creel.QueueRunning) == creel.QueueRunning {
			out = append(out, path)
		}
	}
	own := false
	for _, m := range c.Members {
		if m.Queues != nil {
			own = true
			look(&m.Queues.Root, "root")
		}
	}
	if !own {
		look(&c.Queues.Root, "root")
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// deal assigns a day's jobs to the existing queues: by size if requested. Otherwise, if a queue of the day is
// missing, each user's jobs go to one of the existing queues, in turn.
func (f *compareFlags) deal(jobs []workload.Job, leaves []creel.QueuePath, doc *simDocument) ([]workload.Job, error) {
	if len(leaves) == 0 {
		return nil, usage(errors.New("no queue of the configuration takes applications: " +
			"all are stopped, or parents of queues that are made on demand"))
	}
	jobs = slices.Clone(jobs)
	if f.bySize != "" {
		sizes, err := parseSizes(f.bySize, leaves)
		if err != nil {
			return nil, err
		}
		for i := range jobs {
			takes := func(s sizeQueue) bool { return jobs[i].Tasks() <= s.most }
			jobs[i].Queue = sizes[slices.IndexFunc(sizes, takes)].queue
		}
		return jobs, nil
	}
	if !slices.ContainsFunc(jobs, func(j workload.Job) bool { return !slices.Contains(leaves, j.Queue) }) {
		return jobs, nil
	}
	users := map[string]int{}
	for i := range jobs {
		n, known := users[jobs[i].User]
		if !known {
			n = len(users)
			users[jobs[i].User] = n
		}
		jobs[i].Queue = leaves[n%len(leaves)]
	}
	doc.note("the day's queues are not there: its %d users submit to the %d leaf queues, in turn", len(users), len(leaves))
	return jobs, nil
}

// sizeQueue accepts jobs with at most this number of tasks.
type sizeQueue struct {
	queue creel.QueuePath
	most  int
}

func parseSizes(text string, leaves []creel.QueuePath) (out []sizeQueue, err error) {
	bad := func(format string, args ...any) error {
		why := fmt.Sprintf(format, args...)
		return usage(fmt.Errorf("--by-size %s: %s; such as root.short=20,root.long", text, why))
	}
	for part := range strings.SplitSeq(text, ",") {
		name, most, bound := strings.Cut(part, "=")
		one := sizeQueue{creel.QueuePath(name), math.MaxInt}
		if bound {
			if one.most, err = strconv.Atoi(most); err != nil || one.most < 1 {
				return nil, bad("%q is no number of tasks", most)
			}
		}
		if !slices.Contains(leaves, one.queue) {
			return nil, bad("there is no queue %q that takes applications, only %v", name, leaves)
		}
		if n := len(out); n > 0 && out[n-1].most >= one.most {
			return nil, bad("%s comes after a queue that takes as large jobs", name)
		}
		out = append(out, one)
	}
	if out[len(out)-1].most != math.MaxInt {
		return nil, bad("the last queue has no bound, to take all that is larger")
	}
	return out, nil
}

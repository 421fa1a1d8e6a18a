// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm/opportunistic"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/constraints"
)

var rewrite = flag.Bool("rewrite", false, "write what the machine does into testdata/*.txt")

// TestScenarios plays the conversations in testdata: each line that is not indented is an event, the indented lines
// below it are its effects. Run with -rewrite after a change, then read the difference.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scenarios in testdata", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(b))
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(b) {
				t.Errorf(
					"%s: the machine does otherwise (go test -run Scenarios -rewrite shows how):\n%s",
					file,
					diff(string(b), got),
				)
			}
		})
	}
}

func diff(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	var out []string
	for i := 0; i < max(len(w), len(g)) && len(out) < 12; i++ {
		var a, b string
		if i < len(w) {
			a = w[i]
		}
		if i < len(g) {
			b = g[i]
		}
		if a != b {
			out = append(out, fmt.Sprintf("line %d\n  - %s\n  + %s", i+1, a, b))
		}
	}
	return strings.Join(out, "\n")
}

// scene is one scenario as it plays.
type scene struct {
	t     *testing.T
	cfg   Config
	w     *world
	names map[string]creel.ApplicationID
	apps  map[creel.ApplicationID]string
	out   []string
}

func play(t *testing.T, text string) string {
	s := &scene{t: t, cfg: Defaults(), names: map[string]creel.ApplicationID{}, apps: map[creel.ApplicationID]string{}}
	s.cfg.Queues.MaxClusterPriority = 10
	s.cfg.MaxAllocation = creel.Resource{MemoryMB: 65536, VCores: 64}
	s.cfg.Volatile = true
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "  ") {
			continue
		}
		b.WriteString(line + "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		s.out = nil
		s.line(line)
		for _, o := range s.out {
			b.WriteString("  " + o + "\n")
		}
	}
	return b.String()
}

func (s *scene) say(format string, args ...any) { s.out = append(s.out, fmt.Sprintf(format, args...)) }

func (s *scene) bad(err error) bool {
	if err != nil {
		s.say("refused: %v", s.rename(err.Error()))
	}
	return err != nil
}

// rename puts the scenario's names for the ids.
func (s *scene) rename(text string) string {
	for id, name := range s.apps {
		for n := int32(1); n < 5; n++ {
			text = strings.ReplaceAll(
				text,
				creel.AttemptID{Application: id, Attempt: n}.String(),
				fmt.Sprintf("%s/%d", name, n),
			)
		}
		text = strings.ReplaceAll(text, id.String(), name)
	}
	return strings.ReplaceAll(text, "\n", " | ")
}

func (s *scene) container(id creel.ContainerID) string {
	name := s.apps[id.Attempt.Application]
	if id.Attempt.Attempt > 1 {
		name += "/" + strconv.Itoa(int(id.Attempt.Attempt))
	}
	return fmt.Sprintf("%s#%d", name, id.Sequence())
}

func amount(text string) creel.Resource {
	a, b, _ := strings.Cut(text, ",")
	mb, _ := strconv.ParseInt(a, 10, 64)
	cores, _ := strconv.ParseInt(b, 10, 64)
	return creel.Resource{MemoryMB: mb, VCores: cores}
}

func brief(r creel.Resource) string { return fmt.Sprintf("%d,%d", r.MemoryMB, r.VCores) }

// options splits "a b=c d" into flags and values.
func options(words []string) map[string]string {
	out := map[string]string{}
	for _, w := range words {
		k, v, ok := strings.Cut(w, "=")
		if !ok {
			v = "yes"
		}
		out[k] = v
	}
	return out
}

func number(s string) float64 {
	f, _ := strconv.ParseFloat(s, 64)
	return f
}

func (s *scene) line(line string) {
	words := strings.Fields(line)
	op, args := words[0], words[1:]
	switch op {
	case "set":
		s.set(options(args))
		return
	case "queue":
		if s.w == nil {
			s.queue(&s.cfg.Queues, args[0], options(args[1:]))
			return
		}
	case "start":
	}
	if s.w == nil {
		cfg := s.cfg
		s.w = newWorld(s.t, func(c *Config) { *c = cfg; c.ClusterTimestamp = 1 })
	}
	w, m := s.w, s.w.m
	w.got = nil
	switch op {
	case "start":
	case "node":
		rack := ""
		if len(args) > 2 {
			rack = args[2]
		}
		id := creel.NodeID{Host: args[0], Port: 1}
		r, err := m.RegisterNode(w.now, &RegisterNode{ID: id, HTTPPort: 8042, Rack: rack, Resource: amount(args[1])})
		w.responses[id] = 0
		if !s.bad(err) && r.Action != NodeNormal {
			s.say("told to stop: %s", r.Diagnostics)
		}
	case "heartbeat":
		s.heartbeat(args[0], args[1:])
	case "logs": // of an application, as a node reports them
		status := creel.ParseLogAggregationStatus(args[2])
		id := creel.NodeID{Host: args[0], Port: 1}
		out := m.NodeHeartbeat(w.now, &NodeReport{ID: id, ResponseID: w.responses[id], Logs: []LogReport{
			{App: s.names[args[1]], Status: status, Message: strings.Join(args[3:], " ")},
		}})
		w.responses[id] = out.ResponseID
	case "gathered":
		v, _ := m.App(s.names[args[0]])
		s.say("%s", v.Logs)
		for _, n := range m.NodeLogs(s.names[args[0]]) {
			s.say("%s: %s; said %q, failed %q", n.Node.Host, n.Status, n.Messages, n.Failures)
		}
	case "gone":
		m.UnregisterNode(w.now, creel.NodeID{Host: args[0], Port: 1})
	case "resize":
		s.bad(m.SetNodeResource(w.now, creel.NodeID{Host: args[0], Port: 1}, amount(args[1])))
	case "drain":
		d := &Decommission{ID: creel.NodeID{Host: args[0], Port: 1}, Graceful: true}
		if len(args) > 1 {
			d.Timeout, _ = time.ParseDuration(args[1])
		}
		s.bad(m.Decommission(w.now, d))
	case "undrain":
		s.bad(m.Recommission(w.now, creel.NodeID{Host: args[0], Port: 1}))
	case "submit":
		s.submit(args[0], options(args[1:]))
	case "register":
		id := s.attempt(args[0])
		r, err := m.RegisterAM(w.now, &RegisterAM{Attempt: id, Host: "host"})
		if !s.bad(err) {
			w.ids[id] = 0
			for _, g := range r.Previous {
				s.say("still has %s on %s", s.container(g.ID), g.Node.Host)
			}
		}
	case "ask":
		s.ask(args)
	case "allocate":
		s.allocate(args[0], AllocateRequest{})
	case "repeat":
		id := s.attempt(args[0])
		out, err := m.Allocate(w.now, id, &AllocateRequest{ResponseID: w.ids[id] - 1})
		if !s.bad(err) {
			s.say("the answer %d again: %v", out.ResponseID, out.Duplicate)
			s.answer(out)
		}
	case "release":
		var ids []creel.ContainerID
		for _, a := range args[1:] {
			ids = append(ids, s.cid(a))
		}
		s.allocate(args[0], AllocateRequest{Release: ids})
	case "blacklist":
		r := AllocateRequest{}
		for _, a := range args[1:] {
			if a[0] == '+' {
				r.BlacklistAdd = append(r.BlacklistAdd, a[1:])
			} else {
				r.BlacklistRemove = append(r.BlacklistRemove, a[1:])
			}
		}
		s.allocate(args[0], r)
	case "promote", "demote":
		var r AllocateRequest
		for _, name := range args[1:] {
			c, _ := m.Container(s.cid(name))
			kind := map[string]UpdateKind{"promote": Promote, "demote": Demote}[op]
			r.Updates = append(r.Updates, Update{Container: s.cid(name), Version: c.Version, Kind: kind})
		}
		s.allocate(args[0], r)
	case "opportunistic":
		v, _ := m.Opportunistic()
		s.say("%d opportunistic containers, granted %d, released %d, promoted %d, demoted %d",
			v.Containers, v.Granted, v.Released, v.Promoted, v.Demoted)
	case "grow", "shrink":
		c, _ := m.Container(s.cid(args[1]))
		kind := Increase
		if op == "shrink" {
			kind = Decrease
		}
		s.allocate(
			args[0],
			AllocateRequest{
				Updates: []Update{
					{Container: s.cid(args[1]), Version: c.Version, Kind: kind, Resource: amount(args[2])},
				},
			},
		)
	case "schedule":
		size, count := amount(args[2]), int32(number(args[3]))
		s.allocate(
			args[0],
			AllocateRequest{
				Scheduling: []SchedulingAsk{
					s.schedulingAsk(int32(number(args[1])), size, count, args[4:]),
				},
			},
		)
	case "attributes":
		var list []Attribute
		for _, text := range args[1:] {
			name, value, _ := strings.Cut(text, "=")
			list = append(list, Attribute{AttributeKey{AttributesByCall, name}, value})
		}
		s.bad(m.MapAttributes(w.now, ReplaceAttributes, []HostAttributes{{args[0], list}}, true))
	case "label":
		s.bad(m.AddLabels(w.now, []Label{{args[0], args[1] == "exclusive"}}))
	case "labelled":
		id := creel.NodeID{Host: args[0], Port: 1}
		s.bad(m.ReplaceLabels(w.now, []NodeLabels{{id, args[1:]}}, false))
	case "constrain":
		_, err := m.RegisterAM(w.now, &RegisterAM{Attempt: s.attempt(args[0]), Host: "host", Constraints: []TagConstraint{
			{Tags: []string{args[1]}, Constraint: s.constraint(args[2])},
		}})
		if !s.bad(err) {
			s.w.ids[s.attempt(args[0])] = 0
		}
	case "kept":
		for _, k := range m.Asks(s.attempt(args[0]).Application) {
			s.say("scheduling request at priority %d: %s x%d %v %s", k.Priority, brief(k.Resource), k.Count, k.Tags, k.Constraint)
		}
	case "use":
		id := creel.NodeID{Host: args[0], Port: 1}
		s.w.responses[id] = m.NodeHeartbeat(
			w.now,
			&NodeReport{
				ID:         id,
				ResponseID: s.w.responses[id],
				Utilization: &NodeUse{
					NodePhysicalMB: int32(amount(args[1]).MemoryMB),
					NodeCPU:        float32(amount(args[1]).VCores),
				},
			},
		).ResponseID
		v, _ := m.Node(id)
		s.say("%s measured %d MB and %v cores in use", args[0], v.Utilization.NodePhysicalMB, v.Utilization.NodeCPU)
	case "finish":
		done, err := m.FinishAM(w.now, &FinishAM{Attempt: s.attempt(args[0]), Status: creel.FinalSucceeded})
		if !s.bad(err) {
			s.say("unregistered: %v", done)
		}
	case "kill":
		_, err := m.Kill(w.now, s.names[args[0]], "killed by the scenario")
		s.bad(err)
	case "hold":
		h, err := m.Hold(w.now, s.names[args[0]], int64(number(args[1])), "sc-2, because sc-1 is drained")
		if !s.bad(err) {
			s.say("held in %s, %v of its lifetime left, moved between queues %v", h.App.Queue, h.Left, h.Moved)
		}
	case "letgo":
		s.bad(m.ReleaseHold(w.now, s.names[args[0]], int64(number(args[1]))))
	case "drop":
		s.bad(m.DropHeld(w.now, s.names[args[0]], int64(number(args[1]))))
	case "failattempt":
		s.bad(m.FailAttempt(w.now, s.attempt(args[0])))
	case "launchfailed":
		m.AMLaunchFailed(w.now, s.attempt(args[0]), "no such image")
	case "move":
		s.bad(m.Move(w.now, s.names[args[0]], args[1]))
	case "priority":
		p, err := m.SetPriority(w.now, s.names[args[0]], int32(number(args[1])))
		if !s.bad(err) {
			s.say("priority %d", p)
		}
	case "wait":
		s.wait(args[0])
	case "reload":
		q := *m.Spec()
		q.Root = cloneQueue(q.Root)
		if len(args) > 0 {
			s.queue(&q, args[0], options(args[1:]))
		}
		s.bad(m.ReloadQueues(w.now, q))
	case "plan":
		before := m.AppendState(nil)
		p, err := m.PlanPreemption(args[0])
		if !s.bad(err) {
			s.say("preemption is on: %v", p.On)
		}
		for _, v := range p.Victims {
			s.say("would take %s for %s in %s, told already: %v: %s",
				s.container(v.Container), s.apps[v.For], v.ForQueue, v.UnderNotice, v.Why)
		}
		if after := m.AppendState(nil); !bytes.Equal(before, after) {
			s.t.Fatalf("the plan changed the state:\n%s", diff(string(before), string(after)))
		}
	case "capacities": // for how long, and queue=percent of the cluster
		c := Capacities{Version: 7}
		for _, arg := range args[1:] {
			path, percent, _ := strings.Cut(arg, "=")
			share, err := strconv.ParseFloat(percent, 64)
			if err != nil {
				s.t.Fatal(err)
			}
			c.Queues = append(c.Queues, Capacity{Queue: creel.QueuePath(path), Share: share / 100})
		}
		d, err := time.ParseDuration(args[0])
		if err != nil {
			s.t.Fatal(err)
		}
		c.Until = w.now.Add(d)
		s.bad(m.SetCapacities(w.now, c))
	case "entitled":
		v, _ := m.Queue(args[0])
		if v.Planned == nil {
			s.say("%s has what is configured, %s", v.Path, brief(v.Guaranteed))
			break
		}
		s.say("%s has %s by plan %d until %s, configured are %s", v.Path, brief(v.Planned.Amount), v.Planned.Version,
			v.Planned.Until.Sub(w.now), brief(v.Guaranteed))
	case "stop":
		s.bad(m.SetQueueState(w.now, creel.QueuePath(args[0]), creel.QueueStopped))
	case "why":
		y, _ := m.Why(s.names[args[0]])
		s.say("%s: %s", y.Limit, s.rename(y.Text))
		if y.Try != "" {
			s.say("to change it: %s", y.Try)
		}
	case "app":
		v, _ := m.App(s.names[args[0]])
		s.say(
			"%s %s in %s: uses %s in %d, wants %d more, progress of attempts %d",
			v.State,
			v.Final,
			v.Queue,
			brief(v.Used),
			v.Containers,
			v.PendingCount,
			v.Attempt.Attempt,
		)
		if v.Diagnostics != "" && v.State.Ended() {
			s.say("because: %s", s.rename(v.Diagnostics))
		}
	case "asks":
		for _, a := range m.Asks(s.names[args[0]]) {
			s.say("priority %d %s %s x%d relax=%v", a.Priority, a.ResourceName, brief(a.Resource), a.Count, a.Relax)
		}
	case "queue":
		v, ok := m.Queue(args[0])
		if !ok {
			s.say("there is no queue %s", args[0])
			break
		}
		s.say(
			"%s uses %s of %s guaranteed, %s at most; AMs %s of %s; %d running, %d in line",
			v.Path,
			brief(v.Used),
			brief(v.Guaranteed),
			brief(v.Max),
			brief(v.AMUsed),
			brief(v.AMLimit),
			v.ActiveApps,
			v.PendingApps,
		)
		for _, u := range v.Users {
			s.say("user %s uses %s of %s", u.Name, brief(u.Used), brief(u.Limit))
		}
	case "show":
		v, _ := m.Node(creel.NodeID{Host: args[0], Port: 1})
		s.say(
			"%s uses %s of %s in %d containers, reserved: %v",
			v.State,
			brief(v.Used),
			brief(v.Total),
			v.Containers,
			!v.Reserved.IsZero(),
		)
	default:
		s.t.Fatalf("unknown line %q", line)
	}
	s.w.pump()
	s.actions()
	if err := m.Audit(); err != nil {
		s.t.Fatalf("after %q: %v", line, err)
	}
}

func (s *scene) wait(text string) {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	until := s.w.now.Add(d)
	for {
		next := s.w.m.NextDeadline()
		if next.IsZero() || next.After(until) {
			break
		}
		s.w.now = next
		s.w.m.Tick(next)
	}
	s.w.now = until
	s.w.m.Tick(until)
}

func (s *scene) actions() {
	for _, a := range s.w.got {
		switch a := a.(type) {
		case LaunchAM:
			if a.Unmanaged {
				s.say("%s may register", s.rename(a.Attempt.String()))
			} else {
				s.say(
					"AM of %s starts on %s as %s",
					s.rename(a.Attempt.String()),
					a.Container.Node.Host,
					s.container(a.Container.ID),
				)
			}
		case StopAM:
			s.say("AM of %s is stopped", s.rename(a.Attempt.String()))
		case AppEnded:
			s.say("%s ended: %s, %s", s.apps[a.App], a.State, a.Final)
		case LogsChanged:
			v, _ := s.w.m.App(a.App)
			s.say("logs of %s: %s", s.apps[a.App], v.Logs)
		case AttemptEnded:
			s.say("attempt %s is over", s.rename(a.Attempt.String()))
		case Preempted:
			s.say("%s of %s, %s old, for the %s of %s in %s", a.What, s.container(a.Container), a.Age, a.Rule,
				s.apps[a.For], a.ForQueue)
		case News:
			s.say("%s has news", s.apps[a.Attempt.Application])
		}
	}
}

func (s *scene) set(o map[string]string) {
	q := &s.cfg.Queues
	if v, ok := o["preempt"]; ok {
		s.preemption(&q.Preemption, "preempt", v)
		delete(o, "preempt")
	}
	for _, k := range sortedKeys(o) {
		v := o[k]
		switch k {
		case "scheduler":
			q.Scheduler = map[string]queues.Scheduler{"capacity": queues.CapacityScheduler, "fair": queues.FairScheduler}[v]
			if q.Scheduler == queues.FairScheduler {
				q.Root.Children = nil
			}
		case "calculator":
			q.Calculator = map[string]queues.Calculator{"memory": queues.MemoryOnly, "dominant": queues.Dominant}[v]
		case "nodedelay":
			q.NodeLocalityDelay = int(number(v))
		case "rackdelay":
			q.RackLocalityAdditionalDelay = int(number(v))
		case "nodewait":
			q.NodeLocalityWait, _ = time.ParseDuration(v)
		case "reservations":
			q.ReservationsOff = v == "off"
		case "attempts":
			s.cfg.MaxAttempts = int(number(v))
		case "labels":
			s.cfg.Labels = LabelsByCall
		case "logs":
			s.cfg.LogAggregation = v == "on"
		case "messages":
			s.cfg.LogMessages = int(number(v))
		case "opportunistic":
			o := opportunistic.Defaults()
			s.cfg.Opportunistic = &o
		case "mostpercall":
			s.cfg.Opportunistic.PerCall = int(number(v))
		case "autoupdate":
			s.cfg.AutoUpdate = true
		case "increment":
			s.cfg.Increment = amount(v)
		case "placement":
			s.cfg.Placement = perUser(v)
		case "scheduling":
			s.cfg.Constraints = map[string]ConstraintHandler{"on": ConstraintsKept, "tried": ConstraintsTried}[v]
		case "userapps":
			q.UserMaxAppsDefault = int(number(v))
		case "priorities":
			q.MaxClusterPriority = int32(number(v))
		default:
			if !s.preemption(&q.Preemption, k, v) {
				s.t.Fatalf("unknown setting %q", k)
			}
		}
	}
}

// schedulingAsk reads tags, and a last word with a comma or "=" as the constraint.
func (s *scene) schedulingAsk(priority int32, size creel.Resource, count int32, words []string) SchedulingAsk {
	k := SchedulingAsk{Priority: priority, Resource: size, Count: count}
	for _, word := range words {
		if strings.ContainsAny(word, ",=|&") {
			k.Constraint = s.constraint(word)
		} else {
			k.Tags = append(k.Tags, word)
		}
	}
	return k
}

// constraint reads in,node,TAG; notin,rack,all/TAG; cardinality,node,TAG,MIN,MAX;
// PREFIX/NAME=VALUE or !=; all of them joined by "&", or any by "|".
func (s *scene) constraint(text string) *constraints.Constraint {
	for _, op := range []struct {
		sign string
		kind constraints.ConstraintOp
	}{{"|", constraints.AnyOf}, {"&", constraints.AllOf}} {
		if parts := strings.Split(text, op.sign); len(parts) > 1 {
			c := &constraints.Constraint{Op: op.kind}
			for _, p := range parts {
				c.Parts = append(c.Parts, s.constraint(p))
			}
			return c
		}
	}
	if key, value, ok := strings.Cut(text, "="); ok {
		c := &constraints.Constraint{Min: -1, Max: -1, NotEqual: strings.HasSuffix(key, "!")}
		c.Targets = []constraints.Target{{
			Kind: constraints.ByAttribute, Key: strings.TrimSuffix(key, "!"), Values: []string{value},
		}}
		return c
	}
	f := strings.Split(text, ",")
	c := &constraints.Constraint{Rack: f[1] == "rack"}
	switch f[0] {
	case "in":
		c.Min, c.Max = 1, math.MaxInt32
	case "cardinality":
		c.Min, c.Max = int32(number(f[3])), int32(number(f[4]))
	}
	space, tag := "", f[2]
	if i := strings.LastIndex(tag, "/"); i >= 0 {
		space, tag = tag[:i], tag[i+1:]
	}
	t := constraints.Target{Values: []string{tag}}
	if id, ok := s.names[strings.TrimPrefix(space, "app-id/")]; ok {
		space = "app-id/" + id.String()
	}
	if err := constraints.ParseNamespace(space, &t); err != nil {
		s.t.Fatal(err)
	}
	c.Targets = []constraints.Target{t}
	return c
}

// preemption sets one preemption setting; "preempt" first sets Hadoop's defaults.
func (s *scene) preemption(p *queues.Preemption, k, v string) bool {
	switch k {
	case "preempt":
		wait := 15 * time.Second
		*p = queues.Preemption{
			On: true, ObserveOnly: v == "observe", Interval: 3 * time.Second, Wait: wait,
			PerRound: 0.1, IgnoredOver: 0.1, Termination: 0.2, IntraFrom: 0.5, IntraMost: 0.2, Utilization: 0.8,
		}
	case "round":
		p.PerRound = number(v)
	case "zone":
		p.IgnoredOver = number(v)
	case "termination":
		p.Termination = number(v)
	case "takewait":
		p.Wait, _ = time.ParseDuration(v)
	case "utilization":
		p.Utilization = number(v)
	case "within":
		p.IntraQueue = true
		p.IntraFirst = map[string]queues.IntraOrder{
			"user": queues.IntraUserLimitFirst, "priority": queues.IntraPriorityFirst,
		}[v]
	case "withinmost":
		p.IntraMost = number(v)
	case "withinfrom":
		p.IntraFrom = number(v)
	case "withoutdrf":
		p.ConservativeDRF = v == "off"
	case "reserved":
		p.ReservedFirst, p.ReservedTwice = v == "first", v == "twice"
	case "balance":
		p.Balance = true
		p.BalanceWait, _ = time.ParseDuration(v)
	default:
		return false
	}
	return true
}

// perUser places an application that names no queue below a queue, in a queue named for its user.
type perUser string

func (p perUser) Place(r queues.PlacementRequest, _ func(creel.QueuePath) bool) (queues.PlacementResult, error) {
	if r.Queue != "" {
		return queues.PlacementResult{}, nil // as mappings do that do not override
	}
	return queues.PlacementResult{Queue: creel.QueuePath(p).Child(r.User), Create: true, Rule: "user"}, nil
}

func (perUser) KeepsNamed() bool { return true }

func sortedKeys(o map[string]string) []string {
	var ks []string
	for k := range o {
		ks = append(ks, k)
	}
	slices.Sort(ks)
	return ks
}

func cloneQueue(q queues.Queue) queues.Queue {
	q.Children = slices.Clone(q.Children)
	for i := range q.Children {
		q.Children[i] = cloneQueue(q.Children[i])
	}
	return q
}

// queue sets a queue of the specification, making it if need be. The first
// one replaces the default queue.
func (s *scene) queue(spec *queues.Spec, path string, o map[string]string) {
	q := &spec.Root
	if len(q.Children) == 1 && q.Children[0].Name == "default" && path != "root" && path != "root.default" {
		q.Children = nil
	}
	for _, part := range strings.Split(path, ".")[1:] {
		i := slices.IndexFunc(q.Children, func(c queues.Queue) bool { return c.Name == part })
		if i < 0 {
			if o["remove"] != "" {
				return
			}
			q.Children = append(q.Children, queues.Queue{Name: part})
			i = len(q.Children) - 1
		} else if o["remove"] != "" {
			q.Children = slices.Delete(q.Children, i, i+1)
			return
		}
		q = &q.Children[i]
	}
	for _, k := range sortedKeys(o) {
		v := o[k]
		switch k {
		case "capacity":
			q.Capacity = queues.PercentOf(number(v))
		case "weight":
			q.Capacity = queues.WeightOf(number(v))
		case "resources":
			q.Capacity = queues.AbsoluteOf(amount(v))
		case "max":
			q.MaxCapacity = queues.PercentOf(number(v))
		case "maxresources":
			q.MaxCapacity = queues.AbsoluteOf(amount(v))
		case "min":
			q.Minimum = queues.AbsoluteOf(amount(v))
		case "minuser":
			q.MinUserPercent = number(v)
		case "factor":
			q.UserFactor = number(v)
		case "am":
			q.MaxAMPercent = number(v)
		case "apps":
			q.MaxApps = int(number(v))
		case "parallel":
			q.MaxParallelApps = int(number(v))
		case "auto":
			q.AutoCreate = &queues.AutoCreate{Depth: int(number(v)), Leaf: queues.Queue{UserFactor: 1}}
		case "managed":
			q.AutoCreate = &queues.AutoCreate{Depth: 1, Managed: true, Leaf: queues.Queue{Capacity: queues.PercentOf(number(v))}}
		case "userweight":
			name, w, _ := strings.Cut(v, ":")
			q.UserWeights = append(q.UserWeights, queues.UserLimit{User: name, Weight: number(w)})
		case "order":
			q.NodeOrder = map[string]queues.NodeOrder{"pack": queues.Pack, "spread": queues.Spread}[v]
		case "share": // LABEL:PERCENT
			label, part, _ := strings.Cut(v, ":")
			q.Shares = append(q.Shares, queues.LabelShare{Label: label, Capacity: queues.PercentOf(number(part)), MaxAMPercent: 1})
		case "policy":
			q.Policy = map[string]queues.Policy{"fifo": queues.Fifo, "fair": queues.FairShare, "drf": queues.DRF, "hdrf": queues.HDRF, "priority": queues.PriorityFirst, "utilization": queues.Utilization, "priority-utilization": queues.PriorityUtilization}[v]
		case "priority":
			q.Priority = int32(number(v))
		case "keeps":
			q.PreemptionDisabled = v == "all" || v == "yes"
			q.IntraPreemptionDisabled = v == "within"
		case "sizeweight":
			q.SizeWeight = v == "yes"
		case "victims":
			q.Victims = map[string]queues.Victims{"newest": queues.Newest, "least-work": queues.LeastWork}[v]
		case "mintime":
			q.MinSharePreemption, _ = time.ParseDuration(v)
		case "fairtime":
			q.FairSharePreemption, _ = time.ParseDuration(v)
		case "fairat":
			q.FairSharePreemptionAt = number(v)
		case "lifetime":
			q.MaxLifetime, _ = time.ParseDuration(v)
		case "largest":
			q.MaxAllocation = amount(v)
		default:
			s.t.Fatalf("unknown setting %q of a queue", k)
		}
	}
}

func (s *scene) attempt(name string) creel.AttemptID {
	v, ok := s.w.m.App(s.names[name])
	if !ok {
		s.t.Fatalf("no application %s", name)
	}
	return v.Attempt
}

// cid reads app#sequence or app/attempt#sequence.
func (s *scene) cid(text string) creel.ContainerID {
	name, seq, _ := strings.Cut(text, "#")
	name, att, ok := strings.Cut(name, "/")
	n := 1.0
	if ok {
		n = number(att)
	}
	return creel.NewContainerID(creel.AttemptID{Application: s.names[name], Attempt: int32(n)}, 0, int64(number(seq)))
}

func (s *scene) submit(name string, o map[string]string) {
	w := s.w
	w.apps++
	sub := &Submission{
		ID:             creel.ApplicationID{ClusterTimestamp: 1, ID: w.apps},
		User:           or(o["user"], "alice"),
		Queue:          o["queue"],
		Name:           name,
		Unmanaged:      o["unmanaged"] != "",
		KeepContainers: o["keep"] != "",
		MaxAttempts:    int(number(o["attempts"])),
		AM:             Ask{ResourceName: "*", Resource: amount(or(o["am"], "1024,1")), Count: 1},
	}
	if p, ok := o["priority"]; ok {
		sub.Priority, sub.HasPriority = int32(number(p)), true
	}
	if o["uam"] != "" {
		sub.Unmanaged, sub.Name = true, creel.UAMName("sc-2")
	}
	if d, ok := o["lifetime"]; ok {
		sub.Lifetime, _ = time.ParseDuration(d)
	}
	if d, ok := o["validity"]; ok {
		sub.FailuresValidity, _ = time.ParseDuration(d)
	}
	s.names[name], s.apps[sub.ID] = sub.ID, name
	s.bad(w.m.Submit(w.now, sub))
}

// ask reads "NAME PRIORITY PLACE SIZE COUNT [strict | label=LABEL]; PLACE SIZE COUNT ...".
func (s *scene) ask(args []string) {
	name, priority := args[0], int32(number(args[1]))
	var r AllocateRequest
	for _, part := range strings.Split(strings.Join(args[2:], " "), ";") {
		f := strings.Fields(part)
		a := Ask{Priority: priority, ResourceName: f[0], Resource: amount(f[1]), Count: int32(number(f[2]))}
		a.StrictLocality = len(f) > 3 && f[3] == "strict"
		if slices.Contains(f, "opportunistic") {
			a.ExecutionType = creel.Opportunistic
		}
		if label, ok := strings.CutPrefix(f[len(f)-1], "label="); ok {
			a.Label = LabelExpression{label, true}
		}
		r.Asks = append(r.Asks, a)
	}
	s.allocate(name, r)
}

func (s *scene) allocate(name string, r AllocateRequest) {
	id := s.attempt(name)
	r.ResponseID = s.w.ids[id]
	out, err := s.w.m.Allocate(s.w.now, id, &r)
	if s.bad(err) {
		return
	}
	s.w.ids[id] = out.ResponseID
	s.answer(out)
}

func (s *scene) answer(out *Answer) {
	for i := 0; i < len(out.Granted); {
		g := out.Granted[i]
		j := i + 1
		for j < len(out.Granted) && out.Granted[j].Node == g.Node && out.Granted[j].Reason == g.Reason && out.Granted[j].Resource.Equal(g.Resource) && out.Granted[j].ExecutionType == g.ExecutionType {
			j++
		}
		which := s.container(g.ID)
		if j > i+1 {
			which += fmt.Sprintf("..%d", out.Granted[j-1].ID.Sequence())
		}
		as := ""
		if g.ExecutionType == creel.Opportunistic {
			as = ", opportunistic"
		}
		s.say("granted %s on %s, %s, %s%s", which, g.Node.Host, brief(g.Resource), g.Reason, as)
		i = j
	}
	for _, r := range out.Rejected {
		why := "COULD_NOT_SCHEDULE_ON_NODE"
		if r.NoPlace {
			why = "COULD_NOT_PLACE_ON_NODE"
		}
		s.say("rejected %d of %v: %s", r.Count, r.Ask.Tags, why)
	}
	for _, c := range out.Completed {
		s.say("ended %s, exit %d: %s", s.container(c.ID), c.ExitStatus, c.Diagnostics)
	}
	for _, u := range out.Updated {
		if u.Kind == Promote || u.Kind == Demote {
			s.say("%s is %s now, version %d", s.container(u.Grant.ID), u.Grant.ExecutionType, u.Grant.Version)
			continue
		}
		s.say("updated %s to %s, version %d", s.container(u.Grant.ID), brief(u.Grant.Resource), u.Grant.Version)
	}
	for _, e := range out.UpdateErrors {
		s.say("not updated %s: %s", s.container(e.Update.Container), e.Reason)
	}
	for _, g := range out.FromPrevious {
		s.say("came back %s on %s", s.container(g.ID), g.Node.Host)
	}
	if len(out.Preempt) > 0 {
		var ids []string
		for _, id := range out.Preempt {
			ids = append(ids, s.container(id))
		}
		others := "those"
		if n := out.Negotiable; n != nil {
			others = fmt.Sprintf("or others of %d times %s", n.Count, brief(n.Each))
		}
		s.say("is to give back %s, %s", strings.Join(ids, " "), others)
	}
	for _, n := range out.UpdatedNodes {
		s.say("node %s is %s", n.ID.Host, [...]string{"usable", "unusable", "being decommissioned"}[n.Kind])
	}
}

// heartbeat reads NODE and containers as app#seq=exit, app#seq=running, or
// "all" for all of them running.
func (s *scene) heartbeat(name string, args []string) {
	id := creel.NodeID{Host: name, Port: 1}
	r := &NodeReport{ID: id, ResponseID: s.w.responses[id]}
	for _, a := range args {
		if a == "sick" {
			r.Unhealthy, r.HealthReport = true, "disks failed"
			continue
		}
		if queue, ok := strings.CutPrefix(a, "queue="); ok { // LENGTH/CAPACITY
			length, capacity, _ := strings.Cut(queue, "/")
			r.Utilization = &NodeUse{QueueLength: int32(number(length)), QueueCapacity: int32(number(capacity))}
			continue
		}
		if a == "all" {
			for _, c := range s.w.m.NodeContainers(id) {
				r.Containers = append(r.Containers, ContainerStatus{ID: c.ID, State: creel.ContainerRunning})
			}
			continue
		}
		c, state, _ := strings.Cut(a, "=")
		st := ContainerStatus{ID: s.cid(c), State: creel.ContainerRunning}
		if state != "running" && state != "" {
			st.State, st.ExitStatus = creel.ContainerComplete, int32(number(state))
		}
		r.Containers = append(r.Containers, st)
	}
	out := s.w.m.NodeHeartbeat(s.w.now, r)
	s.w.responses[id] = out.ResponseID
	if out.Action != NodeNormal {
		s.say(
			"told to %s: %s",
			map[NodeAction]string{NodeResync: "resync", NodeStop: "stop"}[out.Action],
			out.Diagnostics,
		)
	}
	for _, c := range out.Cleanup {
		s.say("kill %s", s.container(c))
	}
	for _, c := range out.Forget {
		s.say("forget %s", s.container(c))
	}
	for _, a := range out.Apps {
		s.say("clean up after %s", s.apps[a])
	}
	if r.Utilization != nil && out.Limit != nil {
		s.say("queue at most %d", out.Limit.Length)
	}
	for _, g := range out.Update {
		if g.Version > 0 && (g.ExecutionType == creel.Opportunistic || s.cfg.AutoUpdate) {
			s.say("change %s to %s, %s", s.container(g.ID), brief(g.Resource), g.ExecutionType)
			continue
		}
		s.say("change %s to %s", s.container(g.ID), brief(g.Resource))
	}
}

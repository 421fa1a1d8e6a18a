// SPDX-License-Identifier: Apache-2.0

package router_test

import (
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/subcluster"
)

// queueView has two members of 100 GB each. In each of them root.prod is guaranteed 60 %, root.research 40 %.
func queueView(prodUsed, researchUsed, researchPending int64) *subcluster.View {
	view := viewOf(subcluster.StateActive, subcluster.StateActive)
	gb := func(n int64) creel.Resource { return creel.NewResource(n*1024, n) }
	for i := range view.Members {
		load := &view.Members[i].Load
		load.Metrics.TotalMB, load.Metrics.TotalVirtualCores = 100*1024, 100
		load.Queues = []subcluster.QueueLoad{
			{Queue: "root", Capacity: gb(100), Used: gb(prodUsed + researchUsed), Pending: gb(researchPending)},
			{Queue: "root.prod", Capacity: gb(60), Used: gb(prodUsed)},
			{Queue: "root.research", Capacity: gb(40), Used: gb(researchUsed), Pending: gb(researchPending)},
		}
	}
	return view
}

func TestQueueBelowItsGuaranteeHeadsTheSummary(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	apps := router.Tally{Known: true, Running: 19, Waiting: 151, Oldest: 6 * time.Minute, Reason: "queue_limit in root.research"}
	off := queueView(98, 1, 50)
	off.Members[0].Load.PreemptionOff = true
	planned := queueView(98, 1, 50)
	for i := range planned.Members {
		for k := range planned.Members[i].Load.Queues {
			if q := &planned.Members[i].Load.Queues[k]; q.Queue == "root.research" {
				q.Planned = &creel.Resource{MemoryMB: 1024, VCores: 1}
			}
		}
	}
	frozen := queueView(98, 1, 50)
	frozen.Freeze = &subcluster.Freeze{Reason: "it is dark"}
	for name, c := range map[string]struct {
		view           *subcluster.View
		after          time.Duration
		state          router.Health
		says, remedies string
	}{
		"held by another queue": {
			queueView(98, 1, 50), 6 * time.Minute, router.Bad,
			"root.research has 1.0 % of its guaranteed 40.0 % for 6 min; root.prod holds 98.0 %, entitled to 60.0 %. " +
				"19 applications run on 0 nodes, 151 waiting, the oldest for 6 min, most for queue_limit in root.research.",
			"creel app list --queue root.prod --sort memory shows what holds it; preemption takes back what root.research lacks",
		},
		"preemption off": {off, time.Minute, router.Bad, "entitled to 60.0 %; preemption is off at a.",
			"kill one, give root.prod a maximum, or set yarn.resourcemanager.scheduler.monitor.enable there"},
		"held by a limit": {
			queueView(30, 1, 50), time.Minute, router.Bad, "No queue is above its guarantee", "creel app why",
		},
		"not yet a minute":   {queueView(98, 1, 50), 59 * time.Second, router.Warn, "More applications wait than run.", "app list"},
		"asks for nothing":   {queueView(98, 1, 0), time.Hour, router.Warn, "More applications wait than run.", "app list"},
		"asks for a little":  {queueView(98, 39, 1), time.Hour, router.Warn, "More applications wait than run.", "app list"},
		"entitled by a plan": {planned, time.Hour, router.Warn, "More applications wait than run.", "app list"},
		"frozen":             {frozen, time.Hour, router.Bad, "The view is frozen: it is dark.", "start the state store"},
	} {
		var j router.Judge
		for at := time.Duration(0); at <= c.after; at += time.Second {
			j.Observe(start.Add(at), c.view)
		}
		s := j.Summarize(start.Add(c.after), c.view, apps)
		if s.State != c.state || !strings.Contains(s.Sentence, c.says) || !strings.Contains(s.Remedy, c.remedies) {
			t.Errorf("%s: %s, %q, %q", name, s.State, s.Sentence, s.Remedy)
		}
	}
}

func TestQueueThatGotItsGuaranteeStartsANewWait(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	var j router.Judge
	j.Observe(start, queueView(98, 1, 50))
	j.Observe(start.Add(50*time.Second), queueView(60, 40, 50))
	j.Observe(start.Add(70*time.Second), queueView(98, 1, 50))
	if s := j.Short(start.Add(2 * time.Minute)); len(s) != 0 {
		t.Errorf("50 s after it was at its guarantee: %v", s)
	}
	if s := j.Short(start.Add(130 * time.Second)); len(s) != 1 || s[0].Queue != "root.research" {
		t.Errorf("after a minute: %v", s)
	}
	frozen := queueView(60, 40, 0)
	frozen.Freeze = &subcluster.Freeze{}
	j.Observe(start.Add(140*time.Second), frozen)
	if len(j.Short(start.Add(140*time.Second))) != 1 {
		t.Error("a frozen view changed it")
	}
}

// The asks of a queue are far less than its guarantee. While none is granted it is short; while some are it is not.
func TestQueueWithFewAsksIsShortWhileNoneIsGranted(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	for grants, want := range map[int64]int{0: 1, 1: 0} {
		var j router.Judge
		for s := range int64(120) {
			j.Observe(start.Add(time.Duration(s)*time.Second), queueView(80, s/20*grants, 1))
		}
		if short := j.Short(start.Add(2 * time.Minute)); len(short) != want {
			t.Errorf("with %d grants in 20 s: %v", grants, short)
		}
	}
}

func TestFewWaitingApplicationsAreGood(t *testing.T) {
	view := viewOf(subcluster.StateActive, subcluster.StateActive)
	for name, c := range map[string]struct {
		apps  router.Tally
		state router.Health
	}{
		"a tenth waits":     {router.Tally{Known: true, Running: 9, Waiting: 1, Oldest: time.Hour}, router.Good},
		"all wait a moment": {router.Tally{Known: true, Waiting: 9, Oldest: 59 * time.Second}, router.Good},
		"all wait a minute": {router.Tally{Known: true, Waiting: 9, Oldest: time.Minute}, router.Warn},
		"unknown":           {router.Tally{}, router.Good},
	} {
		if s := new(router.Judge).Summarize(time.Unix(1, 0), view, c.apps); s.State != c.state {
			t.Errorf("%s: %s, %q", name, s.State, s.Sentence)
		}
	}
}

// An application waits while the nodes are full: the queue that holds the room is the cause, not the node.
func TestHolderOfTheRoomIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		view          *subcluster.View
		queue         creel.QueuePath
		cause, remedy string
	}{
		"held by another": {
			queueView(98, 1, 50), "root.research",
			"The nodes are full: root.prod holds 98.0 %, entitled to 60.0 %; root.research has 1.0 % of its guaranteed 40.0 %.",
			"creel app list --queue root.prod --sort memory shows what holds it; preemption takes back what root.research lacks",
		},
		"entitled to no more": {
			queueView(70, 40, 50), "root.research",
			"root.prod holds 70.0 %, entitled to 60.0 %; root.research has 40.0 % of its guaranteed 40.0 %",
			"raise the guarantee of root.research",
		},
		"held by itself": {
			queueView(98, 1, 50), "root.prod", "root.prod itself holds 98.0 %, entitled to 60.0 %", "wait until its containers end",
		},
		"held by nobody over it": {queueView(60, 40, 50), "root.research", "", ""},
		"an unknown queue":       {queueView(98, 1, 50), "root.nosuch", "", ""},
	} {
		var j router.Judge
		j.Observe(time.Unix(1_800_000_000, 0), c.view)
		cause, remedy := j.Holder(c.queue)
		if !strings.Contains(cause, c.cause) || !strings.Contains(remedy, c.remedy) || (c.cause == "") != (cause == "") {
			t.Errorf("%s: %q, %q", name, cause, remedy)
		}
	}
}

func TestBrokenInvariantHeadsTheSummary(t *testing.T) {
	breach := router.Breach{Invariant: "escrow", Of: "root.a", Text: "the parts sum to 120 of 100."}
	lost := viewOf(subcluster.StateActive, subcluster.StateLost)
	frozen := viewOf(subcluster.StateActive)
	frozen.Freeze = &subcluster.Freeze{Reason: "it is dark"}
	for name, c := range map[string]struct {
		view   *subcluster.View
		broken []router.Breach
		says   string
	}{
		"alone":            {viewOf(subcluster.StateActive), []router.Breach{breach}, `Invariant "escrow" is broken for root.a: the parts sum to 120 of 100. `},
		"two":              {viewOf(subcluster.StateActive), []router.Breach{breach, breach}, "of 100, and 1 more breach. "},
		"beside a loss":    {lost, []router.Breach{breach}, `Invariant "escrow"`},
		"in a frozen view": {frozen, []router.Breach{breach}, "The view is frozen"},
	} {
		s := new(router.Judge).Summarize(time.Unix(1, 0), c.view, router.Tally{}, c.broken...)
		if s.State != router.Bad || !strings.Contains(s.Sentence, c.says) || s.Remedy == "" {
			t.Errorf("%s: %s, %q, %q", name, s.State, s.Sentence, s.Remedy)
		}
	}
}

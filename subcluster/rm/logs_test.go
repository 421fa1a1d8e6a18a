// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"slices"
	"testing"
	"time"

	"github.com/creelrm/creel"
)

func withLogs(c *Config) { c.LogAggregation = true }

// logs is how far nodes are with an application's, as reports have it.
func (w *world) logs(id creel.ApplicationID) creel.LogAggregationStatus {
	w.t.Helper()
	w.audit()
	v, ok := w.m.App(id)
	if !ok {
		w.t.Fatalf("there is no %s", id)
	}
	return v.Logs
}

// report has a node report how far it is with an application's logs, and returns whether lists changed.
func (w *world) report(node creel.NodeID, app creel.ApplicationID, s creel.LogAggregationStatus) (changed bool) {
	w.t.Helper()
	w.pump()
	out := w.m.NodeHeartbeat(w.now, &NodeReport{
		ID: node, ResponseID: w.responses[node], Logs: []LogReport{{app, s, "said"}},
	})
	w.responses[node] = out.ResponseID
	return slices.Contains(w.m.Actions(nil), Action(LogsChanged{App: app}))
}

// A cluster without log aggregation reports that for each application, and stores none of the nodes' reports.
func TestWithoutLogAggregationNothingIsKept(t *testing.T) {
	w := newWorld(t, nil)
	n := w.node("n1", 8192, 8, "")
	app := w.submit("u", "default", nil).Application
	w.heartbeat(n, running(w, n)...)
	if w.report(n, app, creel.LogRunning) || w.logs(app) != creel.LogDisabled || w.m.NodeLogs(app) != nil {
		t.Error(w.logs(app), w.m.NodeLogs(app))
	}
}

// running are all containers of a node.
func running(w *world, n creel.NodeID) (list []ContainerStatus) {
	for _, c := range w.m.NodeContainers(n) {
		list = append(list, ContainerStatus{ID: c.ID, State: creel.ContainerRunning})
	}
	return list
}

// Lists show an ended application by a view that is kept. It is another one once the logs are further, and the
// same as long as they are not.
func TestLogProgressUpdatesEndedApplication(t *testing.T) {
	w := newWorld(t, withLogs)
	n := w.node("n1", 8192, 8, "")
	app := w.submit("u", "default", nil).Application
	w.heartbeat(n, running(w, n)...)
	if _, err := w.m.Kill(w.now, app, "enough"); err != nil {
		t.Fatal(err)
	}
	w.pump()
	look := func() (view *AppView) {
		for a := range w.m.Apps {
			view = a
		}
		return view
	}
	first := look()
	if !first.Over || first.Logs != creel.LogNotStart || look() != first {
		t.Fatalf("%+v", first)
	}
	if !w.report(n, app, creel.LogRunning) || look() == first || look().Logs != creel.LogRunning {
		t.Errorf("a node has begun, and lists say %v", look().Logs)
	}
	second := look()
	if w.report(n, app, creel.LogRunning) || look() != second {
		t.Error("nothing is new, and lists are made again")
	}
	if !w.report(n, app, creel.LogSucceeded) || look().Logs != creel.LogSucceeded {
		t.Errorf("the only node is done, and lists say %v", look().Logs)
	}
	if d := w.m.timers.heap.Len(); d != 0 {
		t.Errorf("%d deadlines are left", d)
	}
}

// A restarted ResourceManager has no log state until nodes register again: they repeat their reports of live and
// recently ended applications. Unrepeated logs are not started, as in Hadoop, and a node without progress times out
// from the restart on.
func TestNodesReportLogsAfterRestart(t *testing.T) {
	w := newWorld(t, func(c *Config) { withLogs(c); c.Epoch = 1 })
	lives, ended, late := appID(7), appID(8), appID(9)
	record := func(id creel.ApplicationID, s creel.ApplicationState) AppRecord {
		r := AppRecord{
			Submission: Submission{ID: id, User: "u", Queue: "default", Unmanaged: true},
			Submitted:  w.now.Add(-time.Hour), Queue: "root.default", State: s,
			Attempts: []AttemptRecord{{
				ID: creel.AttemptID{Application: id, Attempt: 1}, ExitStatus: creel.ExitInvalid,
			}},
		}
		if s.Ended() {
			r.Finished, r.Attempts[0].State = w.now.Add(-time.Minute), creel.AttemptFinished
		}
		return r
	}
	if err := w.m.Recover(w.now, &Recover{Apps: []AppRecord{
		record(lives, creel.AppNew), record(ended, creel.AppFinished), record(late, creel.AppFinished),
	}}); err != nil {
		t.Fatal(err)
	}
	if s := []creel.LogAggregationStatus{w.logs(lives), w.logs(ended)}; s[0] != creel.LogNotStart || s[1] != creel.LogNotStart {
		t.Error("before any node is back:", s)
	}
	w.now = w.now.Add(time.Minute)
	if _, err := w.m.RegisterNode(w.now, &RegisterNode{
		ID: creel.NodeID{Host: "n", Port: 1}, Resource: creel.NewResource(8192, 8),
		Applications: []creel.ApplicationID{lives, ended},
		Logs: []LogReport{
			{lives, creel.LogRunning, ""}, {ended, creel.LogSucceeded, ""}, {late, creel.LogRunning, ""},
			{appID(99), creel.LogRunning, ""},
		},
	}); err != nil {
		t.Fatal(err)
	}
	if s := w.logs(lives); s != creel.LogRunning {
		t.Error("of one that lives:", s)
	}
	if s := w.logs(ended); s != creel.LogSucceeded {
		t.Error("of one whose node was done:", s)
	}
	if due := w.m.NextDeadline(); !due.Equal(start.Add(w.m.cfg.LogTimeOut)) {
		t.Error("the late one is due at", due)
	}
	w.now = start.Add(w.m.cfg.LogTimeOut)
	w.m.Tick(w.now)
	if s := w.logs(late); s != creel.LogTimeOut {
		t.Error("of one whose node was not:", s)
	}
}

func appID(n int32) creel.ApplicationID { return creel.ApplicationID{ClusterTimestamp: 1, ID: n} }

// A pause of the ResourceManager's own is not held against nodes: they could not report.
func TestLogTimeoutRestartsAfterPause(t *testing.T) {
	w := newWorld(t, func(c *Config) { withLogs(c); c.NodeExpiry = 0 })
	n := w.node("n1", 8192, 8, "")
	app := w.submit("u", "default", nil).Application
	w.heartbeat(n, running(w, n)...)
	if _, err := w.m.Kill(w.now, app, "enough"); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(time.Hour)
	w.m.Paused(w.now, time.Hour)
	w.m.Tick(w.now)
	if s := w.logs(app); s != creel.LogNotStart {
		t.Fatal(s)
	}
	w.now = w.now.Add(w.m.cfg.LogTimeOut)
	w.m.Tick(w.now)
	if s := w.logs(app); s != creel.LogTimeOut {
		t.Error(s)
	}
}

// Reports of a node about applications that it never ran are dropped.
func TestOnlyNodesOfAnApplicationReportItsLogs(t *testing.T) {
	w := newWorld(t, withLogs)
	n := w.node("n1", 8192, 8, "")
	app := w.submit("u", "default", nil).Application
	w.heartbeat(n, running(w, n)...)
	other := w.node("n2", 8192, 8, "")
	if w.report(other, app, creel.LogFailed) {
		t.Error("a stranger's word counts")
	}
	w.report(other, appID(77), creel.LogFailed)
	if _, err := w.m.Kill(w.now, app, "enough"); err != nil {
		t.Fatal(err)
	}
	w.report(other, app, creel.LogFailed)
	if list := w.m.NodeLogs(app); len(list) != 1 || list[0].Node != n {
		t.Errorf("%+v", list)
	}
	w.m.cfg.MaxCompletedApps = 1
	w.report(n, app, creel.LogRunning)
	for range 2 {
		if _, err := w.m.Kill(w.now, w.submit("u", "default", nil).Application, "enough"); err != nil {
			t.Fatal(err)
		}
	}
	if _, known := w.m.App(app); known || w.m.NodeLogs(app) != nil || w.m.timers.heap.Len() > 0 {
		t.Error("what is forgotten keeps its logs")
	}
}

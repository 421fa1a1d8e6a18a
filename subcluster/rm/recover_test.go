// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"testing"
	"time"

	"github.com/creelrm/creel"
)

// A ResourceManager died between recording where an AM goes and having it
// started, or before its node could tell that it had ended.
func TestAnAMThatItsNodeDoesNotKnowIsStartedAnewAtOnce(t *testing.T) {
	id := creel.ApplicationID{ClusterTimestamp: 1, ID: 7}
	first := creel.AttemptID{Application: id, Attempt: 1}
	node := creel.NodeID{Host: "n", Port: 1}
	am := creel.ContainerID{Attempt: first, ID: 1}
	restarted := func(running ...NodeContainer) (*world, AppView) {
		w := newWorld(t, func(c *Config) { c.Epoch = 1 })
		err := w.m.Recover(w.now, &Recover{Apps: []AppRecord{
			{
				Submission: Submission{
					ID:    id,
					User:  "u",
					Queue: "default",
					AM:    Ask{Resource: creel.NewResource(1024, 1)},
				},
				Submitted: w.now,
				Queue:     "root.default",
				Attempts: []AttemptRecord{
					{ID: first, AM: am, Node: node, Started: w.now, ExitStatus: creel.ExitInvalid},
				},
			},
		}})
		if err != nil {
			t.Fatal(err)
		}
		w.now = w.now.Add(time.Second)
		if _, err := w.m.RegisterNode(
			w.now,
			&RegisterNode{ID: node, Resource: creel.NewResource(8192, 8), Containers: running},
		); err != nil {
			t.Fatal(err)
		}
		w.pump()
		w.audit()
		view, ok := w.m.App(id)
		if !ok {
			t.Fatal("the application is lost")
		}
		return w, view
	}

	_, lost := restarted()
	if lost.State != creel.AppAccepted || lost.Attempt.Attempt != 2 {
		t.Errorf(
			"without its AM the application is %v in attempt %v; want a second attempt at once",
			lost.State,
			lost.Attempt,
		)
	}
	w, kept := restarted(
		NodeContainer{
			ID:       am,
			Resource: creel.NewResource(1024, 1),
			State:    creel.ContainerRunning,
			Created:  time.Unix(0, 0),
		},
	)
	if kept.Attempt.Attempt != 1 {
		t.Errorf("an AM that runs was given up: attempt %v", kept.Attempt)
	}
	w.register(first)
	if view, _ := w.m.App(id); view.State != creel.AppRunning {
		t.Errorf("its AM registered and it is %v", view.State)
	}
}

// However long ago an application was submitted, its AM has its whole time to be heard
// of after a restart: that nobody heard of it before is the ResourceManager's doing.
func TestARestartGivesTheAMsOfOldApplicationsTheirWholeTime(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Epoch = 1 })
	id := creel.ApplicationID{ClusterTimestamp: 1, ID: 7}
	first := creel.AttemptID{Application: id, Attempt: 1}
	submitted := w.now
	w.now = w.now.Add(time.Hour)
	if err := w.m.Recover(w.now, &Recover{Apps: []AppRecord{{
		Submission: Submission{ID: id, User: "u", Queue: "default", Unmanaged: true},
		Submitted:  submitted,
		Queue:      "root.default",
		Attempts:   []AttemptRecord{{ID: first, Started: submitted, ExitStatus: creel.ExitInvalid}},
	}}}); err != nil {
		t.Fatal(err)
	}
	for _, after := range []struct {
		d    time.Duration
		ends bool
	}{{0, false}, {9 * time.Minute, false}, {2 * time.Minute, true}} {
		w.now = w.now.Add(after.d)
		w.m.Tick(w.now)
		if v, _ := w.m.App(id); v.State.Ended() != after.ends {
			t.Errorf("%v after the restart it is %s", w.now.Sub(submitted)-time.Hour, v.State)
		}
	}
}

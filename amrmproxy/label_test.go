// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/subcluster"
)

// Home is asked for the label of the submission once where members have labels, again after a second if it does not
// answer, and not at all where no member has any.
func TestLabelIsReadFromHome(t *testing.T) {
	for _, labelled := range []bool{false, true} {
		d := NewDriver(DriverOptions{
			Attempt: creel.AttemptID{Application: app, Attempt: 1}, Home: "sc-a", Rand: rand.New(rand.NewPCG(1, 2)),
		})
		now := time.Unix(1000, 0)
		member := subcluster.Status{State: subcluster.StateActive}
		member.ID = "sc-a"
		if member.Load.Labels.Known = true; labelled {
			member.Load.Labels.Put(subcluster.Partition{Label: "gpu"})
		}
		view := subcluster.NewView(now, []subcluster.Status{member}, nil)
		d.See(view, policies.NewTable(nil, view.Policies), nil)
		step := func(e Event) (asked int) {
			for _, a := range d.Step(now, e) {
				if _, ok := a.(AskHome); ok {
					asked++
				}
			}
			return asked
		}
		want := 0
		if labelled {
			want = 1
		}
		if asked := step(Opened{}) + step(Tick{}); asked != want {
			t.Errorf("labels %v: home is asked %d times, want %d", labelled, asked, want)
		}
		if !labelled {
			continue
		}
		if asked := step(AnsweredBy(nil, creel.ErrUnavailable)) + step(Tick{}); asked != 0 {
			t.Errorf("home does not answer, and is asked %d times at once", asked)
		}
		now = now.Add(time.Second)
		if asked := step(Tick{}); asked != 1 {
			t.Errorf("a second later it is asked %d times", asked)
		}
		report := &yarnpb.ApplicationReportProto{AppNodeLabelExpression: proto.String("gpu")}
		asked := step(AnsweredBy(report, nil))
		now = now.Add(2 * time.Second)
		if asked += step(Tick{}); asked != 0 || d.session.placer.label.text != "gpu" {
			t.Errorf("home has told %q, and is asked %d times", d.session.placer.label.text, asked)
		}
	}
}

// Hadoop writes words where a submission names no label.
func TestSubmissionLabelIsReadFromReport(t *testing.T) {
	for text, want := range map[string]Labelled{
		"":                    {},
		"<Not set>":           {},
		"<DEFAULT_PARTITION>": {Given: true},
		"gpu":                 {Label: "gpu", Given: true},
	} {
		if got := LabelOf(&yarnpb.ApplicationReportProto{AppNodeLabelExpression: &text}); got != want {
			t.Errorf("%q is read as %+v, want %+v", text, got, want)
		}
	}
}

// Home is asked for the application's type if it did not report it when a UAM was launched, and no longer once it
// has. The type decides whether a UAM stays, and whether it is started again.
func TestMissingApplicationTypeIsReadFromHome(t *testing.T) {
	d := NewDriver(DriverOptions{
		Attempt: creel.AttemptID{Application: app, Attempt: 1}, Home: "sc-a", Rand: rand.New(rand.NewPCG(1, 2)),
	})
	now := time.Unix(1000, 0)
	var saved string
	step := func(e Event) (asked bool) {
		for _, a := range d.Step(now, e) {
			switch a := a.(type) {
			case AskHome:
				asked = true
			case Save:
				saved = a.Record.Type
			}
		}
		return asked
	}
	member := subcluster.Status{State: subcluster.StateActive}
	member.ID = "sc-a"
	view := subcluster.NewView(now, []subcluster.Status{member}, nil)
	d.See(view, policies.NewTable(nil, view.Policies), nil)
	if step(Opened{}) || step(Tick{}) {
		t.Error("home is asked for the type of an application without UAMs")
	}
	d.session.phase, d.session.am.heard, d.session.record.UAMs = phaseRunning, now, []UAM{{Member: "sc-b"}}
	if !step(Tick{}) {
		t.Error("home is not asked for the type")
	}
	if step(AnsweredBy(nil, creel.ErrUnavailable)) || step(Tick{}) {
		t.Error("home does not answer, and is asked at once again")
	}
	now = now.Add(time.Second)
	if !step(Tick{}) {
		t.Error("home is not asked again")
	}
	report := &yarnpb.ApplicationReportProto{ApplicationType: proto.String("SPARK")}
	asked := step(AnsweredBy(report, nil))
	now = now.Add(2 * time.Second)
	if asked = step(Tick{}) || asked; asked || saved != "SPARK" {
		t.Errorf("home has told the type, asked again: %v, the record has %q", asked, saved)
	}
}

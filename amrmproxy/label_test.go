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

// Home is asked for the label of the submission once where members have labels, again
// after a second if it does not tell, and not at all where nobody has any.
func TestHomeIsAskedForTheLabelWhereMembersHaveLabels(t *testing.T) {
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
		if asked += step(Tick{}); asked != 0 || d.session.label.text != "gpu" {
			t.Errorf("home has told %q, and is asked %d times", d.session.label.text, asked)
		}
	}
}

// Hadoop writes words where a submission names no label.
func TestTheLabelOfASubmissionIsReadInItsReport(t *testing.T) {
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

// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
)

func TestRecorderSavesOneGenerationAtATime(t *testing.T) {
	var r recorder
	if _, due := r.saveDue(); due {
		t.Fatal("an unchanged record is to be saved")
	}
	first := r.put(UAM{Member: "sc-b"})
	save := r.save()
	second := r.put(UAM{Member: "sc-a"})
	if save.Number != first || len(save.Record.UAMs) != 1 {
		t.Fatalf("saved generation %d with %v", save.Number, save.Record.UAMs)
	}
	if _, due := r.saveDue(); due || r.isUnsaved(first) || !r.isUnsaved(second) || r.isDurable(first) {
		t.Fatalf("while generation %d is being saved: %+v", first, r)
	}
	r.saved(second) // not under way
	r.saved(first)
	if _, due := r.saveDue(); !due || !r.isDurable(first) || r.isDurable(second) || r.isClean() {
		t.Fatalf("after the save of generation %d: %+v", first, r)
	}
	if got := r.save().Record.UAMs; len(got) != 2 || got[0].Member != "sc-a" {
		t.Errorf("saved %v, want the UAMs by member", got)
	}
}

func TestFailedSaveIsRepeatedAfterAPause(t *testing.T) {
	var r recorder
	gen := r.changed()
	r.save()
	retry := time.Unix(7, 0)
	if r.failed(gen+1, retry) || !r.failed(gen, retry) {
		t.Fatal("the failure is of the save under way only")
	}
	if at, due := r.saveDue(); !due || at != retry {
		t.Errorf("due %v at %v", due, at)
	}
}

func TestRemovalIsSavedWithoutARecord(t *testing.T) {
	r := recorder{Record: Record{UAMs: []UAM{{Member: "sc-b"}}}}
	r.drop("sc-b")
	if r.remove() {
		t.Fatal("the removal is durable before its save")
	}
	s := r.save()
	if s.Record != nil || len(r.UAMs) != 0 {
		t.Fatalf("saved %v", s.Record)
	}
	r.saved(s.Number)
	if !r.remove() {
		t.Error("the removal is not durable after its save")
	}
}

func TestCompletionsStayUntilTheAMHasThem(t *testing.T) {
	var r recorder
	r.keep([]*yarnpb.ContainerStatusProto{{}})
	r.heard() // the answer before
	if len(r.Completions) != 1 || !r.isClean() {
		t.Fatalf("%d completions before an answer has them", len(r.Completions))
	}
	r.inAnswer()
	r.heard()
	if len(r.Completions) != 0 || r.isClean() {
		t.Errorf("%d completions after the AM has them", len(r.Completions))
	}
}

func TestRecorderInheritsRegistrationOfItsAttemptOnly(t *testing.T) {
	app := creel.ApplicationID{ClusterTimestamp: 7, ID: 1}
	from := &Record{
		Attempt: creel.AttemptID{Application: app, Attempt: 1}, User: "ann",
		Register: &yarnpb.RegisterApplicationMasterRequestProto{}, UAMs: []UAM{{Member: "sc-b"}},
	}
	for attempt := int32(1); attempt <= 2; attempt++ {
		r := recorder{Record: Record{Attempt: creel.AttemptID{Application: app, Attempt: attempt}}}
		same := r.inherits(from)
		if same != (attempt == 1) || (r.Register != nil) != same || len(r.UAMs) != 1 || r.User != "ann" || r.isClean() {
			t.Errorf("attempt %d: same %v, %+v", attempt, same, r)
		}
	}
}

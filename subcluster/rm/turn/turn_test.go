// SPDX-License-Identifier: Apache-2.0

package turn_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
	"github.com/creelrm/creel/subcluster/rm/turn"
)

var began = time.UnixMilli(1_700_000_000_000).UTC()

// disk is a journal that writes on the test's command.
type disk struct {
	entries map[string][]byte
	tx      map[string][]byte
	flying  []map[string][]byte
	durable uint64
}

func (d *disk) Put(key string, value []byte) { d.tx[key] = value }
func (d *disk) Delete(key string)            { d.tx[key] = nil }
func (d *disk) Len() int                     { return len(d.tx) }

func (d *disk) write() {
	for k, v := range d.flying[0] {
		if d.entries[k] = v; v == nil {
			delete(d.entries, k)
		}
	}
	d.flying, d.durable = d.flying[1:], d.durable+1
}

type world struct {
	t     *testing.T
	owner turn.Owner
	disk  disk
	now   time.Time
	said  []string // answers, and actions beside saves
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, now: began, disk: disk{entries: map[string][]byte{}, tx: map[string][]byte{}}}
	w.open()
	return w
}

func (w *world) open() {
	c := rm.Defaults()
	c.ClusterTimestamp = began.UnixMilli()
	m, err := rm.New(c)
	if err != nil {
		w.t.Fatal(err)
	}
	w.owner = turn.Owner{Machine: m}
	for _, key := range slices.Sorted(maps.Keys(w.disk.entries)) {
		if known, err := w.owner.Records.Read(key, w.disk.entries[key]); err != nil || !known {
			w.t.Fatal(key, known, err)
		}
	}
	if err := m.Recover(w.now, w.owner.Records.Recovered()); err != nil {
		w.t.Fatal(err)
	}
	w.disk.tx, w.disk.flying, w.disk.durable = map[string][]byte{}, nil, 0
}

// turn runs a turn and returns the responses.
func (w *world) turn(events ...turn.Event) []string {
	w.t.Helper()
	w.said = nil
	w.owner.Begin(w.now, 0, w.disk.durable)
	for _, e := range events {
		w.owner.Take(w.now, e)
	}
	ended := w.owner.End(&w.disk, func(a rm.Action) {
		if l, ok := a.(rm.LaunchAM); ok {
			w.said = append(w.said, "launch "+l.Attempt.String())
		}
	})
	if ended.Err != nil {
		w.t.Fatal(ended.Err)
	}
	if ended.Commit > 0 {
		w.disk.flying = append(w.disk.flying, w.disk.tx)
		w.disk.tx = map[string][]byte{}
	}
	for _, a := range ended.Answers {
		a()
	}
	return w.said
}

func id(n int32) creel.ApplicationID {
	return creel.ApplicationID{ClusterTimestamp: began.UnixMilli(), ID: n}
}

// submit is a submission with a held response.
func (w *world) submit(n int32) turn.Event {
	s, err := codec.Submission(&pb.ApplicationSubmissionContextProto{
		ApplicationId:   pb.FromApplicationID(id(n)),
		UnmanagedAm:     new(true),
		Queue:           new("default"),
		AmContainerSpec: &pb.ContainerLaunchContextProto{},
	}, "ann", nil, codec.DefaultTagLimits)
	if err != nil {
		w.t.Fatal(err)
	}
	return func(m *rm.Machine, now time.Time) func() {
		err := m.Submit(now, &s)
		w.owner.Hold(func() { w.said = append(w.said, fmt.Sprintf("submitted %d: %v", n, err)) })
		return nil
	}
}

func (w *world) read(what string) turn.Event {
	return func(*rm.Machine, time.Time) func() {
		return func() { w.said = append(w.said, what) }
	}
}

func TestAnswerLeavesWhenDependenciesAreDurable(t *testing.T) {
	w := newWorld(t)
	if got := w.turn(w.submit(1), w.read("a question")); !slices.Equal(got, []string{"a question"}) {
		t.Errorf("before the journal has it: %q", got)
	}
	// A turn later nothing is saved, and its response depends on the first.
	if got := w.turn(w.submit(1)); len(got) > 0 {
		t.Errorf("the same submission again, before the journal has it: %q", got)
	}
	w.disk.write()
	got := w.turn()
	if !slices.Contains(got, "submitted 1: <nil>") || len(got) != 2 {
		t.Errorf("when the journal has it: %q", got)
	}
}

func TestEventsOfATurnShareATransaction(t *testing.T) {
	w := newWorld(t)
	w.turn(w.submit(1), w.submit(2), w.submit(3))
	if len(w.disk.flying) != 1 {
		t.Fatalf("%d transactions", len(w.disk.flying))
	}
	w.disk.write()
	if got := w.turn(); len(got) != 3 {
		t.Errorf("answers: %q", got)
	}
}

func TestRestartFindsOnlyDurableState(t *testing.T) {
	w := newWorld(t)
	w.turn(w.submit(1))
	w.disk.write()
	w.turn()
	w.turn(w.submit(2)) // on its way to the disk when the process dies
	w.open()
	for n, want := range map[int32]bool{1: true, 2: false} {
		if _, known := w.owner.Machine.App(id(n)); known != want {
			t.Errorf("application %d is known: %v", n, known)
		}
	}
}

func TestADisownedApplicationIsRefusedAfterARestart(t *testing.T) {
	w := newWorld(t)
	w.turn(func(m *rm.Machine, now time.Time) func() {
		_, err := m.Disown(now, id(1), 7)
		w.owner.Hold(func() { w.said = append(w.said, fmt.Sprint("disowned ", err)) })
		return nil
	})
	w.disk.write()
	if got := w.turn(); !slices.Equal(got, []string{"disowned <nil>"}) {
		t.Errorf("%q", got)
	}
	w.open()
	w.turn(func(m *rm.Machine, now time.Time) func() {
		if err := m.Submit(now, &rm.Submission{ID: id(1), User: "ann", Queue: "default", Unmanaged: true, Claim: 7}); err == nil {
			t.Error("a claim that was disowned is taken")
		}
		return nil
	})
}

func TestNothingWaitsWhereNothingIsKept(t *testing.T) {
	w := newWorld(t)
	w.owner.Volatile = true
	if got := w.turn(w.submit(1)); !slices.Contains(got, "submitted 1: <nil>") || len(w.disk.flying) > 0 {
		t.Errorf("%q, %d transactions", got, len(w.disk.flying))
	}
}

func TestTokensAreValidDuringAttempt(t *testing.T) {
	a := creel.AttemptID{Application: id(1), Attempt: 1}
	var l turn.Live
	steps := []struct {
		action rm.Action
		want   bool
	}{{rm.LaunchAM{Attempt: a}, true}, {rm.StopAM{Attempt: a}, true}, {rm.AttemptEnded{Attempt: a}, false}}
	for _, s := range steps {
		if l.Perform(s.action); l.Has(a) != s.want {
			t.Errorf("after %T: %v", s.action, l.Has(a))
		}
	}
	record := rm.AppRecord{State: creel.AppRunning, Attempts: []rm.AttemptRecord{{ID: a, State: creel.AttemptRunning}}}
	if l.Recovered(&record); !l.Has(a) {
		t.Error("the token of an AM that outlived a restart is not valid")
	}
	l = turn.Live{}
	record.State = creel.AppFinished
	if l.Recovered(&record); l.Has(a) {
		t.Error("the token of an application that has ended is valid")
	}
}

func TestStartIsRetriedWhileNodeIsSilent(t *testing.T) {
	silent := fmt.Errorf("%w: no answer", creel.ErrUnavailable)
	l := turn.Launch{Until: began.Add(2 * time.Second)}
	var pauses []time.Duration
	now := began
	for {
		pause, again := l.Again(now, silent)
		if !again {
			break
		}
		pauses = append(pauses, pause)
		now = now.Add(pause)
	}
	want := []time.Duration{100, 200, 400, 800, 500}
	for i := range want {
		want[i] *= time.Millisecond
	}
	if !slices.Equal(pauses, want) {
		t.Errorf("pauses %v", pauses)
	}
	if _, again := (&turn.Launch{Until: began.Add(time.Hour)}).Again(began, errors.New("a refusal")); again {
		t.Error("a refusal is tried again")
	}
}

// Attributes that administrators set for hosts are recovered from the journal unchanged.
func TestAttributesAreInTheJournal(t *testing.T) {
	w := newWorld(t)
	given := rm.Attribute{AttributeKey: rm.AttributeKey{Prefix: rm.AttributesByCall, Name: "os"}, Value: "bsd"}
	w.turn(func(m *rm.Machine, now time.Time) func() {
		list := []rm.HostAttributes{{Host: "h", Attributes: []rm.Attribute{given}}, {Host: "i"}}
		if err := m.MapAttributes(now, rm.AddAttributes, list, false); err != nil {
			t.Error(err)
		}
		return nil
	})
	w.disk.write()
	w.open()
	_, hosts := w.owner.Machine.Attributes()
	if len(hosts) != 1 || hosts[0].Host != "h" || !slices.Equal(hosts[0].Attributes, []rm.Attribute{given}) {
		t.Errorf("%v", hosts)
	}
}

// After a restart an application's resource use is reported as it was at its end.
func TestApplicationUseIsJournaled(t *testing.T) {
	w := newWorld(t)
	do := func(what string, f func(m *rm.Machine, now time.Time) error) {
		t.Helper()
		w.turn(func(m *rm.Machine, now time.Time) func() {
			if err := f(m, now); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			return nil
		})
		for len(w.disk.flying) > 0 { // saves follow saves
			w.disk.write()
			w.turn()
		}
	}
	w.turn(w.submit(1))
	w.disk.write()
	w.turn()
	at := creel.AttemptID{Application: id(1), Attempt: 1}
	do("node", func(m *rm.Machine, now time.Time) error {
		_, err := m.RegisterNode(now, &rm.RegisterNode{
			ID: creel.NodeID{Host: "h", Port: 1}, Resource: creel.NewResource(8192, 8),
		})
		return err
	})
	do("register", func(m *rm.Machine, now time.Time) error {
		_, err := m.RegisterAM(now, &rm.RegisterAM{Attempt: at, Host: "am"})
		return err
	})
	do("allocate", func(m *rm.Machine, now time.Time) error {
		_, err := m.Allocate(now, at, &rm.AllocateRequest{Asks: []rm.Ask{
			{Priority: 1, ResourceName: "*", Resource: creel.NewResource(1024, 1), Count: 2},
		}})
		return err
	})
	w.now = w.now.Add(10 * time.Second)
	do("kill", func(m *rm.Machine, now time.Time) error {
		_, err := m.Kill(now, id(1), "")
		return err
	})
	was, _ := w.owner.Machine.App(id(1))
	w.open()
	is, _ := w.owner.Machine.App(id(1))
	if !was.State.Ended() || was.ResourceSeconds[0].Value != 2*1024*10 || !slices.Equal(is.ResourceSeconds, was.ResourceSeconds) {
		t.Errorf("%v used %v, and after a restart %v", was.State, was.ResourceSeconds, is.ResourceSeconds)
	}
}

// A pair's other ResourceManager, and Hadoop's after it, know the user that submitted for another one.
func TestCallerOfSubmissionIsJournaled(t *testing.T) {
	c := &pb.ApplicationSubmissionContextProto{
		ApplicationId: pb.FromApplicationID(id(1)), AmContainerSpec: &pb.ContainerLaunchContextProto{},
		Resource: pb.FromResource(creel.NewResource(1024, 1)),
	}
	s, err := codec.Submission(c, "ann", nil, codec.NoTagLimits)
	if err != nil {
		t.Fatal(err)
	}
	s.RealUser, s.Caller = "oozie", codec.CallerContext("CLI", []byte("signed"))
	d := disk{tx: map[string][]byte{}}
	if err := turn.PutApp(&d, &rm.AppRecord{Submission: s}); err != nil {
		t.Fatal(err)
	}
	var records turn.Records
	for key, value := range d.tx {
		if known, err := records.Read(key, value); err != nil || !known {
			t.Fatalf("%s: %t, %v", key, known, err)
		}
	}
	is := records.Recovered().Apps[0].Submission
	if is.RealUser != "oozie" || !bytes.Equal(is.Caller, s.Caller) {
		t.Errorf("the record has %q with %q", is.RealUser, is.Caller)
	}
	if large := codec.CallerContext(strings.Repeat("x", 5000), nil); large != nil {
		t.Errorf("a caller context of 5000 bytes is kept in %d", len(large))
	}
}

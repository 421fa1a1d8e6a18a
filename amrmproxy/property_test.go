// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/subcluster"
)

var trace = flag.Bool("conversation", false, "print the conversation of the failing case")

// modelRM is a ResourceManager in its least words: absolute asks, response
// ids with replay, grants that lie ready until the next heartbeat.
type modelRM struct {
	id         creel.SubclusterID
	epoch      int64
	free       int
	isHome     bool
	submitted  bool
	registered bool
	table      map[int32]int // by priority, the "*" line
	lastID     int32
	last       *yarnpb.AllocateResponseProto
	seq        int64
	ready      []*yarnpb.ContainerProto
	ended      []*yarnpb.ContainerIdProto
	live       map[creel.ContainerID]bool
	away       bool                       // refuses connections
	fetched    bool                       // the last answer has arrived
	used       bool                       // the application id was used and ended here
	once       bool                       // and is then not taken again
	hadoop     bool                       // since it is Hadoop's, not an older one of creel
	killed     map[creel.ContainerID]bool // with a UAM
	prompt     bool                       // grants in the answer to the ask, as creel's does
}

func (r *modelRM) register() (*yarnpb.RegisterApplicationMasterResponseProto, error) {
	if !r.submitted {
		return nil, creel.ErrAttemptNotFound
	}
	r.registered, r.lastID, r.last = true, 0, nil
	out := &yarnpb.RegisterApplicationMasterResponseProto{Queue: proto.String("root.a")}
	if !r.isHome {
		for _, id := range sorted(r.live) {
			if !slices.ContainsFunc(r.ready, func(c *yarnpb.ContainerProto) bool { return containerID(c.Id) == id }) {
				out.ContainersFromPreviousAttempts = append(
					out.ContainersFromPreviousAttempts,
					&yarnpb.ContainerProto{Id: idProto(id)},
				)
			}
		}
	}
	return out, nil
}

func (r *modelRM) allocate(a *yarnpb.AllocateRequestProto) (*yarnpb.AllocateResponseProto, error) {
	if !r.registered {
		return nil, creel.ErrNotRegistered
	}
	switch {
	case nextID(a.GetResponseId()) == r.lastID && r.last != nil:
		return r.last.CloneVT(), nil
	case a.GetResponseId() != r.lastID:
		return nil, &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: fmt.Sprintf("expect responseId to be %d but get %d", r.lastID, a.GetResponseId()),
		}
	}
	for _, ask := range a.Ask {
		if ask.GetResourceName() == anywhere {
			r.table[ask.GetPriority().GetPriority()] = int(ask.GetNumContainers())
		}
	}
	for _, c := range a.Release {
		r.end(containerID(c))
	}
	if r.prompt {
		r.schedule(1 << 20)
	}
	r.lastID = nextID(r.lastID)
	r.last = &yarnpb.AllocateResponseProto{
		ResponseId:          proto.Int32(r.lastID),
		AllocatedContainers: r.ready,
		Limit:               gigabytes(int64(r.free)),
		NumClusterNodes:     proto.Int32(3),
	}
	for _, c := range r.ended {
		r.last.CompletedContainerStatuses = append(
			r.last.CompletedContainerStatuses,
			&yarnpb.ContainerStatusProto{ContainerId: c, ExitStatus: proto.Int32(0)},
		)
	}
	r.ready, r.ended, r.fetched = nil, nil, false
	return r.last.CloneVT(), nil
}

func (r *modelRM) end(id creel.ContainerID) {
	if r.live[id] {
		delete(r.live, id)
		r.free++
		r.ended = append(r.ended, idProto(id))
	}
}

// schedule grants up to n containers, by priority.
func (r *modelRM) schedule(n int) {
	var ps []int32
	for p := range r.table {
		ps = append(ps, p)
	}
	slices.Sort(ps)
	for _, p := range ps {
		for ; n > 0 && r.free > 0 && r.table[p] > 0; n-- {
			r.table[p]--
			r.free--
			r.seq++
			id := creel.NewContainerID(creel.AttemptID{Application: app, Attempt: 1}, r.epoch, r.seq)
			r.live[id] = true
			r.ready = append(
				r.ready,
				&yarnpb.ContainerProto{
					Id:       idProto(id),
					Priority: priority(int64(p)),
					NodeId:   &yarnpb.NodeIdProto{Host: proto.String("h")},
				},
			)
		}
	}
}

// restart forgets everything but the containers that run.
func (r *modelRM) restart() {
	gone := r.ready // granted and never fetched, nor started on a node: the recovered scheduler knows nothing of them
	if r.last != nil {
		if !r.fetched {
			gone = append(gone, r.last.AllocatedContainers...)
		}
		for _, st := range r.last.CompletedContainerStatuses { // nodes repeat completions until the AM has acknowledged them
			r.ended = append(r.ended, st.ContainerId)
		}
	}
	for _, c := range gone {
		if r.live[containerID(c.Id)] {
			delete(r.live, containerID(c.Id))
			r.free++
		}
	}
	r.ready = nil
	r.registered, r.table, r.last = false, map[int32]int{}, nil
}

// kill ends the UAM there and all it ran. The application id stays used up.
func (r *modelRM) kill() {
	r.restart()
	r.free += len(r.live)
	if r.killed == nil {
		r.killed = map[creel.ContainerID]bool{}
	}
	maps.Copy(r.killed, r.live)
	for _, c := range r.ended { // unreported completions go with the attempt
		r.killed[containerID(c)] = true
	}
	r.submitted, r.used, r.live, r.ended = false, true, map[creel.ContainerID]bool{}, nil
}

// world drives one session among model ResourceManagers and a model AM
// that keeps its table as Hadoop's AMRMClient does.
type world struct {
	t    *rapid.T
	s    *Session
	now  time.Time
	rms  []*modelRM
	home *modelRM

	number  int32          // of ids given to UAMs
	pending []func() Event // things under way; delivered in any order
	want    map[int32]int  // the AM's table
	dirty   map[int32]bool
	release []*yarnpb.ContainerIdProto
	has     map[creel.ContainerID]bool // the AM's containers
	seen    map[creel.ContainerID]bool // ever passed on as granted
	over    map[creel.ContainerID]bool // passed on as completed
	lastID  int32
	call    uint64
	waiting bool
	calm    bool // no fault any more

	kind       string // type of the application
	stored     *Record
	policy     policies.Policy
	queue      []Event // the AM's calls for when the session is at rest
	releasing  []*yarnpb.ContainerIdProto
	registered bool
	restarted  bool
	excused    map[creel.ContainerID]bool // ends that a proxy took with it
	uses       map[creel.SubclusterID]bool
}

func (w *world) rm(id creel.SubclusterID) *modelRM {
	return w.rms[slices.IndexFunc(w.rms, func(r *modelRM) bool { return r.id == id })]
}

func (w *world) step(e Event) {
	w.one(e)
	for len(w.queue) > 0 {
		e, w.queue = w.queue[0], w.queue[1:]
		w.one(e)
	}
}

func (w *world) one(e Event) {
	if *trace {
		w.t.Logf("%v %T %+v", w.now.Sub(time.Unix(1000, 0)), e, e)
	}
	for _, a := range slices.Clone(w.s.Step(w.now, e)) {
		if *trace {
			w.t.Logf("   -> %T %+v", a, a)
		}
		switch a := a.(type) {
		case Save:
			w.pending = append(w.pending, func() Event {
				w.stored = a.Record
				return Saved{a.Number}
			})
		case NewID:
			w.pending = append(w.pending, func() Event {
				r := w.rm(a.Member)
				switch {
				case !r.hadoop || !r.once:
					w.t.Errorf("%s is asked for an id, and takes the application's again", a.Member)
				case w.kind != "YARN":
					w.t.Errorf("an id is asked for, and the application is of type %q", w.kind)
				case r.away:
					return Numbered{Member: a.Member, Err: creel.ErrUnavailable}
				}
				w.number++
				return Numbered{Member: a.Member, ID: creel.ApplicationID{ClusterTimestamp: 9, ID: w.number}}
			})
		case Launch:
			w.pending = append(w.pending, func() Event {
				r := w.rm(a.Member)
				switch {
				case r.away:
					return LaunchFailed{a.Member, creel.ErrUnavailable}
				case r.used && r.once && a.OwnID.IsZero():
					return LaunchFailed{a.Member, ErrSpent}
				}
				r.submitted = true
				return Launched{
					Member:  a.Member,
					Type:    w.kind,
					Attempt: creel.AttemptID{Application: app, Attempt: 1},
					Token:   &yarnpb.TokenProto{Identifier: []byte{1}, Password: []byte{1}},
				}
			})
		case Drop:
			w.pending = append(w.pending, func() Event { return Dropped{Member: a.Member} })
		case Send:
			w.pending = append(w.pending, func() Event { return w.carry(a) })
		case Reply:
			w.told(a)
		}
	}
}

// carry takes a call to its ResourceManager and its answer back; either may be lost.
func (w *world) carry(a Send) Event {
	r := w.rm(a.Member)
	e := Answered{Member: a.Member, Seq: a.Seq}
	fate := 2
	if !w.calm {
		fate = rapid.IntRange(0, 19).Draw(w.t, "fate")
	}
	if r.away || fate == 0 {
		e.Err = creel.ErrUnavailable
		return e
	}
	switch {
	case a.Register != nil:
		if r != w.home && !r.submitted && !r.used {
			w.t.Fatalf("%s registered before it was submitted", r.id)
		}
		e.Register, e.Err = r.register()
		if fate == 1 && r != w.home { // a second registration is the UAM's right, not the home's
			return Answered{Member: a.Member, Seq: a.Seq, Err: creel.ErrUnavailable}
		}
	case a.Finish != nil && !r.submitted:
		e.Err = creel.ErrAttemptNotFound
	case a.Finish != nil && !r.registered:
		e.Err = creel.ErrNotRegistered
	case a.Finish != nil:
		for _, id := range sorted(r.live) {
			if w.has[id] {
				w.t.Fatalf("%s is given back, and runs %v", r.id, id)
			}
		}
		if w.kind != "YARN" && w.uses[r.id] || r.once && !(r.hadoop && w.kind == "YARN") {
			w.t.Fatalf("%s is given back, and was to be kept", r.id)
		}
		r.kill()
		e.Finish = &yarnpb.FinishApplicationMasterResponseProto{IsUnregistered: proto.Bool(true)}
		if fate == 1 {
			return Answered{Member: a.Member, Seq: a.Seq, Err: creel.ErrUnavailable}
		}
	case a.Allocate != nil && !r.submitted:
		e.Err = creel.ErrAttemptNotFound
	case a.Allocate != nil:
		e.Allocate, e.Err = r.allocate(a.Allocate)
		r.fetched = r.fetched || e.Err == nil && fate != 1
		if fate == 1 {
			return Answered{Member: a.Member, Seq: a.Seq, Err: creel.ErrUnavailable}
		}
	}
	return e
}

// told is the AM's processing of an answer, and checks the property.
func (w *world) told(a Reply) {
	if errors.Is(a.Err, creel.ErrNotRegistered) {
		// As Hadoop's client does: register, then send everything again.
		w.register()
		w.release = append(w.releasing, w.release...)
		for p := range int32(3) {
			w.dirty[p] = true
		}
		return
	}
	if a.Err != nil {
		w.t.Fatalf("the AM was refused: %v", a.Err)
	}
	w.waiting = false
	if a.Register != nil {
		w.registered = true
		return
	}
	w.releasing = nil
	r := a.Allocate
	w.lastID = r.GetResponseId()
	for _, c := range r.AllocatedContainers {
		id, p := containerID(c.Id), c.GetPriority().GetPriority()
		if w.seen[id] {
			w.t.Fatalf("%v was told twice", id)
		}
		w.seen[id], w.has[id] = true, true
		if r := w.rms[id.Epoch()-1]; !r.killed[id] {
			w.uses[r.id] = true
		}
		if w.want[p]--; w.want[p] < 0 {
			w.t.Fatalf("over-granted at priority %d: %v", p, id)
		}
	}
	for _, st := range r.CompletedContainerStatuses {
		id := containerID(st.ContainerId)
		if w.excused[id] {
			continue // repeated by its ResourceManager after all
		}
		if w.restarted && (!w.seen[id] || w.over[id]) {
			// The completion of a container that was lost with a proxy; or one that a restarted ResourceManager
			// repeats to a proxy without any history. Without a proxy the AM would receive both, too.
			continue
		}
		if !w.seen[id] || w.over[id] {
			w.t.Fatalf("the end of %v was told (granted %v, told before %v)", id, w.seen[id], w.over[id])
		}
		w.over[id] = true
		delete(w.has, id)
	}
}

func (w *world) register() {
	w.lastID, w.waiting = 0, true
	w.call++
	w.queue = append(
		w.queue,
		FromAM{Call: w.call, Register: &yarnpb.RegisterApplicationMasterRequestProto{Host: proto.String("am")}},
	)
}

// restart replaces the proxy by one that has only the stored record. Data that the old one had fetched and not passed
// on is lost: such a container is never started and expires, such a completion the AM learns from its node.
func (w *world) restart() {
	w.pending, w.queue, w.restarted = nil, nil, true
	w.open(w.stored)
	for _, r := range w.rms {
		unread := map[creel.ContainerID]bool{}
		for _, c := range r.ready {
			unread[containerID(c.Id)] = true
		}
		for _, c := range r.ended {
			unread[containerID(c)] = true
		}
		r.fetched = true // the old proxy's answer will not be asked for again
		for _, id := range sorted(r.live) {
			if !w.seen[id] && !unread[id] {
				delete(r.live, id)
				r.free++
			}
		}
		for _, id := range sorted(w.has) {
			if id.Epoch() == r.epoch && !r.live[id] && !unread[id] {
				delete(w.has, id)
				w.over[id] = true
				w.excused[id] = true
			}
		}
	}
	if w.waiting { // its call failed with the connection: it makes it again
		w.waiting = false
		if !w.registered {
			w.register()
			return
		}
		w.release = append(w.releasing, w.release...)
		for p := range int32(3) {
			w.dirty[p] = true
		}
	}
}

func (w *world) open(r *Record) {
	s, err := NewSession(
		Options{
			Config:  Config{IdleAfter: 2 * time.Second, UAMRetry: 5 * time.Second},
			Attempt: creel.AttemptID{Application: app, Attempt: 1},
			Home:    w.home.id,
			User:    "ann",
			Record:  r,
			Rand:    rand.New(rand.NewPCG(1, 2)),
		},
	)
	if err != nil {
		w.t.Fatal(err)
	}
	w.s = s
	w.step(Saw{w.view(), w.policy, nil})
}

func (w *world) heartbeat() {
	if w.waiting {
		return
	}
	a := &yarnpb.AllocateRequestProto{ResponseId: proto.Int32(w.lastID), Release: w.release}
	for p := range int32(3) {
		if w.dirty[p] {
			a.Ask = append(
				a.Ask,
				&yarnpb.ResourceRequestProto{
					Priority:      priority(int64(p)),
					ResourceName:  proto.String(anywhere),
					NumContainers: proto.Int32(int32(w.want[p])),
					Capability:    gigabytes(1),
				},
			)
		}
	}
	w.releasing = w.release
	w.dirty, w.release, w.waiting = map[int32]bool{}, nil, true
	w.call++
	w.step(FromAM{Call: w.call, Allocate: a})
}

func (w *world) deliver(i int) {
	next := w.pending[i]
	w.pending = slices.Delete(w.pending, i, i+1)
	w.step(next())
}

func (w *world) tick(d time.Duration) {
	w.now = w.now.Add(d)
	w.step(Tick{})
}

func (w *world) view() *subcluster.View {
	var members []subcluster.Status
	for _, r := range w.rms {
		st := subcluster.Status{State: subcluster.StateActive}
		st.ID = r.id
		if r.once && r.hadoop {
			st.Version = "hadoop"
		}
		st.Load.BeginsAgain = !r.once
		st.Load.Metrics = subcluster.ClusterMetrics{
			AvailableMB:           int64(r.free) * 1024,
			AvailableVirtualCores: int64(r.free),
			TotalMB:               1 << 20,
			TotalVirtualCores:     1 << 10,
		}
		members = append(members, st)
	}
	return subcluster.NewView(w.now, members, nil)
}

// The property: containers that the AM asked for are granted or still outstanding, never more; no container is sent
// twice, and each completion once; and when all is quiet again nothing is left over anywhere: no surplus container,
// no ask.
func TestAMGetsExactlyItsAsks(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		w := &world{
			t:       t,
			now:     time.Unix(1000, 0),
			want:    map[int32]int{},
			dirty:   map[int32]bool{},
			has:     map[creel.ContainerID]bool{},
			seen:    map[creel.ContainerID]bool{},
			over:    map[creel.ContainerID]bool{},
			excused: map[creel.ContainerID]bool{},
			uses:    map[creel.SubclusterID]bool{},
			kind:    rapid.SampledFrom([]string{"YARN", "MAPREDUCE", ""}).Draw(t, "type"),
		}
		for i := range rapid.IntRange(1, 3).Draw(t, "members") {
			w.rms = append(
				w.rms,
				&modelRM{
					id:    creel.SubclusterID(fmt.Sprintf("sc-%d", i)),
					epoch: int64(i + 1),
					free:  rapid.IntRange(0, 12).Draw(t, "free"),
					table: map[int32]int{},
					live:  map[creel.ContainerID]bool{},

					prompt: rapid.Bool().Draw(t, "prompt"),
					once:   rapid.IntRange(0, 3).Draw(t, "once") == 0,
					hadoop: rapid.Bool().Draw(t, "hadoop"),
				},
			)
		}
		w.home = w.rms[0]
		w.home.submitted, w.home.isHome = true, true
		var err error
		w.policy, err = policies.Parse(
			[]byte(
				rapid.SampledFrom([]string{`{}`, `{"split":{"policy":"home"}}`, `{"split":{"policy":"broadcast"}}`, `{"split":{"policy":"locality","headroomAlpha":0.5}}`}).
					Draw(t, "policy"),
			),
		)
		if err != nil {
			t.Fatal(err)
		}
		w.open(nil)
		w.register()
		w.step(Tick{})

		for range rapid.IntRange(10, 120).Draw(t, "steps") {
			switch what := rapid.IntRange(0, 15).Draw(t, "what"); what {
			case 0, 1, 2, 3, 4:
				if len(w.pending) > 0 {
					w.deliver(rapid.IntRange(0, len(w.pending)-1).Draw(t, "which"))
				}
			case 5, 6:
				w.heartbeat()
			case 7:
				if w.waiting {
					continue // a change that has not been sent cannot be retained
				}
				p := int32(rapid.IntRange(0, 2).Draw(t, "priority"))
				w.want[p] = rapid.IntRange(0, 10).Draw(t, "want")
				w.dirty[p] = true
			case 8, 9:
				r := rapid.SampledFrom(w.rms).Draw(t, "rm")
				r.schedule(rapid.IntRange(1, 4).Draw(t, "grants"))
			case 10:
				w.tick(time.Duration(rapid.IntRange(1, 4000).Draw(t, "ms")) * time.Millisecond)
			case 11: // a container ends, by itself or released
				ids := sorted(w.has)
				if len(ids) == 0 {
					continue
				}
				id := rapid.SampledFrom(ids).Draw(t, "container")
				if rapid.Bool().Draw(t, "released") {
					w.release = append(w.release, idProto(id))
				} else {
					w.rms[id.Epoch()-1].end(id)
				}
			case 12:
				rapid.SampledFrom(w.rms).Draw(t, "restarted").restart()
			case 13:
				r := rapid.SampledFrom(w.rms).Draw(t, "gone or back")
				r.away = !r.away
			case 14: // the UAM is killed by an administrator of its member
				if r := rapid.SampledFrom(w.rms).Draw(t, "killed"); r != w.home && r.submitted {
					r.kill()
					delete(w.uses, r.id) // its nodes drop the data of an application that has ended
				}
			case 15:
				w.restart()
			}
		}
		w.settle()
	})
}

func sorted(m map[creel.ContainerID]bool) (ids []creel.ContainerID) {
	for id := range m {
		ids = append(ids, id)
	}
	sortIDs(ids)
	return ids
}

// settle ends all faults, adds free resources everywhere, lets time pass, and checks that nothing is left over.
func (w *world) settle() {
	w.calm = true
	for _, r := range w.rms {
		r.away, r.free = false, r.free+200
	}
	for range 400 {
		for len(w.pending) > 0 {
			w.deliver(0)
		}
		for _, r := range w.rms {
			r.schedule(1 << 20)
		}
		w.heartbeat()
		w.tick(300 * time.Millisecond)
	}
	for len(w.pending) > 0 {
		w.deliver(0)
	}
	for p, n := range w.want {
		if n != 0 {
			w.t.Fatalf("%d containers of priority %d were never granted", n, p)
		}
	}
	live := 0
	for _, r := range w.rms {
		if r != w.home && r.submitted && len(r.live) == 0 && w.kind == "YARN" && !r.once {
			w.t.Fatalf("%s has a UAM that does nothing", r.id)
		}
		if w.restarted { // their granting member was forgotten with the UAM
			maps.DeleteFunc(w.has, func(id creel.ContainerID, _ bool) bool { return r.killed[id] })
		}
		for _, id := range sorted(r.live) {
			live++
			if !w.has[id] {
				w.t.Fatalf("%s runs %v, of which the AM knows nothing", r.id, id)
			}
		}
		for p, n := range r.table {
			if n > 0 {
				w.t.Fatalf("%s is still asked for %d of priority %d", r.id, n, p)
			}
		}
	}
	if live != len(w.has) {
		w.t.Fatalf("the AM believes in %d containers, %d run", len(w.has), live)
	}
	if w.s.phase != phaseRunning {
		w.t.Fatalf("the session is in phase %d", w.s.phase)
	}
}

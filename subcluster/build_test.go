// SPDX-License-Identifier: Apache-2.0

package subcluster_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster"
	"pgregory.net/rapid"
)

var t0 = time.UnixMilli(1800000000000)

// world plays a store for text scenarios. A line is one of
//
//	at <seconds>                the store's clock
//	heartbeat <id>...                members send heartbeats (and register, if they are new)
//	drain|deregister|forget <id>...
//	empty                       the store comes back empty, as another store
//	gone                        the store cannot be read
//	view <id>=<state>... [frozen]    builds the next view and compares
type world struct {
	now     time.Time
	store   string
	records map[creel.SubclusterID]*subcluster.Record
	view    *subcluster.View
}

func play(t *testing.T, script string) {
	t.Helper()
	w := &world{now: t0, store: "one", records: map[creel.SubclusterID]*subcluster.Record{}}
	for n, line := range strings.Split(strings.TrimSpace(script), "\n") {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		switch words[0] {
		case "at":
			var s float64
			if _, err := fmt.Sscan(words[1], &s); err != nil {
				t.Fatal(err)
			}
			w.now = t0.Add(time.Duration(s * float64(time.Second)))
		case "empty":
			w.store, w.records = w.store+"'", map[creel.SubclusterID]*subcluster.Record{}
		case "gone":
			w.view = subcluster.Unreachable(w.view, "it is gone")
		case "view":
			w.view = subcluster.Build(w.view, w.read(), w.now)
			w.compare(t, n+1, words[1:])
		default:
			for _, word := range words[1:] {
				w.act(words[0], creel.SubclusterID(word))
			}
		}
	}
}

func (w *world) act(what string, id creel.SubclusterID) {
	r := w.records[id]
	if r == nil {
		r = &subcluster.Record{Member: subcluster.Member{ID: id, Lease: 10 * time.Second}, Registered: w.now}
		w.records[id] = r
	}
	switch what {
	case "heartbeat":
		r.Heartbeat = w.now
	case "drain":
		r.Draining = "alice"
	case "deregister":
		r.Deregistered = true
	case "forget":
		delete(w.records, id)
	}
}

func (w *world) read() subcluster.Records {
	out := subcluster.Records{Now: w.now, Store: w.store}
	for _, r := range w.records {
		out.Members = append(out.Members, *r)
	}
	return out
}

func (w *world) compare(t *testing.T, line int, want []string) {
	t.Helper()
	frozen := slices.Contains(want, "frozen")
	want = slices.DeleteFunc(slices.Clone(want), func(s string) bool { return s == "frozen" })
	var got []string
	for _, m := range w.view.Members {
		got = append(got, fmt.Sprintf("%s=%s", m.ID, m.State))
		if m.Reason == "" {
			t.Fatalf("line %d: %s has no reason", line, m.ID)
		}
	}
	if !slices.Equal(got, want) || (w.view.Freeze != nil) != frozen {
		t.Fatalf("line %d: view is %v, freeze %+v; want %v, frozen %v", line, got, w.view.Freeze, want, frozen)
	}
}

func TestAMemberIsAliveByItsLastHeartbeat(t *testing.T) {
	play(t, `
		heartbeat a b
		view a=active b=active
		at 10
		heartbeat b
		view a=active b=active
		at 10.001
		view a=suspect b=active
		at 20
		heartbeat b
		at 30
		view a=suspect b=active
		at 30.001
		view a=lost b=suspect
		heartbeat a b
		view a=active b=active
		drain b
		view a=active b=draining
		at 45
		heartbeat a
		view a=active b=suspect
		heartbeat b
		deregister a
		view a=deregistered b=draining
	`)
}

func TestUnacceptingMemberDrainsUntilItAccepts(t *testing.T) {
	build := func(before *subcluster.View, refusing string) *subcluster.View {
		load, err := (&subcluster.Load{Refusing: refusing}).JSON()
		if err != nil {
			t.Fatal(err)
		}
		return subcluster.Build(before, subcluster.Records{Now: t0, Members: []subcluster.Record{
			{Member: subcluster.Member{ID: "a", Epoch: 1}, Heartbeat: t0, Load: string(load)},
		}}, t0)
	}
	v := build(nil, "")
	for _, step := range []struct {
		refusing string
		state    subcluster.State
	}{{"its disk is full", subcluster.StateDraining}, {"", subcluster.StateActive}} {
		v = build(v, step.refusing)
		if m, _ := v.Member("a"); m.State != step.state || !strings.Contains(m.Reason, step.refusing) {
			t.Errorf("when it says %q it is %s: %s", step.refusing, m.State, m.Reason)
		}
	}
}

func TestMembersThatFallSilentTogetherFreezeTheView(t *testing.T) {
	play(t, `
		heartbeat a b c
		at 4
		heartbeat b
		at 5
		heartbeat c
		at 9
		view a=active b=active c=active
		at 14.5
		view a=suspect b=suspect c=active
		at 15.1
		view a=active b=active c=active frozen
		at 300
		view a=active b=active c=active frozen
		heartbeat a
		view a=active b=active c=active frozen
		at 305
		heartbeat a b c
		view a=active b=active c=active
	`)
}

func TestFreezeEndsOneLeaseAfterFirstReturn(t *testing.T) {
	play(t, `
		heartbeat a b c
		view a=active b=active c=active
		at 100
		view a=active b=active c=active frozen
		heartbeat a b
		view a=active b=active c=active frozen
		at 109
		heartbeat a b
		view a=active b=active c=active frozen
		at 110.1
		view a=active b=active c=lost
	`)
}

func TestSuccessiveMemberDeathsAreAccepted(t *testing.T) {
	play(t, `
		heartbeat a b
		view a=active b=active
		at 25
		heartbeat b
		view a=suspect b=active
		at 60
		view a=lost b=lost
	`)
}

func TestOneMemberIsBelieved(t *testing.T) {
	play(t, `
		heartbeat a
		view a=active
		at 60
		view a=lost
	`)
}

func TestEmptyStoreFreezesTheView(t *testing.T) {
	play(t, `
		heartbeat a b
		drain b
		at 1
		view a=active b=draining
		empty
		view a=active b=draining frozen
		at 3
		heartbeat a
		view a=active b=draining frozen
		at 12
		heartbeat a b
		view a=active b=active
	`)
	// Some have registered again before the first look.
	play(t, `
		heartbeat a b
		view a=active b=active
		empty
		heartbeat a
		view a=active b=active frozen
		at 10.1
		heartbeat a
		view a=active b=lost
	`)
}

func TestAMemberTheStoreForgotIsLost(t *testing.T) {
	play(t, `
		heartbeat a b
		view a=active b=active
		forget a
		view a=lost b=active
		deregister b
		forget b
		heartbeat a
		view a=active b=lost
	`)
}

func TestSilentStoreFreezesTheView(t *testing.T) {
	play(t, `
		heartbeat a b
		view a=active b=active
		gone
		at 100
		gone
		view a=active b=active frozen
		heartbeat a b
		view a=active b=active
	`)
}

func TestLoadsAndTheirErrors(t *testing.T) {
	r := subcluster.Record{
		Member:    subcluster.Member{ID: "a", Capability: `{"clusterMetrics":{"totalNodes":3}}`},
		Heartbeat: t0,
	}
	build := func(before *subcluster.View) *subcluster.View {
		return subcluster.Build(before, subcluster.Records{Now: t0, Store: "s", Members: []subcluster.Record{r}}, t0)
	}
	v := build(nil)
	if n := v.Members[0].Load.Metrics.TotalNodes; n != 3 {
		t.Fatalf("the capability says %d nodes", n)
	}
	r.Load = `{"clusterMetrics":{"totalNodes":4}}`
	v = build(v)
	r.Load = `{"clusterMetrics":`
	v = build(v)
	if m := v.Members[0]; m.Load.Metrics.TotalNodes != 4 || m.LoadError == "" {
		t.Fatalf("a broken report gave %+v", m)
	}
}

// A member whose queues are all full differs from one that reports none, also to readers of the head.
func TestNodeQueuesSurviveReport(t *testing.T) {
	many := make([]int32, subcluster.MaxNodeQueues+1)
	for _, x := range []struct{ sent, want []int32 }{{nil, nil}, {[]int32{}, []int32{}}, {[]int32{0, 7}, []int32{0, 7}}, {many, many[1:]}} {
		text, err := (&subcluster.Load{NodeQueues: x.sent}).JSON()
		if err != nil {
			t.Fatal(err)
		}
		parts, err := subcluster.Cut(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, read := range [][]byte{text, parts[0].Text} {
			l, err := subcluster.ParseLoad(read)
			if err != nil || !slices.Equal(l.NodeQueues, x.want) || (l.NodeQueues == nil) != (x.want == nil) {
				t.Errorf("%s: %v, want %v, %v", read, l.NodeQueues, x.want, err)
			}
		}
	}
}

func TestPoliciesNeverGoBack(t *testing.T) {
	p := func(v int64, doc string) subcluster.Policy {
		return subcluster.Policy{Queue: "root", Version: v, Document: []byte(doc)}
	}
	build := func(before *subcluster.View, list ...subcluster.Policy) *subcluster.View {
		return subcluster.Build(before, subcluster.Records{Now: t0, Policies: list}, t0)
	}
	v := build(nil, p(5, "five"))
	for _, step := range []struct {
		list []subcluster.Policy
		want string
	}{{nil, "five"}, {[]subcluster.Policy{p(4, "four")}, "five"}, {[]subcluster.Policy{p(6, "six")}, "six"}, {[]subcluster.Policy{p(7, "")}, ""}} {
		v = build(v, step.list...)
		if got, _ := v.Policy("root.a"); string(got.Document) != step.want {
			t.Fatalf("after %v the policy is %q, want %q", step.list, got.Document, step.want)
		}
	}
}

// Whatever the members do, the view has each of them once, sorted, and a member that sent a heartbeat within its
// lease by the store's clock is never suspect or lost.
func TestViewIsSortedUniqueAndLeased(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		now := t0
		records := map[creel.SubclusterID]*subcluster.Record{}
		var view *subcluster.View
		t.Repeat(map[string]func(*rapid.T){
			"pass": func(t *rapid.T) { now = now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "s")) * time.Second) },
			"heartbeat": func(t *rapid.T) {
				id := creel.SubclusterID(rapid.StringMatching(`[a-d]`).Draw(t, "id"))
				records[id] = &subcluster.Record{Member: subcluster.Member{ID: id}, Heartbeat: now}
			},
			"forget": func(t *rapid.T) { delete(records, creel.SubclusterID(rapid.StringMatching(`[a-d]`).Draw(t, "id"))) },
			"": func(t *rapid.T) {
				in := subcluster.Records{Now: now, Store: "s"}
				for _, r := range records {
					in.Members = append(in.Members, *r)
				}
				before := fmt.Sprintf("%+v", view)
				next := subcluster.Build(view, in, now)
				if fmt.Sprintf("%+v", view) != before {
					t.Fatal("Build changed the previous view")
				}
				slices.Reverse(in.Members)
				if again := subcluster.Build(
					view,
					in,
					now,
				); fmt.Sprintf(
					"%+v",
					again.Members,
				) != fmt.Sprintf(
					"%+v",
					next.Members,
				) {
					t.Fatal("the order of the records decides")
				}
				view = next
				for i, m := range view.Members {
					if i > 0 && view.Members[i-1].ID >= m.ID {
						t.Fatalf("members are not sorted: %v", view.Members)
					}
					if r := records[m.ID]; r != nil && now.Sub(r.Heartbeat) <= subcluster.DefaultLease &&
						m.State != subcluster.StateActive {
						t.Fatalf("%s sent a heartbeat %v ago and is %v", m.ID, now.Sub(r.Heartbeat), m.State)
					}
				}
				for id := range records {
					if _, ok := view.Member(id); !ok {
						t.Fatalf("%s is not in the view", id)
					}
				}
			},
		})
	})
}

func TestPolicyInheritance(t *testing.T) {
	v := subcluster.NewView(t0, nil, []subcluster.Policy{
		{Queue: "*", Version: 1, Document: []byte("star")},
		{Queue: "root.a", Version: 2, Document: []byte("a")},
		{Queue: "root.a.b", Version: 3},
	})
	for q, want := range map[creel.QueuePath]string{"root.a": "a", "root.a.b": "a", "root.a.b.c": "a", "root.x": "star", "default": "star"} {
		if p, _ := v.Policy(q); string(p.Document) != want {
			t.Errorf("policy for %s is %q, want %q", q, p.Document, want)
		}
	}
}

func FuzzParseLoad(t *testing.F) {
	f := propertytest.Fuzz(t)
	f.Add([]byte(`{"clusterMetrics":{"appsPending":3,"availableMB":"17","utilizedMBPercent":1.5,"pendingMB":null}}`))
	f.Add([]byte(`{"appsPending":3}`))
	f.Add(
		[]byte(
			`{"clusterMetrics":{},"creel":{"queues":[{"queue":"root.a","label":"gpu","free":{"memory":1,"vCores":2,"others":{"yarn.io/gpu":1}}}]}}`,
		),
	)
	f.Add([]byte(`{"creel":{"queues":[{"queue":""}]}}`))
	f.Add([]byte(`{"creel":{"nodes":"n","refusing":"no","beginsAgain":true}}`))
	f.Add([]byte(`{"creel":{"nodeQueues":[]}}`))
	f.Add([]byte(`{"creel":{"uams":{"running":2},"queues":[{"queue":"root.a","uams":{"pending":1}}]}}`))
	f.Add([]byte(`{"creel":{"labels":{"ams":"gpu","queues":[{"queue":"root.a","accessible":["gpu"]}],` +
		`"partitions":[{"label":"gpu","shared":true,"total":{"memory":1}}]}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := subcluster.ParseLoad(data)
		if err != nil {
			return
		}
		text, err := l.JSON()
		if err != nil {
			t.Fatal(err)
		}
		again, err := subcluster.ParseLoad(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if fmt.Sprintf("%+v", again) != fmt.Sprintf("%+v", l) {
			t.Fatalf("%+v became %+v", l, again)
		}
	})
}

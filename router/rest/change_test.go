// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/router/routertest"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/server"
)

// While its home is away an application can be killed, by REST and by RPC. Its user learns that from any router, from
// the last report, and from why. When the home is back it is killed there, also if the router that took the kill is
// gone.
func TestKillWhileHomeIsAway(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 2})
	one, two := f.Routers[0].Web, f.Routers[1].Web
	id, home := submit(t, f, one, "to be killed", "default")
	app, err := creel.ParseApplicationID(id)
	if err != nil {
		t.Fatal(err)
	}
	const path = base + "/apps/"
	if r := call(t, one, "GET", path+id+asAlice, ""); at(t, r.body, "app", "name") != "to be killed" {
		t.Fatalf("before: %d %s", r.status, r.body)
	}
	home.Cut()

	r := call(t, one, "GET", path+id+asAlice, "")
	if r.status != 200 || !strings.Contains(at(t, r.body, "app", "diagnostics").(string), "This report is ") {
		t.Errorf("what alice saw before: %d %s", r.status, r.body)
	}
	if old := r.head.Get("X-Last-Known-SubClusters"); !strings.HasPrefix(old, string(home.ID)+" (its last report is ") {
		t.Errorf("the report does not name its home as silent: %q", old)
	}
	if r := call(t, one, "GET", path+id+"?user.name=bob", ""); r.status != 503 {
		t.Errorf("what bob never saw: %d %s", r.status, r.body)
	}
	if r := call(t, one, "PUT", path+id+"/state", `{"state":"KILLED"}`); r.status != 503 {
		t.Errorf("a kill by nobody: %d %s", r.status, r.body)
	}
	if r := call(t, one, "PUT", path+id+"/state"+asAlice, `{"state":"FINISHED"}`); r.status != 503 {
		t.Errorf("another state: %d %s", r.status, r.body)
	}
	for range 2 {
		r := call(t, one, "PUT", path+id+"/state"+asAlice, `{"state":"KILLED"}`)
		if r.status != 202 || at(t, r.body, "state") != "KILLING" || r.head.Get("X-Kept") != "true" ||
			r.head.Get("X-Kept-For-SubClusters") != string(home.ID) {
			t.Fatalf("kill: %d %v %s", r.status, r.head, r.body)
		}
	}
	answer, err := f.As(f.Routers[1], "alice").ForceKillApplication(t.Context(), &pb.KillApplicationRequestProto{
		ApplicationId: pb.FromApplicationID(app), Diagnostics: proto.String("enough"),
	})
	if err != nil || answer.GetIsKillCompleted() {
		t.Fatalf("kill by RPC through the other: %v, %v", answer, err)
	}
	if r := call(
		t,
		two,
		"GET",
		"/api/v1/apps/"+id+"/why",
		"",
	); !strings.Contains(
		r.body,
		`"asked":[{"user":"alice","verb":"kill"`,
	) {
		t.Errorf("why: %s", r.body)
	}
	if v, ok := home.App(t.Context(), app); !ok || v.State.Ended() {
		t.Fatalf("the home, of which nobody heard: %v %v", ok, v.State)
	}

	f.Routers[0].Kill()
	home.Mend()
	f.Until("its home kills it", func() bool {
		v, ok := home.App(t.Context(), app)
		return ok && v.State == creel.AppKilled
	})
	f.Until("nothing waits any more", func() bool {
		return !strings.Contains(call(t, two, "GET", "/api/v1/apps/"+id+"/why", "").body, "asked")
	})
}

// While its home is away an application can be moved to another queue and given another priority and another
// lifetime, by REST and by RPC. If the home rejects that when it is back, why reports it.
func TestChangeWhileHomeIsAway(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 2})
	one, two := f.Routers[0].Web, f.Routers[1].Web
	id, home := submit(t, f, one, "to be moved", "default")
	app, err := creel.ParseApplicationID(id)
	if err != nil {
		t.Fatal(err)
	}
	path := base + "/apps/" + id
	home.Cut()
	expiry := time.Now().Add(3 * time.Hour).UTC().Format("2006-01-02T15:04:05.000-0700")
	for _, c := range []struct{ verb, body, want string }{
		{"/queue", `{"queue":"other"}`, `{"queue":"other"}`},
		{"/timeout", `{"timeout":{"type":"LIFETIME","expiryTime":"` + expiry + `"}}`,
			`{"timeout":{"expiryTime":"` + expiry + `","type":"LIFETIME"}}`},
	} {
		if r := call(t, one, "PUT", path+c.verb+asAlice, c.body); r.status != 202 || r.body != c.want {
			t.Errorf("%s: %d %s", c.verb, r.status, r.body)
		}
	}
	if r := call(t, one, "PUT", path+"/priority"+asAlice, `{"priority":"much"}`); r.status != 503 {
		t.Errorf("a priority that is no number: %d %s", r.status, r.body)
	}
	p, err := f.As(f.Routers[1], "alice").
		UpdateApplicationPriority(t.Context(), &pb.UpdateApplicationPriorityRequestProto{
			ApplicationId: pb.FromApplicationID(app), ApplicationPriority: pb.FromPriority(7),
		})
	if err != nil || p.GetApplicationPriority().GetPriority() != 7 {
		t.Errorf("priority by RPC: %v, %v", p, err)
	}
	_, err = f.As(f.Routers[1], "bob").
		MoveApplicationAcrossQueues(t.Context(), &pb.MoveApplicationAcrossQueuesRequestProto{
			ApplicationId: pb.FromApplicationID(app), TargetQueue: proto.String("nowhere"),
		})
	if err != nil {
		t.Errorf("another's move to nowhere, which only the home can refuse: %v", err)
	}
	why := call(t, two, "GET", "/api/v1/apps/"+id+"/why", "").body
	for _, what := range []string{"move to queue other", "change the priority to 7", "change the timeout LIFETIME to " + expiry,
		"move to queue nowhere"} {
		if !strings.Contains(why, what) {
			t.Errorf("why lacks %q: %s", what, why)
		}
	}

	f.Routers[0].Kill()
	home.Mend()
	f.Until("its home does it all", func() bool {
		v, ok := home.App(t.Context(), app)
		return ok && v.Queue == "root.other" && v.Priority == 7 && time.Until(v.Deadline) > 2*time.Hour
	})
	f.Until("the refusal is told, and nothing else", func() bool {
		why := call(t, two, "GET", "/api/v1/apps/"+id+"/why", "").body
		return strings.Contains(why, `"what":"move to queue nowhere","refused":"`) &&
			!strings.Contains(why, "to queue other")
	})
}

// A member that was paused while an application changed its queue changes that of its UAM when it resumes.
func TestMoveReachesUAMOfPausedMember(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 2})
	id, home := submit(t, f, f.Routers[0].Web, "to be moved", "default")
	app, err := creel.ParseApplicationID(id)
	if err != nil {
		t.Fatal(err)
	}
	other := f.Members[0]
	if other == home {
		other = f.Members[1]
	}
	direct := yarnrpc.NewApplicationClientProtocolClient(f.RPC, other.Client.Address, hrpc.Login{User: "alice"})
	if _, err := direct.SubmitApplication(t.Context(), &pb.SubmitApplicationRequestProto{
		ApplicationSubmissionContext: routertest.Context(app, "its UAM"),
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Store.SaveUAMRecord(t.Context(), statestore.UAMRecord{
		Attempt: creel.AttemptID{Application: app, Attempt: 1}, Home: home.ID,
		UAMs: []statestore.UAM{{Member: other.ID, Phase: "running"}},
	}); err != nil {
		t.Fatal(err)
	}
	other.Mute()
	if r := call(t, f.Routers[0].Web, "PUT", base+"/apps/"+id+"/queue"+asAlice, `{"queue":"other"}`); r.status != 200 {
		t.Fatalf("move: %d %s", r.status, r.body)
	}
	if v, _ := home.App(t.Context(), app); v.Queue != "root.other" {
		t.Errorf("at home it is in %s", v.Queue)
	}
	why := call(t, f.Routers[1].Web, "GET", "/api/v1/apps/"+id+"/why", "").body
	if !strings.Contains(why, `"what":"move to queue other","member":"`+string(other.ID)+`"`) {
		t.Errorf("the move is not on record for a paused member: %s", why)
	}
	other.Mend()
	f.Until("its UAM is moved too", func() bool {
		v, ok := other.App(t.Context(), app)
		return ok && v.Queue == "root.other"
	})
}

// A signal to a container whose subcluster is away is stored, by REST and by RPC, and its node gets it when the
// subcluster is back. If the node is not back after a restart of the ResourceManager, the signal waits there.
func TestSignalWaitsForContainersSubcluster(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 2})
	one, two := f.Routers[0].Web, f.Routers[1].Web
	id, home := submit(t, f, one, "to be signalled", "default")
	app, err := creel.ParseApplicationID(id)
	if err != nil {
		t.Fatal(err)
	}
	node, response := creel.NodeID{Host: "n1", Port: 1}, int32(0)
	heartbeat := func() (got []rm.Signal) {
		if err := home.D.Turn(t.Context(), func(m *rm.Machine, now time.Time) {
			answer := m.NodeHeartbeat(now, &rm.NodeReport{ID: node, ResponseID: response})
			response, got = answer.ResponseID, slices.Clone(answer.Signals)
		}); err != nil {
			t.Fatal(err)
		}
		return got
	}
	var worker creel.ContainerID // one of its containers there
	if err := home.D.Turn(t.Context(), func(m *rm.Machine, now time.Time) {
		attempt := creel.AttemptID{Application: app, Attempt: 1}
		_, registered := m.RegisterNode(now, &rm.RegisterNode{ID: node, Resource: creel.NewResource(8192, 8), Version: "3.4.2"})
		_, begun := m.RegisterAM(now, &rm.RegisterAM{Attempt: attempt, Host: "am"})
		got, err := m.Allocate(now, attempt, &rm.AllocateRequest{Asks: []rm.Ask{
			{Priority: 1, ResourceName: "*", Resource: creel.NewResource(1024, 1), Count: 24},
		}})
		if err = errors.Join(registered, begun, err); err != nil {
			t.Error(err)
			return
		}
		for _, g := range got.Granted {
			if g.Node == node {
				worker = g.ID
			}
		}
	}); err != nil || worker.IsZero() {
		t.Fatal("it has no container there", err)
	}
	path := base + "/containers/" + worker.String() + "/signal/"
	if r := call(t, one, "POST", path+"GRACEFUL_SHUTDOWN"+asAlice, ""); r.status != 200 || r.head.Get("X-Kept") != "" {
		t.Fatalf("while all are there: %d %s", r.status, r.body)
	}
	if got := heartbeat(); len(got) != 1 || got[0] != (rm.Signal{Container: worker, Command: 2}) {
		t.Errorf("its node is told of %v", got)
	}
	heartbeat()

	home.Cut()
	if r := call(t, one, "POST", path+"forceful_shutdown"+asAlice, ""); r.status != 202 ||
		r.head.Get("X-Kept-For-SubClusters") != string(home.ID) {
		t.Errorf("while its subcluster is away: %d %s", r.status, r.body)
	}
	_, err = f.As(f.Routers[1], "alice").SignalToContainer(t.Context(), &pb.SignalContainerRequestProto{
		ContainerId: pb.FromContainerID(worker), Command: pb.SignalContainerCommandProto_OUTPUT_THREAD_DUMP.Enum(),
	})
	if err != nil {
		t.Errorf("by RPC: %v", err)
	}
	if r := call(t, one, "POST", path+"nonsense"+asAlice, ""); r.status != 503 {
		t.Errorf("a command that only its subcluster can refuse: %d %s", r.status, r.body)
	}
	absent := creel.NewContainerID(worker.Attempt, worker.Epoch(), 1000)
	other := base + "/containers/" + absent.String() + "/signal/"
	if r := call(t, one, "POST", other+"GRACEFUL_SHUTDOWN"+asAlice, ""); r.status != 202 {
		t.Errorf("of a container that nobody knows, while its subcluster is away: %d %s", r.status, r.body)
	}
	why := call(t, two, "GET", "/api/v1/apps/"+id+"/why", "").body
	if !strings.Contains(why, "signal "+worker.String()+" to OUTPUT_THREAD_DUMP") {
		t.Errorf("why lacks the last word: %s", why)
	}
	home.Mend()
	f.Until("its node is told", func() bool {
		return slices.Contains(heartbeat(), rm.Signal{Container: worker, Command: 1})
	})
	f.Until("nothing else waits than the other, which its subcluster may come to know", func() bool {
		why := call(t, two, "GET", "/api/v1/apps/"+id+"/why", "").body
		return strings.Count(why, `"what":"signal `) == 1 && strings.Contains(why, `"what":"signal `+absent.String()) &&
			strings.Contains(why, `"doubted":"`) && strings.Contains(why, "absent container") &&
			!strings.Contains(why, `"refused"`)
	})
	nobody := creel.ContainerID{Attempt: worker.Attempt, ID: worker.ID + 1000}
	path = base + "/containers/" + nobody.String() + "/signal/"
	if r := call(t, one, "POST", path+"GRACEFUL_SHUTDOWN"+asAlice, ""); r.status < 400 {
		t.Errorf("to a container that does not exist: %d %s", r.status, r.body)
	}
}

// A change that a user makes while the home is away is recorded, and the home is back before it is carried out there.
// A change made meanwhile counts: it is newer.
func TestNewChangeIsNotUndoneByQueuedOne(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 2})
	one, two := f.Routers[0].Web, f.Routers[1].Web
	id, home := submit(t, f, one, "to be moved about", "default")
	app, err := creel.ParseApplicationID(id)
	if err != nil {
		t.Fatal(err)
	}
	path := base + "/apps/" + id
	home.Cut()
	for verb, body := range map[string]string{"/queue": `{"queue":"other"}`, "/priority": `{"priority":3}`} {
		if r := call(t, one, "PUT", path+verb+asAlice, body); r.status != 202 {
			t.Fatalf("%s while home is away: %d %s", verb, r.status, r.body)
		}
	}
	home.Mend()
	f.Until("its home takes alice's newer queue", func() bool {
		return call(t, one, "PUT", path+"/queue"+asAlice, `{"queue":"default"}`).status == 200
	})
	f.Until("and another's newer priority", func() bool {
		return call(t, two, "PUT", path+"/priority?user.name=root", `{"priority":9}`).status == 200
	})
	if why := call(t, two, "GET", "/api/v1/apps/"+id+"/why", "").body; strings.Contains(why, "asked") {
		t.Errorf("there waits still what was said before: %s", why)
	}
	time.Sleep(6 * time.Second) // a round over the recorded changes
	if v, _ := home.App(t.Context(), app); v.Queue != "root.default" || v.Priority != 9 {
		t.Errorf("in the end its queue is %s and its priority %d; the last words were default and 9", v.Queue, v.Priority)
	}
}

// A direct kill by REST reaches the home in the user's own name, and so does one that waited
// for the home: no member needs to allow the router a proxy user.
func TestAKeptKillNeedsNoProxyUser(t *testing.T) {
	f := routertest.Start(t, routertest.Options{
		Members: 2, Change: func(_ int, c *server.Config) { c.Proxies = nil },
	})
	web := f.Routers[0].Web
	direct, _ := submit(t, f, web, "killed directly", "default")
	if r := call(t, web, "PUT", base+"/apps/"+direct+"/state"+asAlice, `{"state":"KILLED"}`); r.status != 202 && r.status != 200 {
		t.Fatalf("a direct kill: %d %s", r.status, r.body)
	}
	id, home := submit(t, f, web, "killed while its home is away", "default")
	app, err := creel.ParseApplicationID(id)
	if err != nil {
		t.Fatal(err)
	}
	home.Cut()
	r := call(t, web, "PUT", base+"/apps/"+id+"/state"+asAlice, `{"state":"KILLED"}`)
	if r.status != 202 || r.head.Get("X-Kept") != "true" {
		t.Fatalf("a kill while the home is away: %d %v %s", r.status, r.head, r.body)
	}
	home.Mend()
	f.Until("the application is killed", func() bool {
		v, ok := home.App(t.Context(), app)
		return ok && v.State.Ended()
	})
	if v, _ := home.App(t.Context(), app); v.State != creel.AppKilled {
		t.Errorf("it is %v", v.State)
	}
}

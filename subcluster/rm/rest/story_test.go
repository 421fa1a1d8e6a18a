// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/groups"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/impersonation"
	"github.com/creelrm/creel/internal/servlets"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	nmrpc "github.com/creelrm/creel/subcluster/nm/rpc"
	nmserver "github.com/creelrm/creel/subcluster/nm/server"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/queueconf"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/rest"
	"github.com/creelrm/creel/subcluster/rm/rpc"
	"github.com/creelrm/creel/subcluster/rm/server"
	"github.com/go-chi/chi/v5"
	"go.uber.org/goleak"
)

// After a body that it refuses to read, net/http lingers for half a second so
// that the answer is not lost; that goroutine is its own.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

// cluster is a ResourceManager with two simulated nodes and its REST API, over
// real sockets.
type cluster struct {
	t      *testing.T
	s      *server.Server
	web    *httptest.Server
	client *http.Client
	rpc    *hrpc.Client
	ams    chan token.Token // of AMs as they start
}

func start(t *testing.T, change func(*server.Config)) *cluster {
	t.Helper()
	m := rm.Defaults()
	m.MinAllocation, m.MaxAllocation = creel.NewResource(128, 1), creel.NewResource(8192, 8)
	conf, err := queueconf.ReadCapacity([]queueconf.Property{
		{
			Name:  "yarn.scheduler.capacity.root.queues",
			Value: "default,other",
		},
		{Name: "yarn.scheduler.capacity.root.default.capacity", Value: "70"},
		{
			Name:  "yarn.scheduler.capacity.root.other.capacity",
			Value: "30",
		},
		{Name: "yarn.scheduler.capacity.root.other.maximum-capacity", Value: "100"},
		{
			Name:  "yarn.scheduler.capacity.maximum-am-resource-percent",
			Value: "1",
		},
		{Name: "yarn.scheduler.capacity.root.acl_administer_queue", Value: "root"},
	}, queueconf.Options{MaxAllocation: m.MaxAllocation, MaxClusterPriority: 10})
	if err != nil {
		t.Fatal(err)
	}
	m.Queues = conf.Queues
	cfg := server.Config{
		ClusterID:         "test",
		Machine:           m,
		HeartbeatInterval: 50 * time.Millisecond,
		AdminACL:          queues.ACL{Users: []string{"root"}},
		Groups:            groups.New(func(user string) []string { return []string{user} }, time.Minute),
		Proxies:           impersonation.Rules{"gate": {Hosts: []string{"*"}, Users: []string{"alice"}}},
	}
	if change != nil {
		change(&cfg)
	}
	s, ports, err := rpc.Open(cfg, rpc.Config{
		Client:    "127.0.0.1:0",
		Scheduler: "127.0.0.1:0",
		Tracker:   "127.0.0.1:0",
		Admin:     "127.0.0.1:0",
	})
	if err != nil {
		t.Fatal(err)
	}
	background(t, "resource manager", func(ctx context.Context) error { return s.Run(ctx, ports.Run) })
	<-s.Ready()
	mux, rpcPorts := chi.NewRouter(), &servlets.Ports{}
	ports.Each(rpcPorts.Add)
	rest.New(s, rest.Config{MaxContainer: cfg.Machine.MaxAllocation, Resources: rest.TypesOf(&cfg.Machine), MaxBody: 1 << 20, ProxyHosts: []string{"127.0.0.1"}, Pages: servlets.Config{Ports: rpcPorts, Properties: func() []servlets.Property {
		return []servlets.Property{
			{Name: "a", Value: "<1>", Source: "yarn-site.xml"},
			{Name: "b", Value: "2", Final: true, Source: "default"},
		}
	}}}).
		Mount(mux)
	c := &cluster{
		t:   t,
		s:   s,
		web: httptest.NewServer(mux),
		rpc: hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf}),
		ams: make(chan token.Token, 16),
	}
	s.SetAddresses(server.Addresses{Web: c.web.Listener.Addr().String()})
	c.client = &http.Client{
		Transport:     &http.Transport{DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	t.Cleanup(func() { c.client.CloseIdleConnections(); c.web.Close(); c.rpc.Close() })
	farm, err := nmrpc.New(
		nmrpc.Config{
			Tracker: s.Addresses().Tracker,
			Nodes:   2,
			Config: nmserver.Config{
				Eager:   time.Millisecond,
				RunTime: time.Hour,
				OnStart: func(s nmserver.Started, _ func(int32, string)) func() {
					if creds, err := token.ParseCredentials(s.Launch.GetTokens()); err == nil && s.AM {
						if am, ok := creds.OfKind(token.KindAMRM); ok {
							c.ams <- am
						}
					}
					return func() {}
				},
			},
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	background(t, "nodes", farm.Run)
	<-farm.Ready()
	return c
}

func background(t *testing.T, what string, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("%s ended with %v", what, err)
		}
	})
}

const base = "/ws/v1/cluster"

type reply struct {
	status int
	head   http.Header
	body   string
}

// call asks; a body that begins with < is XML, and the answer is wanted so too.
func (c *cluster) call(method, path, body string, head ...string) reply {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.web.URL+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	switch {
	case strings.HasPrefix(body, "<"):
		req.Header.Set("Content-Type", "application/xml")
		req.Header.Set("Accept", "application/xml")
	case body != "":
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(head); i += 2 {
		req.Header.Set(head[i], head[i+1])
	}
	res, err := c.client.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return reply{res.StatusCode, res.Header, string(b)}
}

// get reads a field of a JSON document by its path.
func (c *cluster) get(path string, fields ...any) any {
	c.t.Helper()
	r := c.call("GET", path, "")
	if r.status != 200 {
		c.t.Fatalf("%s: %d %s", path, r.status, r.body)
	}
	return at(c.t, r.body, fields...)
}

func at(t *testing.T, doc string, fields ...any) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(doc), &v); err != nil {
		t.Fatalf("%v: %s", err, doc)
	}
	for _, f := range fields {
		switch f := f.(type) {
		case string:
			v = v.(map[string]any)[f]
		case int:
			v = v.([]any)[f]
		}
	}
	return v
}

func (c *cluster) until(what string, ok func() bool) {
	c.t.Helper()
	for !ok() {
		if err := c.t.Context().Err(); err != nil {
			c.t.Fatalf("waiting until %s: %v", what, err)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (c *cluster) submit(user, name, more string) string {
	c.t.Helper()
	id := at(c.t, c.call("POST", base+"/apps/new-application?user.name="+user, "").body, "application-id").(string)
	r := c.call(
		"POST",
		base+"/apps?user.name="+user,
		fmt.Sprintf(
			`{"application-id":%q,"application-name":%q,"application-type":"TEST","resource":{"memory":"256","vCores":1},"am-container-spec":{"commands":{"command":"sleep 1"}}%s}`,
			id,
			name,
			more,
		),
	)
	if r.status != 202 || r.body != "" || r.head.Get("Location") != c.web.URL+base+"/apps/"+id {
		c.t.Fatalf("submitted: %d %q %v", r.status, r.body, r.head)
	}
	return id
}

// register speaks as the AM that started last.
func (c *cluster) register(url string) yarnrpc.ApplicationMasterProtocolClient {
	c.t.Helper()
	return c.registerAs(<-c.ams, "amhost", url)
}

// registerAs speaks as the AM with a token; the AM names its host and its page.
func (c *cluster) registerAs(am token.Token, host, url string) yarnrpc.ApplicationMasterProtocolClient {
	c.t.Helper()
	m := yarnrpc.NewApplicationMasterProtocolClient(
		c.rpc,
		c.s.Addresses().Scheduler,
		hrpc.Login{
			Credential: &hrpc.Credential{
				Identifier: am.Identifier,
				Password:   am.Password,
				Kind:       am.Kind,
				Service:    am.Service,
			},
		},
	)
	if _, err := m.RegisterApplicationMaster(
		c.t.Context(),
		&pb.RegisterApplicationMasterRequestProto{Host: &host, RpcPort: new(int32(7)), TrackingUrl: &url},
	); err != nil {
		c.t.Fatal(err)
	}
	return m
}

// An application by REST alone, from its id to its end, with everything that
// can be changed on the way.
func TestAnApplicationByREST(t *testing.T) {
	c := start(t, nil)
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Set-Cookie", "mine=1")
		fmt.Fprintf(
			w,
			"page %s?%s cookie=%s auth=%s",
			r.URL.EscapedPath(),
			r.URL.RawQuery,
			r.Header.Get("Cookie"),
			r.Header.Get("Authorization"),
		)
	}))
	defer page.Close()
	id := c.submit("alice", "a & b", `,"priority":2,"application-tags":{"tag":["One","two"]}`)
	app := base + "/apps/" + id
	m := c.register(page.URL + "/ui")
	c.until("it runs", func() bool { return c.get(app+"/state", "state") == "RUNNING" })
	if got := c.get(app, "app", "applicationTags"); got != "one,two" {
		t.Errorf("tags %v", got)
	}
	for path, want := range map[string]string{"/queue": "root.default", "/priority": "2"} {
		if got := fmt.Sprint(c.get(app+path, path[1:])); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
	answer, err := m.Allocate(
		t.Context(),
		&pb.AllocateRequestProto{
			ResponseId: new(int32(0)),
			Progress:   new(float32(0.5)),
			Ask: []*pb.ResourceRequestProto{
				{
					Priority:      pb.FromPriority(1),
					ResourceName:  new("*"),
					Capability:    pb.FromResource(creel.NewResource(512, 1)),
					NumContainers: new(int32(2)),
				},
				{
					Priority:      pb.FromPriority(2),
					ResourceName:  new("*"),
					Capability:    pb.FromResource(creel.NewResource(8192, 8)),
					NumContainers: new(int32(9)),
				},
			},
		},
	)
	if err != nil || len(answer.GetAllocatedContainers()) < 2 {
		t.Fatalf("allocated %v, %v", answer.GetAllocatedContainers(), err)
	}
	var doc struct {
		App struct {
			Progress    float64
			Running     int                           `json:"runningContainers"`
			URL         string                        `json:"trackingUrl"`
			Requests    []struct{ NumContainers int } `json:"resourceRequests"`
			AMNode      string                        `json:"masterNodeId"`
			AMHost      string                        `json:"amRPCAddress"`
			StartedTime int64
		}
	}
	if err := json.Unmarshal([]byte(c.call("GET", app, "").body), &doc); err != nil {
		t.Fatal(err)
	}
	if a := doc.App; a.Progress != 50 || a.Running != 1+len(answer.GetAllocatedContainers()) ||
		a.URL != c.web.URL+"/proxy/"+id+"/" ||
		len(a.Requests) != 1 ||
		a.AMNode == "" ||
		a.AMHost != "amhost:7" ||
		a.StartedTime == 0 {
		t.Errorf("the application's document: %+v", a)
	}

	// Its attempt and containers.
	attempt := strings.Replace(id, "application", "appattempt", 1) + "_000001"
	if got := c.get(app+"/appattempts", "appAttempts", "appAttempt", 0, "appAttemptId"); got != attempt {
		t.Errorf("attempt %v", got)
	}
	if got := c.get(app+"/appattempts/"+attempt, "appAttemptState"); got != "RUNNING" {
		t.Errorf("attempt is %v", got)
	}
	list, _ := c.get(app+"/appattempts/"+attempt+"/containers", "container").([]any)
	if len(list) != doc.App.Running {
		t.Errorf("%d containers listed, %d run", len(list), doc.App.Running)
	}
	container := pb.ToContainerID(answer.GetAllocatedContainers()[0].GetId()).String()
	one := app + "/appattempts/" + attempt + "/containers/" + container
	if got := c.get(one, "allocatedMB"); got != "512" {
		t.Errorf("container has %v", got)
	}
	if r := c.call(
		"POST",
		base+"/containers/"+container+"/signal/graceful_shutdown?user.name=alice",
		"",
	); r.status != 200 ||
		r.body != "" {
		t.Errorf("signal: %d %s", r.status, r.body)
	}

	// Changed while it runs.
	if r := c.call("PUT", app+"/priority?user.name=alice", `{"priority":99}`); r.body != `{"priority":10}` {
		t.Errorf("priority: %d %s", r.status, r.body)
	}
	if r := c.call(
		"PUT",
		app+"/queue?user.name=alice",
		"<appqueue><queue>other</queue></appqueue>",
	); !strings.HasSuffix(
		r.body,
		"<appqueue><queue>root.other</queue></appqueue>",
	) {
		t.Errorf("queue: %d %s", r.status, r.body)
	}
	if got := fmt.Sprint(c.get(app+"/timeouts/lifetime", "timeout", "expiryTime")); got != "UNLIMITED" {
		t.Errorf("timeout %s", got)
	}
	if r := c.call(
		"PUT",
		app+"/timeout?user.name=alice",
		`{"timeout":{"type":"LIFETIME","expiryTime":"2199-01-31T12:00:00.000+0000"}}`,
	); at(
		t,
		r.body,
		"timeout",
		"expiryTime",
	) != "2199-01-31T12:00:00.000+0000" {
		t.Errorf("timeout: %d %s", r.status, r.body)
	}

	// The AM's page, without our cookies; its own are for its page alone.
	r := c.call("GET", "/proxy/"+id+"/x%2Fy?q=1", "", "Cookie", "hadoop.auth=secret", "Authorization", "Basic secret")
	if r.status != 200 || r.body != "page /ui/x%2Fy?q=1 cookie=proxy-user=dr.who auth=" ||
		r.head.Get("Set-Cookie") != "mine=1; Path=/proxy/"+id {
		t.Errorf("proxied: %d %q %v", r.status, r.body, r.head)
	}
	if r := c.call("POST", "/proxy/"+id+"/", "{}"); r.status != 405 {
		t.Errorf("posted through the proxy: %d", r.status)
	}

	// Its end.
	if r := c.call(
		"PUT",
		app+"/state?user.name=alice",
		`{"state":"FINISHED"}`,
	); r.status != 400 ||
		!strings.Contains(r.body, "Only 'KILLED' is allowed as a target state.") {
		t.Errorf("wanted FINISHED: %d %s", r.status, r.body)
	}
	if r := c.call(
		"PUT",
		app+"/state?user.name=alice",
		`{"state":"KILLED","diagnostics":"why"}`,
	); r.status != 200 &&
		(r.status != 202 || r.head.Get("Location") == "") {
		t.Errorf("killed: %d %s", r.status, r.body)
	}
	c.until("it is dead", func() bool { return c.get(app+"/state", "state") == "KILLED" })
	if r := c.call(
		"PUT",
		app+"/state?user.name=alice",
		`{"state":"KILLED"}`,
	); r.status != 200 ||
		r.body != `{"state":"KILLED"}` {
		t.Errorf("killed again: %d %s", r.status, r.body)
	}
	if r := c.call(
		"PUT",
		app+"/queue?user.name=alice",
		`{"queue":"default"}`,
	); r.status != 400 ||
		r.body != "App in KILLED state cannot be moved." {
		t.Errorf("moved: %d %s", r.status, r.body)
	}
	if d := fmt.Sprint(c.get(app, "app", "diagnostics")); !strings.HasSuffix(d, "with diagnostic message: why") {
		t.Errorf("diagnostics %q", d)
	}
	if r := c.call(
		"GET",
		"/proxy/"+id+"/deep?x=1",
		"",
	); r.status != 302 ||
		r.head.Get("Location") != page.URL+"/ui/deep?x=1" {
		t.Errorf("the page of the dead: %d %v", r.status, r.head)
	}
}

// An AM is its user's program. Its page is fetched from the host it runs on (127.1.0.1 and so on here) and from hosts
// the operator names, never from a link-local address, and only for users with view access.
func TestAMPagesComeOnlyFromTheirHosts(t *testing.T) {
	c := start(t, func(cfg *server.Config) { cfg.ACLs = true })
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "page") }))
	defer page.Close()
	_, port, err := net.SplitHostPort(page.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []struct {
		story, url, user string
		status           int
		says             string
	}{
		{"a host that the operator names", page.URL, "alice", 200, "page"},
		{"who may not see the application", page.URL, "mallory", 403, "User mallory does not have privilege"},
		{"another host than its own", "http://localhost:" + port, "alice", 403, "add other hosts to creel.rm.proxy.hosts"},
		{"a cloud's metadata", "http://169.254.169.254/latest", "alice", 403, "link-local address"},
		{"the same, written for IPv6", "http://[::ffff:169.254.169.254]/latest", "alice", 403, "link-local address"},
	} {
		id := c.submit("alice", a.story, "")
		c.register(a.url)
		c.until("it runs", func() bool { return c.get(base+"/apps/"+id+"/state", "state") == "RUNNING" })
		r := c.call("GET", "/proxy/"+id+"/?user.name="+a.user, "")
		if r.status != a.status || !strings.Contains(r.body, a.says) {
			t.Errorf("%s: %d %s", a.story, r.status, r.body)
		}
		if r.status == 403 && r.head.Get("Content-Security-Policy") == "" {
			t.Errorf("%s: a page of the ResourceManager without its headers: %v", a.story, r.head)
		}
	}
}

// An unmanaged AM names its host and its page itself. The proxy fetches the page only from the address from which the
// AM called (127.0.0.1 here), whatever host the AM names. A browser goes to any other page by itself.
func TestUnmanagedAMPagesComeFromCallersAddress(t *testing.T) {
	c := start(t, func(cfg *server.Config) { cfg.ACLs = true })
	var fetched atomic.Int32
	serve := func(address string) (page, port string) {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		s := &httptest.Server{Listener: l, Config: &http.Server{
			Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				fetched.Add(1)
				fmt.Fprint(w, "page")
			}),
		}}
		s.Start()
		t.Cleanup(s.Close)
		_, port, _ = net.SplitHostPort(l.Addr().String())
		return s.URL, port
	}
	_, own := serve("127.0.0.1:0")
	inner, _ := serve("127.0.0.2:0") // a service that only the ResourceManager's network reaches
	for _, a := range []struct {
		story, host, page string
		status            int
		fetched           int32
	}{
		{"the address it called from", "amhost", "http://localhost:" + own, 200, 1},
		{"the host that it names", "127.0.0.2", inner, 302, 0},
		{"no host", "", inner, 302, 0},
		{"a cloud's metadata", "169.254.169.254", "http://169.254.169.254/latest", 403, 0},
	} {
		id := c.submit("alice", a.story, `,"unmanaged-AM":true`)
		app, err := creel.ParseApplicationID(id)
		if err != nil {
			t.Fatal(err)
		}
		client := yarnrpc.NewApplicationClientProtocolClient(c.rpc, c.s.Addresses().Client, hrpc.Login{User: "alice"})
		var am token.Token
		c.until("its AM may register", func() bool {
			r, err := client.GetApplicationReport(t.Context(),
				&pb.GetApplicationReportRequestProto{ApplicationId: pb.FromApplicationID(app)})
			if err != nil {
				t.Fatal(err)
			}
			am = token.FromProto(r.GetApplicationReport().GetAmRmToken())
			return len(am.Identifier) > 0
		})
		c.registerAs(am, a.host, a.page)
		fetched.Store(0)
		r := c.call("GET", "/proxy/"+id+"/x?user.name=alice", "")
		if r.status != a.status || fetched.Load() != a.fetched {
			t.Errorf("%s: %d %s, fetched %d times", a.story, r.status, r.body, fetched.Load())
		}
		if to := r.head.Get("Location"); r.status == 302 && to != a.page+"/x?user.name=alice" {
			t.Errorf("%s: the browser is sent to %q", a.story, to)
		}
	}
}

// Lists honour their filters, and hide other users' applications from strangers.
func TestListsAndStrangers(t *testing.T) {
	c := start(t, func(cfg *server.Config) { cfg.ACLs = true })
	a := c.submit("alice", "one", `,"unmanaged-AM":true`)
	b := c.submit("bob", "two", `,"unmanaged-AM":true,"queue":"other"`)
	ids := func(query string) string {
		t.Helper()
		var doc struct {
			Apps struct{ App []struct{ ID string } }
		}
		r := c.call("GET", base+"/apps?"+query, "")
		if err := json.Unmarshal([]byte(r.body), &doc); r.status != 200 || err != nil {
			t.Fatalf("%s: %d %s", query, r.status, r.body)
		}
		var out []string
		for _, x := range doc.Apps.App {
			out = append(out, x.ID)
		}
		return strings.Join(out, " ")
	}
	c.until("both wait", func() bool { return ids("states=accepted") == a+" "+b })
	for query, want := range map[string]string{
		"": a + " " + b, "user=alice": a, "name=two": b, "queue=other": b, "queue=root.other": b, "limit=1": a, "applicationTypes=tEST": a + " " + b, "applicationTypes=spark,mr": "",
		"states=running": "", "state=ACCEPTED&limit=5": a + " " + b, "finishedTimeBegin=1": "", "startedTimeBegin=1": a + " " + b, "applicationTags=x": "", "finalStatus=UNDEFINED&user=bob": b, "finalStatus=FAILED": "",
	} {
		if got := ids(query); got != want {
			t.Errorf("apps?%s: %q, want %q", query, got, want)
		}
	}
	app := func(user string) map[string]any {
		return c.get(base+"/apps/"+a+"?user.name="+user, "app").(map[string]any)
	}
	if mine, theirs, admins := app("alice")["startedTime"], app("mallory")["startedTime"], app("root")["startedTime"]; mine == float64(
		0,
	) ||
		theirs != float64(0) ||
		admins != mine {
		t.Errorf("started: alice sees %v, mallory %v, an administrator %v", mine, theirs, admins)
	}
	for _, w := range []struct{ path, body, says string }{{"state", `{"state":"KILLED"}`, "kill"}, {"queue", `{"queue":"other"}`, "move"}, {"priority", `{"priority":3}`, "change priority of"}} {
		if r := c.call(
			"PUT",
			base+"/apps/"+a+"/"+w.path+"?user.name=mallory",
			w.body,
		); r.status != 403 || !strings.Contains(r.body, w.says) ||
			strings.Contains(r.body, "RemoteException") {
			t.Errorf("mallory's %s: %d %s", w.path, r.status, r.body)
		}
	}
	if r := c.call("GET", base+"/apps/"+a+"/appattempts?user.name=mallory", ""); r.status != 403 {
		t.Errorf("mallory's look at attempts: %d %s", r.status, r.body)
	}
	// Acting for another needs a rule.
	if r := c.call("GET", base+"/userinfo?user.name=gate&doAs=alice", ""); at(t, r.body, "requestedUser") != "alice" {
		t.Errorf("gate for alice: %s", r.body)
	}
	if r := c.call(
		"GET",
		base+"/userinfo?user.name=mallory&doas=alice",
		"",
	); r.status != 403 || !strings.Contains(r.body, "AuthorizationException") ||
		!strings.Contains(r.body, "not allowed to impersonate alice") {
		t.Errorf("mallory for alice: %d %s", r.status, r.body)
	}
	node := c.get(base+"/nodes", "nodes", "node", 0, "id").(string)
	resize := base + "/nodes/" + strings.ReplaceAll(node, ":", "%3A") + "/resource?user.name="
	if r := c.call("POST", resize+"alice", `{"resource":{"memory":4096,"vCores":4}}`); r.status != 403 {
		t.Errorf("alice resizes a node: %d %s", r.status, r.body)
	}
	if r := c.call(
		"POST",
		resize+"root",
		`{"resource":{"memory":4096,"vCores":4}}`,
	); r.status != 200 ||
		at(t, r.body, "resourceInfo", "memory") != float64(4096) {
		t.Errorf("an administrator resizes a node: %d %s", r.status, r.body)
	}
	if r := c.call(
		"GET",
		base+"/queues/other/access?user.name=root&user=bob",
		"",
	); r.status != 200 ||
		!strings.Contains(r.body, `"user":"bob"`) {
		t.Errorf("queue access: %d %s", r.status, r.body)
	}
	if r := c.call(
		"GET",
		base+"/queues/other/access?user.name=alice&user=bob&queue-acl-type=ADMINISTER_QUEUE",
		"",
	); r.status != 403 &&
		!strings.Contains(r.body, "allowed") {
		t.Errorf("queue access asked by alice: %d %s", r.status, r.body)
	}
}

// Every document reads as JSON and as XML, has the right root, and HEAD and
// gzip work on it.
func TestEveryDocument(t *testing.T) {
	c := start(t, nil)
	for i := range 8 { // enough for a list worth packing
		c.submit("alice", fmt.Sprint("app ", i), `,"unmanaged-AM":true`)
	}
	c.until("all wait", func() bool { return len(c.get(base+"/apps?states=accepted", "apps", "app").([]any)) == 8 })
	for path, root := range map[string]string{"": "clusterInfo", "/": "clusterInfo", "/info": "clusterInfo", "/metrics": "clusterMetrics", "/scheduler": "scheduler", "/nodes": "nodes", "/apps": "apps", "/appstatistics": "appStatInfo"} {
		var doc map[string]json.RawMessage
		r := c.call("GET", base+path, "")
		if err := json.Unmarshal(
			[]byte(r.body),
			&doc,
		); err != nil || len(doc) != 1 || doc[root] == nil ||
			r.head.Get("Content-Type") != "application/json;charset=utf-8" {
			t.Errorf("%s: %v, roots %v, %v", path, err, slices.Collect(func(yield func(string) bool) {
				for k := range doc {
					if !yield(k) {
						return
					}
				}
			}), r.head)
		}
		x := c.call("GET", base+path, "", "Accept", "application/xml")
		var any struct {
			XMLName xml.Name
		}
		if err := xml.Unmarshal(
			[]byte(x.body),
			&any,
		); err != nil || any.XMLName.Local != root ||
			x.head.Get("Content-Type") != "application/xml; charset=utf-8" {
			t.Errorf("%s as XML: %v, root %s, %v", path, err, any.XMLName.Local, x.head)
		}
		if h := c.call("HEAD", base+path, ""); h.status != 200 || h.body != "" {
			t.Errorf("HEAD %s: %d %q", path, h.status, h.body)
		}
	}
	z := c.call("GET", base+"/apps", "", "Accept-Encoding", "gzip")
	if z.head.Get("Content-Encoding") != "gzip" {
		t.Fatalf("a list of 8 is not packed: %v", z.head)
	}
	unpacked, err := gzip.NewReader(strings.NewReader(z.body))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(unpacked)
	if err != nil || len(at(t, string(plain), "apps", "app").([]any)) != 8 {
		t.Errorf("unpacked: %v, %.100s", err, plain)
	}
	for path, want := range map[string]string{"/get-node-to-labels": `{"nodeToLabels":null}`, "/label-mappings": `{"labelsToNodes":null}`, "/get-node-labels": `{}`} {
		if got := c.call("GET", base+path, "").body; got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
	if got := c.get(
		"/jmx?qry=Hadoop:service=ResourceManager,name=QueueMetrics,q0=root,q1=default",
		"beans",
		0,
		"AppsSubmitted",
	); got != float64(
		8,
	) {
		t.Errorf("jmx counts %v submissions", got)
	}
	if got := c.get("/jmx?get=Hadoop:service=ResourceManager,name=ClusterMetrics::NumActiveNMs", "beans", 0).(map[string]any); got["NumActiveNMs"] != float64(
		2,
	) ||
		len(got) != 3 {
		t.Errorf("one attribute: %v", got)
	}
	if got := c.get("/jmx", "beans").([]any); len(got) < 10 {
		t.Errorf("%d beans", len(got))
	}
	if r := c.call(
		"GET",
		"/conf",
		"",
	); r.head.Get("Content-Type") != "text/xml;charset=utf-8" ||
		!strings.Contains(
			r.body,
			"<property><name>a</name><value>&lt;1&gt;</value><final>false</final><source>yarn-site.xml</source></property>\n",
		) {
		t.Errorf("conf: %s", r.body)
	}
	if r := c.call(
		"GET",
		"/conf?name=b",
		"",
		"Accept",
		"application/json",
	); r.body != `{"property":{"key":"b","value":"2","isFinal":true,"resource":"default"}}` {
		t.Errorf("conf: %s", r.body)
	}
	if r := c.call("GET", "/conf?name=c", ""); r.status != 404 {
		t.Errorf("a key that is not there: %d", r.status)
	}
}

// A bad request is answered in YARN's way, in the requested form.
func TestBadInput(t *testing.T) {
	c := start(t, nil)
	id := c.submit("alice", "one", `,"unmanaged-AM":true`)
	app := base + "/apps/" + id
	for _, b := range []struct {
		method, path, body string
		status             int
		class, says        string
	}{
		{"GET", base + "/apps/application_1_0001", "", 404, "NotFoundException", "app with id: application_1_0001 not found"},
		{"GET", base + "/apps/nonsense", "", 400, "BadRequestException", "Invalid ApplicationId: nonsense"},
		{"GET", base + "/apps/" + id + "/appattempts/zz", "", 400, "BadRequestException", "Invalid AppAttemptId prefix: zz"},
		{"GET", base + "/nodes/zz", "", 400, "IllegalArgumentException", "Expected host:port"},
		{"GET", base + "/nodes/gone:1", "", 404, "NotFoundException", "nodeId, gone:1, is not found"},
		{"GET", base + "/apps?states=xx", "", 400, "BadRequestException", "Invalid application-state xx"},
		{"GET", base + "/apps?limit=-3", "", 400, "BadRequestException", "limit value must be greater then 0"},
		{"GET", base + "/apps?deSelects=x", "", 400, "BadRequestException", "Invalid deSelects string x"},
		{"GET", base + "/nodes?states=x", "", 400, "IllegalArgumentException", "NodeState.X"},
		{"DELETE", base + "/apps", "", 503, "WebApplicationException", "DELETE is not a method"},
		{"PUT", base + "/info", "{}", 503, "WebApplicationException", "PUT is not a method"},
		{"PUT", app + "/state", `{"state`, 400, "WebApplicationException", "UnmarshalException"},
		{"PUT", app + "/state", `<appstate><state>`, 400, "WebApplicationException", "UnmarshalException"},
		{"PUT", app + "/state", `[]`, 400, "WebApplicationException", "UnmarshalException"},
		{"PUT", app + "/state", `{"appstate":{"state":"KILLED"}}`, 400, "BadRequestException", "Only 'KILLED'"},
		{"PUT", app + "/priority", `{}`, 400, "BadRequestException", "Priority value is null"},
		{"PUT", app + "/queue", `{"queue":"nope"}`, 503, "YarnException", "nope"},
		{"PUT", app + "/timeout", `{"type":"LIFETIME"}`, 400, "WebApplicationException", "timeout"},
		{"POST", base + "/apps", `nonsense`, 400, "WebApplicationException", "UnmarshalException"},
		{"POST", base + "/apps", `{}`, 400, "BadRequestException", "Could not parse application id"},
		{"POST", base + "/apps", `{"application-id":"application_1_0001","resource":{"memory":99999}}`, 400, "BadRequestException", "more memory than configured"},
		{"POST", base + "/apps", `{"application-id":"application_1_0001","resource":{"memory":1,"vCores":99}}`, 400, "BadRequestException", "more cores than configured"},
		{"POST", base + "/apps", `{"application-id":"application_1_0001","am-container-spec":{"credentials":{"tokens":{"entry":[{"key":"a","value":"!"}]}}}}`, 400, "BadRequestException", "credentials"},
		{"POST", base + "/reservation/new-reservation", `{}`, 503, "YarnRuntimeException", "reservation"},
		{"POST", base + "/add-node-labels", `{}`, 401, "AuthorizationException", "not authorized"},
	} {
		r := c.call(b.method, b.path, b.body, "Accept", "application/json")
		var doc struct {
			RemoteException struct{ Exception, Message, JavaClassName string }
		}
		if err := json.Unmarshal([]byte(r.body), &doc); err != nil {
			t.Errorf("%s %s: %v: %s", b.method, b.path, err, r.body)
			continue
		}
		e := doc.RemoteException
		if r.status != b.status || e.Exception != b.class || !strings.HasSuffix(e.JavaClassName, "."+b.class) ||
			!strings.Contains(e.Message, b.says) {
			t.Errorf(
				"%s %s %.60s: %d %+v, want %d %s with %q",
				b.method,
				b.path,
				b.body,
				r.status,
				e,
				b.status,
				b.class,
				b.says,
			)
		}
		r = c.call(b.method, b.path, b.body, "Accept", "application/xml")
		var x struct {
			XMLName       xml.Name `xml:"RemoteException"`
			Exception     string   `xml:"exception"`
			Message       string   `xml:"message"`
			JavaClassName string   `xml:"javaClassName"`
		}
		if err := xml.Unmarshal(
			[]byte(r.body),
			&x,
		); err != nil || r.status != b.status || x.Exception != e.Exception || x.JavaClassName != e.JavaClassName ||
			!strings.Contains(x.Message, b.says) {
			t.Errorf("%s %s as XML: %v, %d %s", b.method, b.path, err, r.status, r.body)
		}
	}
	if r := c.call("GET", base+"/no<pe>", ""); r.status != 404 || strings.Contains(r.body, "RemoteException") ||
		r.head.Get("Content-Type") != "text/html;charset=utf-8" ||
		!strings.Contains(r.body, "<td>/ws/v1/cluster/no&lt;pe&gt;</td>") {
		t.Errorf("a path that is not there: %d %s", r.status, r.body)
	}
	if r := c.call(
		"PUT",
		app+"/state",
		`{"state":"KILLED"}`,
		"Content-Type",
		"text/plain",
	); r.status != 415 ||
		!strings.Contains(r.body, "Content-Type") {
		t.Errorf("text as a body: %d %s", r.status, r.body)
	}
}

// endless is a body that never comes to its end by itself.
type endless struct{ sent *atomic.Int64 }

func (e endless) Read(b []byte) (int, error) {
	if e.sent.Load() > 100<<20 {
		return 0, io.EOF
	}
	n := copy(b, bytes.Repeat([]byte(" "), len(b)))
	e.sent.Add(int64(n))
	return n, nil
}

// A submission of 100 MB is refused after its first megabyte, packed or not.
func TestHugeBodies(t *testing.T) {
	c := start(t, nil)
	var sent atomic.Int64
	req, err := http.NewRequestWithContext(t.Context(), "POST", c.web.URL+base+"/apps", endless{&sent})
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Expect", "100-continue")
	res, err := c.client.Do(req)
	if err == nil { // the connection may also have been cut while we sent
		b, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != 400 || !strings.Contains(string(b), "longer than 1048576 bytes") {
			t.Errorf("%d %s", res.StatusCode, b)
		}
	}
	if sent := sent.Load(); sent > 64<<20 {
		t.Errorf("%d bytes were read of a body that may have 1 MiB", sent)
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(bytes.Repeat([]byte(" "), 100<<20)); err != nil {
		t.Fatal(err)
	}
	z.Close()
	if r := c.call(
		"POST",
		base+"/apps",
		packed.String(),
		"Content-Type",
		"application/json",
		"Content-Encoding",
		"gzip",
	); r.status != 400 ||
		!strings.Contains(r.body, "longer than 1048576 bytes") {
		t.Errorf("100 MB in %d bytes: %d %.200s", packed.Len(), r.status, r.body)
	}
	if got := c.get(base+"/metrics", "clusterMetrics", "appsSubmitted"); got != float64(0) {
		t.Errorf("%v submissions", got)
	}
}

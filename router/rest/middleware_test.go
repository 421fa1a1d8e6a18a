// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/creelrm/creel/router/routertest"
	"github.com/creelrm/creel/subcluster/rm/queues"
	rmserver "github.com/creelrm/creel/subcluster/rm/server"
)

// The clients of hadoop-auth (yarn schedulerconf, yarn logs -am, yarn top) begin
// with OPTIONS and go on only after a 200; monitors ask with HEAD.
func TestOptionsAndHead(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Routers: 1})
	web := f.Routers[0].Web
	id, _ := submit(t, f, web, "one", "default")
	for path, allow := range map[string]string{
		"/info": "OPTIONS,GET,HEAD", "/apps": "OPTIONS,GET,HEAD,POST", "/apps/" + id: "OPTIONS,GET,HEAD,POST,PUT,DELETE",
		"/apps/" + id + "/appattempts": "OPTIONS,GET,HEAD,POST,PUT,DELETE", "/scheduler-conf": "OPTIONS,GET,HEAD,PUT",
		"": "OPTIONS,GET,HEAD", "/apps/new-application": "OPTIONS,GET,HEAD,POST",
	} {
		r := call(t, web, "OPTIONS", base+path+"?user.name=alice", "")
		got := strings.Split(r.head.Get("Allow"), ",")
		for _, method := range strings.Split(allow, ",") {
			if r.status != 200 || !slices.Contains(got, method) {
				t.Errorf("OPTIONS %s: %d, Allow %q, want %q", path, r.status, r.head.Get("Allow"), allow)
				break
			}
		}
	}
	for _, path := range []string{"", "/info", "/metrics", "/scheduler", "/apps", "/nodes", "/apps/" + id, "/apps/" + id + "/state", "/apps/" + id + "/appattempts"} {
		get, head := call(t, web, "GET", base+path, ""), call(t, web, "HEAD", base+path, "")
		if head.status != 200 || head.body != "" || head.head.Get("Content-Type") != get.head.Get("Content-Type") ||
			head.head.Get("Content-Length") == "" {
			t.Errorf("HEAD %s: %d %v %q, GET has %v", path, head.status, head.head, head.body, get.head)
		}
	}
	if r := call(t, web, "HEAD", base+"/apps/application_1_0001", ""); r.status != 404 {
		t.Errorf("HEAD of an unknown application: %d", r.status)
	}
}

// Calls that a client would repeat for ever on 503 get a status that stops it.
func TestRefusalsAreNotRepeated(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Routers: 1})
	web := f.Routers[0].Web
	id, _ := submit(t, f, web, "one", "default")
	for _, c := range []struct {
		method, path, kind, body string
		status                   int
		says                     string
	}{
		{"POST", "/apps", "text/plain", submission("application_1_0002", "x", "default"), 415, "send application/json"},
		{"POST", "/apps", "application/x-www-form-urlencoded", "{}", 415, "x-www-form-urlencoded"},
		{"PUT", "/apps/" + id + "/state", "text/plain", `{"state":"KILLED"}`, 415, "NotSupportedException"},
		{"PUT", "/apps/" + id + "/state", "application/json;charset=UTF-8", `{"state":"RUN"}`, 400, "Only 'KILLED'"},
		{"PUT", "/scheduler-conf", "application/json", "{}", 400, "subClusterId"},
		{"PUT", "/scheduler-conf", "application/xml", "<sched-conf><subClusterId>gone</subClusterId></sched-conf>", 404, "gone"},
		{"PUT", "/scheduler-conf", "application/xml", "<sched-conf><subClusterId>sc-b</subClusterId></sched-conf>", 400, "mutable"},
		{"POST", "/delegation-token", "application/json", `{}`, 400, "renewer"},
		{"DELETE", "/delegation-token", "", "", 400, "Hadoop-YARN-RM-Delegation-Token is missing"},
	} {
		r := call(
			t,
			web,
			c.method,
			base+c.path+"?user.name=alice",
			c.body,
			"Content-Type",
			c.kind,
			"Accept",
			"application/json",
		)
		if r.status != c.status || !strings.Contains(r.body, c.says) || r.head.Get("Retry-After") != "" {
			t.Errorf(
				"%s %s of %s: %d %s, want %d with %q",
				c.method,
				c.path,
				c.kind,
				r.status,
				r.body,
				c.status,
				c.says,
			)
		}
	}
}

// A document of a scheduler, about itself or a node, is not a random member's answer: it is merged, or comes from the
// member that has the node, or from the one that the call names; a call that names none is told to name one.
func TestSchedulerDocumentsAreNotARandomMembers(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Routers: 1, Change: func(i int, c *rmserver.Config) {
		c.Machine.Queues.Root.Submit = queues.ACL{Users: []string{"alice"}}
		if i == 0 { // alice may do nothing there
			c.ACLs, c.Machine.Queues.Root.Submit, c.Machine.Queues.Root.Admin = true, queues.ACL{}, queues.ACL{}
		}
	}})
	web := f.Routers[0].Web
	get := func(path string) reply { return call(t, web, "GET", base+path, "") }

	if r := get("/scheduler-overview?user.name=alice"); r.status != 200 ||
		at(t, r.body, "schedulerType") != "Capacity Scheduler" ||
		at(
			t,
			r.body,
			"minimumAllocation",
			"memory",
		) != "128" || at(t, r.body, "maximumAllocation", "memory") != "8192" {
		t.Errorf("overview: %d %s", r.status, r.body)
	}
	for range 5 {
		r := get("/queues/root.default/access?user=alice&user.name=root")
		if r.status != 200 || at(t, r.body, "allowed") != "true" || at(t, r.body, "user") != "alice" {
			t.Errorf("a queue that one member lets alice use: %d %s", r.status, r.body)
		}
	}
	for _, m := range f.Members {
		nodes := call(t, m.WebAddress, "GET", base+"/nodes?user.name=alice", "")
		id := at(t, nodes.body, "nodes", "node").([]any)[0].(map[string]any)["id"].(string)
		for _, path := range []string{"/scheduler/activities?user.name=alice&nodeId=" + id, "/nodes/" + id + "/get-labels?user.name=alice"} {
			if r := get(path); r.status != 200 {
				t.Errorf("%s of %s: %d %s", path, m.ID, r.status, r.body)
			}
		}
	}
	for _, path := range []string{"/scheduler/activities", "/scheduler-conf", "/scheduler-conf/version"} {
		if r := get(path + "?user.name=alice"); r.status != 400 || !strings.Contains(r.body, "subClusterId") {
			t.Errorf("%s of nobody: %d %s", path, r.status, r.body)
		}
	}
	if r := get("/scheduler/activities?user.name=alice&subClusterId=sc-b"); r.status != 200 {
		t.Errorf("activities of a member: %d %s", r.status, r.body)
	}
	if r := get("/scheduler/activities?user.name=alice&nodeId=nowhere:1"); r.status != 200 ||
		at(t, r.body, "activities", "nodeId") != "nowhere:1" ||
		at(t, r.body, "activities", "diagnostic") != "Cannot find node manager with given node id" {
		t.Errorf("activities of a node of nobody: %d %s", r.status, r.body)
	}
}

// The scheduler's logs are asked for by a form, as YARN's own pages do; nothing else is.
func TestSchedulerLogsAreRequestedByForm(t *testing.T) {
	web := overMembers(t, func(w http.ResponseWriter, r *http.Request) {
		if kind := r.Header.Get("Content-Type"); r.PostFormValue("time") != "60" {
			t.Errorf("%s: of type %s", r.URL, kind)
		}
		io.WriteString(w, "Capacity scheduler logs are being created.")
	}).Listener.Addr().String()
	const form = "application/x-www-form-urlencoded"
	logs := call(t, web, "POST", base+"/scheduler/logs?subClusterId=sc-00", "time=60", "Content-Type", form)
	if logs.status != 200 || !strings.Contains(logs.body, "are being created") {
		t.Errorf("%d %s", logs.status, logs.body)
	}
	conf := call(t, web, "PUT", base+"/scheduler-conf?subClusterId=sc-00", "time=60", "Content-Type", form)
	if conf.status != 415 {
		t.Errorf("a configuration by a form: %d %s", conf.status, conf.body)
	}
}

// Documents are not guessed at nor framed by other sites.
func TestSecurityHeaders(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Routers: 1})
	for _, path := range []string{base + "/info", base + "/apps/nonsense", "/api/v1/subclusters", "/api/v1/nope"} {
		h := call(t, f.Routers[0].Web, "GET", path, "").head
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("X-Frame-Options") != "SAMEORIGIN" {
			t.Errorf("%s: %v", path, h)
		}
	}
}

func TestUnknownDocumentIsAPage(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Routers: 1})
	r := call(t, f.Routers[0].Web, "GET", base+"/nope", "")
	if r.status != 404 || r.head.Get("Content-Type") != "text/html;charset=utf-8" ||
		!strings.Contains(r.body, "<td>"+base+"/nope</td>") {
		t.Errorf("%d %v %s", r.status, r.head, r.body)
	}
}

// lines collects the output of a logger.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

// Each call that changes something leaves one line: the user, the address, the call and its result. Reading leaves none.
func TestChangesAreAudited(t *testing.T) {
	log := &lines{}
	f := routertest.Start(t, routertest.Options{Routers: 1, Log: slog.New(slog.NewJSONHandler(log, nil))})
	web := f.Routers[0].Web
	id, _ := submit(t, f, web, "one", "default")
	call(t, web, "GET", base+"/apps", "")
	call(t, web, "OPTIONS", base+"/apps", "")
	call(t, web, "PUT", base+"/apps/"+id+"/priority?user.name=alice", `{"priority":1}`, "X-Request-Id", "r7")
	call(t, web, "PUT", base+"/apps/"+id+"/state?user.name=root&doAs=alice", `{"state":"KILLED"}`)
	call(t, web, "PUT", base+"/apps/application_1_0001/state?user.name=bob", `{"state":"KILLED"}`)
	call(t, web, "PUT", base+"/apps/application_1_0001/state?user.name=bob", `<appstate/>`)
	call(t, web, "DELETE", "/api/v1/subclusters/nosuch?user.name=root", "")
	issued := call(t, web, "POST", base+"/delegation-token?user.name=alice", `{"renewer":"yarn"}`)
	text := at(t, issued.body, "token").(string)
	call(t, web, "DELETE", base+"/delegation-token?user.name=eve", "", "Hadoop-YARN-RM-Delegation-Token", text)
	var got []map[string]any
	for d := json.NewDecoder(&log.buf); ; {
		var line map[string]any
		if err := d.Decode(&line); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if line["msg"] == "audit" {
			got = append(got, line)
		}
	}
	for i, want := range []map[string]any{
		{"user": "alice", "operation": "POST /apps", "target": id, "result": "success", "auth": "SIMPLE", "status": 202.0},
		{"user": "alice", "operation": "PUT /apps/{appid}/priority", "result": "success", "request": "r7"},
		{"user": "alice", "real_user": "root", "operation": "PUT /apps/{appid}/state", "target": "/apps/" + id + "/state", "result": "failure", "status": 403.0},
		{"user": "bob", "operation": "PUT /apps/{appid}/state", "result": "failure", "status": 404.0},
		{"user": "bob", "operation": "PUT /apps/{appid}/state", "result": "failure", "status": 404.0},
		{"user": "root", "operation": "DELETE /api/v1/subclusters/{id}", "target": "/subclusters/nosuch", "result": "failure"},
		{"user": "alice", "operation": "POST /delegation-token", "target": "yarn", "result": "success"},
		{"user": "eve", "operation": "DELETE /delegation-token", "target": "delegation token 1 of alice", "result": "failure"},
	} {
		if i >= len(got) {
			t.Fatalf("%d lines of audit: %v", len(got), got)
		}
		for k, v := range want {
			if got[i][k] != v {
				t.Errorf("line %d: %s is %v, want %v", i, k, got[i][k], v)
			}
		}
		why, _ := got[i]["error"].(string)
		if (why == "") != (got[i]["result"] == "success") || strings.ContainsAny(why, "<{") {
			t.Errorf("line %d: %v with the error %q", i, got[i]["result"], why)
		}
		if from, _ := got[i]["from"].(string); !strings.HasPrefix(from, "127.0.0.1:") {
			t.Errorf("line %d comes from %q", i, from)
		}
	}
	for i, words := range map[int]string{
		2: "alice", 3: "application_1_0001", 5: `there is no subcluster "nosuch"`, 7: "eve may not cancel",
	} {
		if why, _ := got[i]["error"].(string); !strings.Contains(why, words) {
			t.Errorf("line %d: the error is %q, want one with %q", i, why, words)
		}
	}
	if len(got) != 8 {
		t.Errorf("%d lines of audit: %v", len(got), got)
	}
}

// The choice of a home is shown to the application's user and to the users that its ACLs admit; while its home does
// not answer, to its user alone.
func TestWhyObeysViewACLs(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Routers: 1, Change: func(_ int, c *rmserver.Config) {
		c.ACLs = true
		c.Machine.Queues.Root.Admin = queues.ACL{} // otherwise every user may view every application
		for i := range c.Machine.Queues.Root.Children {
			c.Machine.Queues.Root.Children[i].Admin = queues.ACL{}
		}
	}})
	web := f.Routers[0].Web
	id, home := submit(t, f, web, "one", "default")
	why := func(user string) reply { return call(t, web, "GET", "/api/v1/apps/"+id+"/why?user.name="+user, "") }
	for user, status := range map[string]int{"alice": 200, "root": 200, "mallory": 403, "": 403} {
		r := why(user)
		if r.status != status || (status == 200) != strings.Contains(r.body, `"candidates"`) {
			t.Errorf("%q: %d %s", user, r.status, r.body)
		}
	}
	home.Cut()
	if r := why("alice"); r.status != 200 || !strings.Contains(r.body, `"candidates"`) {
		t.Errorf("its user, with home away: %d %s", r.status, r.body)
	}
	if r := why(
		"mallory",
	); r.status != 200 || strings.Contains(r.body, `"candidates"`) ||
		!strings.Contains(r.body, "does not answer now") {
		t.Errorf("another, with home away: %d %s", r.status, r.body)
	}
}

// A member's own audit line names the client that the router forwarded for, next to the router's own address. And its
// web port has no names that are not its own.
func TestAMemberAuditsTheRoutersClient(t *testing.T) {
	log := &lines{}
	f := routertest.Start(t, routertest.Options{Members: 1, Routers: 1, Change: func(_ int, c *rmserver.Config) {
		c.Logger = slog.New(slog.NewJSONHandler(log, nil))
	}})
	member := f.Members[0].WebAddress
	id, _ := submit(t, f, f.Routers[0].Web, "one", "default")
	const priority = `{"priority":1}`
	call(t, f.Routers[0].Web, "PUT", base+"/apps/"+id+"/priority?user.name=alice", priority)
	call(
		t,
		member,
		"PUT",
		base+"/apps/"+id+"/priority?user.name=alice",
		`{"priority":2}`,
		"X-Forwarded-For",
		"nonsense",
	)
	var got []any
	log.mu.Lock()
	for line := range strings.Lines(log.buf.String()) {
		if strings.Contains(line, "updateApplicationPriority") {
			var fields map[string]any
			if err := json.Unmarshal([]byte(line), &fields); err != nil {
				t.Error(err)
			}
			got = append(got, fields["forwarded_for"])
		}
	}
	log.mu.Unlock()
	if len(got) != 2 || got[0] != "127.0.0.1" || got[1] != nil {
		t.Errorf("forwarded_for in two lines of audit: %v\n%s", got, log.buf.String())
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+member+base+"/info", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "evil.example"
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("under another name: %d", res.StatusCode)
	}
}

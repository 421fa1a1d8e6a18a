// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/impersonation"
	"github.com/creelrm/creel/router/routertest"
	rmserver "github.com/creelrm/creel/subcluster/rm/server"
)

// After a body that it does not read, net/http lingers for half a second so that the answer is not lost; that
// goroutine is its own.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

const base = "/ws/v1/cluster"

type reply struct {
	status int
	head   http.Header
	body   string
}

func call(t *testing.T, address, method, path, body string, head ...string) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
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
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{res.StatusCode, res.Header, string(b)}
}

func at(t *testing.T, doc string, fields ...string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(doc), &v); err != nil {
		t.Fatalf("%v: %s", err, doc)
	}
	for _, f := range fields {
		m, ok := v.(map[string]any)
		if !ok {
			t.Fatalf("no %s in %.300s", f, doc)
		}
		v = m[f]
	}
	return v
}

func submission(id, name, queue string) string {
	return fmt.Sprintf(
		`{"application-id":%q,"application-name":%q,"application-type":"TEST","unmanaged-AM":true,"queue":%q,"resource":{"memory":128,"vCores":1},"am-container-spec":{}}`,
		id,
		name,
		queue,
	)
}

// submit submits one application through a router and returns its home.
func submit(t *testing.T, f *routertest.Federation, web, name, queue string) (id string, home *routertest.Member) {
	t.Helper()
	id = at(t, call(t, web, "POST", base+"/apps/new-application?user.name=alice", "").body, "application-id").(string)
	r := call(t, web, "POST", base+"/apps?user.name=alice", submission(id, name, queue))
	if want := "http://" + web + base + "/apps/" + id; r.status != 202 || r.head.Get("Location") != want {
		t.Fatalf("submitted: %d %s, Location %q, want %q", r.status, r.body, r.head.Get("Location"), want)
	}
	app, err := creel.ParseApplicationID(id)
	if err != nil {
		t.Fatal(err)
	}
	homes := f.Homes(app)
	if len(homes) != 1 {
		t.Fatalf("%s is at %v", id, homes)
	}
	return id, f.Member(homes[0])
}

// submitEverywhere submits until every member has one.
func submitEverywhere(t *testing.T, f *routertest.Federation, web string) map[creel.SubclusterID]string {
	t.Helper()
	apps := map[creel.SubclusterID]string{}
	for i := 0; len(apps) < len(f.Members); i++ {
		if i > 200 {
			t.Fatalf("200 submissions went to %v alone", apps)
		}
		id, home := submit(t, f, web, fmt.Sprint("app ", i), "default")
		apps[home.ID] = id
	}
	return apps
}

// Many ResourceManagers have the documents of one: the same roots and fields as a member, metrics added up, every
// application and node there once.
func TestOneCluster(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 3})
	web := f.Routers[0].Web
	apps := submitEverywhere(t, f, web)
	total := 0
	for path, root := range map[string]string{"": "clusterInfo", "/info": "clusterInfo", "/metrics": "clusterMetrics", "/scheduler": "scheduler", "/nodes": "nodes", "/apps": "apps", "/appstatistics": "appStatInfo"} {
		ours, one := call(t, web, "GET", base+path, ""), call(t, f.Members[0].WebAddress, "GET", base+path, "")
		if ours.status != 200 {
			t.Fatalf("%s: %d %s", path, ours.status, ours.body)
		}
		missing := fieldsMissing("", at(t, ours.body), at(t, one.body))
		if len(missing) > 0 {
			t.Errorf("%s lacks what a member has: %v", path, missing)
		}
		if ours.head.Get("X-Partial-Result") != "" {
			t.Errorf("%s says that it is partial: %v", path, ours.head)
		}
		x := call(t, f.Routers[1].Web, "GET", base+path, "", "Accept", "application/xml")
		var doc struct{ XMLName xml.Name }
		if err := xml.Unmarshal(
			[]byte(x.body),
			&doc,
		); err != nil || doc.XMLName.Local != root ||
			!strings.HasPrefix(x.head.Get("Content-Type"), "application/xml") {
			t.Errorf("%s as XML: %v, root %q, %v", path, err, doc.XMLName.Local, x.head)
		}
	}
	if x := call(
		t,
		web,
		"GET",
		base+"/scheduler",
		"",
		"Accept",
		"application/xml",
	); !strings.Contains(x.body, ` xsi:type="capacityScheduler">`) ||
		strings.Contains(x.body, "<type>") {
		t.Errorf("the scheduler's class in XML: %.300s", x.body)
	}
	metrics := at(t, call(t, web, "GET", base+"/metrics", "").body, "clusterMetrics").(map[string]any)
	if metrics["activeNodes"] != 6.0 {
		t.Errorf("%v active nodes", metrics["activeNodes"])
	}
	list := at(t, call(t, web, "GET", base+"/apps", "").body, "apps", "app").([]any)
	seen := map[any]int{}
	for _, a := range list {
		seen[a.(map[string]any)["id"]]++
	}
	for _, id := range apps {
		if seen[id] != 1 {
			t.Errorf("%s is listed %d times", id, seen[id])
		}
	}
	total = len(list)
	if metrics["appsSubmitted"] != float64(total) {
		t.Errorf("%v submitted, %d listed", metrics["appsSubmitted"], total)
	}
	if got := at(t, call(t, web, "GET", base+"/apps?limit=2", "").body, "apps", "app").([]any); len(got) != 2 {
		t.Errorf("a limit of 2 gives %d", len(got))
	}
	for _, n := range at(t, call(t, web, "GET", base+"/nodes", "").body, "nodes", "node").([]any) {
		node := n.(map[string]any)
		if f.Member(creel.SubclusterID(node["subClusterId"].(string))) == nil {
			t.Errorf("a node of nowhere: %v", node)
		}
		if r := call(t, web, "GET", base+"/nodes/"+node["id"].(string), ""); at(t, r.body, "node", "id") != node["id"] {
			t.Errorf("node: %d %s", r.status, r.body)
		}
	}
	root := at(t, call(t, web, "GET", base+"/scheduler", "").body, "scheduler", "schedulerInfo").(map[string]any)
	if root["capacity"] != 100.0 || root["queueName"] != "root" ||
		len(root["queues"].(map[string]any)["queue"].([]any)) != 2 {
		t.Errorf("the queue tree: capacity %v, %v", root["capacity"], root["queueName"])
	}
	one := at(t, call(t, f.Members[0].WebAddress, "GET", base+"/scheduler", "").body, "scheduler", "schedulerInfo").(map[string]any)
	if got, want := fmt.Sprint(root["maximumAllocation"]), fmt.Sprint(one["maximumAllocation"]); got != want {
		t.Errorf("the largest container is %s, of each member %s", got, want)
	}
	if at, now := root["health"].(map[string]any)["lastrun"].(float64), float64(time.Now().UnixMilli()); at > now {
		t.Errorf("the scheduler ran last at %.0f, and now is %.0f", at, now)
	}
	if raw := call(
		t,
		web,
		"GET",
		base+"/scheduler",
		"",
	).body; !strings.Contains(raw, `"capacity":70.0`) ||
		!strings.Contains(raw, `"maximumAllocation":9223372036854775807`) {
		t.Error("floats keep their point and bounds stay bounds in a merged tree")
	}
	if got := at(t, call(t, web, "GET", base+"/appstatistics?states=accepted,finished", "").body, "appStatInfo", "statItem").([]any); len(
		got,
	) != 2 {
		t.Errorf("statistics: %v", got)
	}
}

// fieldsMissing walks two documents and names the objects' fields that only
// the second has. Lists are compared by their first element.
func fieldsMissing(path string, ours, one any) (out []string) {
	switch one := one.(type) {
	case map[string]any:
		o, ok := ours.(map[string]any)
		if !ok {
			return []string{path}
		}
		for k, v := range one {
			if got, there := o[k]; there {
				out = append(out, fieldsMissing(path+"."+k, got, v)...)
			} else {
				out = append(out, path+"."+k)
			}
		}
	case []any:
		o, ok := ours.([]any)
		switch {
		case !ok:
			return []string{path}
		case len(one) > 0 && len(o) > 0:
			if first, isObject := one[0].(map[string]any); isObject && first["id"] == nil {
				out = fieldsMissing(path+"[]", o[0], one[0])
			}
		case len(o) < len(one):
			return []string{path}
		}
	}
	return out
}

// Every operation on an application goes to its home, through any router.
func TestAnApplicationThroughTwoRouters(t *testing.T) {
	f := routertest.Start(t, routertest.Options{})
	one, two := f.Routers[0].Web, f.Routers[1].Web
	id, home := submit(t, f, one, "story", "default")
	app := base + "/apps/" + id
	if got := at(t, call(t, two, "GET", app, "").body, "app", "name"); got != "story" {
		t.Errorf("name %v", got)
	}
	attempt := strings.Replace(id, "application", "appattempt", 1) + "_000001"
	f.Until("its attempt waits", func() bool {
		r := call(t, two, "GET", app+"/appattempts/"+attempt, "")
		return r.status == 200 && at(t, r.body, "appAttemptState") == "LAUNCHED"
	})
	if r := call(t, one, "GET", app+"/appattempts/"+attempt+"/containers", ""); r.status != 200 || r.body != "{}" {
		t.Errorf("containers: %d %s", r.status, r.body)
	}
	if r := call(t, two, "PUT", app+"/priority?user.name=alice", `{"priority":4}`); r.body != `{"priority":4}` {
		t.Errorf("priority: %d %s", r.status, r.body)
	}
	if r := call(
		t,
		one,
		"PUT",
		app+"/queue?user.name=alice",
		"<appqueue><queue>other</queue></appqueue>",
	); !strings.Contains(
		r.body,
		"<queue>root.other</queue>",
	) {
		t.Errorf("queue: %d %s", r.status, r.body)
	}
	if r := call(
		t,
		one,
		"PUT",
		app+"/timeout?user.name=alice",
		`{"timeout":{"type":"LIFETIME","expiryTime":"2199-01-31T12:00:00.000+0000"}}`,
	); r.status != 200 {
		t.Errorf("timeout: %d %s", r.status, r.body)
	}
	parsed, _ := creel.ParseApplicationID(id)
	if a, ok := home.App(
		t.Context(),
		parsed,
	); !ok || a.Priority != 4 || a.Queue != "root.other" ||
		a.Deadline.Year() != 2199 {
		t.Errorf("at home: %+v, %v", a, ok)
	}
	if r := call(
		t,
		two,
		"PUT",
		app+"/state?user.name=alice",
		`{"state":"KILLED"}`,
	); r.status != 200 &&
		r.status != 202 {
		t.Errorf("kill: %d %s", r.status, r.body)
	}
	f.Until("it is dead", func() bool { return at(t, call(t, one, "GET", app+"/state", "").body, "state") == "KILLED" })
	if r := call(t, one, "PUT", app+"/state?user.name=alice", `{"state":"KILLED"}`); r.status != 200 {
		t.Errorf("killed again: %d %s", r.status, r.body)
	}
	var why struct {
		Home  string
		Tries []struct{ Member, Verdict string }
		Note  string
	}
	if err := json.Unmarshal(
		[]byte(call(t, one, "GET", "/api/v1/apps/"+id+"/why", "").body),
		&why,
	); err != nil || why.Home != string(home.ID) || len(why.Tries) != 1 ||
		why.Tries[0].Verdict != "accepted" {
		t.Errorf("why, at the router that chose: %+v, %v", why, err)
	}
	if here, there := call(t, one, "GET", "/api/v1/apps/"+id+"/why", "").body,
		call(t, two, "GET", "/api/v1/apps/"+id+"/why", "").body; here != there {
		t.Errorf("why, at the router that chose:\n%s\nat the other:\n%s", here, there)
	}
	node := at(t, call(t, one, "GET", base+"/nodes", "").body, "nodes", "node").([]any)[3].(map[string]any)["id"].(string)
	if r := call(
		t,
		one,
		"POST",
		base+"/nodes/"+node+"/resource?user.name=root",
		`{"resource":{"memory":4096,"vCores":4}}`,
	); r.status != 200 ||
		at(t, r.body, "resourceInfo", "memory") != 4096.0 {
		t.Errorf("resize %s: %d %s", node, r.status, r.body)
	}
}

// A member that does not answer is missing from merged answers, and the answer says so; a call that only it can
// answer is rejected with a reason and a time to ask again.
func TestPartialAnswersSaySo(t *testing.T) {
	f := routertest.Start(t, routertest.Options{OpenFor: 50 * time.Millisecond})
	web := f.Routers[0].Web
	apps := submitEverywhere(t, f, web)
	gone, there := f.Members[0], f.Members[1]
	gone.Cut()
	for _, path := range []string{"/apps", "/nodes", "/metrics", "/scheduler", "/info", "/appstatistics"} {
		r := call(t, web, "GET", base+path, "")
		if r.status != 200 || r.head.Get("X-Partial-Result") != "true" ||
			!strings.Contains(r.head.Get("X-Missing-SubClusters"), string(gone.ID)) ||
			strings.Contains(r.head.Get("X-Missing-SubClusters"), string(there.ID)+":") {
			t.Errorf(
				"%s: %d, partial %q, missing %q",
				path,
				r.status,
				r.head.Get("X-Partial-Result"),
				r.head.Get("X-Missing-SubClusters"),
			)
		}
	}
	list := call(t, web, "GET", base+"/apps", "").body
	if !strings.Contains(list, apps[there.ID]) || strings.Contains(list, apps[gone.ID]) {
		t.Errorf("the list while %s is away: %.300s", gone.ID, list)
	}
	if r := call(
		t,
		web,
		"GET",
		base+"/apps/"+apps[gone.ID],
		"",
	); r.status != 503 || !strings.Contains(r.body, "RemoteException") ||
		!strings.Contains(r.body, string(gone.ID)) {
		t.Errorf("an application of %s: %d %s", gone.ID, r.status, r.body)
	}
	if r := call(t, web, "GET", base+"/apps/"+apps[there.ID], ""); r.status != 200 {
		t.Errorf("an application of %s: %d %s", there.ID, r.status, r.body)
	}
	if r := call(
		t,
		web,
		"GET",
		base+"/apps/application_1_0001",
		"",
	); r.status != 503 ||
		r.head.Get("Retry-After") == "" {
		t.Errorf("an application that only %s might know: %d %s", gone.ID, r.status, r.body)
	}
	there.Cut()
	for _, accept := range []string{"application/json", "application/xml"} {
		if r := call(
			t,
			web,
			"GET",
			base+"/apps",
			"",
			"Accept",
			accept,
		); r.status != 503 || !strings.Contains(r.body, "RemoteException") ||
			!strings.Contains(r.body, "no subcluster answered") {
			t.Errorf("nobody there: %d %s", r.status, r.body)
		}
	}
	gone.Mend()
	there.Mend()
	f.Until("the answer is whole again", func() bool {
		r := call(t, web, "GET", base+"/apps", "")
		return r.status == 200 && r.head.Get("X-Partial-Result") == "" && strings.Contains(r.body, apps[gone.ID])
	})
	var doc struct {
		Subclusters []struct {
			ID     string
			CutOff []string `json:"cut_off"`
		}
	}
	if err := json.Unmarshal(
		[]byte(call(t, web, "GET", "/api/v1/subclusters", "").body),
		&doc,
	); err != nil ||
		len(doc.Subclusters) != 2 {
		t.Errorf("subclusters: %+v, %v", doc, err)
	}
	if got := at(t, call(t, web, "GET", "/api/v1/counts", "").body, "partial").(float64); got < 6 {
		t.Errorf("%v partial answers counted", got)
	}
}

// A member that rejects a call is named like one that does not answer, in its own words; one without the requested
// data is not missing.
func TestAMemberThatRefusesIsNamed(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Routers: 1, Change: func(i int, c *rmserver.Config) {
		if i == 0 {
			c.Proxies["oozie"] = impersonation.Rule{Hosts: []string{"*"}, Users: []string{"*"}}
		}
	}})
	web := f.Routers[0].Web
	apps := submitEverywhere(t, f, web)
	containers := func(home creel.SubclusterID) string {
		app, err := creel.ParseApplicationID(apps[home])
		if err != nil {
			t.Fatal(err)
		}
		return "/apps/" + apps[home] + "/appattempts/" + creel.AttemptID{Application: app, Attempt: 1}.String() + "/containers"
	}
	const missing = "sc-b (subcluster sc-b answered 403: User: oozie is not allowed to impersonate alice"
	for _, path := range []string{
		"/apps", "/nodes", "/metrics", "/scheduler", "/info", "/appstatistics", containers("sc-a"),
	} {
		r := call(t, web, "GET", base+path+"?user.name=oozie&doAs=alice", "")
		if got := r.head.Get("X-Missing-SubClusters"); r.status != 200 || r.head.Get("X-Partial-Result") != "true" ||
			!strings.HasPrefix(got, missing) || strings.Contains(got, "Exception") {
			t.Errorf("%s: %d, missing %q", path, r.status, got)
		}
		r = call(t, web, "GET", base+path+"?user.name=alice", "")
		if got := r.head.Get("X-Missing-SubClusters"); r.status != 200 || got != "" {
			t.Errorf("%s where nobody refuses: %d, missing %q", path, r.status, got)
		}
	}
	for _, path := range []string{containers("sc-b"), "/nodes/nowhere:1"} {
		if r := call(t, web, "GET", base+path+"?user.name=oozie&doAs=alice", ""); r.status != 403 {
			t.Errorf("%s, which only sc-b can answer: %d %s", path, r.status, r.body)
		}
	}
	f.Member("sc-b").Cut()
	r := call(t, web, "GET", base+containers("sc-a")+"?user.name=alice", "")
	if got := r.head.Get("X-Missing-SubClusters"); r.status != 200 || !strings.HasPrefix(got, "sc-b (subcluster sc-b ") {
		t.Errorf("containers without sc-b: %d, missing %q", r.status, got)
	}
}

// Bad input gets the answer that a ResourceManager would send, or the member's own, in the requested format.
func TestBadInput(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Routers: 1})
	web := f.Routers[0].Web
	id, _ := submit(t, f, web, "one", "default")
	for _, b := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{"GET", "/apps/application_1_0001", "", 404, "app with id: application_1_0001 not found"},
		{"GET", "/apps/nonsense", "", 400, "Invalid ApplicationId: nonsense"},
		{"GET", "/apps/" + id + "/appattempts/zz", "", 400, "Invalid AppAttemptId prefix: zz"},
		{"GET", "/nodes/gone:1", "", 404, "nodeId, gone:1, is not found"},
		{"GET", "/nodes/zz", "", 400, "Expected host:port"},
		{"GET", "/apps?states=xx", "", 400, "Invalid application-state xx"},
		{"GET", "/apps?limit=0", "", 400, "limit value must be greater then 0"},
		{"GET", "/apps?queue=nope", "", 400, "Unknown queue: nope"},
		{"DELETE", "/apps", "", 503, "DELETE is not a method"},
		{"PUT", "/info", "{}", 503, "PUT is not a method"},
		{"POST", "/apps", "nonsense", 400, "cannot be read"},
		{"POST", "/apps", "{}", 400, "Appid cannot be empty"},
		{"POST", "/apps", `{"application-id":"foo"}`, 400, "foo"},
		{"POST", "/apps", `{"resource":{"memory":9000,"vCores":1},` + `"application-id":"application_1_0002"}`, 400, "more memory than configured"},
		{"PUT", "/apps/" + id + "/state", `{"state`, 400, "UnmarshalException"},
		{"PUT", "/apps/" + id + "/state", `{"state":"RUN"}`, 400, "Only 'KILLED'"},
		{"PUT", "/apps/application_1_0001/state", `{"state":"KILLED"}`, 404, "not found"},
		{"POST", "/containers/zz/signal/GRACEFUL_SHUTDOWN", "", 400, "zz"},
		{"POST", "/add-node-labels", "{}", 401, "not authorized"},
		{"POST", "/nodes/gone:1/resource", "{}", 404, "is not found"},
	} {
		for _, accept := range []string{"application/json", "application/xml"} {
			r := call(t, web, b.method, base+b.path, b.body, "Accept", accept)
			if r.status != b.status || !strings.Contains(r.body, b.says) ||
				!strings.Contains(r.body, "RemoteException") ||
				(accept == "application/xml") != strings.HasPrefix(r.body, "<?xml") {
				t.Errorf(
					"%s %s %.50s as %s: %d %s, want %d with %q",
					b.method,
					b.path,
					b.body,
					accept,
					r.status,
					r.body,
					b.status,
					b.says,
				)
			}
		}
	}
	for path, status := range map[string]int{"/api/v1/nope": 404, "/api/v1/apps/nonsense/why": 400, "/api/v1/apps/application_1_0001/why": 404} {
		if r := call(
			t,
			web,
			"GET",
			path,
			"",
		); r.status != status || r.head.Get("Content-Type") != "application/problem+json" ||
			at(t, r.body, "status") != float64(status) {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
	// 100 MB are not read to their end.
	body := &endless{}
	req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+web+base+"/apps", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err == nil { // the connection may also have been cut during the write
		b, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != 400 || !strings.Contains(string(b), "longer than 16 MiB") {
			t.Errorf("%d %s", res.StatusCode, b)
		}
	} else if errors.Is(err, t.Context().Err()) {
		t.Error(err)
	}
	if sent := body.sent.Load(); sent > 90<<20 {
		t.Errorf("%d bytes were read", sent)
	}
}

type endless struct{ sent atomic.Int64 }

func (e *endless) Read(b []byte) (int, error) {
	if e.sent.Load() > 100<<20 {
		return 0, io.EOF
	}
	for i := range b {
		b[i] = ' '
	}
	e.sent.Add(int64(len(b)))
	return len(b), nil
}

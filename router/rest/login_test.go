// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/router/routertest"
	"github.com/creelrm/creel/router/tokens"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/memory"
)

const loginHeader = "X-Hadoop-Delegation-Token"

// A token issued by one router is a login for its holder at the other, by the header and by the query of Hadoop's
// clients, as its owner and as no other user.
func TestADelegationTokenIsALogin(t *testing.T) {
	log := &lines{}
	f := routertest.Start(t, routertest.Options{Log: slog.New(slog.NewJSONHandler(log, nil))})
	one, two := f.Routers[0].Web, f.Routers[1].Web
	issued := call(t, one, "POST", base+"/delegation-token?user.name=oozie&doAs=alice", `{"renewer":"yarn"}`)
	text := at(t, issued.body, "token").(string)
	for _, query := range []string{"", "?user.name=bob", "?user.name=root&doAs=bob"} {
		r := call(t, two, "GET", base+"/userinfo"+query, "", loginHeader, text)
		if r.status != 200 || at(t, r.body, "requestedUser") != "alice" {
			t.Errorf("by the header, with %q: %d %s", query, r.status, r.body)
		}
		query = strings.Replace(query, "?", "&", 1)
		r = call(t, two, "GET", base+"/userinfo?delegation="+text+query, "")
		if r.status != 200 || at(t, r.body, "requestedUser") != "alice" {
			t.Errorf("by the query, with %q: %d %s", query, r.status, r.body)
		}
	}
	id := at(t, call(t, two, "POST", base+"/apps/new-application", "", loginHeader, text).body, "application-id").(string)
	if r := call(t, two, "POST", base+"/apps?user.name=bob", submission(id, "by token", "default"), loginHeader, text); r.status != 202 {
		t.Fatalf("submitted: %d %s", r.status, r.body)
	}
	app, err := creel.ParseApplicationID(id)
	if err != nil {
		t.Fatal(err)
	}
	if a, ok := f.Member(f.Homes(app)[0]).App(t.Context(), app); !ok || a.User != "alice" {
		t.Errorf("the application is of %q", a.User)
	}
	if r := call(t, one, "PUT", base+"/apps/"+id+"/state?delegation="+text, `{"state":"KILLED"}`); r.status != 202 && r.status != 200 {
		t.Errorf("killed: %d %s", r.status, r.body)
	}
	if r := call(t, one, "PUT", base+"/apps/"+id+"/state", `{"state":"KILLED"}`, loginHeader, "rubbish"); r.status != 403 {
		t.Errorf("killed by rubbish: %d %s", r.status, r.body)
	}
	const want = "alice by oozie: success, alice by oozie: success,  by : failure"
	f.Until("it is audited as "+want, func() bool { return byToken(t, log) == want }) // after the answer
}

// byToken returns the audit lines of logins by token, accepted or not.
func byToken(t *testing.T, log *lines) string {
	t.Helper()
	log.mu.Lock()
	defer log.mu.Unlock()
	var audited []string
	for line := range strings.Lines(log.buf.String()) {
		var l struct {
			Message  string `json:"msg"`
			User     string `json:"user"`
			RealUser string `json:"real_user"`
			Auth     string `json:"auth"`
			Result   string `json:"result"`
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		if l.Message == "audit" && l.Auth == "TOKEN" {
			audited = append(audited, l.User+" by "+l.RealUser+": "+l.Result)
		}
	}
	return strings.Join(audited, ", ")
}

// An invalid token is rejected: 403, with the reason, in the form of the path.
func TestRejectedTokenGetsReason(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 1})
	one, two := f.Routers[0].Web, f.Routers[1].Web
	issue := func() token.Token {
		issued := call(t, one, "POST", base+"/delegation-token"+asAlice, `{"renewer":"yarn"}`)
		k, err := token.ParseURLString(at(t, issued.body, "token").(string))
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	forged, hdfs, other, cancelled := issue(), issue(), issue(), issue()
	forged.Password = []byte("01234567890123456789")
	hdfs.Kind = "HDFS_DELEGATION_TOKEN"
	id, err := token.ParseDelegation(other.Identifier)
	if err != nil {
		t.Fatal(err)
	}
	id.Owner = "root"
	other.Identifier = id.Append(nil)
	if r := call(t, two, "DELETE", base+"/delegation-token"+asAlice, "", "Hadoop-YARN-RM-Delegation-Token", cancelled.URLString()); r.status != 200 {
		t.Fatalf("cancelled: %d %s", r.status, r.body)
	}
	for text, why := range map[string]string{
		"rubbish":                 "it is damaged",
		"":                        "it is damaged",
		issue().URLString()[:90]:  "it is damaged",
		forged.URLString():        "does not belong to its identifier",
		hdfs.URLString():          "it is a HDFS_DELEGATION_TOKEN",
		other.URLString():         "is not known here: it expired or was cancelled",
		cancelled.URLString():     "it expired or was cancelled",
		strings.Repeat("A", 1000): "it is damaged",
	} {
		for _, r := range []reply{
			call(t, two, "GET", base+"/userinfo"+asAlice, "", loginHeader, text),
			call(t, two, "GET", base+"/apps"+asAlice+"&delegation="+text, ""),
			call(t, two, "GET", base+"/nodes", "", loginHeader, text),
		} {
			if r.status != 403 || at(t, r.body, "RemoteException", "exception") != "AuthenticationException" ||
				!strings.Contains(r.body, "the delegation token is not accepted: ") || !strings.Contains(r.body, why) ||
				!strings.Contains(r.body, "get a new one from a router") {
				t.Errorf("%.20q: %d %s, want %q", text, r.status, r.body, why)
			}
		}
		r := call(t, two, "GET", "/api/v1/subclusters", "", loginHeader, text)
		if r.status != 403 || r.head.Get("Content-Type") != "application/problem+json" || !strings.Contains(r.body, why) {
			t.Errorf("%.20q at /api/v1: %d %s, want %q", text, r.status, r.body, why)
		}
		if r := call(t, two, "GET", "/conf", "", loginHeader, text); r.status != 403 {
			t.Errorf("%.20q at /conf: %d", text, r.status)
		}
	}
}

// Where anonymous requests are rejected a token is a login all the same, at the paths that check it. An invalid one
// is rejected, and at other paths no token is a login.
func TestTokenLogsInIfAnonymousIsRefused(t *testing.T) {
	f := routertest.Start(t, routertest.Options{
		Members: 1, Routers: 1, Settings: []string{"hadoop.http.authentication.simple.anonymous.allowed=false"},
	})
	web := f.Routers[0].Web
	text := at(t, call(t, web, "POST", base+"/delegation-token"+asAlice, `{"renewer":"yarn"}`).body, "token").(string)
	for _, path := range []string{base + "/userinfo", base + "/nodes/", "/api/v1/subclusters", "/isActive"} {
		if r := call(t, web, "GET", path, ""); r.status != 403 || !strings.Contains(r.body, "Anonymous requests") {
			t.Errorf("%s without a name: %d %s", path, r.status, r.body)
		}
		for _, r := range []reply{
			call(t, web, "GET", path, "", loginHeader, text), call(t, web, "GET", path+"?delegation="+text, ""),
		} {
			if r.status != 200 {
				t.Errorf("%s by token: %d %s", path, r.status, r.body)
			}
		}
	}
	r := call(t, web, "GET", base+"/userinfo", "", loginHeader, text)
	if r.status != 200 || at(t, r.body, "requestedUser") != "alice" {
		t.Errorf("the holder is not its owner: %d %s", r.status, r.body)
	}
	for _, path := range []string{
		"", base, base + "/userinfo", base + "/nodes/", base + "/nowhere", "/api/v1", "/api/v1/subclusters", "/api/v1/nowhere",
		"/conf", "/jmx", "/stacks", "/isActive", "/proxy/application_1_0001", "/proxy/application_1_0001/x", "/metrics", "/cluster",
		"/nowhere", "/%77s/v1/cluster/userinfo", "/ws%2Fv1/cluster/userinfo", "//conf", "/api/v1/../../metrics", "/livez/x",
	} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"} {
			for _, r := range []reply{
				call(t, web, method, path, "", loginHeader, "rubbish"), call(t, web, method, path+"?delegation=", ""),
			} {
				if r.status != 403 {
					t.Errorf("%s %s by rubbish: %d %s", method, path, r.status, r.body)
				}
			}
		}
	}
	for _, path := range []string{"/metrics", "/readyz/x", "/nowhere"} {
		if r := call(t, web, "GET", path, "", loginHeader, text); r.status != 403 {
			t.Errorf("%s, where nothing checks tokens: %d", path, r.status)
		}
	}
	if r := call(t, web, "GET", "/livez", "", loginHeader, "rubbish"); r.status != 200 {
		t.Errorf("health is for everybody: %d", r.status)
	}
}

// A token obtains no other token, nor a longer lifetime for itself: as in Hadoop, a caller with a token is rejected
// by all calls about tokens.
func TestTokenDoesNotAuthorizeTokenCalls(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 1, Routers: 1})
	web := f.Routers[0].Web
	const path = base + "/delegation-token"
	text := at(t, call(t, web, "POST", path+asAlice, `{"renewer":"alice"}`).body, "token").(string)
	about := []string{"Hadoop-YARN-RM-Delegation-Token", text}
	for _, c := range []struct{ method, path, body string }{
		{"POST", path, `{"renewer":"alice"}`}, {"POST", path + "/expiration", ""}, {"DELETE", path, ""},
	} {
		r := call(t, web, c.method, c.path+asAlice, c.body, append(about, loginHeader, text)...)
		if r.status != 403 || !strings.Contains(r.body, "a delegation token cannot") {
			t.Errorf("%s %s: %d %s", c.method, c.path, r.status, r.body)
		}
	}
	if r := call(t, web, "POST", path+"/expiration"+asAlice, "", about...); r.status != 200 {
		t.Errorf("renewed by who says that she is alice: %d %s", r.status, r.body)
	}
}

// Members do not have the key: they get the caller's name, and never the token.
func TestNoTokenGoesOnToMembers(t *testing.T) {
	store := memory.New(memory.NewState("test", nil), time.Now)
	seal := func(context.Context) ([]statestore.Key, error) {
		return []statestore.Key{{ID: 1, Secret: []byte("the cluster's secret")}}, nil
	}
	given := tokens.New(store, seal, token.Lifetimes{}, rand.Reader)
	k, _, err := given.Issue(t.Context(), "alice", "yarn", "oozie")
	if err != nil {
		t.Fatal(err)
	}
	text := k.URLString()
	asked := make(chan url.Values, 1)
	member := func(w http.ResponseWriter, r *http.Request) {
		for name, values := range r.Header {
			if name == loginHeader || strings.Contains(strings.Join(values, ""), text) {
				t.Errorf("the member is sent %s: %s", name, values)
			}
		}
		asked <- r.URL.Query()
		io.WriteString(w, `{"nodes":{"node":[]}}`)
	}
	_, web := serve(t, statuses(t, member), rest.Config{Started: time.Now(), Tokens: given})
	address := strings.TrimPrefix(web.URL, "http://")
	for _, c := range []struct{ query, header string }{
		{"?states=RUNNING", text},
		{"?states=RUNNING&delegation=" + text, ""},
		{"?%64elegation=" + text + "&states=RUNNING&user.name=root&doas=bob", ""},
		{"?delegation=rubbish&user%2ename=root&states=RUNNING&doAs=bob&delegation=x", text},
	} {
		var head []string
		if c.header != "" {
			head = []string{loginHeader, c.header}
		}
		if r := call(t, address, "GET", base+"/nodes"+c.query, "", head...); r.status != 200 {
			t.Errorf("%s: %d %s", c.query, r.status, r.body)
			continue
		}
		if got := (<-asked).Encode(); got != "states=RUNNING&user.name=alice" {
			t.Errorf("%s goes on as %s", c.query, got)
		}
	}
}

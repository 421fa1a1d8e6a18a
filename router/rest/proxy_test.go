// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/router/routertest"
)

// page is an AM's web server: an echo of the request, a redirect, and a web socket that returns its input in
// capitals.
func page(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/ui/old":
		http.Redirect(w, r, "/ui/new?x=1", http.StatusFound)
	case r.Header.Get("Upgrade") == "websocket":
		conn, both, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
			"Sec-Websocket-Accept: "+r.Header.Get("Sec-Websocket-Key")+"\r\n\r\n")
		line, _ := both.ReadString('\n')
		io.WriteString(conn, strings.ToUpper(line))
	default:
		w.Header().Set("Set-Cookie", "mine=1")
		fmt.Fprintf(w, "%s cookie=%s auth=%s", r.URL, r.Header.Get("Cookie"), r.Header.Get("Authorization"))
	}
}

// runsWithPage submits an application whose AM runs and has its pages at an address.
func runsWithPage(t *testing.T, f *routertest.Federation, url string) (id string, home *routertest.Member) {
	t.Helper()
	id, home = submit(t, f, f.Routers[0].Web, "page", "default")
	app, err := creel.ParseApplicationID(id)
	if err != nil {
		t.Fatal(err)
	}
	rm := home.D.Addresses()
	client := yarnrpc.NewApplicationClientProtocolClient(f.RPC, rm.Client, hrpc.Login{User: "alice"})
	var am token.Token
	f.Until("its AM may register", func() bool {
		r, err := client.GetApplicationReport(t.Context(),
			&pb.GetApplicationReportRequestProto{ApplicationId: pb.FromApplicationID(app)})
		if err != nil {
			t.Fatal(err)
		}
		am = token.FromProto(r.GetApplicationReport().GetAmRmToken())
		return len(am.Identifier) > 0
	})
	speaks := yarnrpc.NewApplicationMasterProtocolClient(f.RPC, rm.Scheduler, hrpc.Login{Credential: &hrpc.Credential{
		Identifier: am.Identifier, Password: am.Password, Kind: am.Kind, Service: am.Service,
	}})
	if _, err := speaks.RegisterApplicationMaster(t.Context(), &pb.RegisterApplicationMasterRequestProto{
		Host: new("127.0.0.1"), RpcPort: new(int32(7)), TrackingUrl: &url,
	}); err != nil {
		t.Fatal(err)
	}
	return id, home
}

// Users with access only to routers see the pages of their AMs there: the AM's content, its redirects, and web
// sockets, without the cookies that their browser has for the router.
func TestAMPagesAreReachedThroughRouter(t *testing.T) {
	f := routertest.Start(t, routertest.Options{})
	am := httptest.NewServer(http.HandlerFunc(page))
	defer am.Close()
	id, home := runsWithPage(t, f, am.URL+"/ui")
	web := f.Routers[1].Web // any of them

	r := call(t, web, "GET", "/proxy/"+id+"/x%2Fy?q=1", "", "Cookie", "hadoop.auth=secret", "Authorization", "Basic secret")
	if r.status != 200 || r.body != "/ui/x%2Fy?q=1 cookie=proxy-user=dr.who auth=" ||
		r.head.Get("Set-Cookie") != "mine=1; Path=/proxy/"+id {
		t.Errorf("the page: %d %q %v", r.status, r.body, r.head)
	}
	r = call(t, web, "GET", "/proxy/"+id+"/new?x=1", "")
	landed := r.body
	if r = call(t, web, "GET", "/proxy/"+id+"/old", ""); r.status != 200 || r.body != landed {
		t.Errorf("a page that has moved: %d %q, want %q", r.status, r.body, landed)
	}
	if said := overWebSocket(t, web, "/proxy/"+id+"/socket", "hello\n"); said != "HELLO\n" {
		t.Errorf("a web socket says %q", said)
	}
	if r := call(t, web, "POST", "/proxy/"+id+"/", "{}"); r.status != 405 {
		t.Errorf("posted through the proxy: %d %s", r.status, r.body)
	}

	for _, c := range []struct {
		story, path string
		status      int
		says        string
	}{
		{"no application", "/proxy/nonsense", 400, "Error parsing application ID: nonsense"},
		{"an unknown one", "/proxy/application_1_0001/", 404, "could not be found in any subcluster"},
	} {
		if r := call(t, web, "GET", c.path, ""); r.status != c.status || !strings.Contains(r.body, c.says) {
			t.Errorf("%s: %d %s", c.story, r.status, r.body)
		}
	}

	// Its end, and its home's absence.
	am.Close()
	if r := call(t, web, "GET", "/proxy/"+id+"/", ""); r.status != 502 || !strings.Contains(r.body, "does not answer") {
		t.Errorf("an AM that does not answer: %d %s", r.status, r.body)
	}
	home.Cut()
	r = call(t, web, "GET", "/proxy/"+id+"/", "")
	if want := "Subcluster " + string(home.ID) + ", the home of " + id + ", does not answer"; r.status != 503 ||
		!strings.Contains(r.body, want) || r.head.Get("Retry-After") == "" {
		t.Errorf("while home is away: %d %s %v", r.status, r.body, r.head)
	}
}

// An AM's login and its XSRF cookie are valid through any router, and at the home's own port; an AM gets no cookie
// that it did not set.
func TestCookiesOfAMsPassTheRouter(t *testing.T) {
	f := routertest.Start(t, routertest.Options{})
	am := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/ui/login" {
			http.SetCookie(w, &http.Cookie{Name: "login", Value: "ok", Path: "/ui", HttpOnly: true, MaxAge: 60})
			http.SetCookie(w, &http.Cookie{Name: "_xsrf", Value: "t", Path: "/"})
			http.SetCookie(w, &http.Cookie{Name: "SSO", Value: "mine", MaxAge: 60})
			http.SetCookie(w, &http.Cookie{Name: "hadoop.auth", Value: "u=mallory&t=simple&e=9999999999999"})
		}
		fmt.Fprintf(w, "cookie=%s xsrf=%s", r.Header.Get("Cookie"), r.Header.Get("X-XSRFToken"))
	}))
	defer am.Close()
	one, home := runsWithPage(t, f, am.URL+"/ui")
	two, _ := runsWithPage(t, f, am.URL+"/ui")
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := http.Client{Jar: jar}
	get := func(web, path string) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+web+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-XSRFToken", "t")
		answer, err := b.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != 200 {
			t.Fatalf("%s: %s %s, %v", path, answer.Status, body, err)
		}
		return string(body)
	}
	// Routers and members are on one host, whose cookies are for all ports.
	site, err := url.Parse("http://" + f.Routers[0].Web)
	if err != nil {
		t.Fatal(err)
	}
	jar.SetCookies(site, []*http.Cookie{{Name: "SSO", Value: "secret", Path: "/"}})
	get(f.Routers[0].Web, "/proxy/"+one+"/?user.name=alice") // and hadoop.auth is kept
	if said := get(f.Routers[0].Web, "/proxy/"+one+"/login"); said != "cookie=proxy-user=alice xsrf=t" {
		t.Errorf("before its login an AM hears %q", said)
	}
	const logged = "cookie=proxy-user=alice; login=ok; _xsrf=t; SSO=mine xsrf=t"
	for _, web := range []string{f.Routers[0].Web, f.Routers[1].Web, home.D.Addresses().Web} {
		if said := get(web, "/proxy/"+one+"/jobs"); said != logged {
			t.Errorf("by %s an AM hears %q", web, said)
		}
	}
	if said := get(f.Routers[1].Web, "/proxy/"+two+"/"); said != "cookie=proxy-user=alice xsrf=t" {
		t.Errorf("the other AM hears %q", said)
	}
	if said := get(f.Routers[0].Web, "/proxy/"+two+"/login"); said != "cookie=proxy-user=alice xsrf=t" {
		t.Errorf("the other AM hears %q", said)
	}
	// A cookie set by other means is not the AM's.
	jar.SetCookies(site.JoinPath("proxy", one), []*http.Cookie{{Name: "login", Value: "by a script", Path: "/proxy/" + one}})
	if said := get(f.Routers[1].Web, "/proxy/"+one+"/"); said != "cookie=proxy-user=alice; _xsrf=t; SSO=mine xsrf=t" {
		t.Errorf("after a script has set its cookie an AM hears %q", said)
	}
}

// overWebSocket opens a web socket, sends a line and returns the line it gets.
func overWebSocket(t *testing.T, address, path, line string) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-Websocket-Version: 13\r\nSec-Websocket-Key: a2V5\r\n\r\n", path, address)
	in := bufio.NewReader(conn)
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != 101 || res.Header.Get("Sec-Websocket-Accept") != "a2V5" {
		t.Fatalf("asked for a web socket: %s %v", res.Status, res.Header)
	}
	io.WriteString(conn, line)
	heard, err := in.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return heard
}

// SPDX-License-Identifier: Apache-2.0

package dash

import (
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/router/routertest"
)

// loginPage is an AM that identifies users by a cookie: each page and web socket reports the cookies it received.
func loginPage(w http.ResponseWriter, r *http.Request) {
	said := r.Header.Get("Cookie")
	switch {
	case r.Header.Get("Upgrade") == "websocket":
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		// The server's response by RFC 6455, then a frame of text.
		accept := sha1.Sum([]byte(r.Header.Get("Sec-Websocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
		fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
			"Set-Cookie: socket=1\r\nSec-Websocket-Accept: %s\r\n\r\n\x81%c%s",
			base64.StdEncoding.EncodeToString(accept[:]), len(said), said)
		io.Copy(io.Discard, conn)
		return
	case r.URL.Path == "/ui/login":
		w.Header().Add("Set-Cookie", "login="+r.URL.Query().Get("token")+"; Path=/ui; HttpOnly; SameSite=Lax; Max-Age=600")
		w.Header().Add("Set-Cookie", "_xsrf=t; Path=/")
		w.Header().Add("Set-Cookie", "SSO=mine")
		w.Header().Add("Set-Cookie", `hadoop.auth="u=mallory&p=mallory&t=simple&e=9999999999999"`)
		w.Header().Add("Set-Cookie", "wide=1; Path=/; Domain=localhost")
		http.Redirect(w, r, "/ui/jobs", http.StatusFound)
		return
	case r.URL.Path == "/ui/logout":
		w.Header().Add("Set-Cookie", "login=; Path=/ui; Max-Age=0")
	}
	w.Header().Set("Content-Type", "text/html")
	fmt.Fprintf(w, "<!doctype html><title>AM</title><link rel=icon href=data:,><p id=said>%s</p>", said)
}

// A browser with cookies for the router and for another site login logs in to two AMs. Each AM receives only its own
// cookies, over web sockets too.
func TestBrowserSeparatesAMCookies(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 2})
	am := httptest.NewServer(http.HandlerFunc(loginPage))
	defer am.Close()
	var ids [2]creel.ApplicationID
	for i := range ids {
		ids[i] = submit(t, f, "alice", "page")
		if _, err := amClient(t, f, ids[i]).RegisterApplicationMaster(t.Context(), &pb.RegisterApplicationMasterRequestProto{
			Host: new("127.0.0.1"), RpcPort: new(int32(1)), TrackingUrl: new(am.URL + "/ui"),
		}); err != nil {
			t.Fatal(err)
		}
	}
	web := func(router, app int, page string) string {
		_, port, _ := strings.Cut(f.Routers[router].Web, ":")
		return "http://localhost:" + port + "/proxy/" + ids[app].String() + page
	}
	b := newBrowser(t)
	b.open(web(0, 0, "/jobs?user.name=alice"))
	b.eval(`document.cookie = "SSO=secret; path=/"`)
	says := func(when, want string) {
		t.Helper()
		if said := b.text("#said"); said != want {
			t.Errorf("%s the AM is sent %q, want %q", when, said, want)
		}
	}
	says("at first", "proxy-user=alice")

	b.open(web(0, 0, "/login?token=one"))
	if at, want := b.eval("location.href"), web(0, 0, "/jobs"); at != want {
		t.Errorf("the login leads to %s, want %s", at, want)
	}
	says("after its login", "proxy-user=alice; login=one; _xsrf=t; SSO=mine; wide=1")
	if got := b.eval("document.cookie"); got != "_xsrf=t; SSO=mine; wide=1; SSO=secret" {
		t.Errorf("its scripts see %q", got)
	}
	b.open(web(1, 1, "/jobs"))
	says("the other before its login", "proxy-user=alice")
	b.open(web(1, 1, "/login?token=two"))
	says("the other after its login", "proxy-user=alice; login=two; _xsrf=t; SSO=mine; wide=1")
	b.open(web(1, 0, "/jobs"))
	says("through another router", "proxy-user=alice; login=one; _xsrf=t; SSO=mine; wide=1")

	b.eval(`new WebSocket(location.href.replace("http", "ws")).onmessage = e => document.title = e.data, ""`)
	b.until("the web socket says what it was sent", func() bool { return b.eval("document.title") != "AM" })
	if said := b.eval("document.title"); said != "proxy-user=alice; login=one; _xsrf=t; SSO=mine; wide=1" {
		t.Errorf("by a web socket the AM is sent %q", said)
	}
	b.open(web(0, 0, "/jobs"))
	says("after a web socket that set one", "proxy-user=alice; login=one; _xsrf=t; SSO=mine; wide=1; socket=1")

	b.eval(`document.cookie = "_xsrf=changed; path=" + ` +
		strconv.Quote("/proxy/"+ids[0].String()))
	b.open(web(0, 0, "/logout"))
	b.open(web(0, 0, "/jobs"))
	says("after its end and a script's change", "proxy-user=alice; SSO=mine; wide=1; socket=1")
	b.quiet()
}

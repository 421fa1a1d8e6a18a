// SPDX-License-Identifier: Apache-2.0

package webserver

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/creelrm/creel/internal/httpguard"
)

// headerLogin is a login whose ticket is a header.
type headerLogin struct{}

func (headerLogin) User(w http.ResponseWriter, r *http.Request) (httpguard.Login, bool) {
	if owner := r.Header.Get(delegation); owner != "" {
		return httpguard.Login{User: owner, RealUser: "oozie"}, true
	}
	user := r.Header.Get("Ticket")
	if user == "" {
		http.Error(w, "Authentication required", http.StatusUnauthorized)
	}
	return httpguard.Login{User: user, Ticket: true}, user != ""
}

// delegation is Hadoop's header for tokens.
const delegation = "X-Hadoop-Delegation-Token"

func TestTicketAloneNamesUser(t *testing.T) {
	seen := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.URL.RawQuery) })
	h := byTicket(seen, Config{Tickets: headerLogin{}, Open: []string{"/metrics", "/logLevel"}})
	for _, c := range []struct {
		method, target, ticket string
		status                 int
		query                  string
	}{
		{http.MethodGet, "/ws", "alice", 200, "user.name=alice"},
		{http.MethodGet, "/ws?a=1&user.name=root&b", "alice", 200, "a=1&b&user.name=alice"},
		{http.MethodGet, "/ws?user%2Ename=root&USER.name=hdfs", "alice", 200, "user.name=alice"},
		{http.MethodGet, "/ws?user.name=root;a", "alice", 200, "user.name=root;a&user.name=alice"},
		{http.MethodPut, "/ws?doAs=bob", "alice", 200, "doAs=bob&user.name=alice"},
		{http.MethodPut, "/ws?doas=bob/h1@EXAMPLE.ORG", "alice", 200, "doas=bob&user.name=alice"},
		{http.MethodGet, "/ws", "a+b c", 200, "user.name=a%2Bb+c"},
		{http.MethodGet, "/ws?" + strings.Repeat("a&", 10_000), "alice", 400, ""},
		{http.MethodGet, "/ws?user.name=root", "", 401, ""},
		{http.MethodOptions, "/ws", "", 401, ""},
		{http.MethodPost, "/ws?doAs=bob", "", 401, ""},
		{http.MethodGet, "/livez", "", 200, ""},
		{http.MethodGet, "/readyz?user.name=root", "", 200, ""},
		{http.MethodGet, "/metrics?user.name=root&doAs=bob&a", "", 200, "a"},
		{http.MethodGet, "/metrics/x", "", 401, ""},
		{http.MethodPost, "/metrics", "", 403, ""},
		{http.MethodGet, "/logLevel?log=x&level=DEBUG", "", 403, ""},
	} {
		r := httptest.NewRequest(c.method, c.target, nil)
		r.Header.Set("Ticket", c.ticket)
		// The cookie of simple authentication proves nothing.
		r.AddCookie(&http.Cookie{Name: cookieName, Value: "u=root&p=root&t=simple&e=9999999999999"})
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.status || w.Code == 200 && w.Body.String() != c.query {
			t.Errorf("%s %.60s: %d %q", c.method, c.target, w.Code, w.Body)
		}
	}
}

// A delegation token names its owner alone, and nothing behind the login sees it.
func TestTokenIsHiddenBehindLogin(t *testing.T) {
	var seen *http.Request
	h := byTicket(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r }), Config{Tickets: headerLogin{}})
	for _, c := range []struct{ target, query string }{
		{"/ws", "user.name=alice"},
		{"/ws?delegation=secret&a=1&%64elegation=secret", "a=1&user.name=alice"},
		{"/proxy/x?user.name=root&doAs=bob&DOAS=root&a", "a&user.name=alice"},
	} {
		r := httptest.NewRequest(http.MethodPost, c.target, nil)
		for _, name := range []string{delegation, "Hadoop-YARN-Auth-Delegation-Token"} {
			r.Header.Set(name, "alice")
		}
		seen = nil
		h.ServeHTTP(httptest.NewRecorder(), r)
		if seen == nil || seen.URL.RawQuery != c.query || len(seen.Header) != 0 {
			t.Fatalf("%s: the handler sees %+v", c.target, seen)
		}
		if got := httpguard.LoginOf(seen.Context()); got != (httpguard.Login{User: "alice", RealUser: "oozie"}) {
			t.Errorf("%s: the login is %+v", c.target, got)
		}
	}
	if r := httptest.NewRequest(http.MethodGet, "/ws", nil); httpguard.LoginOf(r.Context()) != (httpguard.Login{}) {
		t.Error("a request without a login has one")
	}
}

func TestPortDecidesOnDoAs(t *testing.T) {
	asked := ""
	may := func(real, effective string, from netip.Addr) error {
		asked = real + " for " + effective + " from " + from.String()
		if effective == "root" {
			return errors.New("not for root")
		}
		return nil
	}
	for _, c := range []struct {
		query, asked, want string
		ticket             bool
	}{
		{"a=1", "", "200 a=1&user.name=alice {alice  true}", true},
		{"doAs=bob&a=1", "alice for bob from 10.0.0.7", "200 a=1&user.name=bob {bob alice true}", true},
		{"DOAS=bob", "alice for bob from 10.0.0.7", "200 user.name=bob {bob alice true}", true},
		{"doAs=bob/h@R", "alice for bob from 10.0.0.7", "200 user.name=bob {bob alice true}", true},
		{"doAs=alice", "", "200 user.name=alice {alice  true}", true},
		{"doAs=", "", "200 user.name=alice {alice  true}", true},
		{"doAs=root", "alice for root from 10.0.0.7", "403 not for root\n", true},
		{"doAs=root&doAs=bob", "alice for root from 10.0.0.7", "403 not for root\n", true},
		{"doAs=root", "", "200 user.name=alice {alice  false}", false},
	} {
		asked = ""
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/ws?"+c.query, nil)
		r.RemoteAddr = "[::ffff:10.0.0.7]:1234"
		byTicket(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, r.URL.RawQuery, " ", httpguard.LoginOf(r.Context()))
		}), Config{Tickets: proves{httpguard.Login{User: "alice", Ticket: c.ticket}}, ActFor: may}).ServeHTTP(w, r)
		if got := fmt.Sprint(w.Code, " ", w.Body); got != c.want || asked != c.asked {
			t.Errorf("%s: %q after %q, want %q after %q", c.query, got, asked, c.want, c.asked)
		}
	}
}

// proves is a login that every request has.
type proves struct{ login httpguard.Login }

func (p proves) User(http.ResponseWriter, *http.Request) (httpguard.Login, bool) {
	return p.login, true
}

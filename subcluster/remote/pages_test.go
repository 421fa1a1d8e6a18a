// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/creelrm/creel/internal/gssapi"
	"github.com/creelrm/creel/internal/kerberos"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/login"
)

// secureMember returns a member whose web server accepts one cookie of the router, with the router's jar.
func secureMember(t *testing.T, served http.HandlerFunc) (*Member, *url.URL, http.CookieJar) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, err := r.Cookie("hadoop.auth"); err != nil || c.Value != "router" {
			w.Header().Set("WWW-Authenticate", "Negotiate")
			http.Error(w, "Authentication required", http.StatusUnauthorized)
			return
		}
		served(w, r)
	}))
	t.Cleanup(server.Close)
	conf, err := kerberos.ParseConfig("[libdefaults]\ndefault_realm = CREEL.TEST\n")
	if err != nil {
		t.Fatal(err)
	}
	router := gssapi.Principal{Names: []string{"router", "localhost"}, Realm: "CREEL.TEST"}
	p := NewPool(Config{User: "router", Ticket: &login.Ticket{Keytab: conf.LoginKeys(router, nil), Service: router}})
	t.Cleanup(func() { p.Close() })
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	m := p.Member(&subcluster.Status{Member: subcluster.Member{ID: "sc-1", Addresses: subcluster.Addresses{Web: at.Host}}})
	return m, at, p.http.Jar
}

// A router is the user of its caller at a member's web proxy, by the login that its other calls have. No cookie of an
// AM becomes a part of that login.
func TestPagesUseLoginOfRouter(t *testing.T) {
	m, at, jar := secureMember(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/proxy/") {
			w.Header().Set("Set-Cookie", "hadoop.auth=mallory; Path=/")
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Fprint(w, r.URL.RawQuery, " ", r.Header.Get("Cookie"), " ", string(body))
	})
	jar.SetCookies(at, []*http.Cookie{{Name: "hadoop.auth", Value: "router", Path: "/"}})
	transport := m.Pages(http.DefaultTransport)
	get := func(method, query, body string) (string, error) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, at.String()+"/proxy/application_1_1?"+query, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Cookie", "mine=1")
		answer, err := transport.RoundTrip(r)
		if err != nil {
			return "", err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		return string(text), err
	}
	for range 2 { // the second one after an AM has set a cookie
		if got, err := get(http.MethodGet, "q=1&user.name=alice", ""); err != nil || got != "q=1&doAs=alice mine=1; hadoop.auth=router " {
			t.Errorf("%q, %v", got, err)
		}
	}
	if got, err := get(http.MethodPut, "user.name=alice", "a body"); err != nil || got != "doAs=alice mine=1; hadoop.auth=router a body" {
		t.Errorf("%q, %v", got, err)
	}
	for _, query := range []string{"", "user.name=", "doAs=alice"} {
		if got, err := get(http.MethodGet, query, ""); !errors.Is(err, ErrNoUser) {
			t.Errorf("%q is served as the router: %q, %v", query, got, err)
		}
	}
}

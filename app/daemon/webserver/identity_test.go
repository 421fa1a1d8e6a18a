// SPDX-License-Identifier: Apache-2.0

package webserver

import (
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/creelrm/creel/internal/username"
)

// A client that named itself once is known by its cookie afterwards.
func TestCookieOfSimpleAuthentication(t *testing.T) {
	named := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s", r.URL.Query().Get("user.name"), r.URL.Query().Get("states"))
	})
	server := httptest.NewServer(identify(named, named, nil))
	defer server.Close()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	get := func(path string, cookie string) (int, string) {
		t.Helper()
		req, err := http.NewRequest(http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if cookie != "" {
			req.Header.Set("Cookie", cookie)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var b strings.Builder
		if err := resp.Write(&b); err != nil {
			t.Fatal(err)
		}
		_, body, _ := strings.Cut(b.String(), "\r\n\r\n")
		return resp.StatusCode, body
	}
	for _, c := range []struct{ path, cookie, want string }{
		{"/?states=A", "", " A"},                          // no user yet
		{"/?user.name=ann+lee&states=A", "", "ann lee A"}, // sets the cookie
		{"/?states=B", "", "ann lee B"},
		{"/", "", "ann lee "},
		{"/?user.name=bob", "", "bob "}, // the query wins, and changes it
		{"/", "", "bob "},
		{"/?states=A&user.name=svc/host%40REALM&b", "", "svc A"},
		{"/", "", "svc "},
	} {
		if code, body := get(c.path, c.cookie); code != http.StatusOK || body != c.want {
			t.Errorf("GET %s: %d %q, want %q", c.path, code, body, c.want)
		}
	}
	client.Jar = nil
	for _, c := range []struct{ cookie, want string }{
		{`hadoop.auth="u=ann&p=ann&t=simple&e=99999999999999&s=of-a-resource-manager="`, "ann "},
		{`hadoop.auth=u=ann&p=ann&t=simple&e=1`, " "}, // over
		{`hadoop.auth=u=ann&t=kerberos&e=99999999999999`, " "},
		{`hadoop.auth=nonsense`, " "},
		{`hadoop.auth=u=ann%40REALM&t=simple&e=99999999999999`, "ann "},
	} {
		if code, body := get("/", c.cookie); code != http.StatusOK || body != c.want {
			t.Errorf("cookie %s: %d %q, want %q", c.cookie, code, body, c.want)
		}
	}
	for _, path := range []string{"/?user.name=alice@", "/?user.name=root&DoAs=a%40b%40c"} {
		if code, body := get(path, ""); code != http.StatusBadRequest || !strings.Contains(body, "malformed user name") {
			t.Errorf("GET %s: %d %s", path, code, body)
		}
	}
	if code, _ := get("/?user.name=a%0ab", ""); code != http.StatusBadRequest {
		t.Errorf("a name with a line break: %d", code)
	}
}

// If anonymous requests are disallowed, a client without a name can read only the health pages.
func TestAnonymousRequestsAreRefusedBySetting(t *testing.T) {
	in := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "in") })
	handler := identify(in, anonymous(in, Config{RefuseAnonymous: true}), nil)
	for path, want := range map[string]int{
		"/ws/v1/cluster":               http.StatusForbidden,
		"/conf":                        http.StatusForbidden,
		"/ws/v1/cluster?user.name=ann": http.StatusOK,
		"/livez":                       http.StatusOK,
		"/readyz?verbose":              http.StatusOK,
	} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != want {
			t.Errorf("GET %s answers %d, want %d", path, w.Code, want)
		}
	}
}

func TestShortNamesInQueries(t *testing.T) {
	for raw, want := range map[string]string{
		"":                          "",
		"user.name=alice&a=b@c":     "user.name=alice&a=b@c",
		"a=%2f&user.name=alice@R&b": "a=%2f&user.name=alice&b",
		"user.name=svc%2Fh%40R&DOAS=bob%40R&user.name=x/y": "user.name=svc&DOAS=bob&user.name=x",
	} {
		if got, err := shortNames(raw, nil); got != want || err != nil {
			t.Errorf("%s is %s, %v; want %s", raw, got, err, want)
		}
	}
}

func TestUsersByRulesAreNamedInRequests(t *testing.T) {
	rules, err := username.ParseRules("RULE:[1:$1@$0](.*@REALM)s/@.*/_r/", "hadoop", "")
	if err != nil {
		t.Fatal(err)
	}
	named := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.URL.Query().Get("user.name"), " ", r.URL.Query().Get("doAs"))
	})
	handler := identify(named, named, rules)
	const none = "400 no rule of hadoop.security.auth_to_local applies to user name "
	for query, want := range map[string]string{
		"user.name=ann@REALM":               "200 ann_r ",
		"user.name=ann&doAs=bob%40REALM":    "200 ann bob_r",
		"user.name=ann%40OTHER":             none + `"ann@OTHER"`,
		"user.name=ann&DoAs=svc/host@REALM": none + `"svc/host@REALM"`,
	} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/?"+query, nil))
		if got := fmt.Sprint(w.Code, " ", strings.TrimSuffix(w.Body.String(), "\n")); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}

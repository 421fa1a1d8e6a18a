// SPDX-License-Identifier: Apache-2.0

package login

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/creelrm/creel/internal/gssapi"
)

func principal(t *testing.T, text string) gssapi.Principal {
	t.Helper()
	p, err := gssapi.ParsePrincipal(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestSimpleLoginNamesBothUsers(t *testing.T) {
	l := &Login{User: "creel"}
	for user, want := range map[string][2]string{"alice": {"alice", "creel"}, "creel": {"creel", ""}, "": {"creel", ""}} {
		if got := l.RPC("rm:8032", user); got.User != want[0] || got.RealUser != want[1] || got.Kerberos != nil {
			t.Errorf("%q: %+v", user, got)
		}
	}
	if got := (&Login{}).RPC("rm:8032", "alice"); got.User != "alice" || got.RealUser != "" {
		t.Errorf("without a name: %+v", got)
	}
	if base, jar := l.Web(http.DefaultTransport); base != http.DefaultTransport || jar != nil {
		t.Error("simple authentication changes calls by HTTP")
	}
	if l.Accepts() != nil {
		t.Error("simple authentication demands protections")
	}
}

func TestTicketIsForThePrincipalOfTheAddress(t *testing.T) {
	for _, c := range []struct{ service, host, protocol, serverID, want, why string }{
		{"rm/_HOST@R", "rm1.test", "rm", "rm1.test", "rm/rm1.test@R", ""},
		{"rm/_HOST@R", "RM1.test", "rm", "rm1.test", "rm/rm1.test@R", ""},
		{"rm/_HOST@R", "rm1.test", "rm", "rm2.test", "", "expected is rm/rm1.test@R"},
		{"rm/_HOST@R", "rm1.test", "yarn", "rm1.test", "", "expected is rm/rm1.test@R"},
		{"rm/all@R", "rm1.test", "rm", "all", "rm/all@R", ""},
		{"rm/all@R", "10.0.0.1", "rm", "all", "rm/all@R", ""},
		{"rm/_HOST@R", "127.0.0.1", "rm", "localhost", "rm/localhost@R", ""},
		{"rm/_HOST@R", "127.0.0.2", "rm", "localhost", "", "not the name of this address"},
		{"rm/_HOST@R", "127.0.0.1", "rm", "", "", "needs the name of a host"},
	} {
		got, err := (&Ticket{Service: principal(t, c.service)}).service(c.host, c.protocol, c.serverID)
		switch {
		case c.why == "" && (err != nil || got.String() != c.want):
			t.Errorf("%+v: %s, %v", c, got, err)
		case c.why != "" && (err == nil || !strings.Contains(err.Error(), c.why)):
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// sent is a transport that keeps the query of its request.
type sent struct{ query string }

func (s *sent) RoundTrip(r *http.Request) (*http.Response, error) {
	s.query = r.URL.RawQuery
	return nil, http.ErrServerClosed
}

func TestUserOfACallBecomesDoAs(t *testing.T) {
	for query, want := range map[string]string{
		"user.name=alice":                       "doAs=alice",
		"user.name=alice&a=b+c":                 "a=b+c&doAs=alice",
		"user.name=router&limit=3":              "limit=3",
		"limit=3":                               "limit=3",
		"":                                      "",
		"doAs=root&user.name=alice":             "doAs=alice",
		"DOAS=root&user.name=alice":             "doAs=alice",
		"%64oAs=root&user.name=alice":           "doAs=alice",
		"doAs=root":                             "",
		"doAs=root;a&user.name=alice":           "doAs=alice",
		"doAs=root%zz&user.name=alice":          "doAs=alice",
		"user.name=alice&user.name=root":        "doAs=alice",
		"user.name=a%26doAs%3Droot&x=1":         "x=1&doAs=a%26doAs%3Droot",
		strings.Repeat("a&", 10_000):            "refused",
		strings.Repeat("a&", 10_000) + "b=root": "refused",
	} {
		s := &sent{query: "refused"}
		r := &http.Request{URL: &url.URL{Host: "rm", RawQuery: query}}
		(&actingFor{s, "router"}).RoundTrip(r)
		if s.query != want {
			t.Errorf("%.60q: %q, want %q", query, s.query, want)
		}
	}
}

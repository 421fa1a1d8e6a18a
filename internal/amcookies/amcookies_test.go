// SPDX-License-Identifier: Apache-2.0

package amcookies

import (
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/creelrm/creel"
)

var one, other = creel.ApplicationID{ClusterTimestamp: 1, ID: 1}, creel.ApplicationID{ClusterTimestamp: 1, ID: 10001}

// browser keeps cookies as browsers do, by path.
type browser struct {
	t   *testing.T
	jar http.CookieJar
}

func newBrowser(t *testing.T) *browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{t, jar}
}

func (b *browser) at(path string) *url.URL {
	at, err := url.Parse("https://site.example" + path)
	if err != nil {
		b.t.Fatal(err)
	}
	return at
}

// sends is the header of a request.
func (b *browser) sends(path string) http.Header {
	r := http.Request{Header: http.Header{}}
	for _, c := range b.jar.Cookies(b.at(path)) {
		r.AddCookie(c)
	}
	return r.Header
}

// sets stores the cookies of a response unchanged.
func (b *browser) sets(path string, header http.Header) {
	b.jar.SetCookies(b.at(path), (&http.Response{Header: header}).Cookies())
}

// visit requests an AM's page through a router and the home's proxy. The AM responds with the given cookies. It
// returns the cookies that the AM received.
func (b *browser) visit(app creel.ApplicationID, below string, lines ...string) (sent string) {
	path := "/proxy/" + app.String() + below
	router := Of(app, b.sends(path))
	toHome := http.Header{}
	if s := router.ToHome(); s != "" {
		toHome.Set("Cookie", s)
	}
	home := Of(app, toHome)
	sent = home.ToAM()
	answer := http.Header{"Set-Cookie": lines}
	home.Answer(answer)
	once := slices.Clone(answer["Set-Cookie"])
	router.Answer(answer)
	if !slices.Equal(once, answer["Set-Cookie"]) {
		b.t.Errorf("the rule applied to what it made: %q, was %q", answer["Set-Cookie"], once)
	}
	for _, line := range answer["Set-Cookie"] {
		name, rest, _ := strings.Cut(line, "=")
		if strings.Count(strings.ToLower(rest), "path") != 1 || !strings.Contains(rest, "; Path=/proxy/"+app.String()) ||
			strings.Contains(strings.ToLower(rest), "domain") || strings.ContainsFunc(line, control) ||
			name == "" || strings.ContainsAny(name, " \t\"é") || len(line) > bytes+100 || ours(strings.TrimSpace(name)) ||
			strings.HasPrefix(name, mark) && (!strings.HasSuffix(line, "; HttpOnly") || ours(name[len(mark):])) {
			b.t.Errorf("of %q browsers are told %q", lines, line)
		}
	}
	b.sets(path, answer)
	return sent
}

// An AM receives the cookies it set, on all its pages and nowhere else, until it deletes them.
func TestAnAMGetsItsCookiesBack(t *testing.T) {
	b := newBrowser(t)
	value := `login=2|1:0|10:ab==; Path=/ui/; Domain=site.example; HttpOnly; SameSite=Lax`
	if sent := b.visit(one, "/login", value, "_xsrf=t; Max-Age=3600"); sent != "" {
		t.Errorf("at first it is sent %q", sent)
	}
	for _, below := range []string{"", "/", "/deep/below"} {
		sent := strings.Split(b.visit(one, below), "; ")
		if slices.Sort(sent); !slices.Equal(sent, []string{"_xsrf=t", "login=2|1:0|10:ab=="}) {
			t.Errorf("at %q it is sent %q", below, sent)
		}
	}
	// Its number starts with the other application's number.
	if sent := b.visit(other, "/"); sent != "" {
		t.Errorf("another AM is sent %q", sent)
	}
	if sent := Of(other, b.sends("/proxy/"+one.String())).ToAM(); sent != "" {
		t.Errorf("another AM is sent %q, were the browser to show its cookies there", sent)
	}
	for _, path := range []string{"/", "/proxy/", "/ws/v1/cluster/apps"} {
		if got := b.sends(path); len(got) > 0 {
			t.Errorf("at %s the browser sends %v", path, got)
		}
	}
	b.visit(one, "/", "login=new")
	b.visit(one, "/", "_xsrf=; Max-Age=0")
	if sent := b.visit(one, "/"); sent != "login=new" {
		t.Errorf("after a change and an end it is sent %q", sent)
	}
	b.visit(one, "/", "login=; Expires=Thu, 01 Jan 1970 00:00:00 GMT")
	if sent := b.sends("/proxy/" + one.String()); len(sent) > 0 {
		t.Errorf("after the end of all the browser sends %v", sent)
	}
}

// An AM receives only cookies that it set, and cannot set reserved ones.
func TestAnAMSeesNoCookiesOfOthers(t *testing.T) {
	const secret = "s3cr3t"
	names := []string{"hadoop.auth", "proxy-user", "SSO", "__Secure-login", "creel-am-x", "a"}
	for _, lines := range [][]string{
		nil,
		{"SSO=mine"},
		{"SSO=mine; Max-Age=0"},
		{"SSO="},
		{"SSO=mine", "SSO=" + "x; Max-Age=0", "a=b"},
		{"hadoop.auth=mine", "proxy-user=admin", " hadoop.auth =mine", "hadoop.auth\t=mine"},
		{"=hadoop.auth=mine", "hadoop.auth", "=SSO", "SSO", "", ";", "="},
		{"creel-am-SSO=AAAA", "creel-am-hadoop.auth=AAAA", "creel-am-creel-am-SSO=AAAA"},
		{"x=1; Path=/", "y=1; Path=/; Domain=example", "z=1; path=/ws", "u=1; Path=/proxy/" + other.String()},
		{"a=1\r\nSet-Cookie: SSO=x; Path=/", "b=1; Path=/\x00", "c=1; Max-Age=1\x01; Path=/"},
		{"a=1; Expires=x; Path=/", "a=1; SameSite=None; Path=/; Domain=.example", "a=1;Path=/;path = /ws"},
		{"a=" + strings.Repeat("x", bytes), "b=1; SameSite=" + strings.Repeat("x", 2*bytes)},
		{"a b=1", `"a=1`, "é=1"},
	} {
		b := newBrowser(t)
		before := http.Header{}
		for _, name := range names {
			before.Add("Set-Cookie", name+"="+secret+"; Path=/; Secure")
		}
		b.sets("/", before)
		for range 2 {
			sent := b.visit(one, "/", lines...)
			for _, bad := range []string{secret, "hadoop.auth", "proxy-user", mark} {
				if strings.Contains(sent, bad) {
					t.Errorf("an AM that sets %q is sent %q", lines, sent)
				}
			}
		}
		if there := b.sends("/proxy/" + other.String()).Get("Cookie"); len(strings.Split(there, ";")) != len(names) {
			t.Errorf("an AM sets %q, and browsers send elsewhere %q", lines, there)
		}
		here := b.sends("/proxy/" + one.String() + "/")["Cookie"]
		if s := strings.Join(here, ";"); strings.Count(s, "hadoop.auth=")-strings.Count(s, mark+"hadoop.auth=") != 1 {
			t.Errorf("an AM sets %q, and browsers send the router %q", lines, s)
		}
	}
}

// Cookies that a browser makes up: other cookies' marks, marks without value, in any order.
func TestMarksAreOfOnePair(t *testing.T) {
	own := AMCookies{app: one.String()}
	m := own.markOf(cookie{"a", "1"})
	fits := m.name + "=" + m.value
	for _, c := range []struct{ sent, want string }{
		{"a=1", ""},
		{"a=1; " + fits, "a=1"},
		{fits + "; a=1", "a=1"},
		{"a=2; a=1; " + fits, "a=1"}, // the other is of a path above
		{"a=1; a=1; " + fits, "a=1"},
		{"a=2; " + fits, ""},
		{"b=1; " + fits, ""},
		{"A=1; " + fits, ""},
		{"a=1; " + strings.ToUpper(fits), ""},
		{"a=1; creel-am-a=; creel-am-a", ""},
		{fits, ""},
		{";;=; a ;" + fits, ""},
	} {
		got := Of(one, http.Header{"Cookie": {c.sent}})
		if got.ToAM() != c.want {
			t.Errorf("a browser sends %q, the AM gets %q, want %q", c.sent, got.ToAM(), c.want)
		}
		if got := Of(other, http.Header{"Cookie": {c.sent}}); got.ToAM() != "" || got.ToHome() != "" {
			t.Errorf("a browser sends %q, another AM gets %q", c.sent, got.ToAM())
		}
	}
	if got := Of(one, http.Header{"Cookie": {"a=1", fits}}).ToHome(); got != "a=1; "+fits {
		t.Errorf("the home gets %q", got)
	}
	n := own.markOf(cookie{"a", "2"})
	if got := Of(one, http.Header{"Cookie": {"a=2; a=1; " + fits + "; " + n.name + "=" + n.value}}).ToAM(); got != "a=2" {
		t.Errorf("of two with a name the AM gets %q", got)
	}
	// A script of some page makes marks; ours are not the AM's all the same.
	for _, name := range []string{"hadoop.auth", "proxy-user"} {
		m := own.markOf(cookie{name, "x"})
		if got := Of(one, http.Header{"Cookie": {name + "=x; " + m.name + "=" + m.value}}); got.ToAM() != "" {
			t.Errorf("with a mark of %s the AM gets %q", name, got.ToAM())
		}
	}
}

// An AM has so many cookies and bytes, over all its answers.
func TestAnAMsCookiesAreBounded(t *testing.T) {
	b := newBrowser(t)
	for i := range 3 * most {
		b.visit(one, "/", fmt.Sprintf("c%d=1", i), fmt.Sprintf("d%d=1", i))
	}
	sent := strings.Split(b.visit(one, "/", "c0=2", "more=1"), "; ")
	if len(sent) != most {
		t.Errorf("it is sent %d cookies", len(sent))
	}
	if sent := b.visit(one, "/"); !strings.Contains(sent, "c0=2") || strings.Contains(sent, "more") {
		t.Errorf("after a change of one it is sent %q", sent)
	}
	b = newBrowser(t)
	for i := range 4 {
		b.visit(one, "/", fmt.Sprintf("c%d=%s", i, strings.Repeat("x", bytes/3)))
	}
	if sent := b.visit(one, "/"); len(sent) > bytes {
		t.Errorf("it is sent %d bytes", len(sent))
	}
	if sent := Of(one, http.Header{"Cookie": {strings.Repeat("a=1; ", 100000)}}).ToAM(); sent != "" {
		t.Errorf("of many cookies the AM gets %d bytes", len(sent))
	}
}

// SPDX-License-Identifier: Apache-2.0

// Package amcookies decides which cookies pass between browsers and the pages of AMs, which web proxies serve below
// /proxy/ID. An AM is a program of any user. Creel, other AMs, and perhaps another login of the site use the same
// address.
//
// Browsers store an AM's cookie for /proxy/ID only, together with a second cookie, its mark: a hash of the cookie,
// hidden from scripts. Only cookies with a matching mark are forwarded to the AM. So an AM receives exactly the cookies
// that it set, even if it sets a name that another program uses. Proxies store no state. A cookie set by a page's
// script carries no mark, and remains in the browser.
//
// The rule may be applied several times on one path: a router applies it to responses that the home subcluster's proxy
// already processed.
package amcookies

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"

	"github.com/creelrm/creel"
)

// mark is the prefix of the names of marks.
const mark = "creel-am-"

// Bounds on one AM: the number of its cookies, and the bytes of their names and values. Servers on the way accept only
// a few KB of headers.
const (
	most  = 20
	bytes = 8192
)

// AMCookies are the cookies of one request that the application's AM set itself.
type AMCookies struct {
	app     string
	cookies []cookie
}

// cookie is a cookie as text, because the AM chooses its value.
type cookie struct{ name, value string }

// Of returns the cookies of a request that the AM set.
func Of(app creel.ApplicationID, request http.Header) AMCookies {
	o := AMCookies{app: app.String()}
	var sent []cookie
	marks := map[cookie]bool{}
	for _, line := range request["Cookie"] {
		for pair := range strings.SplitSeq(line, ";") {
			c, named := parse(pair)
			switch {
			case !named:
			case strings.HasPrefix(c.name, mark):
				marks[c] = true
			case !ours(c.name):
				sent = append(sent, c)
			}
		}
	}
	for _, c := range sent {
		// If cookies share a name, the first one belongs to the longest path.
		if marks[o.markOf(c)] && o.at(c.name) < 0 {
			o.put(c)
		}
	}
	return o
}

// ToAM returns the Cookie header sent to the AM, "" for none.
func (o AMCookies) ToAM() string {
	var b strings.Builder
	for _, c := range o.cookies {
		if b.Len() > 0 {
			b.WriteString("; ")
		}
		b.WriteString(c.name + "=" + c.value)
	}
	return b.String()
}

// ToHome returns the Cookie header sent to the home subcluster's web proxy, "" for none. It includes the marks,
// because that proxy checks them too.
func (o AMCookies) ToHome() string {
	with := AMCookies{}
	for _, c := range o.cookies {
		with.cookies = append(with.cookies, c, o.markOf(c))
	}
	return with.ToAM()
}

// Answer replaces the cookies that an answer sets by the permitted ones, with their marks.
func (o AMCookies) Answer(answer http.Header) {
	set := answer["Set-Cookie"]
	answer.Del("Set-Cookie")
	o.cookies = slices.Clone(o.cookies)
	for _, line := range set {
		first, rest, _ := strings.Cut(line, ";")
		c, named := parse(first)
		if !named || ours(c.name) || strings.HasPrefix(c.name, mark) || len(line) > bytes ||
			strings.ContainsFunc(line, control) || !o.put(c) {
			continue
		}
		attributes, hidden := "; Path=/proxy/"+o.app, ""
		for a := range strings.SplitSeq(rest, ";") {
			a = strings.Trim(a, " \t")
			name, _, _ := strings.Cut(a, "=")
			switch strings.ToLower(strings.Trim(name, " \t")) {
			case "httponly":
				hidden = "; HttpOnly"
			case "expires", "max-age", "secure", "samesite":
				attributes += "; " + a
			}
		}
		m := o.markOf(c)
		answer.Add("Set-Cookie", c.name+"="+c.value+attributes+hidden)
		answer.Add("Set-Cookie", m.name+"="+m.value+attributes+"; HttpOnly")
	}
}

func (o AMCookies) at(name string) int {
	return slices.IndexFunc(o.cookies, func(c cookie) bool { return c.name == name })
}

// put stores a cookie, and replaces one with the same name. It returns false if the AM's cookies would exceed the
// bounds.
func (o *AMCookies) put(c cookie) bool {
	at, size := o.at(c.name), len(c.name)+len(c.value)
	for i, x := range o.cookies {
		if i != at {
			size += len(x.name) + len(x.value)
		}
	}
	switch {
	case size > bytes || at < 0 && len(o.cookies) == most:
		return false
	case at < 0:
		o.cookies = append(o.cookies, c)
	default:
		o.cookies[at] = c
	}
	return true
}

// markOf returns the mark of a cookie that the AM sets.
func (o AMCookies) markOf(c cookie) cookie {
	sum := sha256.Sum256([]byte(o.app + " " + c.name + "=" + c.value))
	return cookie{mark + c.name, base64.RawURLEncoding.EncodeToString(sum[:16])}
}

// parse reads name=value like a browser. A pair without a name is rejected: a browser sends its value alone, which may
// look like another cookie.
func parse(pair string) (c cookie, named bool) {
	name, value, found := strings.Cut(pair, "=")
	c = cookie{strings.Trim(name, " \t"), strings.Trim(value, " \t")}
	return c, found && c.name != "" && !strings.ContainsFunc(c.name, notInNames)
}

// ours reports whether a name is reserved: the login cookie of Hadoop's and creel's pages, and the user name that a
// proxy sends to AMs. AMs can neither set nor receive such cookies.
func ours(name string) bool { return name == "hadoop.auth" || name == "proxy-user" }

func control(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

func notInNames(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
}

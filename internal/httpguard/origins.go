// SPDX-License-Identifier: Apache-2.0

package httpguard

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Origins are the pages of other servers that may read the answers in their visitors' browsers. They follow Hadoop's
// cross-origin filter (hadoop.http.cross-origin.*). The zero value permits none.
type Origins struct {
	all              bool
	exact            []string
	patterns         []*regexp.Regexp
	methods, headers []string
	age              string
}

// NewOrigins reads the lists. An origin has the form of browsers (https://host:port), and may contain * for any text. A
// single * means all, and "regex:" precedes a regular expression. An invalid expression returns an error that names it.
func NewOrigins(origins, methods, headers []string, age time.Duration) (*Origins, error) {
	o := &Origins{methods: methods, headers: headers, age: strconv.Itoa(int(age / time.Second))}
	for _, origin := range origins {
		text, isPattern := strings.CutPrefix(origin, "regex:")
		switch {
		case origin == "*":
			o.all = true
			continue
		case isPattern:
		case strings.Contains(origin, "*"):
			text = strings.ReplaceAll(regexp.QuoteMeta(origin), `\*`, ".*")
		default:
			o.exact = append(o.exact, origin)
			continue
		}
		p, err := regexp.Compile("^(?:" + text + ")$")
		if err != nil {
			return nil, fmt.Errorf("%q is no regular expression", text)
		}
		o.patterns = append(o.patterns, p)
	}
	return o, nil
}

// Wrap adds CORS headers to responses. It serves every request: the browser withholds the response from a page that may
// not read it.
func (o *Origins) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Origin")
		if origin := r.Header.Get("Origin"); origin != "" && o.allows(origin, r) {
			h := w.Header()
			h.Set("Access-Control-Allow-Origin", origin)
			h.Set("Access-Control-Allow-Credentials", "true")
			h.Set("Access-Control-Allow-Methods", strings.Join(o.methods, ","))
			h.Set("Access-Control-Allow-Headers", strings.Join(o.headers, ","))
			h.Set("Access-Control-Max-Age", o.age)
		}
		next.ServeHTTP(w, r)
	})
}

func (o *Origins) allows(origins string, r *http.Request) bool {
	if !o.all && !slices.ContainsFunc(strings.Fields(origins), o.knows) {
		return false
	}
	if m := r.Header.Get("Access-Control-Request-Method"); m != "" && !slices.Contains(o.methods, m) {
		return false
	}
	for name := range strings.SplitSeq(r.Header.Get("Access-Control-Request-Headers"), ",") {
		// Browsers write names in lower case, and header names ignore case.
		of := func(x string) bool { return strings.EqualFold(x, strings.TrimSpace(name)) }
		if strings.TrimSpace(name) != "" && !slices.ContainsFunc(o.headers, of) {
			return false
		}
	}
	return true
}

func (o *Origins) knows(origin string) bool {
	return slices.Contains(o.exact, origin) ||
		slices.ContainsFunc(o.patterns, func(p *regexp.Regexp) bool { return p.MatchString(origin) })
}

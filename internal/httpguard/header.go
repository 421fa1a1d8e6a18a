// SPDX-License-Identifier: Apache-2.0

package httpguard

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
)

// RequiredHeader is the header that browsers must send with changes, as Hadoop's RestCsrfPreventionFilter demands: a
// page of another site cannot add it.
type RequiredHeader struct {
	name     string
	methods  []string // that need no header
	browsers []*regexp.Regexp
}

// NewRequiredHeader makes it. methods need no header. agents are regular expressions of a browser's whole User-Agent;
// clients with another one need no header.
func NewRequiredHeader(name string, methods, agents []string) (*RequiredHeader, error) {
	h := &RequiredHeader{name: name, methods: methods}
	for _, agent := range agents {
		browser, err := regexp.Compile("^(?:" + agent + ")$")
		if err != nil {
			return nil, fmt.Errorf("%q is no regular expression", agent)
		}
		h.browsers = append(h.browsers, browser)
	}
	return h, nil
}

// Wrap rejects requests without the header, with Hadoop's answer. A browser that reports a page of this server as the
// sender passes, so that the dashboard works. No page can change that report.
func (h *RequiredHeader) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.lacks(r) && r.Header.Get("Sec-Fetch-Site") != "same-origin" {
			http.Error(w, "Missing Required Header for CSRF Vulnerability Protection: "+h.name, http.StatusBadRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// lacks reports whether a browser's request needs the header and has none.
func (h *RequiredHeader) lacks(r *http.Request) bool {
	agent := r.Header.Get("User-Agent")
	browser := slices.ContainsFunc(h.browsers, func(b *regexp.Regexp) bool { return b.MatchString(agent) })
	return browser && agent != "" && !slices.Contains(h.methods, r.Method) && len(r.Header.Values(h.name)) == 0
}

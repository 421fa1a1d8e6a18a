// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"net/http"
	"strings"
)

// kept gives a long document again while nothing happened that it would show,
// as the daemon tells: the documents that dashboards poll are of thousands of
// nodes and applications, and cost milliseconds to make.
func (o *Door) kept(make http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		packed := strings.Contains(r.Header.Get("Accept-Encoding"), "gzip")
		key := strings.Join([]string{o.caller(r).User, r.URL.Path, r.URL.RawQuery, contentType(r), map[bool]string{true: "packed"}[packed]}, "\x00")
		if body := o.d.Kept(key); body != nil {
			h := w.Header()
			h.Set("Content-Type", contentType(r))
			h.Set("Vary", "Accept-Encoding")
			if packed {
				h.Set("Content-Encoding", "gzip")
			}
			w.Write(body) // an error here is the client's going away
			return
		}
		version := o.d.Changes()
		c := &copying{ResponseWriter: w}
		make(c, r)
		if c.status == http.StatusOK && (w.Header().Get("Content-Encoding") == "gzip") == packed {
			o.d.Keep(key, version, c.body)
		}
	}
}

// copying is a response of which a copy is kept.
type copying struct {
	http.ResponseWriter
	status int
	body   []byte
}

func (c *copying) WriteHeader(status int) {
	c.status = status
	c.ResponseWriter.WriteHeader(status)
}

func (c *copying) Write(b []byte) (int, error) {
	c.body = append(c.body, b...)
	return c.ResponseWriter.Write(b)
}

// SPDX-License-Identifier: Apache-2.0

package webserver

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"
)

// slowest is the minimum speed of a request body in bytes a second, after the time permitted for headers. maxBodyTime
// limits bodies of unknown length.
const (
	slowest     = 64 << 10
	maxBodyTime = time.Minute
)

// connKey is the key of the connection in a request's context.
type connKey struct{}

// boundBodies closes connections whose bodies arrive too slowly. Otherwise a handler that reads a body, and the
// server that reads its rest, would hang.
func boundBodies(next http.Handler, first time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _ := r.Context().Value(connKey{}).(*conn)
		if c != nil {
			c.came()
		}
		if r.Body == nil || r.ContentLength == 0 {
			next.ServeHTTP(w, r)
			return
		}
		limit := maxBodyTime
		if r.ContentLength > 0 {
			limit = first + time.Duration(min(r.ContentLength, 1<<32))*time.Second/slowest
		}
		control := http.NewResponseController(w)
		if control.SetReadDeadline(time.Now().Add(limit)) == nil {
			bound := *r // the server needs its own body in its own request
			body := &boundBody{ReadCloser: r.Body, control: control, conn: c}
			bound.Body = body
			r = &bound
			defer body.left()
		}
		next.ServeHTTP(w, r)
	})
}

// boundBody removes the limit once the whole body has arrived. The server keeps reading while it serves the request,
// to detect that the client has gone.
type boundBody struct {
	io.ReadCloser
	control *http.ResponseController
	conn    *conn // nil for another listener
	ended   bool  // all of it has arrived
	slow    bool  // its time expired first
}

// left is called after the handler has returned: the server then reads the rest of the body.
func (b *boundBody) left() {
	if b.conn != nil && !b.ended {
		b.conn.waited()
	}
}

func (b *boundBody) Read(p []byte) (int, error) {
	if b.conn != nil && !b.ended {
		b.conn.waited()
		defer b.conn.came()
	}
	n, err := b.ReadCloser.Read(p)
	if b.conn != nil && !b.slow && errors.Is(err, os.ErrDeadlineExceeded) {
		b.slow = true
		b.conn.l.told.tooSlow(b.conn, "its body took too long")
	}
	if err == io.EOF {
		b.ended = true
		b.control.SetReadDeadline(time.Time{}) // an error means that the client has gone
	}
	return n, err
}

// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// RESTOptions is a load of HTTP requests, one at a time on each connection.
type RESTOptions struct {
	Options
	URL    string // http://host:port/path?query
	Method string // "": GET
	Body   string // of each request, JSON
	Accept string // "": application/json
}

// RESTResult is the report about HTTP in addition to latency.
type RESTResult struct {
	BytesEach float64 `json:"bytes_each"` // of an answer's body
}

// statusError is an answer that is not 2xx.
type statusError int

func (s statusError) Error() string { return fmt.Sprintf("%d %s", int(s), http.StatusText(int(s))) }

// REST runs the load. It has a small client of its own: net/http's passes each request between goroutines, which
// costs more than most answers do.
func REST(ctx context.Context, o RESTOptions) (*Result, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Scheme != "http" || u.Host == "" {
		return nil, badOption("URL %q: give http://host:port/path", o.URL)
	}
	address := u.Host
	if u.Port() == "" {
		address = net.JoinHostPort(u.Hostname(), "80")
	}
	o.Plan.InFlight = o.Plan.Connections
	if err := o.check(address); err != nil {
		return nil, err
	}
	head := o.head(u)
	conns := make([]*webConn, o.Plan.InFlight)
	var bytes atomic.Int64
	m := newMeter(o.PIDs)
	err = drive(ctx, o.Plan, m, func(ctx context.Context, w int, _ int64, _ time.Time) error {
		if conns[w] == nil {
			c, err := dialWeb(ctx, address)
			if err != nil {
				return err
			}
			conns[w] = c
		}
		n, keep, err := conns[w].do(head)
		bytes.Add(n)
		if !keep {
			conns[w].close()
			conns[w] = nil
		}
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	})
	var all int64
	for _, c := range conns {
		if c != nil {
			all += c.answers
			c.close()
		}
	}
	r := m.result("rest "+u.Path, o.URL, o.Plan)
	r.REST = &RESTResult{}
	if all > 0 {
		r.REST.BytesEach = round(float64(bytes.Load()) / float64(all))
	}
	return r, err
}

// head returns the bytes of each request.
func (o *RESTOptions) head(u *url.URL) []byte {
	method, accept := o.Method, o.Accept
	if method == "" {
		method = http.MethodGet
	}
	if accept == "" {
		accept = "application/json"
	}
	target := u.RequestURI()
	if o.User != "" && !strings.Contains(u.RawQuery, "user.name=") {
		if u.RawQuery == "" {
			target += "?"
		} else {
			target += "&"
		}
		target += "user.name=" + url.QueryEscape(o.User)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\nAccept: %s\r\n", method, target, u.Host, accept)
	if o.Body != "" {
		fmt.Fprintf(&b, "Content-Type: application/json\r\n")
	}
	if o.Body != "" || method != http.MethodGet {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(o.Body))
	}
	b.WriteString("\r\n" + o.Body)
	return b.Bytes()
}

type webConn struct {
	c       net.Conn
	r       *bufio.Reader
	unhook  func() bool
	answers int64
}

func dialWeb(ctx context.Context, address string) (*webConn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &webConn{
		c:      c,
		r:      bufio.NewReaderSize(c, 64<<10),
		unhook: context.AfterFunc(ctx, func() { _ = c.Close() }),
	}, nil
}

func (w *webConn) close() {
	w.unhook()
	_ = w.c.Close()
}

// do makes one request; keep reports whether the connection can be reused.
func (w *webConn) do(head []byte) (n int64, keep bool, err error) {
	if _, err := w.c.Write(head); err != nil {
		return 0, false, err
	}
	h, err := readHead(w.r)
	if err != nil {
		return 0, false, err
	}
	switch {
	case h.chunked:
		if n, err = io.Copy(io.Discard, httputil.NewChunkedReader(w.r)); err == nil {
			_, err = readLine(w.r) // the end of an empty trailer
		}
	case h.length >= 0:
		var skipped int
		skipped, err = w.r.Discard(int(h.length)) // avoids the allocations of io.CopyN
		n = int64(skipped)
	case h.status != http.StatusNoContent && h.status != http.StatusNotModified:
		h.close = true
		n, err = io.Copy(io.Discard, w.r)
	}
	w.answers++
	if err == nil && (h.status < 200 || h.status > 299) {
		return n, !h.close, statusError(h.status)
	}
	return n, err == nil && !h.close, err
}

// webHead is the part of a response's header that decides how to continue. It is parsed by hand, because net/http's
// maps and strings cost more than the measured work.
type webHead struct {
	status  int
	length  int64 // -1: unknown
	chunked bool
	close   bool
}

var errHead = errors.New("an answer that is not HTTP/1")

func readHead(r *bufio.Reader) (h webHead, err error) {
	h.length = -1
	line, err := readLine(r)
	if err != nil {
		return h, err
	}
	if !bytes.HasPrefix(line, []byte("HTTP/1.")) || len(line) < 12 || line[8] != ' ' {
		return h, errHead
	}
	for _, c := range line[9:12] {
		if c < '0' || c > '9' {
			return h, errHead
		}
		h.status = 10*h.status + int(c-'0')
	}
	h.close = line[7] == '0'
	for {
		line, err = readLine(r)
		if err != nil || len(line) == 0 {
			return h, err
		}
		colon := bytes.IndexByte(line, ':')
		if colon < 0 {
			return h, errHead
		}
		name := line[:colon]
		switch colon { // most headers are recognized by the length of their name
		case len("Connection"), len("Content-Length"), len("Transfer-Encoding"):
		default:
			continue
		}
		value := bytes.TrimSpace(line[colon+1:])
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if h.length, err = strconv.ParseInt(string(value), 10, 64); err != nil || h.length < 0 {
				return h, errHead
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			h.chunked = true
		case bytes.EqualFold(name, []byte("Connection")):
			h.close = bytes.EqualFold(value, []byte("close"))
		}
	}
}

// readLine reads a line without its end; it is valid until the next read.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	if n := len(line) - 2; n >= 0 && line[n] == '\r' {
		return line[:n], nil
	}
	return line[:len(line)-1], nil
}

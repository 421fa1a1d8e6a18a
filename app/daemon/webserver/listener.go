// SPDX-License-Identifier: Apache-2.0

package webserver

import (
	"container/list"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/creelrm/creel/internal/sockwait"
)

// maxQuiet is the number of connections of a port for whose bytes the server waits: for the headers of a first or a
// later request, or for more of a body. Above it, the connections with the longest wait are closed if that exceeds
// quietTime. An honest client needs a round trip to start, and many at the same time a little more.
const (
	maxQuiet  = 512
	quietTime = 250 * time.Millisecond
)

// listener passes connections to an http.Server once the headers of their first request have arrived. A server's
// connection has two buffers and a deep stack; a connection without a request has neither here. It also limits the
// number of connections. Above the limit, a new connection is rejected, and the one that has been idle longest is
// closed.
type listener struct {
	net.Listener
	wait time.Duration // for the headers of the first request
	most int           // limit of connections, waiting and served
	each int           // limit for one remote address
	told *Figures

	ready chan net.Conn
	ended chan struct{} // closed when Accept is no longer called
	tasks sync.WaitGroup

	mu    sync.Mutex
	open  map[*conn]struct{}
	from  map[netip.Addr]int // number of open connections by address
	quiet list.List          // *conn: the awaited ones, longest wait first
	done  bool
}

// conn is a counted connection.
type conn struct {
	net.Conn
	l    *listener
	once sync.Once
	from netip.Addr

	// Guarded by l.mu.
	closed bool
	served bool          // a request has arrived
	place  *list.Element // in l.quiet
	since  time.Time     // time of its entry there
}

func (c *conn) Close() error {
	c.once.Do(func() {
		c.l.mu.Lock()
		delete(c.l.open, c)
		if c.l.from[c.from]--; c.l.from[c.from] <= 0 {
			delete(c.l.from, c.from)
		}
		c.leave()
		c.closed = true
		c.l.mu.Unlock()
	})
	return c.Conn.Close()
}

// leave removes a connection from the quiet list. The caller holds the lock.
func (c *conn) leave() {
	if c.place != nil {
		c.l.quiet.Remove(c.place)
		c.place = nil
	}
}

// enter moves a connection to the end of the quiet list. The caller holds the lock.
func (c *conn) enter() {
	c.leave()
	if c.closed {
		return
	}
	c.since = time.Now()
	c.place = c.l.quiet.PushBack(c)
	for c.l.quiet.Len() > maxQuiet {
		longest := c.l.quiet.Front().Value.(*conn)
		if c.since.Sub(longest.since) < quietTime {
			break
		}
		longest.leave()
		if !longest.served {
			c.l.told.tooSlow(longest, "no request arrived, and too many connections were waiting")
		}
		longest.Conn.Close() // its handler notices and drops it
	}
}

// waited is called when the server starts to wait for bytes of a connection.
func (c *conn) waited() {
	c.l.mu.Lock()
	c.enter()
	c.l.mu.Unlock()
}

// came is called when bytes have arrived.
func (c *conn) came() {
	c.l.mu.Lock()
	c.leave()
	c.l.mu.Unlock()
}

// state is an http.Server's ConnState.
func state(nc net.Conn, s http.ConnState) {
	if c, ok := plain(nc).(*conn); ok && s == http.StateIdle {
		c.waited()
	}
}

func newListener(l net.Listener, wait time.Duration, most, each int, told *Figures) *listener {
	out := &listener{
		Listener: l,
		wait:     wait,
		most:     most,
		each:     each,
		told:     told,
		ready:    make(chan net.Conn),
		ended:    make(chan struct{}),
		open:     map[*conn]struct{}{},
		from:     map[netip.Addr]int{},
	}
	out.tasks.Go(out.accept)
	return out
}

// Accept returns the next connection with a request.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.ready:
		return c, nil
	case <-l.ended:
		return nil, net.ErrClosed
	}
}

// Close ends the listener and all connections without a request.
func (l *listener) Close() error {
	err := l.Listener.Close()
	l.mu.Lock()
	if l.done {
		l.mu.Unlock()
		return err
	}
	l.done = true
	for c := range l.open {
		if !c.served {
			c.Conn.Close() // its goroutine does the rest
		}
	}
	l.mu.Unlock()
	close(l.ended)
	l.tasks.Wait()
	return err
}

func (l *listener) accept() {
	pause := 5 * time.Millisecond
	for {
		nc, err := l.Listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			slog.Warn("web port: accept failed", "address", l.Addr(), "error", err, "pause", pause)
			select {
			case <-l.ended:
				return
			case <-time.After(pause):
			}
			pause = min(2*pause, time.Second)
			continue
		}
		pause = 5 * time.Millisecond
		c := &conn{Conn: nc, l: l, from: addressOf(nc)}
		if !l.admit(c) {
			continue
		}
		l.tasks.Go(func() { l.await(c) })
	}
}

// admit counts a connection, or rejects it above the limit.
func (l *listener) admit(c *conn) bool {
	l.mu.Lock()
	many, mine := len(l.open), l.from[c.from]
	if !l.done && many < l.most && mine < l.each {
		l.open[c] = struct{}{}
		l.from[c.from]++
		c.enter()
		l.mu.Unlock()
		return true
	}
	l.mu.Unlock()
	why := fmt.Sprintf("this port has %d connections, its limit: try again later", many)
	if many < l.most {
		why = fmt.Sprintf("%s has %d connections to this port, the limit of one address: close some", c.from, mine)
	}
	l.told.refused(c, why)
	c.Conn.SetWriteDeadline(time.Now().Add(10 * time.Millisecond)) // a new socket accepts it at once
	fmt.Fprintf(c.Conn, "HTTP/1.1 %d %s\r\nConnection: close\r\nRetry-After: 1\r\nContent-Type: text/plain\r\n"+
		"Content-Length: %d\r\n\r\n%s\n", http.StatusServiceUnavailable, "Service Unavailable", len(why)+1, why)
	c.Conn.Close()
	return false
}

// addressOf returns the remote address without its port.
func addressOf(c net.Conn) netip.Addr {
	if a, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// await passes a connection on when the headers of its first request have arrived.
func (l *listener) await(c *conn) {
	c.Conn.SetReadDeadline(time.Now().Add(l.wait))
	begun, err := awaitRequest(c.Conn)
	if begun && errors.Is(err, os.ErrDeadlineExceeded) {
		l.told.tooSlow(c, "its headers took too long")
	}
	if err != nil || !l.handOver(c) {
		c.Close()
	}
}

// awaitRequest keeps the stack shallow while it waits, by calling nothing deep before. For begun see
// sockwait.WaitForRequest.
func awaitRequest(nc net.Conn) (begun bool, err error) {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return false, nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false, err
	}
	return sockwait.WaitForRequest(raw)
}

func (l *listener) handOver(c *conn) bool {
	c.Conn.SetReadDeadline(time.Time{})
	l.mu.Lock()
	c.served = true
	l.mu.Unlock()
	select {
	case l.ready <- c:
		return true
	case <-l.ended:
		return false
	}
}

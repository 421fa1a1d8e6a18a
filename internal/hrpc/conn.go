// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel/internal/sockwait"
)

// conn is a server's connection. Its goroutine reads, serves inline calls and closes it. Fields without a lock or an
// atomic belong to that goroutine. Before a possibly long wait a new goroutine with a minimal stack replaces it.
type conn struct {
	s      *Server
	nc     net.Conn
	remote netip.AddrPort
	ctx    context.Context // of its calls; until the handshake is done the server's
	cancel context.CancelFunc
	fr     frameReader
	w      writer

	born    uint32        // s.epoch when the connection was accepted
	seen    atomic.Uint32 // s.epoch when bytes last arrived
	ready   atomic.Bool   // the handshake is done
	partial atomic.Bool   // waits for the rest of a frame
	began   atomic.Uint32 // s.epoch when the wait for that frame began
	whole   bool          // a frame was completed since then
	deep    atomic.Bool   // its goroutine has served calls, and its stack has grown
	share   *share        // of the bytes of requests

	stage    stage
	sasl     *saslExchange // nil without SASL and after the handshake
	upstream *RelayedLogin // the relayed login of this connection, or nil
	who      *Identity
	protocol string // of the connection context
	seal     Layer  // nil: packets are not wrapped
	inner    []byte // unwrapped bytes of an incomplete frame
	held     int64  // taken from fr.shared for inner

	batch     []byte   // answers of inline calls, written when no frame remains
	spare     *Call    // the Call of the last inline call, for reuse
	route     route    // of the last call
	allowed   *service // the last service that Authorize permitted
	caller    []byte   // the last caller context, encoded and decoded
	callerCtx CallerContext
	calls     uint64
	bytes     uint64

	mu       sync.Mutex    // guards changes of the next three
	inFlight atomic.Int32  // calls accepted and not answered, without the inline one
	gone     bool          // its calls are no longer counted
	settled  chan struct{} // closed when no call is in flight, for drain
}

func newConn(s *Server, nc net.Conn) (*conn, error) {
	c := &conn{s: s, nc: nc, remote: remoteOf(nc), born: s.epoch.Load()}
	if err := c.fr.init(nc, s.requests); err != nil {
		return nil, err
	}
	c.w.init(nc, c.fr.raw)
	c.w.stall, c.w.wg, c.w.shared = s.cfg.StallTime, &s.wg, s.replies
	c.w.failed = func(error) { nc.Close() }
	c.w.sent = &s.stats.bytesOut
	c.seen.Store(c.born)
	return c, nil
}

func remoteOf(nc net.Conn) netip.AddrPort {
	if a, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		ap := a.AddrPort()
		return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	}
	return netip.AddrPort{}
}

// fatal is an answer that ends its connection.
type fatal struct {
	says          *Error
	callID, retry int32
	clientID      string
}

func (f *fatal) Error() string { return f.says.Error() }

func fatalf(callID int32, detail Detail, class, format string, args ...any) *fatal {
	e := Errorf(class, format, args...)
	e.Detail = detail
	return &fatal{says: e, callID: callID, retry: -1}
}

// drawOn moves the connection's request bytes to a holder's share.
func (c *conn) drawOn(one *share) error {
	held := c.fr.held + c.held
	c.fr.shared.give(held)
	if c.share != nil {
		c.s.shares.leave(c.share)
	}
	c.share, c.fr.shared = one, &one.budget
	if !one.take(held) {
		c.fr.held, c.held = 0, 0
		return errOverBudget
	}
	return nil
}

// run is the goroutine of a connection. It waits for bytes on a small stack, then serves them. It ends with the
// connection, or when another goroutine replaces it.
func (c *conn) run() {
	_ = sockwait.Wait(c.fr.raw) // the next read returns the same error
	if c.serve() {
		go c.run()
		return
	}
	c.close()
	c.s.forget(c)
	c.s.wg.Done()
}

// serve serves incoming calls. It reports whether to continue on a new stack: before the first call, and after an idle
// period.
func (c *conn) serve() (again bool) {
	c.fr.restart = true
	c.deep.Store(false)
	err := c.handshake()
	if err == nil && !c.ready.Load() {
		if err = c.drawOn(c.s.shares.join(c.remote.Addr(), c.who.User)); err == nil {
			c.ctx, c.cancel = context.WithCancel(c.ctx)
			c.ready.Store(true)
		}
	}
	if err == nil {
		err = c.readCalls()
	}
	if err == errNothingYet {
		return true
	}
	c.fr.restart = false
	if c.ready.Load() && c.s.draining.Load() && errors.Is(err, os.ErrDeadlineExceeded) {
		c.nc.SetReadDeadline(time.Time{})
		c.s.wg.Add(1)
		go func() {
			defer c.s.wg.Done()
			c.drain()
			c.nc.Close()
		}()
		for err != nil && errors.Is(err, os.ErrDeadlineExceeded) { // from a late deadline of the sweeper
			c.nc.SetReadDeadline(time.Time{})
			err = c.readCalls() // detects a close by the peer; other calls get no answer
		}
	}
	var f *fatal
	if errors.As(err, &f) {
		if f.says.Detail == DetailFatalUnauthorized {
			c.s.stats.authFailed.Add(1)
		}
		c.s.cfg.Logger.Info("connection refused", "remote", c.remote, "error", f.says.Message)
		c.batch = appendErrorFrame(c.batch, f.callID, f.retry, f.clientID, f.says)
		c.flush()
		if c.waitWritten(time.Now().Add(lingerTime)) {
			linger(c.nc)
		}
		return false
	}
	if err != nil && err != io.EOF {
		c.s.cfg.Logger.Debug("connection ended", "remote", c.remote, "error", err)
	}
	return false
}

// giveWay makes a goroutine that waits on a deep stack start a replacement on a small one. It may be called at any
// time.
func (c *conn) giveWay() { c.nc.SetReadDeadline(time.Unix(1, 0)) }

// gaveWay reports whether giveWay caused err. If so, it clears the deadline.
func (c *conn) gaveWay(err error) bool {
	if c.s.draining.Load() || !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	c.nc.SetReadDeadline(time.Time{})
	if c.s.draining.Load() { // the cleared deadline may be that of drain
		c.nc.SetReadDeadline(time.Unix(1, 0))
	}
	return true
}

// close ends the connection and drops its calls: their answers are not sent.
func (c *conn) close() {
	c.nc.Close()
	if c.upstream != nil {
		c.upstream.Close()
	}
	c.w.fail(net.ErrClosed) // first: a handler whose context has ended encodes no answer
	if c.cancel != nil {
		c.cancel()
	}
	c.fr.dropBuffer()
	c.dropInner()
	if c.share != nil {
		c.s.shares.leave(c.share)
	}
	c.mu.Lock()
	c.gone = true
	c.s.inFlight.Add(-int64(c.inFlight.Load()))
	c.mu.Unlock()
}

const maxHandshakeFrame = 64 << 10

// readCalls serves frames until the connection ends.
func (c *conn) readCalls() error {
	if err := c.serveInner(); err != nil {
		return err
	}
	for {
		frame, ok, err := c.fr.buffered(c.s.cfg.MaxFrame)
		if err != nil {
			return err
		}
		if !ok {
			if err := c.pause(); err != nil {
				return err
			}
			continue
		}
		c.whole = true
		if err := c.packet(frame); err != nil {
			return err
		}
		if c.fr.restart {
			c.fr.restart = false
			c.deep.Store(true)
		}
		if len(c.batch) > smallBuffer*3/4 {
			if err := c.flush(); err != nil {
				return err
			}
		}
	}
}

// pause ends a batch and waits for more bytes.
func (c *conn) pause() error {
	if err := c.flush(); err != nil {
		return err
	}
	if err := c.waitReader(); err != nil {
		return err
	}
	p := c.fr.partial()
	if p && (c.whole || !c.partial.Load()) {
		c.began.Store(c.s.epoch.Load())
		c.whole = false
	}
	if p != c.partial.Load() {
		c.partial.Store(p)
	}
	err := c.fr.more()
	if err == errNothingYet || err != nil && c.gaveWay(err) {
		return errNothingYet
	}
	c.touch()
	if errors.Is(err, errOverBudget) {
		return c.refuseFrame()
	}
	return err
}

// flush sends the answers of the batch.
func (c *conn) flush() error {
	if c.calls > 0 {
		c.s.stats.calls.Add(c.calls)
		c.s.stats.bytesIn.Add(c.fr.bytes - c.bytes)
		c.calls, c.bytes = 0, c.fr.bytes
	}
	if len(c.batch) == 0 {
		return nil
	}
	_, err := c.w.send(c.batch)
	putBuffer(c.batch)
	c.batch = nil
	return err
}

// waitReader waits while too many answers are queued for the peer.
func (c *conn) waitReader() error {
	if room := c.w.waitRoom(c.s.cfg.MaxReplyBytes); room == nil {
		return nil
	}
	for {
		room := c.w.waitRoom(c.s.cfg.MaxReplyBytes / 2)
		if room == nil {
			return nil
		}
		select {
		case <-room:
		case <-c.ctx.Done():
			return c.ctx.Err()
		}
	}
}

// refuseFrame answers "busy" to a call whose frame exceeds the memory available to all connections. It discards the
// frame.
func (c *conn) refuseFrame() error {
	var h requestHeader
	header, _, err := delimited(c.fr.buf[min(c.fr.r+4, c.fr.w):c.fr.w])
	if err == nil {
		err = h.decode(header)
	}
	if err != nil || h.callID < 0 {
		return errOverBudget
	}
	c.s.stats.busy.Add(1)
	c.batch = appendErrorFrame(c.batch, h.callID, h.retryCount, string(h.clientID), c.overBudget())
	if err := c.flush(); err != nil {
		return err
	}
	c.fr.restart = false
	for left := c.fr.skip(); left > 0; left = c.fr.skipMore(left) {
		if err := c.fr.fill(); err != nil && !c.gaveWay(err) {
			return err
		} else if err == nil {
			c.touch()
		}
	}
	return nil
}

// overBudget is the answer to a call that exceeds the available memory.
func (c *conn) overBudget() *Error {
	return Busy("the server holds %d bytes of requests already, %d of this user here: try again later",
		c.s.requests.used.Load(), c.share.used.Load())
}

// touch records that bytes arrived.
func (c *conn) touch() {
	if now := c.s.epoch.Load(); now != c.seen.Load() {
		c.seen.Store(now)
	}
}

// drain waits until the calls in flight are answered and the answers written, or the server is stopped hard.
func (c *conn) drain() {
	c.mu.Lock()
	if c.inFlight.Load() > 0 {
		c.settled = make(chan struct{})
	}
	settled := c.settled
	c.mu.Unlock()
	if settled != nil {
		select {
		case <-settled:
		case <-c.ctx.Done():
			return
		}
	}
	if room := c.w.waitRoom(0); room != nil {
		select {
		case <-room:
		case <-c.ctx.Done():
		}
	}
}

// waitWritten waits until everything is written.
func (c *conn) waitWritten(deadline time.Time) bool {
	room := c.w.waitRoom(0)
	if room == nil {
		return true
	}
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-room:
		return true
	case <-timer.C:
	case <-c.ctx.Done():
	}
	return false
}

// begin counts a call, and its memory, if another goroutine answers it or the answer comes later.
func (c *conn) begin(bytes int) {
	if bytes > uncounted {
		c.share.force(int64(bytes))
	}
	c.mu.Lock()
	if !c.gone {
		c.inFlight.Add(1)
		c.s.inFlight.Add(1)
	}
	c.mu.Unlock()
}

func (c *conn) end(bytes int) {
	if bytes > uncounted {
		c.share.give(int64(bytes))
	}
	c.mu.Lock()
	if !c.gone {
		c.s.inFlight.Add(-1)
		if c.inFlight.Add(-1) == 0 && c.settled != nil {
			close(c.settled)
			c.settled = nil
		}
	}
	c.mu.Unlock()
}

// idle reports whether no call is in progress and no answer is unsent.
func (c *conn) idle() bool { return c.inFlight.Load() == 0 && c.w.idle() }

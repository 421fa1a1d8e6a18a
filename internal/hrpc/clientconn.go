// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"
)

// clientConn is one connection of a Client. Its goroutine dials, shakes hands, reads answers, sends pings, and closes
// the connection when idle. Callers write.
type clientConn struct {
	client  *Client
	key     connKey
	target  Target
	nc      net.Conn
	fr      frameReader
	w       writer
	seal    Layer // nil: packets are not wrapped
	inner   []byte
	ready   chan struct{} // closed when the handshake is over
	refused error         // set before ready is closed: no connection was made
	login   *RelayedLogin // owner of the connection, see relay.go; nil for creel's own calls
	dead    atomic.Bool
	broken  atomic.Pointer[error] // writing failed

	mu    sync.Mutex
	calls map[int32]*waiter
	sent  uint64 // calls registered so far
	cause error  // why it is dead
}

// waiter is a call waiting for its answer.
type waiter struct {
	response proto.Message
	isRaw    bool
	raw      []byte
	err      error
	done     chan struct{} // receives one token when the other fields are set
}

var waiters = sync.Pool{New: func() any { return &waiter{done: make(chan struct{}, 1)} }}

func (w *waiter) put() {
	w.response, w.raw, w.err = nil, nil, nil
	waiters.Put(w)
}

func newClientConn(c *Client, key connKey, t *Target) *clientConn {
	return &clientConn{client: c, key: key, target: *t, ready: make(chan struct{}), calls: map[int32]*waiter{}}
}

func (cc *clientConn) alive() bool { return !cc.dead.Load() }

func putLength(frame []byte) { binary.BigEndian.PutUint32(frame, uint32(len(frame)-4)) }

// register adds w as the waiter of a call's answer, and returns the number of waiting calls. 0 without an error means
// that the connection is dead.
func (cc *clientConn) register(id int32, w *waiter) (waiting int, err error) {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	if cc.cause != nil {
		return 0, nil
	}
	if len(cc.calls) >= cc.client.cfg.MaxCallsPerConn {
		return 0, fmt.Errorf(
			"hrpc: %d calls wait for %s already: %w",
			len(cc.calls),
			cc.target.Address,
			&RemoteError{
				Class:   ClassRetriable,
				Message: "too many calls on one connection of this client",
				Kind:    cc.client.kindOf(ClassRetriable),
			},
		)
	}
	cc.calls[id] = w
	cc.sent++
	return len(cc.calls), nil
}

func (c *Client) kindOf(class string) error {
	if c.cfg.KindOf == nil {
		return nil
	}
	return c.cfg.KindOf(class)
}

// claim removes the waiter of a call. The caller must fill it.
func (cc *clientConn) claim(id int32) *waiter {
	cc.mu.Lock()
	w := cc.calls[id]
	delete(cc.calls, id)
	cc.mu.Unlock()
	return w
}

// await waits for the answer or for ctx.
func (cc *clientConn) await(ctx context.Context, id int32, method string, w *waiter) ([]byte, error) {
	select {
	case <-w.done:
	case <-ctx.Done():
		if cc.claim(id) != nil {
			w.put()
			return nil, fmt.Errorf("hrpc: %s at %s: no answer: %w", method, cc.target.Address, context.Cause(ctx))
		}
		<-w.done // the reader is decoding the answer
	}
	raw, err := w.raw, w.err
	w.put()
	return raw, err
}

// waitRoom waits while too many bytes of requests are queued.
func (cc *clientConn) waitRoom(ctx context.Context) error {
	for {
		room := cc.w.waitRoom(cc.client.cfg.MaxPending)
		if room == nil {
			return nil
		}
		select {
		case <-room:
		case <-ctx.Done():
			return &TransportError{Op: "write", Address: cc.target.Address, Err: context.Cause(ctx)}
		}
	}
}

// fail ends the connection and all its waiting calls. Later calls of fail do nothing.
func (cc *clientConn) fail(op string, err error) {
	cc.mu.Lock()
	if cc.cause != nil {
		cc.mu.Unlock()
		return
	}
	cc.cause = err
	cc.dead.Store(true)
	calls := cc.calls
	cc.calls = nil
	nc := cc.nc
	cc.mu.Unlock()
	var remote *RemoteError
	if errors.As(err, &remote) && remote.Fatal && remote.Class == ClassAuthorization {
		cc.client.noteRefusal(cc.key, remote)
	}
	cc.client.forget(cc)
	if nc != nil {
		nc.Close()
	}
	if remote == nil {
		err = &TransportError{Op: op, Address: cc.target.Address, Sent: true, Err: err}
	}
	for _, w := range calls {
		w.err = err
		w.done <- struct{}{}
	}
}

// run serves a connection from the dial to its end.
func (cc *clientConn) run() {
	defer cc.client.wg.Done()
	op, err := cc.open()
	if err != nil {
		var remote *RemoteError
		cc.refused = err
		if !errors.As(err, &remote) {
			cc.refused = &TransportError{Op: op, Address: cc.target.Address, Err: err}
		}
		cc.fail(op, err)
		close(cc.ready)
		return
	}
	close(cc.ready)
	err = cc.read()
	cc.fail("read", err)
	cc.w.fail(err)
	cc.fr.dropBuffer()
}

// open dials and performs the handshake.
func (cc *clientConn) open() (op string, err error) {
	if err := cc.dial(); err != nil {
		return "dial", err
	}
	if err := cc.handshake(); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = fmt.Errorf("no answer within %v: %w", cc.client.cfg.ConnectTime, err)
		}
		return "handshake", err
	}
	return "", nil
}

// dial opens the connection; the rest of ConnectTime remains for the handshake.
func (cc *clientConn) dial() error {
	ctx, cancel := context.WithTimeout(cc.client.base, cc.client.cfg.ConnectTime)
	defer cancel()
	nc, err := cc.client.cfg.Dial(ctx, cc.target.Address)
	if err != nil {
		return err
	}
	cc.mu.Lock()
	dead := cc.cause
	cc.nc = nc
	cc.mu.Unlock()
	if dead != nil {
		nc.Close()
		return dead
	}
	if err := cc.fr.init(nc, nil); err != nil {
		return err
	}
	cc.w.init(nc, cc.fr.raw)
	cc.w.stall, cc.w.wg = cc.client.cfg.StallTime, &cc.client.wg
	cc.w.failed = cc.writeFailed
	deadline, _ := ctx.Deadline()
	nc.SetReadDeadline(deadline)
	return nil
}

// writeFailed waits a moment for the reader to read the reason: a server reports it before it closes a connection.
func (cc *clientConn) writeFailed(err error) {
	cc.broken.Store(&err)
	cc.nc.SetReadDeadline(time.Now().Add(lingerTime))
}

// read receives answers until the connection ends. The socket's read deadline is a tick. At each tick read checks the
// connection, so that no call needs a timer.
func (cc *clientConn) read() error {
	cfg := &cc.client.cfg
	tick := max(min(cfg.IdleTime, cfg.PingInterval)/4, time.Millisecond)
	if cfg.DeadTime > 0 {
		tick = max(min(tick, cfg.DeadTime/4), time.Millisecond)
	}
	quietSince := time.Now()  // since then no call was sent or waiting, and no byte came
	silentSince := quietSince // since then a call waited and no byte came
	lastPing := quietSince
	var lastBytes, lastSent uint64
	cc.nc.SetReadDeadline(quietSince.Add(tick))
	for {
		frame, err := cc.fr.next(cfg.MaxResponse)
		if err == nil {
			if err = cc.packet(frame); err != nil {
				return err
			}
			continue
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			if err == io.EOF {
				err = fmt.Errorf("the server closed the connection: %w", err)
			}
			return err
		}
		if broken := cc.broken.Load(); broken != nil {
			return *broken
		}
		now := time.Now()
		cc.mu.Lock()
		waiting, sent, cause := len(cc.calls), cc.sent, cc.cause
		cc.mu.Unlock()
		if cause != nil {
			return cause
		}
		if cc.fr.bytes != lastBytes || waiting == 0 {
			silentSince, lastPing = now, now
		}
		if cc.fr.bytes != lastBytes || waiting > 0 || sent != lastSent {
			quietSince = now
		}
		lastBytes, lastSent = cc.fr.bytes, sent
		switch {
		case waiting == 0 && cc.login == nil && now.Sub(quietSince) >= cfg.IdleTime:
			if cc.retire() {
				return errIdle
			}
		case cfg.DeadTime > 0 && now.Sub(silentSince) >= cfg.DeadTime:
			return fmt.Errorf("no byte for %v while %d calls wait", cfg.DeadTime, waiting)
		case waiting > 0 && now.Sub(lastPing) >= cfg.PingInterval:
			lastPing = now
			cc.w.send(appendPing(nil, cc.client.id))
		}
		cc.nc.SetReadDeadline(now.Add(tick))
		if cc.broken.Load() != nil { // its deadline was replaced by the one above
			cc.nc.SetReadDeadline(now.Add(lingerTime))
		}
	}
}

var errIdle = errors.New("idle")

// retire marks the connection dead unless a call was registered at the last moment.
func (cc *clientConn) retire() bool {
	cc.mu.Lock()
	if len(cc.calls) > 0 || cc.cause != nil {
		cc.mu.Unlock()
		return false
	}
	cc.cause = errIdle
	cc.dead.Store(true)
	cc.mu.Unlock()
	cc.client.forget(cc)
	cc.nc.Close()
	return true
}

// packet delivers one answer to its call.
func (cc *clientConn) packet(frame []byte) error {
	header, rest, err := delimited(frame)
	if err != nil {
		return fmt.Errorf("response header: %w", err)
	}
	var h responseHeader
	if err := h.decode(header); err != nil {
		return err
	}
	if cc.seal != nil && h.callID == idSasl && h.status == statusSuccess {
		return cc.sealedPacket(rest)
	}
	return cc.answer(&h, rest)
}

func (cc *clientConn) sealedPacket(rest []byte) error {
	plain, err := openWrapped(rest, cc.seal)
	if err != nil {
		return err
	}
	cc.inner = append(cc.inner, plain...)
	left := cc.inner
	for {
		frame, after, ok, err := cutFrame(left, cc.client.cfg.MaxResponse)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		left = after
		header, rest, err := delimited(frame)
		if err != nil {
			return fmt.Errorf("response header: %w", err)
		}
		var h responseHeader
		if err := h.decode(header); err != nil {
			return err
		}
		if err := cc.answer(&h, rest); err != nil {
			return err
		}
	}
	if len(left) == 0 {
		cc.inner = nil
	} else {
		cc.inner = cc.inner[:copy(cc.inner, left)]
	}
	return nil
}

func (cc *clientConn) answer(h *responseHeader, rest []byte) error {
	if len(h.clientID) > 0 && string(h.clientID) != cc.client.id {
		return errors.New("an answer is for another client")
	}
	if h.status != statusSuccess {
		e := cc.remoteError(h)
		if h.status == statusFatal {
			return e
		}
		if w := cc.claim(h.callID); w != nil {
			w.err = e
			w.done <- struct{}{}
		}
		return nil
	}
	w := cc.claim(h.callID)
	if w == nil {
		return nil // its caller has abandoned it
	}
	body, _, err := delimited(rest)
	switch {
	case err != nil:
		err = errors.New("hrpc: an answer is cut off")
	case w.isRaw:
		w.raw = append(make([]byte, 0, len(body)), body...)
	case w.response != nil:
		if err = unmarshal(body, w.response); err != nil {
			err = fmt.Errorf("hrpc: an answer of %s cannot be decoded: %w", cc.target.Protocol, err)
		}
	}
	w.err = err
	w.done <- struct{}{}
	return nil
}

func (cc *clientConn) remoteError(h *responseHeader) *RemoteError {
	class := string(h.class)
	return &RemoteError{Class: class, Message: string(h.message), Detail: h.detail,
		Fatal: h.status == statusFatal, Kind: cc.client.kindOf(class)}
}

// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Pipe is a connection owned by one goroutine, with many calls in flight. Calls put into it are sent together when the
// receiver takes an answer that has not yet arrived. A call costs neither a goroutine nor a lock, as a load generator
// needs. Callers that need one answer use a [Peer]. One goroutine may Put and Flush while another calls Receive. Only
// the receiving goroutine may call Close; other goroutines call Break.
type Pipe struct {
	cc     *clientConn
	out    []byte
	unhook func() bool
	ctx    context.Context
}

// maxPipeOut is the largest number of unsent bytes of calls.
const maxPipeOut = bigBuffer

// Pipe opens a connection. It ends with ctx or at Close. It does not support protection of the packets after the
// handshake (auth-int).
func (c *Client) Pipe(ctx context.Context, t Target) (*Pipe, error) {
	if t.Version == 0 {
		t.Version = 1
	}
	cc := newClientConn(c, connKey{}, &t)
	if op, err := cc.open(); err != nil {
		cc.end(err)
		var remote *RemoteError
		if errors.As(err, &remote) {
			return nil, err
		}
		return nil, &TransportError{Op: op, Address: t.Address, Err: err}
	}
	if cc.seal != nil {
		cc.end(ErrClosed)
		return nil, errors.New("hrpc: a pipe has no integrity protection, which the server asks for")
	}
	cc.nc.SetReadDeadline(time.Time{})
	return &Pipe{cc: cc, ctx: ctx, unhook: context.AfterFunc(ctx, func() { cc.nc.Close() })}, nil
}

// end closes a connection that has no reader.
func (cc *clientConn) end(err error) {
	if cc.nc != nil {
		cc.nc.Close()
		cc.w.fail(err)
	}
	cc.fr.dropBuffer()
}

// Break ends the connection for the goroutine that calls Receive, which then closes it. Any goroutine may call it.
func (p *Pipe) Break() { p.cc.nc.Close() }

// Close ends the connection and drops answers that were not taken. No other goroutine may be in a call of the pipe,
// because Close releases its buffers.
func (p *Pipe) Close() {
	p.unhook()
	p.cc.end(ErrClosed)
}

// Put makes a call with an encoded request. Its id must not be negative, and its answer carries the same id. Two calls
// in flight need different ids.
func (p *Pipe) Put(id int32, method string, request []byte) error {
	t := &p.cc.target
	start := len(p.out)
	b := append(p.out, 0, 0, 0, 0)
	b = appendRequestHeader(b, id, 0, p.cc.client.id, nil)
	b = appendCallHeader(b, method, t.Protocol, t.Version)
	b, err := appendRaw(b, request)
	if err != nil {
		p.out = b[:start]
		return err
	}
	putLength(b[start:])
	if p.out = b; len(b) >= maxPipeOut {
		return p.Flush()
	}
	return nil
}

// Flush sends the calls that were put but not yet sent.
func (p *Pipe) Flush() error {
	if len(p.out) == 0 {
		return nil
	}
	_, err := p.cc.w.send(p.out)
	p.out = p.out[:0]
	return p.failed("write", err)
}

// Buffered reports whether Take would return an answer without waiting.
func (p *Pipe) Buffered() bool {
	f := &p.cc.fr
	if f.w-f.r < 4 {
		return false
	}
	n := f.announced()
	return n >= 0 && f.w-f.r >= 4+n
}

// Take returns the next answer, in the server's order. It sends buffered calls before it waits. The body is valid until
// the next call. refused is the server's error for the call, a *RemoteError. err means that the connection is unusable.
func (p *Pipe) Take() (id int32, body []byte, refused, err error) {
	if !p.Buffered() {
		if err := p.Flush(); err != nil {
			return 0, nil, nil, err
		}
	}
	return p.Receive()
}

// Receive is Take without sending anything.
func (p *Pipe) Receive() (id int32, body []byte, refused, err error) {
	cc := p.cc
	frame, err := cc.fr.next(cc.client.cfg.MaxResponse)
	if err != nil {
		return 0, nil, nil, p.failed("read", err)
	}
	header, rest, err := delimited(frame)
	var h responseHeader
	if err == nil {
		err = h.decode(header)
	}
	if err != nil {
		return 0, nil, nil, p.failed("read", fmt.Errorf("response header: %w", err))
	}
	switch h.status {
	case statusSuccess:
		if body, _, err = delimited(rest); err != nil {
			err = p.failed("read", errors.New("an answer is cut off"))
		}
		return h.callID, body, nil, err
	case statusFatal:
		return 0, nil, nil, cc.remoteError(&h)
	}
	return h.callID, nil, cc.remoteError(&h), nil
}

// failed is the caller's view of a connection's failure. The end of the context takes precedence, then an earlier
// failure of a write.
func (p *Pipe) failed(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case p.ctx.Err() != nil:
		return context.Cause(p.ctx)
	}
	if broken := p.cc.broken.Load(); broken != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		op, err = "write", *broken
	}
	if err == io.EOF {
		err = fmt.Errorf("the server closed the connection: %w", err)
	}
	return &TransportError{Op: op, Address: p.cc.target.Address, Sent: true, Err: err}
}

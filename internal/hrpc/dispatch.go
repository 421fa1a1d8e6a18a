// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"
)

// callState is hrpc's private state in a Call.
type callState struct {
	context.Context // the connection's

	conn       *conn
	method     *method
	began      time.Duration // since the server was made
	answerTail string        // end of a successful answer's header
	dones      []func(proto.Message, error)
	taken      bool // the handler called Later
	sends      bool // the answering goroutine also makes the system call
	counted    bool // conn.begin was called
	answered   atomic.Bool
}

type callKey struct{}

// Value makes a Call the context of its handler.
func (c *Call) Value(key any) any {
	if _, ok := key.(callKey); ok {
		return c
	}
	return c.callState.Context.Value(key)
}

// packet serves one frame of an open connection.
func (c *conn) packet(frame []byte) error {
	if c.seal != nil {
		return c.sealedPacket(frame)
	}
	return c.plainPacket(frame)
}

func (c *conn) plainPacket(frame []byte) error {
	if callID, request, ok := c.route.repeated(frame); ok {
		return c.dispatch(callID, request, nil)
	}
	var h requestHeader
	rest, err := h.open(frame)
	switch {
	case err != nil:
		return err
	case h.callID >= 0:
		return c.call(&h, rest)
	case h.callID == idPing:
		return nil
	case h.callID == idContext:
		return h.fatalf(DetailFatalInvalidHeader, ClassRPCServer, "a second connection context")
	case h.callID == idSasl:
		return h.fatalf(DetailFatalInvalidHeader, ClassRPCServer, "SASL after the connection was set up")
	}
	return h.fatalf(DetailFatalInvalidHeader, ClassRPCServer, "unknown call id %d", h.callID)
}

// call decodes a call's header and dispatches the call.
func (c *conn) call(h *requestHeader, rest []byte) error {
	header, request, err := delimited(rest)
	if err != nil {
		return h.fatalf(DetailFatalDeserializing, ClassRPCServer, "call header: %v", err)
	}
	r := &c.route
	r.setCaller(h.clientID, h.retryCount)
	if r.method == nil || !bytes.Equal(header, r.header) {
		var ch callHeader
		if err := ch.decode(header); err != nil {
			return h.fatalf(DetailFatalDeserializing, ClassRPCServer, "%v", err)
		}
		svc, m, refusal := c.find(&ch)
		if refusal != nil {
			c.calls++
			c.answer(h.callID, refusal)
			return nil
		}
		r.setMethod(header, svc, m)
	}
	return c.dispatch(h.callID, request, h)
}

// dispatch serves a call of the connection's route, or answers with an error. h is nil if the header contains only the
// route.
func (c *conn) dispatch(callID int32, rest []byte, h *requestHeader) error {
	c.calls++
	svc, m := c.route.service, c.route.method
	if n := c.s.inFlight.Load(); n >= int64(c.s.cfg.MaxCalls) {
		c.s.stats.busy.Add(1)
		c.answer(callID, Busy("the server has %d calls in flight, its limit: try again later", n))
		return nil
	}
	if n := int(c.inFlight.Load()); n >= c.s.cfg.MaxCallsPerConn {
		c.s.stats.busy.Add(1)
		c.answer(callID, Busy("this connection has %d calls in flight, its limit: wait for answers", n))
		return nil
	}
	if c.s.draining.Load() {
		// As Hadoop's server, it does not answer: the connection closes after the calls that it serves. Hadoop's client
		// then calls another one of an HA pair, or repeats the call. After a RetriableException it would call the same
		// server again, and give up when that is gone: it allows one repetition that is no failover.
		c.s.stats.busy.Add(1)
		return nil
	}
	body, _, err := delimited(rest)
	if err != nil {
		c.answer(callID, Errorf(ClassInvalidProtobuf, "%s.%s: the request message is cut off", svc.protocol, m.name))
		return nil
	}
	// Bytes beyond the frame's own buffer are released when the next frame is awaited.
	if n := int64(len(body)); n > uncounted && !c.share.fits(n-c.fr.held) {
		c.s.stats.busy.Add(1)
		c.answer(callID, c.overBudget())
		return nil
	}
	call := c.spare
	if call == nil || !m.Inline {
		call = &Call{}
		call.conn, call.Context = c, c.ctx
		call.Remote, call.Identity = c.remote, c.who
	} else {
		c.spare = nil
	}
	call.Protocol, call.Method, call.ClientID = svc.protocol, m.name, c.route.clientID
	call.CallID, call.RetryCount, call.RequestBytes = callID, c.route.retry, len(body)
	call.method, call.answerTail, call.began = m, c.route.answer, time.Since(c.s.made)
	if h != nil && (len(h.caller) > 0 || len(h.trace) > 0) {
		if err := c.annotate(call, h); err != nil {
			return h.fatalf(DetailFatalDeserializing, ClassRPCServer, "%v", err)
		}
	}
	if m.Inline {
		c.serveInline(call, body)
		return nil
	}
	c.serveApart(call, body)
	return nil
}

// find looks up the method. It caches the result with the header's bytes: most calls repeat the previous call's header.
func (c *conn) find(h *callHeader) (*service, *method, *Error) {
	svc := c.s.services[string(h.protocol)]
	if svc == nil {
		e := Errorf(ClassNoSuchProtocol, "unknown protocol %q", validText(string(h.protocol)))
		e.Detail = DetailNoSuchProtocol
		return nil, nil, e
	}
	if svc != c.allowed {
		if a := c.s.cfg.Authorize; a != nil {
			if err := a(c.who, svc.protocol, c.remote.Addr()); err != nil {
				return nil, nil, Errorf(ClassAuthorization, "%v", err)
			}
		}
		c.allowed = svc
	}
	if h.version != svc.version {
		e := Errorf(
			ClassVersionMismatch,
			"%s has version %d here, the client asks for %d",
			svc.protocol,
			svc.version,
			h.version,
		)
		e.Detail = DetailVersionMismatch
		return nil, nil, e
	}
	m := svc.methods[string(h.method)]
	if m == nil {
		if svc.other == nil {
			e := Errorf(ClassNoSuchMethod, "unknown method %q of %s", validText(string(h.method)), svc.protocol)
			e.Detail = DetailNoSuchMethod
			return nil, nil, e
		}
		m = &method{Method: *svc.other, name: string(h.method), tally: &svc.tally}
	}
	return svc, m, nil
}

// annotate decodes the trace and the caller context, which rarely changes within a connection.
func (c *conn) annotate(call *Call, h *requestHeader) error {
	if len(h.caller) > 0 {
		if !bytes.Equal(h.caller, c.caller) {
			if err := c.callerCtx.decode(h.caller); err != nil {
				return fmt.Errorf("caller context: %w", err)
			}
			c.caller = append(c.caller[:0], h.caller...)
		}
		call.CallerContext = c.callerCtx
	}
	if len(h.trace) > 0 {
		if err := call.Trace.decode(h.trace); err != nil {
			return fmt.Errorf("trace info: %w", err)
		}
	}
	return nil
}

// answer answers a call that was not dispatched.
func (c *conn) answer(callID int32, e *Error) {
	c.s.stats.failed.Add(1)
	if c.batch == nil {
		c.batch = getBuffer(0)
	}
	c.batch = appendErrorFrame(c.batch, callID, c.route.retry, c.route.clientID, e)
}

// serveInline serves a call on the reader's goroutine.
func (c *conn) serveInline(call *Call, body []byte) {
	request, err := call.decode(body)
	var out outcome
	if err == nil {
		out = call.run(request, body)
	} else {
		out.err = err
	}
	if call.taken {
		return // the function returned by Later will answer
	}
	if c.batch == nil {
		c.batch = getBuffer(0)
	}
	c.batch = call.encode(c.batch, out)
	if free := call.method.FreeRequest; free != nil && request != nil {
		free(request)
	}
	if call.dones != nil {
		clear(call.dones)
		call.dones = call.dones[:0]
	}
	if len(call.CallerContext.Context) > 0 || call.Trace.present() {
		call.CallerContext, call.Trace = CallerContext{}, TraceInfo{}
	}
	c.spare = call
}

// serveApart serves a call on its own goroutine.
func (c *conn) serveApart(call *Call, body []byte) {
	call.counted = true
	c.begin(call.RequestBytes)
	request, err := call.decode(body)
	if err != nil {
		call.finish(outcome{err: err})
		return
	}
	var held []byte
	if call.method.Raw != nil { // the next frame will reuse the buffer
		held = append(getBuffer(len(body)), body...)
	}
	c.s.wg.Add(1)
	c.s.stats.waiting.Add(1)
	c.s.workers.Give(work{call, request, held})
}

// work is a call to be served on its own goroutine.
type work struct {
	call    *Call
	request proto.Message
	held    []byte
}

func (w work) do() {
	s := w.call.conn.s
	defer s.wg.Done()
	s.stats.waiting.Add(-1)
	s.stats.waited.Add(uint64(time.Since(s.made) - w.call.began))
	out := w.call.run(w.request, w.held)
	if w.held != nil && !w.call.taken {
		defer putBuffer(w.held)
	}
	if !w.call.taken {
		w.call.finish(out)
		if free := w.call.method.FreeRequest; free != nil && w.request != nil {
			free(w.request)
		}
	}
}

// outcome is a handler's result for a call.
type outcome struct {
	response proto.Message
	raw      []byte
	err      error
}

func (c *Call) decode(body []byte) (proto.Message, error) {
	if c.method.Raw != nil {
		return nil, nil
	}
	request := c.method.NewRequest()
	if err := unmarshal(body, request); err != nil {
		return nil, Errorf(ClassInvalidProtobuf, "%s.%s: %v", c.Protocol, c.Method, err)
	}
	return request, nil
}

// run calls the interceptors and the handler. A panic becomes an error of the call.
func (c *Call) run(request proto.Message, body []byte) (out outcome) {
	defer func() {
		if p := recover(); p != nil {
			c.conn.s.cfg.Logger.Error(
				"handler panicked",
				"protocol",
				c.Protocol,
				"method",
				c.Method,
				"panic",
				p,
				"stack",
				string(debug.Stack()),
			)
			out = outcome{err: Errorf(ClassRuntimeException, "%s failed inside the server", c.Method)}
			if c.taken {
				c.finish(out)
			}
		}
	}()
	var ctx context.Context = c
	for _, i := range c.conn.s.cfg.Interceptors {
		next, done, err := i(ctx, c, request)
		if done != nil {
			c.dones = append(c.dones, done)
		}
		if err != nil {
			return outcome{err: err}
		}
		if next != nil {
			ctx = next
		}
	}
	if c.method.Raw != nil {
		out.raw, out.err = c.method.Raw(ctx, body)
	} else {
		out.response, out.err = c.method.Serve(ctx, request)
	}
	if !c.taken && out.err == ErrLater {
		out.err = Errorf(ClassRuntimeException, "%s returned ErrLater without taking Later", c.Method)
	}
	return out
}

func (c *Call) takeLater() {
	if c.taken {
		panic("hrpc: Later was taken twice")
	}
	c.taken = true
	if !c.counted {
		c.counted = true
		c.conn.begin(c.RequestBytes)
	}
}

func (c *Call) later() func(proto.Message, error) {
	c.takeLater()
	return func(response proto.Message, err error) { c.finish(outcome{response: response, err: err}) }
}

func (c *Call) laterRaw() func([]byte, error) {
	c.takeLater()
	return func(response []byte, err error) { c.finish(outcome{raw: response, err: err}) }
}

// finish answers a counted call, once.
func (c *Call) finish(out outcome) {
	if c.answered.Swap(true) {
		c.conn.s.cfg.Logger.Error("a call was answered twice", "protocol", c.Protocol, "method", c.Method)
		return
	}
	if c.conn.w.dead() {
		c.notify(out) // no encoding: the answer may be a long list
		c.conn.end(c.RequestBytes)
		return
	}
	b := c.encode(getBuffer(0), out)
	if c.taken && !c.sends {
		c.conn.w.later(b)
	} else {
		c.conn.w.post(b, c.conn.inFlight.Load() > 1)
	}
	putBuffer(b)
	c.conn.end(c.RequestBytes)
}

// notify counts the call and reports the outcome to the interceptors.
func (c *Call) notify(out outcome) {
	took, t := uint64(time.Since(c.conn.s.made)-c.began), c.method.tally
	t.calls.Add(1)
	t.nanos.Add(took)
	if out.err != nil {
		t.failed.Add(1)
	}
	if c.taken {
		c.conn.s.stats.deferred.Add(1)
		c.conn.s.stats.deferredNs.Add(took)
	}
	for i := len(c.dones) - 1; i >= 0; i-- {
		c.dones[i](out.response, out.err)
	}
}

// encode notifies the interceptors and appends the answer's frame.
func (c *Call) encode(b []byte, out outcome) []byte {
	c.notify(out)
	start := len(b)
	if out.err == nil {
		b = append(b, 0, 0, 0, 0)
		b = appendSuccess(b, c.CallID, c.answerTail)
		if c.method.Raw != nil {
			b, out.err = appendRaw(b, out.raw)
		} else {
			b, out.err = appendMessage(b, out.response)
		}
		if out.err != nil {
			out.err = &Error{
				Class:   ClassRPCServer,
				Message: "the answer cannot be encoded: " + out.err.Error(),
				Detail:  DetailSerializingResponse,
			}
			b = b[:start]
		} else {
			binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-4))
		}
	}
	if out.err != nil {
		c.conn.s.stats.failed.Add(1)
		b = appendErrorFrame(b, c.CallID, c.RetryCount, c.ClientID, c.conn.s.errorOf(out.err))
	}
	return b
}

// errorOf converts a handler's error into an answer that leaves the connection open.
func (s *Server) errorOf(err error) *Error {
	var e *Error
	switch {
	case errors.As(err, &e):
	case errors.Is(err, context.Canceled):
		return Busy("the call was cancelled: %v", err)
	case s.cfg.ErrorOf != nil:
		e = s.cfg.ErrorOf(err)
	}
	if e == nil {
		return Errorf(ClassRuntimeException, "%v", err)
	}
	if e.Detail.Fatal() {
		return Errorf(e.Class, "%s", e.Message)
	}
	return e
}

// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"
)

// Client makes calls. It uses one connection per (address, login, protocol). It opens the connection at the first call,
// reopens it after a failure, and closes it when idle.
type Client struct {
	cfg    ClientConfig
	id     string // 16 random bytes, like the id of a Hadoop client
	lastID atomic.Uint32
	wg     sync.WaitGroup
	base   context.Context // ends with Close
	cancel context.CancelFunc

	refusalTime time.Duration

	mu       sync.Mutex // guards the maps, at connect and disconnect
	conns    map[connKey]*clientConn
	refusals map[connKey]*RemoteError // received within the last refusalTime
	closed   bool
}

// refusalTime is the time for which a client caches a server's rejection of its user, for impersonation or at all
// (AuthorizationException). Until then calls fail with that answer and do not dial. This bounds the cost of many
// rejected callers on both sides. It also bounds the delay until a client sees a change of the server's rules.
const refusalTime = time.Second

// connKey is the set of properties that calls must share to use one connection.
type connKey struct {
	address, protocol, user, realUser string
	kerberos                          string
	token                             string // identifier and password
}

func (c ClientConfig) withDefaults() ClientConfig {
	set := func(v *time.Duration, d time.Duration) {
		if *v <= 0 {
			*v = d
		}
	}
	setInt := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	set(&c.ConnectTime, 20*time.Second)
	set(&c.PingInterval, time.Minute)
	set(&c.IdleTime, 10*time.Second)
	set(&c.StallTime, time.Minute)
	setInt(&c.MaxResponse, 128<<20)
	setInt(&c.MaxPending, 16<<20)
	setInt(&c.MaxCallsPerConn, 65_536)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Dial == nil {
		d := net.Dialer{Control: DropUnacknowledged(c.StallTime)}
		c.Dial = func(
			ctx context.Context,
			address string,
		) (net.Conn, error) {
			return d.DialContext(ctx, "tcp", address)
		}
	}
	return c
}

// NewClient makes a Client with a random client id. It starts nothing before the first call. The caller must close it.
func NewClient(cfg ClientConfig) *Client {
	var id [16]byte
	rand.Read(id[:])
	c := &Client{cfg: cfg.withDefaults(), id: string(id[:]), refusalTime: refusalTime,
		conns: map[connKey]*clientConn{}, refusals: map[connKey]*RemoteError{}}
	c.base, c.cancel = context.WithCancel(context.Background())
	return c
}

// Close ends all connections, fails waiting calls with ErrClosed, and waits for the client's goroutines.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	conns := make([]*clientConn, 0, len(c.conns))
	for _, cc := range c.conns {
		conns = append(conns, cc)
	}
	c.mu.Unlock()
	c.cancel()
	for _, cc := range conns {
		cc.fail("close", ErrClosed)
	}
	c.wg.Wait()
	return nil
}

// Connections returns the number of connections that are open or being opened.
func (c *Client) Connections() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.conns)
}

// nextID numbers the calls of the whole client in 31 bits, like Hadoop's clients.
func (c *Client) nextID() int32 { return int32(c.lastID.Add(1) & 0x7fffffff) }

// Peer prepares a target for repeated calls. It occupies no resource.
func (c *Client) Peer(t Target) *Peer {
	if t.Version == 0 {
		t.Version = 1
	}
	p := &Peer{client: c, target: t}
	p.key = connKey{address: t.Address, protocol: t.Protocol, user: t.Login.User, realUser: t.Login.RealUser}
	if k := t.Login.Kerberos; k != nil {
		p.key.kerberos = fmt.Sprintf("%d:%s%s", len(k.Principal), k.Principal, k.Key)
	}
	if k := t.Login.Credential; k != nil {
		p.key.token = fmt.Sprintf("%d:%s%s%q", len(k.Identifier), k.Identifier, k.Password, k.Protections)
	}
	return p
}

// Peer is one target of a Client. It is safe for concurrent use.
type Peer struct {
	client *Client
	target Target
	key    connKey
	conn   atomic.Pointer[clientConn] // the last connection, usually alive
	only   bool                       // no other connection is possible: the login cannot be repeated
}

// Target is the target that the Peer was made for.
func (p *Peer) Target() Target { return p.target }

// Call sends a request, waits for its answer, and decodes it into response, which should be empty. The error is a
// *RemoteError, a *TransportError, or wraps ctx's error. If ctx ends first, the call is abandoned: the server may still
// serve it, and its answer is dropped. If the server rejects the login's user (AuthorizationException), calls within
// the next second return the same error without a request.
func (p *Peer) Call(ctx context.Context, method string, request, response proto.Message) error {
	_, err := p.do(ctx, method, request, nil, false, response)
	return err
}

// CallRaw is Call for encoded messages. The answer belongs to the caller.
func (p *Peer) CallRaw(ctx context.Context, method string, request []byte) ([]byte, error) {
	return p.do(ctx, method, nil, request, true, nil)
}

func (p *Peer) do(
	ctx context.Context,
	method string,
	request proto.Message,
	raw []byte,
	isRaw bool,
	response proto.Message,
) ([]byte, error) {
	options, _ := ctx.Value(optionsKey{}).(*CallOptions)
	interceptors := p.client.cfg.Interceptors
	if len(interceptors) == 0 {
		return p.send(ctx, method, options, request, raw, isRaw, response)
	}
	var o CallOptions
	if options != nil {
		o = *options
	}
	dones := make([]func(error), 0, len(interceptors))
	for _, i := range interceptors {
		if done := i(ctx, &p.target, method, &o); done != nil {
			dones = append(dones, done)
		}
	}
	answer, err := p.send(ctx, method, &o, request, raw, isRaw, response)
	for _, done := range slices.Backward(dones) {
		done(err)
	}
	return answer, err
}

// send is one call without interceptors.
func (p *Peer) send(
	ctx context.Context,
	method string,
	options *CallOptions,
	request proto.Message,
	raw []byte,
	isRaw bool,
	response proto.Message,
) ([]byte, error) {
	if ctx.Err() != nil { // otherwise the server would serve an abandoned call
		return nil, &TransportError{Op: "write", Address: p.target.Address, Err: context.Cause(ctx)}
	}
	w := waiters.Get().(*waiter)
	w.response, w.isRaw = response, isRaw
	for {
		cc, err := p.connect(ctx)
		if err != nil {
			w.put()
			return nil, err
		}
		id := p.client.nextID()
		frame, err := p.encode(id, method, options, request, raw, isRaw)
		if err != nil {
			w.put()
			return nil, fmt.Errorf("hrpc: %s: the request cannot be encoded: %w", method, err)
		}
		if err := cc.waitRoom(ctx); err != nil {
			putBuffer(frame)
			w.put()
			return nil, err
		}
		waiting, err := cc.register(id, w)
		if waiting == 0 {
			putBuffer(frame)
			if err != nil {
				w.put()
				return nil, err
			}
			continue // the connection died and sent nothing: use a new one
		}
		cc.w.post(frame, waiting > 1) // a failure arrives through the waiter
		putBuffer(frame)
		return cc.await(ctx, id, method, w)
	}
}

func (p *Peer) encode(
	id int32,
	method string,
	options *CallOptions,
	request proto.Message,
	raw []byte,
	isRaw bool,
) ([]byte, error) {
	retry := int32(0)
	if options != nil {
		retry = options.RetryCount
	}
	b := append(getBuffer(0), 0, 0, 0, 0)
	b = appendRequestHeader(b, id, retry, p.client.id, options)
	b = appendCallHeader(b, method, p.target.Protocol, p.target.Version)
	var err error
	if isRaw {
		b, err = appendRaw(b, raw)
	} else {
		b, err = appendMessage(b, request)
	}
	if err != nil {
		putBuffer(b)
		return nil, err
	}
	putLength(b)
	return b, nil
}

// connect returns a ready connection, and opens one if there is none.
func (p *Peer) connect(ctx context.Context) (*clientConn, error) {
	if cc := p.conn.Load(); cc != nil && cc.alive() {
		return cc, nil
	}
	if p.only {
		return nil, &TransportError{Op: "login", Address: p.target.Address, Sent: true, Err: errRelayEnded}
	}
	c := p.client
	for {
		c.mu.Lock()
		if c.closed {
			c.mu.Unlock()
			return nil, &TransportError{Op: "dial", Address: p.target.Address, Err: ErrClosed}
		}
		if e := c.refusals[p.key]; e != nil {
			c.mu.Unlock()
			return nil, e
		}
		cc := c.conns[p.key]
		if cc == nil {
			cc = newClientConn(c, p.key, &p.target)
			c.conns[p.key] = cc
			c.wg.Add(1)
			go cc.run()
		}
		c.mu.Unlock()
		select {
		case <-cc.ready:
		case <-ctx.Done():
			return nil, &TransportError{Op: "dial", Address: p.target.Address, Err: context.Cause(ctx)}
		}
		if cc.refused != nil {
			return nil, cc.refused
		}
		if cc.alive() {
			p.conn.Store(cc)
			return cc, nil
		}
		c.forget(cc) // usually its goroutine has done so
	}
}

// noteRefusal records for refusalTime that a server rejects the user of a connection.
func (c *Client) noteRefusal(key connKey, e *RemoteError) {
	c.mu.Lock()
	c.refusals[key] = e
	c.mu.Unlock()
	time.AfterFunc(c.refusalTime, func() {
		c.mu.Lock()
		delete(c.refusals, key)
		c.mu.Unlock()
	})
}

func (c *Client) forget(cc *clientConn) {
	c.mu.Lock()
	if c.conns[cc.key] == cc {
		delete(c.conns, cc.key)
	}
	c.mu.Unlock()
}

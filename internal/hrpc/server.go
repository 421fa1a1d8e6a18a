// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel/internal/ratelog"
	"github.com/creelrm/creel/internal/workerpool"
)

// Server serves Hadoop RPC on one listener.
type Server struct {
	cfg      Config
	services map[string]*service
	newNonce func() string // of DIGEST-MD5 challenges
	shallow  time.Duration // shallowTime

	base     context.Context // ends when the server is stopped hard
	hardStop context.CancelFunc
	ran      atomic.Bool
	draining atomic.Bool
	made     time.Time
	epoch    atomic.Uint32 // ticks of the sweeper: a clock that one atomic load reads
	wg       sync.WaitGroup
	requests *budget
	shares   *shares // of requests
	replies  *budget

	workers *workerpool.Pool[work] // closed when no more work can be submitted

	mu         sync.Mutex // guards the two maps, at connect and disconnect
	conns      map[*conn]struct{}
	perAddress map[netip.Addr]int

	inFlight atomic.Int64
	refusing atomic.Int64
	stats    counters

	refusedLine, slowLine ratelog.Line
}

// service is a Service prepared for dispatch.
type service struct {
	protocol string
	version  uint64
	methods  map[string]*method
	other    *Method
	tally    tally // of the methods that other serves
}

type method struct {
	Method
	name  string
	tally *tally
}

// tally counts a method's answered calls.
type tally struct{ calls, failed, nanos atomic.Uint64 }

type counters struct {
	accepted, refused, slow, authFailed, calls, failed, busy, bytesIn, bytesOut atomic.Uint64

	waiting              atomic.Int64  // calls handed to a goroutine that has not begun
	waited               atomic.Uint64 // ns
	deferred, deferredNs atomic.Uint64
}

// Stats is a server's activity and memory, for observable instruments.
type Stats struct {
	Connections   int    // open now
	CallsInFlight int64  // accepted and not answered, without current inline calls
	Waiting       int64  // of these, calls whose handler has not begun
	RequestBytes  int64  // of incomplete or unanswered requests, above 1 KiB each
	ReplyBytes    int64  // queued on connections that do not read
	Accepted      uint64 // connections since the start
	Refused       uint64 // connections above a limit
	Slow          uint64 // connections closed because a request did not arrive in time
	AuthFailed    uint64 // handshakes ended as unauthorized
	Calls         uint64 // calls dispatched, counted when their batch is done
	Failed        uint64 // of these, answered with an error
	Busy          uint64 // calls rejected above a limit
	BytesIn       uint64 // read from connections, counted when their batch is done
	BytesOut      uint64 // written to connections

	Waited       time.Duration // sum of the times from dispatch to handler
	Deferred     uint64        // calls answered after their handler returned, as by Later
	DeferredTime time.Duration // sum of the times from dispatch to answer of these
}

// MethodStats are the answered calls of one method since the start.
type MethodStats struct {
	Protocol, Method string // Method is "" for all methods that Service.Other serves
	Calls, Failed    uint64
	Time             time.Duration // sum of the times from dispatch to answer
}

// Methods returns the statistics of methods with at least one answered call, by protocol and name.
func (s *Server) Methods() (all []MethodStats) {
	add := func(protocol, name string, t *tally) {
		m := MethodStats{protocol, name, t.calls.Load(), t.failed.Load(), time.Duration(t.nanos.Load())}
		if m.Calls > 0 {
			all = append(all, m)
		}
	}
	for _, v := range s.services {
		for name, m := range v.methods {
			add(v.protocol, name, m.tally)
		}
		add(v.protocol, "", &v.tally)
	}
	slices.SortFunc(all, func(a, b MethodStats) int {
		return cmp.Or(strings.Compare(a.Protocol, b.Protocol), strings.Compare(a.Method, b.Method))
	})
	return all
}

// NewServer checks a Config and makes a Server from it. It starts nothing.
func NewServer(cfg Config) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	requests := &budget{limit: cfg.MaxRequestBytes}
	s := &Server{
		cfg:        cfg,
		made:       time.Now(),
		services:   map[string]*service{},
		newNonce:   randomNonce,
		shallow:    shallowTime,
		workers:    workerpool.New(work.do),
		requests:   requests,
		shares:     newShares(requests, cfg.MaxFrame),
		replies:    &budget{limit: cfg.MaxReplyBytesTotal},
		conns:      map[*conn]struct{}{},
		perAddress: map[netip.Addr]int{},
	}
	for _, v := range cfg.Services {
		svc := &service{protocol: v.Protocol, version: v.Version, methods: map[string]*method{}, other: v.Other}
		for name, m := range v.Methods {
			svc.methods[name] = &method{Method: m, name: name, tally: &tally{}}
		}
		s.services[v.Protocol] = svc
	}
	return s, nil
}

// Stats may be called at any time.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	open := len(s.conns)
	s.mu.Unlock()
	return Stats{
		Connections:   open,
		CallsInFlight: s.inFlight.Load(),
		RequestBytes:  s.requests.used.Load(),
		ReplyBytes:    s.replies.used.Load(),
		Accepted:      s.stats.accepted.Load(),
		Refused:       s.stats.refused.Load(),
		Slow:          s.stats.slow.Load(),
		AuthFailed:    s.stats.authFailed.Load(),
		Calls:         s.stats.calls.Load(),
		Failed:        s.stats.failed.Load(),
		Busy:          s.stats.busy.Load(),
		BytesIn:       s.stats.bytesIn.Load(),
		BytesOut:      s.stats.bytesOut.Load(),
		Waiting:       s.stats.waiting.Load(),
		Waited:        time.Duration(s.stats.waited.Load()),
		Deferred:      s.stats.deferred.Load(),
		DeferredTime:  time.Duration(s.stats.deferredNs.Load()),
	}
}

// Run accepts connections from the listener and serves them until ctx ends, then drains. To drain, it stops reading and
// waits up to Config.DrainTime for the calls in flight and their answers. Then it cancels the rest, closes everything
// and returns nil. It waits for every handler: a handler that ignores its context blocks Run. Run closes the listener.
// A Server runs once.
func (s *Server) Run(ctx context.Context, listener net.Listener) error {
	defer listener.Close()
	if !s.ran.CompareAndSwap(false, true) {
		return errors.New("hrpc: Server.Run was called before: make a new Server")
	}
	s.base, s.hardStop = context.WithCancel(context.WithoutCancel(ctx))
	defer s.hardStop()
	defer context.AfterFunc(ctx, func() { listener.Close() })()

	swept := make(chan struct{})
	go func() {
		defer close(swept)
		s.sweep(s.base)
	}()
	err := s.accept(ctx, listener)
	s.drain()
	s.wg.Wait()
	s.workers.Close()
	s.hardStop()
	<-swept
	return err
}

func (s *Server) accept(ctx context.Context, listener net.Listener) error {
	pause := 5 * time.Millisecond
	for {
		nc, err := listener.Accept()
		switch {
		case err == nil:
			pause = 5 * time.Millisecond
			s.admit(nc)
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("hrpc: accept: %w", err)
		default: // no free file descriptors, or a connection that died in the queue
			s.cfg.Logger.Warn("accept failed", "error", err, "pause", pause)
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
			pause = min(2*pause, time.Second)
		}
	}
}

// admit starts serving a connection, or rejects it above a limit.
func (s *Server) admit(nc net.Conn) {
	s.stats.accepted.Add(1)
	c, err := newConn(s, nc)
	if err != nil {
		s.cfg.Logger.Error("connection dropped", "error", err)
		nc.Close()
		return
	}
	address := c.remote.Addr()
	s.mu.Lock()
	var busy *Error
	switch {
	case len(s.conns) >= s.cfg.MaxConnections:
		busy = Busy("the server has %d connections, its limit: try again later", len(s.conns))
	case s.cfg.MaxPerAddress > 0 && s.perAddress[address] >= s.cfg.MaxPerAddress:
		busy = Busy(
			"%s has %d connections here, the limit of an address: close some or try again later",
			address,
			s.perAddress[address],
		)
	default:
		s.conns[c] = struct{}{}
		s.perAddress[address]++
	}
	s.mu.Unlock()
	if busy != nil {
		s.refuse(nc, busy)
		return
	}
	c.ctx = s.base
	_ = c.drawOn(s.shares.join(address, "")) // it occupies no memory yet
	s.wg.Add(1)
	go c.run()
}

func (s *Server) forget(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	a := c.remote.Addr()
	if s.perAddress[a]--; s.perAddress[a] <= 0 {
		delete(s.perAddress, a)
	}
	s.mu.Unlock()
}

const (
	maxRefusing = 128         // maximum number of simultaneous answers to rejected connections
	lingerTime  = time.Second // for a peer to read an answer that ends its connection
)

// refuse answers a client with "busy". A goroutine waits a moment for the client to read the answer. If too many
// clients are rejected at the same time, further connections are only closed. Clients treat that as "try again" too.
func (s *Server) refuse(nc net.Conn, busy *Error) {
	s.stats.refused.Add(1)
	if count, write := s.refusedLine.Happened(time.Now()); write {
		s.cfg.Logger.Warn("RPC port: connections were refused above a limit",
			"count", count, "last_from", nc.RemoteAddr().String(), "why", busy.Message,
			"try", "find out which client that is; creel.ipc.server.max-connections and -per-address allow more")
	}
	if s.refusing.Add(1) > maxRefusing {
		s.refusing.Add(-1)
		nc.Close()
		return
	}
	s.wg.Add(1)
	go func() {
		defer s.wg.Done()
		defer s.refusing.Add(-1)
		defer nc.Close()
		e := *busy
		e.Detail = DetailFatalUnknown
		nc.SetWriteDeadline(time.Now().Add(lingerTime))
		if _, err := nc.Write(appendErrorFrame(nil, idUnauthorized, -1, "", &e)); err == nil {
			linger(nc)
		}
	}()
}

// linger waits for the peer to read the answer. Closing a socket with unread bytes would reset the connection and
// discard the answer.
func linger(nc net.Conn) {
	if half, ok := nc.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
	}
	nc.SetReadDeadline(time.Now().Add(lingerTime))
	var b [512]byte // io.Discard would use 8 KiB during the peer's silence
	for n, most := 0, 1<<20; n < most; {
		m, err := nc.Read(b[:])
		if err != nil {
			return
		}
		n += m
	}
}

// drain stops reading on all connections and bounds the wait for their calls.
func (s *Server) drain() {
	s.draining.Store(true)
	s.mu.Lock()
	open := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		open = append(open, c)
	}
	s.mu.Unlock()
	for _, c := range open {
		c.nc.SetReadDeadline(time.Unix(1, 0))
	}
	timer := time.AfterFunc(s.cfg.DrainTime, s.hardStop)
	s.wg.Wait()
	timer.Stop()
}

// slowFrames is the number of StallTimes that a frame may take while its bytes keep arriving. A peer that sends single
// bytes slowly must not occupy a large buffer for ever. At the defaults the largest frame may arrive at 450 kB a
// second.
const slowFrames = 5

// shallowTime is the silence after which a connection frees the stack that its calls have grown. It exceeds the
// interval between two heartbeats of an AM or a node.
const shallowTime = 3 * time.Second

// sweep closes connections that exceed a time limit. It runs on ticks, so that no connection needs a timer.
func (s *Server) sweep(ctx context.Context) {
	shortest := min(s.cfg.HandshakeTime, s.cfg.IdleTime, s.cfg.StallTime)
	tick := min(max(shortest/8, 5*time.Millisecond), time.Second)
	ticks := func(d time.Duration) uint32 { return uint32(d/tick) + 1 }
	handshake, idle, stall := ticks(s.cfg.HandshakeTime), ticks(s.cfg.IdleTime), ticks(s.cfg.StallTime)
	slowest := ticks(slowFrames * s.cfg.StallTime)
	shallow := ticks(s.shallow)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	type verdict struct {
		c    *conn
		why  string
		slow bool // its request did not arrive in time
	}
	var condemned []verdict
	var deep []*conn
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := s.epoch.Add(1)
		condemned, deep = condemned[:0], deep[:0]
		s.mu.Lock()
		crowded := len(s.conns) >= s.cfg.IdleThreshold
		for c := range s.conns {
			quiet := now - c.seen.Load()
			switch {
			case !c.ready.Load():
				if now-c.born > handshake {
					condemned = append(condemned, verdict{c, "the handshake took too long", true})
				}
			case c.partial.Load() && (quiet > stall || now-c.began.Load() > slowest):
				condemned = append(condemned, verdict{c, "a frame was begun and not ended", true})
			case crowded && quiet > idle && c.idle():
				condemned = append(condemned, verdict{c, "idle", false})
			case quiet > shallow && c.deep.Load():
				deep = append(deep, c)
			}
		}
		s.mu.Unlock()
		for _, c := range deep {
			if !s.draining.Load() {
				c.giveWay()
			}
		}
		for _, v := range condemned {
			s.cfg.Logger.Debug("connection closed", "remote", v.c.remote, "why", v.why)
			if v.slow {
				s.tooSlow(v.c, v.why)
			}
			v.c.nc.Close()
		}
	}
}

// tooSlow counts a connection closed because its request did not arrive in time.
func (s *Server) tooSlow(c *conn, why string) {
	s.stats.slow.Add(1)
	if count, write := s.slowLine.Happened(time.Now()); write {
		s.cfg.Logger.Warn("RPC port: closed slow connections",
			"count", count, "last_from", c.remote.String(), "why", why,
			"try", "find out which client that is, and block unknown clients from the port")
	}
}

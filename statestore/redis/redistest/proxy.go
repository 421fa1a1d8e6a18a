// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy is a TCP path to a server that can cut, silence or delay connections.
type Proxy struct {
	Addr   string
	target string
	listen net.Listener
	wg     sync.WaitGroup

	mu     sync.Mutex
	cut    bool
	delay  time.Duration
	silent chan struct{} // if not nil, bytes wait until it is closed
	mute   chan struct{} // the same for the server's bytes alone
	conns  map[net.Conn]struct{}
	closed bool
}

// NewProxy opens a path to target until the test ends.
func NewProxy(tb testing.TB, target string) *Proxy {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{Addr: l.Addr().String(), target: target, listen: l, conns: map[net.Conn]struct{}{}}
	p.wg.Add(1)
	go p.accept()
	tb.Cleanup(p.Close)
	return p
}

// Cut closes all connections and rejects new ones.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	for c := range p.conns {
		_ = c.Close()
	}
}

// Silence holds back all bytes in both directions; connections stay open and new ones are accepted.
func (p *Proxy) Silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silent == nil {
		p.silent = make(chan struct{})
	}
}

// Mute holds back the server's bytes. Those of clients arrive.
func (p *Proxy) Mute() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mute == nil {
		p.mute = make(chan struct{})
	}
}

// Delay delays each chunk of bytes by d.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Heal ends all faults and forwards held bytes.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut, p.delay = false, 0
	for _, held := range []*chan struct{}{&p.silent, &p.mute} {
		if *held != nil {
			close(*held)
			*held = nil
		}
	}
}

// Close ends the path and waits for its goroutines.
func (p *Proxy) Close() {
	p.Heal()
	p.mu.Lock()
	p.closed = true
	_ = p.listen.Close()
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.wg.Wait()
}

func (p *Proxy) accept() {
	defer p.wg.Done()
	for {
		c, err := p.listen.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		p.wg.Add(1)
		go p.serve(c)
	}
}

// track records a connection; false if the path is cut or closed.
func (p *Proxy) track(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut || p.closed {
		_ = c.Close()
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *Proxy) drop(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
	_ = c.Close()
}

func (p *Proxy) serve(c net.Conn) {
	defer p.wg.Done()
	if !p.track(c) {
		return
	}
	defer p.drop(c)
	up, err := net.Dial("tcp", p.target)
	if err != nil || !p.track(up) {
		return
	}
	defer p.drop(up)
	back := make(chan struct{})
	go func() {
		defer close(back)
		p.pump(c, up, true)
		_ = c.Close()
	}()
	p.pump(up, c, false)
	_ = up.Close()
	<-back
}

func (p *Proxy) pump(to io.Writer, from io.Reader, answers bool) {
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if n > 0 {
			p.mu.Lock()
			delay, silent, mute := p.delay, p.silent, p.mute
			p.mu.Unlock()
			if delay > 0 {
				time.Sleep(delay)
			}
			if silent != nil {
				<-silent
			}
			if answers && mute != nil {
				<-mute
			}
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

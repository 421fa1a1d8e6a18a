// SPDX-License-Identifier: Apache-2.0

package routertest

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Relay is the network between routers and one port of a member. It can be cut, and it can hold back the member's
// answers.
type Relay struct {
	Address  string
	Answered atomic.Int64 // bytes that the member sent
	to       string
	wait     sync.WaitGroup

	mu    sync.Mutex
	l     net.Listener
	conns map[net.Conn]bool
	cut   bool
	held  chan struct{} // non-nil: answers wait until it is closed
	heard func()        // called on the first delayed answer
}

func relay(t testing.TB, to string) *Relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &Relay{Address: l.Addr().String(), to: to, l: l, conns: map[net.Conn]bool{}}
	r.wait.Go(func() { r.serve(l) })
	t.Cleanup(func() {
		r.Cut()
		r.wait.Wait()
	})
	return r
}

func (r *Relay) serve(l net.Listener) {
	for {
		in, err := l.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		cut := r.cut
		r.conns[in] = true
		r.mu.Unlock()
		if cut {
			r.drop(in)
			continue
		}
		out, err := net.Dial("tcp", r.to)
		if err != nil {
			r.drop(in)
			continue
		}
		r.mu.Lock()
		r.conns[out] = true
		cut = r.cut
		r.mu.Unlock()
		if cut {
			r.drop(in)
			r.drop(out)
			continue
		}
		r.wait.Go(func() { r.copy(out, in, false) })
		r.wait.Go(func() { r.copy(in, out, true) })
	}
}

func (r *Relay) drop(c net.Conn) {
	c.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, c)
}

// copy copies bytes in one direction until either end closes, then closes both.
func (r *Relay) copy(to, from net.Conn, answers bool) {
	defer r.drop(to)
	defer r.drop(from)
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if answers && n > 0 {
			r.Answered.Add(int64(n))
			r.mu.Lock()
			held, heard := r.held, r.heard
			r.heard = nil
			r.mu.Unlock()
			if held != nil {
				if heard != nil {
					heard()
				}
				<-held
			}
		}
		if n > 0 {
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// Cut ends all connections and refuses new ones until Mend. Requests sent meanwhile certainly do not arrive.
func (r *Relay) Cut() {
	r.mu.Lock()
	r.l.Close()
	r.mu.Unlock()
	r.Mute()
}

// Mute ends all connections, and accepts new ones only to end them, until Mend. Callers do not know whether a request
// has arrived.
func (r *Relay) Mute() {
	r.mu.Lock()
	r.cut = true
	for c := range r.conns {
		c.Close()
	}
	r.mu.Unlock()
	r.Release()
}

// Mend lets connections through again.
func (r *Relay) Mend() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = false
	r.l.Close()
	for { // the port is free: the relay had it, and the system does not assign it to other sockets
		l, err := net.Listen("tcp", r.Address)
		if err == nil {
			r.l = l
			r.wait.Go(func() { r.serve(l) })
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// Hold delays the member's answers until Release. heard is called on the first such answer: the member has processed
// a request, and the router has no answer.
func (r *Relay) Hold(heard func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held, r.heard = make(chan struct{}), heard
}

// Release sends the delayed answers.
func (r *Relay) Release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held != nil {
		close(r.held)
		r.held = nil
	}
	r.heard = nil
}

// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"net"
	"sync"
	"testing"
	"time"
)

// path is a network path to one port. It can delay bytes in either direction, in order within a connection. It accepts
// a connection at once; only the data is late.
type path struct {
	address string
	to      string
	wait    sync.WaitGroup

	mu     sync.Mutex
	late   [2]time.Duration // delay of the data read now
	until  time.Time        // data is also late until then
	loses  [2]bool          // drop data read now
	conns  map[net.Conn]bool
	closed bool
	listen net.Listener
}

// The directions of a path.
const (
	thither = iota // requests
	hither         // responses
)

// newPath opens a path to a port until the test ends.
func newPath(t testing.TB, to string) *path {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &path{address: l.Addr().String(), to: to, conns: map[net.Conn]bool{}, listen: l}
	p.wait.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			p.wait.Go(func() { p.carry(in) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.mu.Lock()
		p.closed = true
		for c := range p.conns {
			c.Close()
		}
		p.mu.Unlock()
		p.wait.Wait()
	})
	return p
}

// slow delays a direction by d from now on; 0 ends the delay for later data.
func (p *path) slow(direction int, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.late[direction] = d
}

// cut delays all data sent within the next d to the end of that time, as retransmission does.
func (p *path) cut(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = time.Now().Add(d)
}

// lose drops all data sent in a direction from now on.
func (p *path) lose(direction int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.loses[direction] = true
}

// heal ends the loss and closes all connections, because some have lost data.
func (p *path) heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.loses = [2]bool{}
	for c := range p.conns {
		c.Close()
	}
}

// refuse closes the port and all connections.
func (p *path) refuse() {
	p.listen.Close()
	p.heal()
}

func (p *path) carry(in net.Conn) {
	out, err := net.Dial("tcp", p.to)
	if err != nil {
		in.Close()
		return
	}
	p.mu.Lock()
	if p.closed {
		in.Close()
		out.Close()
	}
	p.conns[in], p.conns[out] = true, true
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { p.pump(out, in, thither) })
	both.Go(func() { p.pump(in, out, hither) })
	both.Wait()
	p.mu.Lock()
	delete(p.conns, in)
	delete(p.conns, out)
	p.mu.Unlock()
	in.Close()
	out.Close()
}

// piece is the data of one read, nil at the end.
type piece struct {
	due   time.Time
	bytes []byte
}

// pump forwards one direction of a connection until its end. The end is delayed too.
func (p *path) pump(to, from net.Conn, direction int) {
	pieces := make(chan piece, 1024)
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(pieces)
		b := make([]byte, 32<<10)
		for {
			n, err := from.Read(b)
			p.mu.Lock()
			due := time.Now().Add(p.late[direction])
			if p.until.After(due) {
				due = p.until
			}
			lost := p.loses[direction]
			p.mu.Unlock()
			if n > 0 && !lost {
				pieces <- piece{due, append([]byte(nil), b[:n]...)}
			}
			if err != nil {
				pieces <- piece{due: due}
				return
			}
		}
	})
	for piece := range pieces {
		p.mu.Lock()
		closed := p.closed
		p.mu.Unlock()
		if !closed {
			time.Sleep(time.Until(piece.due))
		}
		if piece.bytes != nil {
			_, _ = to.Write(piece.bytes) // a closed connection reads no more
		} else if half, ok := to.(*net.TCPConn); ok {
			_ = half.CloseWrite()
		}
	}
	reader.Wait()
}

// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"errors"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// writer sends frames on a socket for many goroutines without blocking any of them. A goroutine that finds no active
// writer becomes the writer. It writes its own frame as far as the socket accepts it at once. Then it writes frames
// that others queued meanwhile, so that simultaneous frames are sent together. A separate goroutine sends the bytes
// that the socket did not accept, and runs while the socket is full.
//
// The lock guards the queue. No goroutine makes a system call under the lock.
type writer struct {
	conn    net.Conn
	raw     syscall.RawConn
	onWrite func(fd uintptr) bool // writeReady, bound once
	stall   time.Duration
	wg      *sync.WaitGroup // counts the goroutine
	shared  *budget         // bytes queued on connections that do not read; nil: unbounded
	failed  func(error)     // called once when the socket becomes unusable
	sent    *atomic.Uint64  // bytes that the socket accepted; nil: not counted

	// wrap, when set, seals bytes before they are written (auth-int). Only the active writer calls it, in the order
	// of writing.
	wrap func(dst, plain []byte) []byte

	mu       sync.Mutex
	pending  []byte        // queued behind the active writer
	queued   int           // bytes pending, or not accepted by a full socket
	writing  bool          // a goroutine is writing
	draining bool          // the separate goroutine writes, because the socket is full
	charged  int64         // bytes taken from shared while draining
	err      error         // the first failure; the writer is dead
	room     chan struct{} // closed when the queue has shrunk or the writer died
	roomAt   int

	// Owned by the active writer.
	out    []byte
	n      int
	outErr error
	rounds int
}

var errStalled = errors.New("the peer does not read")

func (w *writer) init(conn net.Conn, raw syscall.RawConn) {
	w.conn, w.raw = conn, raw
	w.onWrite = w.writeReady
}

func (w *writer) writeReady(fd uintptr) bool {
	w.n, w.outErr = writeSocket(fd, w.out)
	return true
}

// hold queues bytes for the next send.
func (w *writer) hold(b []byte) {
	w.mu.Lock()
	w.pending = append(w.pending, b...)
	w.queued += len(b)
	w.mu.Unlock()
}

// send writes or queues b without blocking; the caller owns b again on return. It returns the number of bytes now
// queued.
func (w *writer) send(b []byte) (queued int, err error) { return w.post(b, false) }

// post is send with a hint. company means that other goroutines are about to send too. The writer lets them run first,
// so that one system call sends everything.
func (w *writer) post(b []byte, company bool) (queued int, err error) {
	w.mu.Lock()
	if company && !w.writing && w.err == nil {
		w.writing = true
		w.mu.Unlock()
		runtime.Gosched()
		w.mu.Lock()
		w.writing = false // frames queued meanwhile are sent before b
	}
	if w.err != nil {
		w.mu.Unlock()
		return 0, w.err
	}
	if w.writing || len(w.pending) > 0 {
		if !w.queue(b) {
			w.mu.Unlock()
			w.fail(errStalled)
			return 0, errStalled
		}
		queued = w.queued
		if w.writing {
			w.mu.Unlock()
			return queued, nil
		}
		b, w.pending, w.queued = w.pending, nil, 0
		defer putBuffer(b)
	}
	w.writing = true
	w.rounds = 0
	w.mu.Unlock()
	return w.flush(b)
}

// queue appends b to the queue of the active writer. False means that too many bytes are queued for peers that do not
// read. The caller holds the lock.
func (w *writer) queue(b []byte) bool {
	if w.draining {
		if !w.shared.take(int64(len(b))) {
			return false
		}
		w.charged += int64(len(b))
	}
	w.pending = append(growBuffer(w.pending, len(b)), b...)
	w.queued += len(b)
	return true
}

// later queues b and leaves the writing to a goroutine. Goroutines that own some state use it for answers: they should
// not spend time on system calls.
func (w *writer) later(b []byte) {
	w.mu.Lock()
	if w.err != nil {
		w.mu.Unlock()
		return
	}
	ok, first := w.queue(b), !w.writing
	if ok && first {
		w.writing, w.rounds = true, 0
		w.wg.Add(1)
		go w.flushQueued()
	}
	w.mu.Unlock()
	if !ok {
		w.fail(errStalled)
	}
}

func (w *writer) flushQueued() {
	defer w.wg.Done()
	w.mu.Lock()
	b := w.pending
	w.pending, w.queued = nil, 0
	w.mu.Unlock()
	w.flush(b)
	putBuffer(b)
}

// maxRounds bounds the rounds in which a goroutine writes frames of others.
const maxRounds = 8

// flush writes b and frames queued meanwhile. The caller is the active writer.
func (w *writer) flush(b []byte) (int, error) {
	mine := false // whether flush must return b to a pool
	for {
		plain := b
		if w.wrap != nil {
			b = w.wrap(getBuffer(0), plain)
		}
		w.out = b
		err := w.raw.Write(w.onWrite)
		if err == nil {
			err = w.outErr
		}
		if err != nil {
			w.fail(err)
			return 0, err
		}
		w.count(w.n)
		left := b[w.n:]
		w.out = nil
		w.mu.Lock()
		if w.err != nil { // no further goroutine may start
			err := w.err
			w.mu.Unlock()
			return 0, err
		}
		if len(left) == 0 && len(w.pending) == 0 {
			w.writing = false
			w.wake()
			w.mu.Unlock()
			w.putBack(b, plain, mine)
			return 0, nil
		}
		if len(left) > 0 || w.rounds >= maxRounds {
			rest := append(getBuffer(len(left)), left...)
			w.queued += len(left)
			queued := w.queued
			w.draining = true
			w.wg.Add(1)
			w.mu.Unlock()
			w.putBack(b, plain, mine)
			if !w.charge(queued) {
				w.wg.Done()
				w.fail(errStalled)
				return 0, errStalled
			}
			go w.drain(rest)
			return queued, nil
		}
		next := w.pending
		w.pending, w.queued = nil, 0
		w.mu.Unlock()
		w.putBack(b, plain, mine)
		b, mine = next, true
		w.rounds++
	}
}

func (w *writer) putBack(b, plain []byte, mine bool) {
	if w.wrap != nil {
		putBuffer(b)
	}
	if mine {
		putBuffer(plain)
	}
}

// drain writes the queue, blocking, until it is empty. rest is already sealed if wrap is set.
func (w *writer) drain(rest []byte) {
	defer w.wg.Done()
	const chunk = 256 << 10 // bytes per deadline; a deadline after a partial write is no stall
	for {
		for b := rest; len(b) > 0; {
			w.conn.SetWriteDeadline(time.Now().Add(w.stall))
			n, err := w.conn.Write(b[:min(len(b), chunk)])
			if err != nil && (n == 0 || !errors.Is(err, os.ErrDeadlineExceeded)) {
				if errors.Is(err, os.ErrDeadlineExceeded) {
					err = errStalled
				}
				w.fail(err)
				return
			}
			b = b[n:]
			w.taken(n)
		}
		putBuffer(rest)
		w.conn.SetWriteDeadline(time.Time{})
		w.mu.Lock()
		if w.err != nil || len(w.pending) == 0 {
			w.writing, w.draining, w.queued = false, false, 0
			w.shared.give(w.charged)
			w.charged = 0
			w.wake()
			w.mu.Unlock()
			return
		}
		rest = w.pending
		w.pending = nil
		w.mu.Unlock()
		if w.wrap != nil {
			plain := rest
			rest = w.wrap(getBuffer(0), plain)
			w.mu.Lock()
			w.queued += len(rest) - len(plain)
			w.mu.Unlock()
			putBuffer(plain)
		}
	}
}

// charge takes n queued bytes from the shared budget when the socket is full.
func (w *writer) charge(n int) bool {
	if !w.shared.take(int64(n)) {
		return false
	}
	w.mu.Lock()
	w.charged += int64(n)
	w.mu.Unlock()
	return true
}

// taken records that the socket accepted n bytes and wakes goroutines that wait for free space.
func (w *writer) taken(n int) {
	w.count(n)
	w.mu.Lock()
	w.queued = max(w.queued-n, 0)
	back := min(int64(n), w.charged)
	w.shared.give(back)
	w.charged -= back
	w.wake()
	w.mu.Unlock()
}

func (w *writer) count(n int) {
	if w.sent != nil && n > 0 {
		w.sent.Add(uint64(n))
	}
}

// wake wakes goroutines that wait for free space. The caller holds the lock.
func (w *writer) wake() {
	if w.room != nil && (w.err != nil || w.queued <= w.roomAt && (w.roomAt > 0 || !w.writing)) {
		close(w.room)
		w.room = nil
	}
}

// waitRoom returns a channel that is closed once at most n bytes are queued or the writer died (n = 0: everything is
// written). It returns nil if that is already true.
func (w *writer) waitRoom(n int) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil || w.queued <= n && (n > 0 || !w.writing) {
		return nil
	}
	if w.room == nil {
		w.room, w.roomAt = make(chan struct{}), n
	}
	w.roomAt = min(w.roomAt, n)
	return w.room
}

// idle reports whether nothing is queued or being written.
func (w *writer) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.writing && w.queued == 0
}

// dead reports whether the writer has failed: it sends nothing more.
func (w *writer) dead() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err != nil
}

// fail ends the writer. Only the first failure counts.
func (w *writer) fail(err error) {
	w.mu.Lock()
	first := w.err == nil
	if first {
		w.err = err
	}
	w.pending, w.queued = nil, 0
	w.shared.give(w.charged)
	w.charged = 0
	w.wake()
	w.mu.Unlock()
	if first && w.failed != nil {
		w.failed(err)
	}
}

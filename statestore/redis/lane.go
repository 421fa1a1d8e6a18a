// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	goredis "github.com/redis/go-redis/v9"
)

// call is one command for a server. A script is sent as EVALSHA, and as EVAL after the server
// answered that it does not know the script.
type call struct {
	args   []any
	key    string // determines the server
	script *script
	write  bool // replicas acknowledge it, if Wait is set
	once   bool // not repeated if it may have happened

	ctx  context.Context
	res  any
	err  error
	done chan struct{} // receives one value when res and err are set
}

// command makes a call of a plain command; its second word is the key.
func command(args ...any) *call { return &call{args: args, key: args[1].(string)} }

// reading makes a call of a read-only script.
func reading(sc *script, keys []string, args ...any) *call {
	all := make([]any, 0, 3+len(keys)+len(args))
	all = append(all, "EVALSHA", sc.hash, len(keys))
	for _, k := range keys {
		all = append(all, k)
	}
	return &call{args: append(all, args...), key: keys[0], script: sc}
}

// writing makes a call of a script that begins with the guard. Its first key is the slot's guard; its first four
// arguments are the fence's name and token, the identity, and whether replicas must acknowledge.
func (s *Store) writing(ctx context.Context, sc *script, guardKey, identity string, keys []string, args []any) *call {
	once := sc == moveScript || sc == acquireScript || sc == drainScript
	if e, ok := statestore.RecordingOf(ctx); ok && sc.recording != nil {
		sc = sc.recording
		keys, args = append(slices.Clip(keys), s.control("ev")), append(slices.Clip(args), eventArgs(e)...)
	}
	all := make([]any, 0, 8+len(keys)+len(args))
	all = append(all, "EVALSHA", sc.hash, 1+len(keys), guardKey)
	for _, k := range keys {
		all = append(all, k)
	}
	name, token, durable := "", "0", ""
	if l, ok := statestore.FenceOf(ctx); ok {
		name, token = ":"+l.Name, strconv.FormatInt(l.Token, 10)
	}
	if s.cfg.Wait > 0 {
		durable = "1"
	}
	all = append(all, name, token, identity, durable)
	return &call{args: append(all, args...), key: guardKey, script: sc, write: true, once: once}
}

// whole makes the call send its script's text.
func (c *call) whole() { c.args[0], c.args[1] = "EVAL", c.script.source }

// lane sends the calls of many callers to one server in shared pipelines. A call that arrives while pipelines are in
// flight waits for the next one. So pipelines grow with the load, and a single call is sent at once.
//
// The client's own pipelining (AutoPipeliner of go-redis, v9.23) cannot replace it. WAIT counts the replicas that have
// the last write of its own connection, and that client sends WAIT over another one. Here one WAIT ends each pipeline
// with writes, on their connection.
type lane struct {
	node *goredis.Client

	mu      sync.Mutex
	queue   []*call
	flights int
}

var errQueueFull = errors.New("too many requests wait for this server")

// lane finds the server of a key and the server's lane. The caller calls s.wg.Done when it is done with the lane.
func (s *Store) lane(ctx context.Context, key string) (*lane, error) {
	node, _ := s.client.(*goredis.Client)
	if s.cluster != nil {
		var err error
		if node, err = s.cluster.MasterForKey(ctx, key); err != nil {
			return nil, err
		}
	}
	addr := node.Options().Addr
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	s.wg.Add(1) // Close waits for the caller
	l := s.lanes[addr]
	if l == nil || l.node != node {
		l = &lane{node: node}
		s.lanes[addr] = l
	}
	return l, nil
}

// answers is a pool: a caller returns its channel after it has read the answer.
var answers = sync.Pool{New: func() any { return make(chan struct{}, 1) }}

// once sends a call and waits for its answer or the end of the context; in the latter case the call may still happen.
// On an idle lane the caller sends its own call, so that no other goroutine wakes up for it.
func (s *Store) once(ctx context.Context, c *call) error {
	l, err := s.lane(ctx, c.key)
	if err != nil {
		return err
	}
	defer s.wg.Done()
	c.ctx, c.res, c.err = ctx, nil, nil
	done := answers.Get().(chan struct{})
	c.done = done
	l.mu.Lock()
	if len(l.queue) >= s.cfg.MaxQueue {
		l.mu.Unlock()
		return errQueueFull
	}
	alone := l.flights == 0
	fly := l.flights < s.cfg.Flights
	if !alone {
		l.queue = append(l.queue, c)
	}
	if fly {
		l.flights++
		s.wg.Add(1)
	}
	l.mu.Unlock()
	switch {
	case alone:
		s.carry(ctx, l, []*call{c})
		s.land(l)
	case fly:
		s.fliers.Give(l)
	}
	select {
	case <-done:
		answers.Put(done)
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// land ends the flight of a caller that sent its own call; calls queued meanwhile continue without it.
func (s *Store) land(l *lane) {
	l.mu.Lock()
	if len(l.queue) > 0 {
		l.mu.Unlock()
		s.fliers.Give(l)
		return
	}
	l.flights--
	l.mu.Unlock()
	s.wg.Done()
}

// fly sends pipelines until the queue is empty.
func (s *Store) fly(l *lane) {
	defer s.wg.Done()
	batch := make([]*call, 0, 16)
	for {
		l.mu.Lock()
		n := min(len(l.queue), s.cfg.MaxBatch)
		if n == 0 {
			l.queue = nil // an idle lane retains no memory
			l.flights--
			l.mu.Unlock()
			return
		}
		batch = append(batch[:0], l.queue[:n]...)
		rest := copy(l.queue, l.queue[n:])
		clear(l.queue[rest:])
		l.queue = l.queue[:rest]
		l.mu.Unlock()
		// No context: the connection's timeouts limit the exchange. One caller's deadline must not
		// end another's call.
		s.carry(context.Background(), l, batch)
		clear(batch)
	}
}

// carry sends one pipeline and distributes the answers.
func (s *Store) carry(ctx context.Context, l *lane, batch []*call) {
	live := batch[:0]
	for _, c := range batch {
		if err := c.ctx.Err(); err != nil {
			c.err = err
			c.done <- struct{}{}
			continue
		}
		live = append(live, c)
	}
	if len(live) == 0 {
		return
	}
	s.counts.pipelines.Add(1)
	s.counts.calls.Add(int64(len(live)))
	s.exchange(ctx, l.node, live)
	var unknown []*call
	for _, c := range live {
		if c.err != nil && strings.HasPrefix(c.err.Error(), "NOSCRIPT") {
			c.whole()
			unknown = append(unknown, c)
		}
	}
	if len(unknown) > 0 {
		s.exchange(ctx, l.node, unknown)
	}
	for _, c := range live {
		c.done <- struct{}{}
	}
}

// exchange sends one pipeline over one connection. It ends with a WAIT if replicas must acknowledge the writes.
func (s *Store) exchange(ctx context.Context, node *goredis.Client, calls []*call) {
	if c := calls[0]; len(calls) == 1 &&
		(!c.write || s.cfg.Wait == 0) { // a single call is cheaper without a pipeline
		cmd := node.Do(ctx, c.args...)
		c.res, c.err = answered(cmd, cmd.Err())
		return
	}
	pipe := node.Pipeline()
	cmds := make([]*goredis.Cmd, len(calls))
	writes := false
	for i, c := range calls {
		cmds[i] = pipe.Do(ctx, c.args...)
		writes = writes || c.write
	}
	var wait *goredis.Cmd
	if writes && s.cfg.Wait > 0 {
		wait = pipe.Do(ctx, "WAIT", s.cfg.Wait, s.cfg.WaitTimeout.Milliseconds())
	}
	_, broken := pipe.Exec(ctx)
	for i, c := range calls {
		c.res, c.err = answered(cmds[i], broken)
		if wait == nil || !c.write || c.err != nil {
			continue
		}
		_, err := answered(wait, broken)
		acked, _ := wait.Int()
		switch {
		case err != nil:
			c.res, c.err = nil, err
		case acked < s.cfg.Wait:
			c.res, c.err = nil, fmt.Errorf(
				"%w: %d of %d within %v",
				ErrNoReplicas,
				acked,
				s.cfg.Wait,
				s.cfg.WaitTimeout,
			)
		}
	}
}

// answered returns a command's own answer. A connection that breaks during its setup (e.g. a wrong password) leaves
// commands with neither value nor error: then answered returns the pipeline's error.
func answered(cmd *goredis.Cmd, broken error) (any, error) {
	v, err := cmd.Result()
	if v == nil && err == nil {
		err = broken
		if err == nil {
			err = errNoAnswer
		}
	}
	return v, err
}

var errNoAnswer = errors.New("no answer from the server")

// ErrNoReplicas reports a change that the server made, but fewer than Config.Wait replicas acknowledged.
var ErrNoReplicas error = &creel.Error{
	Kind: creel.ErrUnavailable, What: "not enough replicas acknowledged the change",
}

// do repeats a call until it is answered or the context ends. Without a deadline it stops after MaxWait. It repeats a
// call marked once only if the call certainly did not happen: a second Move or Acquire could undo changes made after
// the first.
func (s *Store) do(ctx context.Context, c *call) (any, error) {
	ctx, end, err := limited(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	if s.cfg.Observe == nil {
		return s.repeat(ctx, c)
	}
	began := time.Now()
	v, err := s.repeat(ctx, c)
	s.cfg.Observe(c.operation(), time.Since(began), err)
	return v, err
}

// limited bounds a call by the statestore.Patience of its context, if it has one. The caller calls end after the call.
func limited(ctx context.Context) (_ context.Context, end func(), err error) {
	p := statestore.PatienceOf(ctx)
	if p == nil {
		return ctx, func() {}, nil
	}
	left := p.Left()
	if left <= 0 {
		return nil, nil, statestore.Unavailable("it did not answer in time", time.Second)
	}
	began := time.Now() // before the timer begins: a read that uses all its time leaves none
	ctx, cancel := context.WithTimeout(ctx, left)
	return ctx, func() { p.Spend(time.Since(began)); cancel() }, nil
}

// operation returns a call's name in metrics.
func (c *call) operation() string {
	if c.script != nil {
		return c.script.name
	}
	name, _ := c.args[0].(string)
	return strings.ToLower(name)
}

func (s *Store) repeat(ctx context.Context, c *call) (any, error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(s.cfg.MaxWait)
	}
	var last error
	for try := 0; ; try++ {
		if ctx.Err() != nil {
			return nil, s.gaveUp(ctx, last)
		}
		err := s.once(ctx, c)
		if err == nil || errors.Is(err, goredis.Nil) {
			return c.res, nil
		}
		if ctx.Err() != nil {
			if last == nil {
				last = err
			}
			return nil, s.gaveUp(ctx, last)
		}
		last = reasonAfter(last, err)
		if c.once && maybe(err) {
			s.counts.gaveUp.Add(1)
			return nil, statestore.Unavailable(
				"the change may or may not have happened: "+firstLine(err.Error()),
				time.Second,
			)
		}
		if !s.passing(ctx, err) {
			s.counts.refused.Add(1)
			return nil, s.translate(err)
		}
		s.counts.retries.Add(1)
		pause := backoff(try)
		if time.Until(deadline) <= pause || !sleep(ctx, pause) {
			return nil, s.gaveUp(ctx, last)
		}
	}
}

// reasonAfter returns the error to report when a try ended with err, and the tries before it with last. A late answer
// does not hide that replicas are missing: a daemon starts without them, but not without a server. Nor does it hide
// that the server ended the TLS of a try, for example since it rejects the certificate.
func reasonAfter(last, err error) error {
	var alert *net.OpError
	rejected := errors.As(last, &alert) && alert.Op == "remote error"
	if (errors.Is(last, ErrNoReplicas) || rejected) && errors.Is(err, os.ErrDeadlineExceeded) {
		return last
	}
	return err
}

// sleep waits; it returns false if the context ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

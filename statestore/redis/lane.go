// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/creelrm/creel/statestore"
	goredis "github.com/redis/go-redis/v9"
)

// call is one command or script on its way to a server.
type call struct {
	script *goredis.Script
	keys   []string // of the script; the first decides the server
	args   []any    // of the script, or the whole command
	write  bool     // to be acknowledged by replicas, if that is asked for
	once   bool     // not to be sent again if it may have happened

	ctx  context.Context
	res  any
	err  error
	done chan struct{}
}

func (c *call) key() string {
	if c.script != nil {
		return c.keys[0]
	}
	return c.args[1].(string)
}

// lane carries the calls of many callers to one server in shared pipelines. A
// call that comes while pipelines are under way waits for the next one, so that
// pipelines grow with the load and a lone call goes at once. No goroutine lives
// longer than there are calls.
type lane struct {
	node *goredis.Client

	mu      sync.Mutex
	queue   []*call
	flights int
}

var errQueueFull = errors.New("too many requests wait for this server")

// lane finds the server of a key and its lane.
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
	l := s.lanes[addr]
	if l == nil || l.node != node {
		l = &lane{node: node}
		s.lanes[addr] = l
	}
	return l, nil
}

// once sends a call and waits for its answer or the end of the context; the
// call may happen all the same then.
func (s *Store) once(ctx context.Context, c *call) (any, error) {
	l, err := s.lane(ctx, c.key())
	if err != nil {
		return nil, err
	}
	c.ctx, c.done = ctx, make(chan struct{})
	l.mu.Lock()
	if len(l.queue) >= s.cfg.MaxQueue {
		l.mu.Unlock()
		return nil, errQueueFull
	}
	l.queue = append(l.queue, c)
	fly := l.flights < s.cfg.Flights
	if fly {
		l.flights++
		s.wg.Add(1)
	}
	l.mu.Unlock()
	if fly {
		go s.fly(l)
	}
	select {
	case <-c.done:
		return c.res, c.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// fly carries pipelines until none waits.
func (s *Store) fly(l *lane) {
	defer s.wg.Done()
	batch := make([]*call, 0, 16)
	for {
		l.mu.Lock()
		n := min(len(l.queue), s.cfg.MaxBatch)
		if n == 0 {
			l.queue = nil // an idle lane holds no memory
			l.flights--
			l.mu.Unlock()
			return
		}
		batch = append(batch[:0], l.queue[:n]...)
		rest := copy(l.queue, l.queue[n:])
		clear(l.queue[rest:])
		l.queue = l.queue[:rest]
		l.mu.Unlock()
		s.carry(l, batch)
		clear(batch)
	}
}

// carry sends one pipeline and hands out the answers.
func (s *Store) carry(l *lane, batch []*call) {
	live := batch[:0]
	for _, c := range batch {
		if err := c.ctx.Err(); err != nil {
			c.err = err
			close(c.done)
			continue
		}
		live = append(live, c)
	}
	if len(live) == 0 {
		return
	}
	s.counts.pipelines.Add(1)
	s.counts.calls.Add(int64(len(live)))
	// The deadline is the store's own: one caller's must not end another's call.
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.readTimeout()+s.cfg.Timeout)
	defer cancel()
	s.exchange(ctx, l.node, live, false)
	var unknown []*call
	for _, c := range live {
		if c.err != nil && strings.HasPrefix(c.err.Error(), "NOSCRIPT") {
			unknown = append(unknown, c)
		}
	}
	if len(unknown) > 0 {
		s.exchange(ctx, l.node, unknown, true)
	}
	for _, c := range live {
		close(c.done)
	}
}

// exchange is one pipeline over one connection, with a WAIT at its end if
// replicas must have the writes. whole sends scripts as text, not by hash.
func (s *Store) exchange(ctx context.Context, node *goredis.Client, calls []*call, whole bool) {
	pipe := node.Pipeline()
	cmds := make([]*goredis.Cmd, len(calls))
	writes := false
	for i, c := range calls {
		switch {
		case c.script == nil:
			cmds[i] = pipe.Do(ctx, c.args...)
		case whole:
			cmds[i] = c.script.Eval(ctx, pipe, c.keys, c.args...)
		default:
			cmds[i] = c.script.EvalSha(ctx, pipe, c.keys, c.args...)
		}
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
			c.res, c.err = nil, fmt.Errorf("%w: %d of %d within %v", errNoReplicas, acked, s.cfg.Wait, s.cfg.WaitTimeout)
		}
	}
}

// answered is a command's own answer. A connection that breaks while it is set
// up (a wrong password) leaves commands with neither value nor error: then what
// broke the pipeline is their error.
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

var errNoAnswer = errors.New("the server gave no answer")

var errNoReplicas = errors.New("not enough replicas acknowledged the change")

// do repeats a call until it is answered, or the context ends, or MaxWait is
// over if it has no deadline. A call marked once is repeated only while it
// certainly has not happened: a second Move or Acquire could undo what came
// after the first.
func (s *Store) do(ctx context.Context, c *call) (any, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.cfg.MaxWait)
		defer cancel()
	}
	var last error
	for try := 0; ; try++ {
		if err := ctx.Err(); err != nil {
			return nil, s.gaveUp(ctx, last)
		}
		again := *c
		v, err := s.once(ctx, &again)
		if err == nil || errors.Is(err, goredis.Nil) {
			return v, nil
		}
		if ctx.Err() != nil {
			if last == nil {
				last = err
			}
			return nil, s.gaveUp(ctx, last)
		}
		last = err
		if c.once && maybe(err) {
			s.counts.gaveUp.Add(1)
			return nil, statestore.Unavailable("the change may or may not have happened: "+firstLine(err.Error()), time.Second)
		}
		if !s.passing(ctx, err) {
			s.counts.refused.Add(1)
			return nil, s.translate(err)
		}
		s.counts.retries.Add(1)
		if !sleep(ctx, backoff(try)) {
			return nil, s.gaveUp(ctx, last)
		}
	}
}

// sleep waits, and is false if the context ended or would end before.
func sleep(ctx context.Context, d time.Duration) bool {
	if dl, ok := ctx.Deadline(); ok && time.Until(dl) <= d {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
)

// node is a node as a transaction has read it.
type node struct {
	path string
	data []byte
	stat Stat
	is   bool // it exists
}

// written is the time of a node's last change, by the system's clock.
func (n *node) written() time.Time { return n.stat.Mtime }

// txn is one change of the store. It reads nodes and decides by them; its writes are carried out together, if all those
// nodes are unchanged.
type txn struct {
	ctx    context.Context
	store  *engine
	now    time.Time // the system's clock
	nodes  map[string]*node
	reads  []string // paths of nodes, in the order of their first read
	writes map[string]write
	order  []string // paths of writes, parents first
	ends   []func() error
	tells  []statestore.Change
}

// write is the next data of a node; nil: it is deleted.
type write struct {
	data []byte
	set  bool
}

// get reads a node once.
func (t *txn) get(path string) (*node, error) {
	if n := t.nodes[path]; n != nil {
		return n, nil
	}
	n := &node{path: path}
	data, stat, err := t.store.tree.Get(t.ctx, path)
	switch {
	case errors.Is(err, ErrNoNode):
	case err != nil:
		return nil, &lostCall{err}
	default:
		n.data, n.stat, n.is = data, *stat, true
	}
	t.nodes[path] = n
	t.reads = append(t.reads, path)
	return n, nil
}

// children lists a node's children. The transaction does not depend on the list.
func (t *txn) children(path string) ([]string, error) {
	names, err := t.store.tree.Children(t.ctx, path)
	if errors.Is(err, ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, &lostCall{err}
	}
	return names, nil
}

// put writes a node that the transaction has read.
func (t *txn) put(path string, data []byte) { t.write(path, write{data: data, set: true}) }

// remove deletes a node that the transaction has read.
func (t *txn) remove(path string) { t.write(path, write{}) }

func (t *txn) write(path string, w write) {
	if _, again := t.writes[path]; !again {
		t.order = append(t.order, path)
	}
	t.writes[path] = w
}

// tell announces a change, if the transaction changes anything.
func (t *txn) tell(c statestore.Change) { t.tells = append(t.tells, c) }

// atEnd adds a step before the writes of a transaction that is not refused.
func (t *txn) atEnd(step func() error) { t.ends = append(t.ends, step) }

// ops are the operations of the transaction.
func (t *txn) ops() ([]Op, error) {
	var ops []Op
	size := 0
	for _, p := range t.order {
		n, w := t.nodes[p], t.writes[p]
		switch {
		case n.is && w.set:
			ops = append(ops, Op{Kind: OpSet, Path: p, Data: w.data, Version: n.stat.Version})
		case n.is:
			ops = append(ops, Op{Kind: OpDelete, Path: p, Version: n.stat.Version})
		case w.set:
			ops = append(ops, Op{Kind: OpCreate, Path: p, Data: w.data})
		default:
			continue // it was not there, and is not
		}
		size += len(w.data) + perNode
	}
	changes := len(ops) > 0
	for _, p := range t.reads {
		n := t.nodes[p]
		if w, written := t.writes[p]; written && (n.is || w.set) {
			continue
		}
		switch parent := t.nodes[path.Dir(p)]; {
		case n.is:
			ops = append(ops, Op{Kind: OpCheck, Path: p, Version: n.stat.Version})
		case parent == nil || parent.is: // else that it has no parent is checked
			ops = append(ops, Op{Kind: OpMissing, Path: p})
		}
		size += perNode
	}
	if changes {
		for _, c := range t.tells {
			ops = append(ops, t.store.announcement(c))
			size += perNode
		}
	}
	if size > t.store.cfg.MaxChange {
		return nil, t.store.cfg.tooLarge(size)
	}
	return ops, nil
}

// lostCall wraps an error of a call to the system.
type lostCall struct{ error }

func (e *lostCall) Unwrap() error { return e.error }

// errSoon is the error of a decision that waits for another program's next write.
var errSoon = errors.New("another program is writing it")

// soonError is errSoon, with the error for a caller that cannot wait any longer.
type soonError struct{ error }

func (e soonError) Unwrap() error { return e.error }

func (soonError) Is(target error) bool { return target == errSoon }

// These bound a change that others' changes keep from being made.
const (
	mostConflicts = 200
	longestPause  = 50 * time.Millisecond
)

// once is for changes whose repetition could undo later changes by others.
type once bool

// change makes a transaction by f, and repeats it while other changes interfere or the system does not answer. The
// nodes that f read are confirmed even if it refuses the change: a refusal is no older than the call. Under a lease,
// its token is checked in the same step.
func (s *engine) change(ctx context.Context, careful once, f func(t *txn) error) error {
	if err := statestore.CheckRecording(ctx); err != nil {
		return err
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	var last error
	for conflicts := 0; ; {
		if ctx.Err() != nil {
			return s.gaveUp(ctx, last)
		}
		refusal, err := s.attempt(ctx, f)
		switch last = err; {
		case err == nil:
			return refusal
		case errors.Is(err, errSoon):
			conflicts = max(conflicts, mostConflicts/2) // long pauses
		case errors.Is(err, ErrConflict):
			if conflicts++; conflicts > mostConflicts {
				return statestore.Unavailable("too many changes of the same record at once", time.Second)
			}
			if conflicts == 2 { // the connected server may be behind the leader
				_ = s.tree.Sync(ctx)
			}
		case errors.Is(err, creel.ErrNotPermitted), errors.Is(err, creel.ErrInvalidRequest):
			return forbidden(err)
		case s.tree.Final(err), bool(careful) && !errors.As(err, new(*lostCall)):
			return s.gaveUp(ctx, err)
		}
		pause(ctx, conflicts)
	}
}

// pause waits for a random time, which grows with the number of conflicts.
func pause(ctx context.Context, conflicts int) {
	most := min(longestPause, time.Duration(conflicts+1)*2*time.Millisecond)
	select {
	case <-ctx.Done():
	case <-time.After(rand.N(most)):
	}
}

// attempt makes a transaction once. err is set if it was not, or may not have been, carried out.
func (s *engine) attempt(ctx context.Context, f func(t *txn) error) (refusal, err error) {
	t, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	refusal = t.decide(f)
	if lost := new(lostCall); errors.As(refusal, &lost) {
		return nil, lost
	}
	if errors.Is(refusal, errSoon) {
		return nil, refusal
	}
	if refusal != nil {
		t.writes, t.order = map[string]write{}, nil
	}
	ops, err := t.ops()
	if err != nil {
		return err, nil // the system would refuse it
	}
	if len(ops) == 0 {
		return refusal, nil
	}
	sent := s.cfg.Local()
	written, err := s.tree.Apply(ctx, ops)
	if err != nil {
		return nil, err
	}
	if !written.IsZero() {
		s.clock.learn(written, sent, s.cfg.Local())
	}
	return refusal, nil
}

func (s *engine) begin(ctx context.Context) (*txn, error) {
	now, err := s.now(ctx)
	if err != nil {
		return nil, err
	}
	return &txn{
		ctx: ctx, store: s, now: now, nodes: map[string]*node{}, writes: map[string]write{},
	}, nil
}

// decide checks the lease of the change, and calls f and the steps at the end.
func (t *txn) decide(f func(t *txn) error) error {
	if l, ok := statestore.FenceOf(t.ctx); ok {
		lease, err := t.lease(l.Name)
		if err != nil {
			return err
		}
		if err := lease.Check(l); err != nil {
			return err
		}
	}
	if err := f(t); err != nil {
		return err
	}
	for _, step := range t.ends {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// look reads nodes by f, and repeats it while the system does not answer.
func (s *engine) look(ctx context.Context, f func(t *txn) error) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	var last error
	for {
		if ctx.Err() != nil {
			return s.gaveUp(ctx, last)
		}
		t, err := s.begin(ctx)
		if err == nil {
			err = f(t)
		}
		last = err
		switch lost := new(lostCall); {
		case errors.As(err, &lost) && errors.Is(err, creel.ErrNotPermitted):
			return forbidden(err)
		case errors.As(err, &lost) && s.tree.Final(err):
			return s.gaveUp(ctx, err)
		case errors.As(err, &lost), errors.Is(err, errSoon):
			pause(ctx, mostConflicts)
		default:
			return err
		}
	}
}

// bounded gives a call without a deadline one.
func (s *engine) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, s.cfg.MaxWait)
}

// gaveUp is the error of a call that ended without a result. err is the last reason.
func (s *engine) gaveUp(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	if soon := (soonError{}); errors.As(err, &soon) {
		return soon.error
	}
	if err == nil {
		err = ctx.Err()
	}
	s.unanswered.Add(1)
	return statestore.Unavailable(fmt.Sprintf("%s does not answer: %v", s.cfg.System, err), time.Second)
}

// forbidden is the refusal in the error of a call.
func forbidden(err error) error {
	if refusal := new(creel.Error); errors.As(err, &refusal) {
		return refusal
	}
	return err
}

// now is the time by the system's clock.
func (s *engine) now(ctx context.Context) (time.Time, error) {
	if now, ok := s.clock.read(s.cfg.Local()); ok {
		return now, nil
	}
	if err := s.prepare(ctx); err != nil {
		return time.Time{}, err
	}
	sent := s.cfg.Local()
	at, err := s.tree.Time(ctx)
	if err != nil {
		return time.Time{}, &lostCall{err}
	}
	s.clock.learn(at, sent, s.cfg.Local())
	now, ok := s.clock.read(s.cfg.Local())
	if !ok {
		return time.Time{}, &lostCall{errors.New("the time of " + s.cfg.System + " is unknown")}
	}
	return now, nil
}

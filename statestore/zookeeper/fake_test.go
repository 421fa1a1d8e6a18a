// SPDX-License-Identifier: Apache-2.0

package zookeeper

import (
	"context"
	"errors"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/creelrm/creel/internal/zkclient"
)

// fakeServer is a ZooKeeper in memory: nodes, versions, transactions and watches, with a clock that tests move. The
// tests of e2e/zookeeper run the same contract on a real server.
type fakeServer struct {
	mu      sync.Mutex
	nodes   map[string]*fakeNode
	watches map[string][]chan zk.Event
	zxid    int64
	now     time.Time
	// fault decides about each transaction, if set: whether it is carried out, and an error that its caller gets.
	fault func() (done bool, err error)
}

type fakeNode struct {
	data     []byte
	stat     zk.Stat
	children map[string]bool
}

func newFake() *fakeServer {
	return &fakeServer{
		nodes: map[string]*fakeNode{"/": {children: map[string]bool{}}}, watches: map[string][]chan zk.Event{},
		now: time.UnixMilli(1_800_000_000_000),
	}
}

func (s *fakeServer) connect(zkclient.Servers) (session, error) { return s, nil }

// advance moves the clock.
func (s *fakeServer) advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

func (s *fakeServer) Close()                                       {}
func (s *fakeServer) Sync(context.Context, string) error           { return nil }
func (s *fakeServer) AddAuth(context.Context, zkclient.Auth) error { return nil }

func (s *fakeServer) Get(ctx context.Context, path string) ([]byte, *zk.Stat, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.get(path)
}

func (s *fakeServer) get(path string) ([]byte, *zk.Stat, error) {
	n := s.nodes[path]
	if n == nil {
		return nil, nil, zk.ErrNoNode
	}
	stat := n.stat
	stat.NumChildren = int32(len(n.children))
	return slices.Clone(n.data), &stat, nil
}

func (s *fakeServer) Watch(_ context.Context, path string) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, stat, err := s.get(path)
	if err != nil {
		return nil, nil, nil, err
	}
	changed := make(chan zk.Event, 1)
	s.watches[path] = append(s.watches[path], changed)
	return data, stat, changed, nil
}

func (s *fakeServer) Children(_ context.Context, path string) ([]string, *zk.Stat, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.nodes[path]
	if n == nil {
		return nil, nil, zk.ErrNoNode
	}
	var names []string
	for name := range n.children {
		names = append(names, name)
	}
	return names, &zk.Stat{}, nil
}

// Multi carries out all operations or none.
func (s *fakeServer) Multi(ctx context.Context, ops ...any) ([]zk.MultiResponse, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault != nil {
		if done, err := s.fault(); err != nil {
			if done {
				_, _ = s.multi(ops)
			}
			return nil, err
		}
	}
	return s.multi(ops)
}

func (s *fakeServer) multi(ops []any) (answers []zk.MultiResponse, err error) {
	s.zxid++
	var undo []func()
	for _, op := range ops {
		stat, back, err := s.apply(op)
		if err != nil {
			for _, back := range slices.Backward(undo) {
				back()
			}
			return nil, err
		}
		undo = append(undo, back)
		answers = append(answers, zk.MultiResponse{Stat: stat})
	}
	for _, op := range ops {
		for _, w := range s.watches[pathOf(op)] {
			w <- zk.Event{Type: zk.EventNodeDataChanged, Path: pathOf(op)}
		}
		delete(s.watches, pathOf(op))
	}
	return answers, nil
}

func pathOf(op any) string {
	switch o := op.(type) {
	case *zk.CreateRequest:
		return o.Path
	case *zk.SetDataRequest:
		return o.Path
	case *zk.DeleteRequest:
		return o.Path
	case *zk.CheckVersionRequest:
		return o.Path
	}
	return ""
}

// apply carries out one operation. It returns the operation that undoes it.
func (s *fakeServer) apply(op any) (*zk.Stat, func(), error) {
	p := pathOf(op)
	n, parent := s.nodes[p], s.nodes[path.Dir(p)]
	versioned := func(version int32) error {
		switch {
		case n == nil:
			return zk.ErrNoNode
		case version >= 0 && version != n.stat.Version:
			return zk.ErrBadVersion
		}
		return nil
	}
	ms := s.now.UnixMilli()
	there := func() { s.nodes[p], parent.children[path.Base(p)] = n, true }
	gone := func() { delete(s.nodes, p); delete(parent.children, path.Base(p)) }
	switch o := op.(type) {
	case *zk.CreateRequest:
		switch {
		case parent == nil:
			return nil, nil, zk.ErrNoNode
		case n != nil:
			return nil, nil, zk.ErrNodeExists
		}
		n = &fakeNode{data: slices.Clone(o.Data), children: map[string]bool{},
			stat: zk.Stat{Czxid: s.zxid, Mzxid: s.zxid, Ctime: ms, Mtime: ms}}
		there()
		return nil, gone, nil
	case *zk.SetDataRequest:
		if err := versioned(o.Version); err != nil {
			return nil, nil, err
		}
		before := *n
		n.data, n.stat.Mzxid, n.stat.Mtime = slices.Clone(o.Data), s.zxid, ms
		n.stat.Version++
		stat := n.stat
		return &stat, func() { *n = before }, nil
	case *zk.DeleteRequest:
		if err := versioned(o.Version); err != nil {
			return nil, nil, err
		}
		if len(n.children) > 0 {
			return nil, nil, zk.ErrNotEmpty
		}
		gone()
		return nil, there, nil
	case *zk.CheckVersionRequest:
		return nil, func() {}, versioned(o.Version)
	}
	return nil, nil, errors.New("unknown operation")
}

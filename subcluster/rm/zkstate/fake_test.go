// SPDX-License-Identifier: Apache-2.0

package zkstate

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// fakeServer is a ZooKeeper in memory: nodes, rights, sessions, transactions. The tests of e2e/zookeeper run the same
// contract on a real server.
type fakeServer struct {
	mu       sync.Mutex
	nodes    map[string]*fakeNode
	zxid     int64
	sessions int64
	timeout  time.Duration // of the sessions that it grants
	// fault decides about each call, if set: whether it is carried out, and an error that its caller gets.
	fault func(call string) (done bool, err error)
}

type fakeNode struct {
	data []byte
	stat zk.Stat
	acl  []zk.ACL
}

// fakeClient is a session with a fakeServer.
type fakeClient struct {
	s    *fakeServer
	mu   sync.Mutex
	id   int64
	auth []Auth
}

func newFake() *fakeServer {
	return &fakeServer{nodes: map[string]*fakeNode{"/": {acl: zk.WorldACL(zk.PermAll)}}, timeout: time.Hour}
}

func (s *fakeServer) connect(_ context.Context, servers Servers) (tree, error) {
	c := &fakeClient{s: s, auth: slices.Clone(servers.Auth)}
	c.renew()
	return c, nil
}

// renew begins another session.
func (c *fakeClient) renew() {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.s.sessions++
	c.mu.Lock()
	defer c.mu.Unlock()
	c.id = c.s.sessions
}

// expire ends the present session; the client begins another one.
func (c *fakeClient) expire() {
	c.close()
	c.renew()
}

func (c *fakeClient) session() (int64, time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.id, c.s.timeout
}

func (c *fakeClient) close() {
	id, _ := c.session()
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	for p, n := range c.s.nodes {
		if n.stat.EphemeralOwner == id && id != 0 {
			delete(c.s.nodes, p)
		}
	}
}

// call runs f as the server.
func (c *fakeClient) call(ctx context.Context, name string, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if c.s.fault != nil {
		if done, err := c.s.fault(name); err != nil {
			if done {
				_ = f()
			}
			return err
		}
	}
	return f()
}

func (c *fakeClient) get(ctx context.Context, path string) (data []byte, stat *zk.Stat, err error) {
	err = c.call(ctx, "get", func() error {
		n := c.s.nodes[path]
		if n == nil {
			return zk.ErrNoNode
		}
		if !c.may(n, zk.PermRead) {
			return zk.ErrNoAuth
		}
		s := n.stat
		data, stat = slices.Clone(n.data), &s
		return nil
	})
	return data, stat, err
}

func (c *fakeClient) children(ctx context.Context, parent string) (names []string, err error) {
	err = c.call(ctx, "children", func() error {
		n := c.s.nodes[parent]
		if n == nil {
			return zk.ErrNoNode
		}
		if !c.may(n, zk.PermRead) {
			return zk.ErrNoAuth
		}
		for other := range c.s.nodes {
			if other != parent && path.Dir(other) == parent {
				names = append(names, path.Base(other))
			}
		}
		return nil
	})
	return names, err
}

// touch records that a child of a node was made or deleted.
func (s *fakeServer) touch(parent string) {
	changed := *s.nodes[parent]
	changed.stat.Pzxid = s.zxid
	s.nodes[parent] = &changed
}

func (c *fakeClient) addAuth(ctx context.Context, a Auth) error {
	return c.call(ctx, "auth", func() error {
		c.auth = append(c.auth, a)
		return nil
	})
}

func (c *fakeClient) setACL(ctx context.Context, path string, acl []zk.ACL) error {
	return c.call(ctx, "acl", func() error {
		n := c.s.nodes[path]
		if n == nil {
			return zk.ErrNoNode
		}
		if !c.may(n, zk.PermAdmin) {
			return zk.ErrNoAuth
		}
		n.acl = acl
		n.stat.Aversion++
		return nil
	})
}

func (c *fakeClient) multi(ctx context.Context, ops ...any) error {
	return c.call(ctx, "multi", func() error {
		type undo struct {
			path string
			node *fakeNode
		}
		var undos []undo
		c.s.zxid++
		for _, op := range ops {
			above := path.Dir(pathOf(op))
			undos = append(undos, undo{above, c.s.nodes[above]}, undo{pathOf(op), c.s.nodes[pathOf(op)]})
			if err := c.apply(op); err != nil {
				for _, u := range slices.Backward(undos) {
					if c.s.nodes[u.path] = u.node; u.node == nil {
						delete(c.s.nodes, u.path)
					}
				}
				return err
			}
		}
		return nil
	})
}

func pathOf(op any) string {
	switch o := op.(type) {
	case *zk.CreateRequest:
		return o.Path
	case *zk.SetDataRequest:
		return o.Path
	case *zk.DeleteRequest:
		return o.Path
	}
	return ""
}

func (c *fakeClient) apply(op any) error {
	nodes := c.s.nodes
	switch o := op.(type) {
	case *zk.CreateRequest:
		parent := nodes[path.Dir(o.Path)]
		switch {
		case parent == nil:
			return zk.ErrNoNode
		case !c.may(parent, zk.PermCreate):
			return zk.ErrNoAuth
		case nodes[o.Path] != nil:
			return zk.ErrNodeExists
		}
		n := &fakeNode{data: slices.Clone(o.Data), acl: o.Acl, stat: zk.Stat{Czxid: c.s.zxid, Mzxid: c.s.zxid}}
		if o.Flags&zk.FlagEphemeral != 0 {
			n.stat.EphemeralOwner, _ = c.session()
		}
		nodes[o.Path] = n
		c.s.touch(path.Dir(o.Path))
	case *zk.SetDataRequest:
		n := nodes[o.Path]
		switch {
		case n == nil:
			return zk.ErrNoNode
		case !c.may(n, zk.PermWrite):
			return zk.ErrNoAuth
		case o.Version >= 0 && o.Version != n.stat.Version:
			return zk.ErrBadVersion
		}
		changed := *n
		changed.data, changed.stat.Mzxid = slices.Clone(o.Data), c.s.zxid
		changed.stat.Version++
		nodes[o.Path] = &changed
	case *zk.DeleteRequest:
		n := nodes[o.Path]
		switch {
		case n == nil:
			return zk.ErrNoNode
		case !c.may(nodes[path.Dir(o.Path)], zk.PermDelete):
			return zk.ErrNoAuth
		case o.Version >= 0 && o.Version != n.stat.Version:
			return zk.ErrBadVersion
		}
		for other := range nodes {
			if strings.HasPrefix(other, o.Path+"/") {
				return zk.ErrNotEmpty
			}
		}
		delete(nodes, o.Path)
		c.s.touch(path.Dir(o.Path))
	default:
		return errors.New("unknown operation")
	}
	return nil
}

// may reports whether this client has a right at a node.
func (c *fakeClient) may(n *fakeNode, right int32) bool {
	for _, a := range n.acl {
		if a.Perms&right == 0 {
			continue
		}
		if a.Scheme == "world" {
			return true
		}
		for _, own := range c.auth {
			user, secret, _ := strings.Cut(own.Secret, ":")
			if own.Scheme == a.Scheme && zk.DigestACL(0, user, secret)[0].ID == a.ID {
				return true
			}
		}
	}
	return false
}

// SPDX-License-Identifier: Apache-2.0

package zkstate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/go-zookeeper/zk"
)

// Session reads and writes nodes of another layout than this package's.
type Session struct {
	tree    tree
	servers Servers
}

// Node is a node with its data.
type Node struct {
	Path string
	Data []byte
}

// Connect logs in to ZooKeeper. It waits for ZooKeeper until the context ends.
func Connect(ctx context.Context, s Servers) (*Session, error) {
	return connectBy(ctx, s, authenticated)
}

func connectBy(
	ctx context.Context, s Servers, by func(context.Context, Servers) (tree, error),
) (*Session, error) {
	s = s.WithDefaults()
	t, err := by(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("ZooKeeper: %w", err)
	}
	return &Session{tree: t, servers: s}, nil
}

// sessions is the number of session timeouts for which a call waits.
const sessions = 3

// call repeats a read until it has an answer. The error of a missing node wraps fs.ErrNotExist.
func (s *Session) call(ctx context.Context, path string, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, sessions*s.servers.Timeout)
	defer cancel()
	err := repeat(ctx, func() error { return f(ctx) })
	return named(path, err)
}

// named adds the path to an error.
func named(path string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, zk.ErrNoNode):
		err = fs.ErrNotExist
	}
	return fmt.Errorf("%s: %w", path, inWords(err))
}

// inWords explains ZooKeeper's refusal of a login without rights.
func inWords(err error) error {
	if errors.Is(err, zk.ErrNoAuth) {
		return fmt.Errorf("the login (hadoop.zk.auth, hadoop.zk.kerberos.principal) lacks the right: %w", err)
	}
	return err
}

// Get returns the data of a node. changed is the transaction that last made or deleted a child of it.
func (s *Session) Get(ctx context.Context, path string) (data []byte, changed int64, err error) {
	err = s.call(ctx, path, func(ctx context.Context) error {
		b, stat, err := s.tree.get(ctx, path)
		if err == nil {
			data, changed = b, stat.Pzxid
		}
		return err
	})
	return data, changed, err
}

// Children returns the names of a node's children.
func (s *Session) Children(ctx context.Context, path string) (names []string, err error) {
	err = s.call(ctx, path, func(ctx context.Context) (err error) {
		names, err = s.tree.children(ctx, path)
		return err
	})
	return names, err
}

// Make creates a path and its parents, if they are missing.
func (s *Session) Make(ctx context.Context, path string) error {
	return s.call(ctx, path, func(ctx context.Context) error { return makePath(ctx, s.tree, path, s.servers.ACL) })
}

// Create makes nodes in one transaction, parents before children. It is not repeated: after an error the nodes may
// exist.
func (s *Session) Create(ctx context.Context, nodes []Node) error {
	var ops []any
	for _, n := range nodes {
		ops = append(ops, create(n.Path, n.Data, s.servers.ACL))
	}
	return s.change(ctx, nodes[0].Path, ops...)
}

// Set replaces the data of a node. It is not repeated.
func (s *Session) Set(ctx context.Context, n Node) error {
	return s.change(ctx, n.Path, set(n.Path, n.Data, -1))
}

// Delete removes a node without children. It is not repeated.
func (s *Session) Delete(ctx context.Context, path string) error {
	return s.change(ctx, path, remove(path))
}

func (s *Session) change(ctx context.Context, path string, ops ...any) error {
	ctx, cancel := context.WithTimeout(ctx, sessions*s.servers.Timeout)
	defer cancel()
	return named(path, s.tree.multi(ctx, ops...))
}

// Close ends the session.
func (s *Session) Close() { s.tree.close() }

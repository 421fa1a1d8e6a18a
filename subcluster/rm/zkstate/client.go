// SPDX-License-Identifier: Apache-2.0

package zkstate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/creelrm/creel/internal/zkclient"
)

// Servers are a ZooKeeper and the rights in it.
type Servers = zkclient.Servers

// Auth is a proof of identity, as in hadoop.zk.auth.
type Auth = zkclient.Auth

// tree is a session with ZooKeeper. A call ends with its context. After an error that is not final, the call may have
// been carried out, or be carried out later.
type tree interface {
	get(ctx context.Context, path string) ([]byte, *zk.Stat, error)
	children(ctx context.Context, path string) ([]string, error)
	// multi carries out all operations or none. Its error is that of the first operation that cannot be carried out.
	multi(ctx context.Context, ops ...any) error
	setACL(ctx context.Context, path string, acl []zk.ACL) error
	addAuth(ctx context.Context, a Auth) error
	// session returns the id of the present session, and its timeout by the server; zero: none yet.
	session() (id int64, timeout time.Duration)
	close()
}

// client is a tree over the network.
type client struct{ *zkclient.Client }

// connect makes a client, which connects in the background.
func connect(s Servers) (tree, error) {
	c, err := zkclient.Connect(s)
	if err != nil {
		return nil, err
	}
	return client{c}, nil
}

// authenticated makes a client that proves its identity.
func authenticated(ctx context.Context, s Servers) (tree, error) {
	t, err := connect(s)
	if err != nil {
		return nil, err
	}
	for _, a := range s.Auth {
		if err := repeat(ctx, func() error { return t.addAuth(ctx, a) }); err != nil {
			t.close()
			return nil, err
		}
	}
	return t, nil
}

func (c client) get(ctx context.Context, path string) ([]byte, *zk.Stat, error) {
	return c.Get(ctx, path)
}

func (c client) children(ctx context.Context, path string) ([]string, error) {
	names, _, err := c.Children(ctx, path)
	return names, err
}

func (c client) multi(ctx context.Context, ops ...any) error {
	_, err := c.Multi(ctx, ops...)
	return err
}

func (c client) setACL(ctx context.Context, path string, acl []zk.ACL) error {
	return c.SetACL(ctx, path, acl)
}

func (c client) addAuth(ctx context.Context, a Auth) error { return c.AddAuth(ctx, a) }

func (c client) session() (int64, time.Duration) { return c.Session() }

func (c client) close() { c.Close() }

// final reports whether an error is ZooKeeper's answer, or the end of the context or of the client.
func final(err error) bool { return zkclient.Final(err) || errors.Is(err, errUnusable) }

// repeatAfter is the pause before a repetition. Tests shorten it.
var repeatAfter = 100 * time.Millisecond

// repeat calls f until it succeeds, its error is final, or the context ends.
func repeat(ctx context.Context, f func() error) error {
	for {
		err := f()
		if err == nil || final(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("ZooKeeper does not answer: %w", err)
		case <-time.After(repeatAfter):
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

// Package zkclient is a client of ZooKeeper whose calls end with their contexts. Its sessions have the timeout that the
// server granted. Its connections may use TLS, and log in by SASL. It wraps github.com/go-zookeeper/zk. The parts that
// the library lacks are in docs/adr/0046-state-in-zookeeper.md and docs/adr/0055-tls-and-kerberos-to-zookeeper.md.
package zkclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/creelrm/creel/internal/certs"
)

// Servers are a ZooKeeper and the rights in it. Addresses are required.
type Servers struct {
	Addresses []string      // host:port; a host name is resolved at each connection
	Timeout   time.Duration // of a session; 10 s
	Auth      []Auth
	TLS       *certs.Trust // nil: connections are not encrypted
	SASL      Login        // nil: no login by SASL
	ACL       []zk.ACL     // of all nodes; nil: everybody has all rights
	Log       *slog.Logger // nil: silent
}

// Auth is a proof of identity, as in hadoop.zk.auth.
type Auth struct{ Scheme, Secret string }

// WithDefaults fills in what the configuration lacks.
func (s Servers) WithDefaults() Servers {
	s.Timeout = cmp.Or(s.Timeout, 10*time.Second)
	if s.ACL == nil {
		s.ACL = zk.WorldACL(zk.PermAll)
	}
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	return s
}

// Client is a session with ZooKeeper, which a later one follows when it expires. A call ends with its context. After an
// error that is not Final, the call may have been carried out, or be carried out later.
type Client struct {
	conn *zk.Conn
	path *dialer
}

// Connect makes a client, which connects in the background.
func Connect(s Servers) (*Client, error) {
	c := &Client{path: &dialer{servers: s}}
	conn, _, err := zk.Connect(s.Addresses, s.Timeout,
		zk.WithDialer(c.path.dial), zk.WithHostProvider(&hosts{last: -1}),
		zk.WithLogger(logger{s.Log}), zk.WithLogInfo(false))
	if err != nil {
		return nil, fmt.Errorf("address of ZooKeeper: %w", err)
	}
	c.conn = conn
	return c, nil
}

// await calls f, but returns when the context ends. f ends at the latest when the connection does.
func await[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		v, err := f()
		done <- answer{v, err}
	}()
	select {
	case a := <-done:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// call is await for a call to the servers. Without a connection its error has the reason.
func call[T any](ctx context.Context, c *Client, f func() (T, error)) (T, error) {
	v, err := await(ctx, f)
	if err == nil || Final(err) && ctx.Err() == nil {
		return v, err
	}
	if err.Error() == requiresLogin {
		return v, ErrLoginRequired
	}
	if reason := c.path.failure.Load(); reason != nil {
		err = &unconnected{err, *reason}
	}
	return v, err
}

// requiresLogin is the library's text for code -124 of ZooKeeper, which it does not know.
const requiresLogin = "unknown error: -124"

// ErrLoginRequired is the answer of servers that require a login by SASL.
var ErrLoginRequired = errors.New("ZooKeeper requires a login by Kerberos")

// unconnected is the error of a call that ended without a connection.
type unconnected struct{ err, reason error }

func (u *unconnected) Error() string { return "no connection to " + u.reason.Error() }

func (u *unconnected) Unwrap() []error { return []error{u.err, u.reason} }

// read is a node with its data or its children.
type read struct {
	data     []byte
	children []string
	stat     *zk.Stat
	changed  <-chan zk.Event
}

// Get reads a node.
func (c *Client) Get(ctx context.Context, path string) ([]byte, *zk.Stat, error) {
	n, err := call(ctx, c, func() (read, error) {
		data, stat, err := c.conn.Get(path)
		return read{data: data, stat: stat}, err
	})
	return n.data, n.stat, err
}

// Watch is Get with a channel that receives one event: the node changed, or the session ended.
func (c *Client) Watch(ctx context.Context, path string) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	n, err := call(ctx, c, func() (read, error) {
		data, stat, changed, err := c.conn.GetW(path)
		return read{data: data, stat: stat, changed: changed}, err
	})
	return n.data, n.stat, n.changed, err
}

// Children lists the names of a node's children, in no order.
func (c *Client) Children(ctx context.Context, path string) ([]string, *zk.Stat, error) {
	n, err := call(ctx, c, func() (read, error) {
		children, stat, err := c.conn.Children(path)
		return read{children: children, stat: stat}, err
	})
	return n.children, n.stat, err
}

// Multi carries out all operations or none. Its error is that of the first operation that cannot be carried out.
func (c *Client) Multi(ctx context.Context, ops ...any) ([]zk.MultiResponse, error) {
	return call(ctx, c, func() ([]zk.MultiResponse, error) { return c.conn.Multi(ops...) })
}

// Sync makes the connected server as recent as the leader is now.
func (c *Client) Sync(ctx context.Context, path string) error {
	_, err := call(ctx, c, func() (string, error) { return c.conn.Sync(path) })
	return err
}

// SetACL sets the rights at a node.
func (c *Client) SetACL(ctx context.Context, path string, acl []zk.ACL) error {
	_, err := call(ctx, c, func() (*zk.Stat, error) { return c.conn.SetACL(path, acl, -1) })
	return err
}

// AddAuth proves an identity, also in later sessions.
func (c *Client) AddAuth(ctx context.Context, a Auth) error {
	_, err := call(ctx, c, func() (bool, error) { return true, c.conn.AddAuth(a.Scheme, []byte(a.Secret)) })
	return err
}

// Session returns the id of the present session, and its timeout by the server; zero: none yet.
func (c *Client) Session() (int64, time.Duration) {
	return c.conn.SessionID(), time.Duration(c.path.timeout.Load()) * time.Millisecond
}

// Close ends the session.
func (c *Client) Close() { c.conn.Close() }

// finals are the errors that a repetition does not change.
var finals = []error{
	zk.ErrNoNode, zk.ErrNoAuth, zk.ErrBadVersion, zk.ErrNodeExists, zk.ErrNotEmpty, zk.ErrNoChildrenForEphemerals,
	zk.ErrInvalidACL, zk.ErrAuthFailed, ErrLoginRequired, zk.ErrClosing, zk.ErrBadArguments, zk.ErrAPIError,
	zk.ErrInvalidPath, context.Canceled, context.DeadlineExceeded,
}

// Final reports whether an error is ZooKeeper's answer, or the end of the context or of the client.
func Final(err error) bool {
	for _, f := range finals {
		if errors.Is(err, f) {
			return true
		}
	}
	return false
}

// logger passes the library's messages on as details: callers report failures.
type logger struct{ log *slog.Logger }

func (l logger) Printf(format string, args ...any) {
	l.log.Debug("ZooKeeper client: " + fmt.Sprintf(format, args...))
}

// Term is the time in which a claim is valid. It is shorter than the session: a server of a quorum passes the session's
// activity on to the leader of the quorum with a delay, and the last of it is lost with that server.
func (s Servers) Term() time.Duration { return s.WithDefaults().Timeout * 2 / 3 }

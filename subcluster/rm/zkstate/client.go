// SPDX-License-Identifier: Apache-2.0

package zkstate

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// Servers are a ZooKeeper and the rights in it. Addresses are required.
type Servers struct {
	Addresses []string      // host:port
	Timeout   time.Duration // of a session; 10 s
	Auth      []Auth
	ACL       []zk.ACL     // of all nodes; nil: everybody has all rights
	Log       *slog.Logger // nil: silent
}

// Auth is a proof of identity, as in hadoop.zk.auth.
type Auth struct{ Scheme, Secret string }

func (s Servers) withDefaults() Servers {
	s.Timeout = cmp.Or(s.Timeout, 10*time.Second)
	if s.ACL == nil {
		s.ACL = zk.WorldACL(zk.PermAll)
	}
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	return s
}

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
type client struct {
	conn    *zk.Conn
	timeout atomic.Int64 // ms; of the session, by the server
}

// connect makes a client, which connects in the background.
func connect(s Servers) (tree, error) {
	c := &client{}
	dial := func(network, address string, timeout time.Duration) (net.Conn, error) {
		conn, err := net.DialTimeout(network, address, timeout)
		if err != nil {
			return nil, err
		}
		return &stream{Conn: conn, patience: s.Timeout, timeout: &c.timeout}, nil
	}
	conn, _, err := zk.Connect(s.Addresses, s.Timeout,
		zk.WithDialer(dial), zk.WithLogger(logger{s.Log}), zk.WithLogInfo(false))
	if err != nil {
		return nil, fmt.Errorf("address of ZooKeeper: %w", err)
	}
	c.conn = conn
	return c, nil
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

func (c *client) get(ctx context.Context, path string) ([]byte, *zk.Stat, error) {
	type node struct {
		data []byte
		stat *zk.Stat
	}
	n, err := await(ctx, func() (node, error) {
		data, stat, err := c.conn.Get(path)
		return node{data, stat}, err
	})
	return n.data, n.stat, err
}

func (c *client) children(ctx context.Context, path string) ([]string, error) {
	return await(ctx, func() ([]string, error) {
		names, _, err := c.conn.Children(path)
		return names, err
	})
}

func (c *client) multi(ctx context.Context, ops ...any) error {
	_, err := await(ctx, func() ([]zk.MultiResponse, error) { return c.conn.Multi(ops...) })
	return err
}

func (c *client) setACL(ctx context.Context, path string, acl []zk.ACL) error {
	_, err := await(ctx, func() (*zk.Stat, error) { return c.conn.SetACL(path, acl, -1) })
	return err
}

func (c *client) addAuth(ctx context.Context, a Auth) error {
	_, err := await(ctx, func() (bool, error) { return true, c.conn.AddAuth(a.Scheme, []byte(a.Secret)) })
	return err
}

func (c *client) session() (int64, time.Duration) {
	return c.conn.SessionID(), time.Duration(c.timeout.Load()) * time.Millisecond
}

func (c *client) close() { c.conn.Close() }

// finals are the errors that a repetition does not change.
var finals = []error{
	zk.ErrNoNode, zk.ErrNoAuth, zk.ErrBadVersion, zk.ErrNodeExists, zk.ErrNotEmpty, zk.ErrNoChildrenForEphemerals,
	zk.ErrInvalidACL, zk.ErrAuthFailed, zk.ErrClosing, zk.ErrBadArguments, zk.ErrAPIError, zk.ErrInvalidPath,
	context.Canceled, context.DeadlineExceeded, errUnusable,
}

// final reports whether an error is ZooKeeper's answer, or the end of the context or of the client.
func final(err error) bool {
	for _, f := range finals {
		if errors.Is(err, f) {
			return true
		}
	}
	return false
}

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

// stream is a connection to a server. The library sets no end for some of its waits, and a very late one for others:
// here each wait has one. It also does not report the timeout of the session, which the server's first message has.
type stream struct {
	net.Conn
	patience time.Duration
	timeout  *atomic.Int64
	head     []byte // of the first message: its length, the protocol's version, the timeout in ms
}

func (s *stream) bounded(t time.Time) time.Time {
	if latest := time.Now().Add(s.patience); t.IsZero() || t.After(latest) {
		return latest
	}
	return t
}

func (s *stream) SetReadDeadline(t time.Time) error { return s.Conn.SetReadDeadline(s.bounded(t)) }

func (s *stream) SetWriteDeadline(t time.Time) error { return s.Conn.SetWriteDeadline(s.bounded(t)) }

func (s *stream) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	const whole = 12
	if missing := whole - len(s.head); missing > 0 {
		s.head = append(s.head, b[:min(n, missing)]...)
		if len(s.head) == whole {
			s.timeout.Store(int64(binary.BigEndian.Uint32(s.head[8:])))
		}
	}
	return n, err
}

// logger passes the library's messages on as details: callers report failures.
type logger struct{ log *slog.Logger }

func (l logger) Printf(format string, args ...any) {
	l.log.Debug("ZooKeeper client: " + fmt.Sprintf(format, args...))
}

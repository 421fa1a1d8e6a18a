// SPDX-License-Identifier: Apache-2.0

package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/zkclient"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/nodes"
)

// session is a session with ZooKeeper, which a later one follows when it expires. A call ends with its context.
type session interface {
	Get(ctx context.Context, path string) ([]byte, *zk.Stat, error)
	Watch(ctx context.Context, path string) ([]byte, *zk.Stat, <-chan zk.Event, error)
	Children(ctx context.Context, path string) ([]string, *zk.Stat, error)
	Multi(ctx context.Context, ops ...any) ([]zk.MultiResponse, error)
	Sync(ctx context.Context, path string) error
	AddAuth(ctx context.Context, a zkclient.Auth) error
	Close()
}

// tree is the nodes of ZooKeeper as a nodes.Tree.
type tree struct {
	session session
	servers zkclient.Servers
	root    string
}

var _ nodes.Tree = (*tree)(nil)

// translated is an error of ZooKeeper as nodes has it.
func (t *tree) translated(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, zk.ErrNoAuth):
		return &creel.Error{
			Kind: creel.ErrNotPermitted,
			What: "ZooKeeper refuses a change below " + t.root,
			Why:  err.Error(),
			Try:  "set hadoop.zk.auth or hadoop.zk.kerberos.principal to an identity that has all rights there (hadoop.zk.acl)",
		}
	}
	return err
}

// Prepare proves the identities of the configuration.
func (t *tree) Prepare(ctx context.Context) error {
	for _, a := range t.servers.Auth {
		if err := t.session.AddAuth(ctx, a); err != nil {
			return t.translated(err)
		}
	}
	return nil
}

func statOf(s *zk.Stat) *nodes.Stat {
	if s == nil {
		return nil
	}
	return &nodes.Stat{
		Version: int64(s.Version), Created: s.Czxid, Changed: s.Mzxid, Children: int(s.NumChildren),
		Ctime: time.UnixMilli(s.Ctime).UTC(), Mtime: time.UnixMilli(s.Mtime).UTC(),
	}
}

// reading is an error of a read as nodes has it.
func (t *tree) reading(err error) error {
	if errors.Is(err, zk.ErrNoNode) {
		return nodes.ErrNoNode
	}
	return t.translated(err)
}

// Get implements nodes.Tree.
func (t *tree) Get(ctx context.Context, path string) ([]byte, *nodes.Stat, error) {
	data, stat, err := t.session.Get(ctx, path)
	return data, statOf(stat), t.reading(err)
}

// Watch implements nodes.Tree.
func (t *tree) Watch(ctx context.Context, path string) ([]byte, *nodes.Stat, <-chan struct{}, error) {
	data, stat, events, err := t.session.Watch(ctx, path)
	if err != nil {
		return nil, nil, nil, t.reading(err)
	}
	changed := make(chan struct{})
	go func() {
		defer close(changed)
		select {
		case <-events:
		case <-ctx.Done():
		}
	}()
	return data, statOf(stat), changed, nil
}

// Children implements nodes.Tree.
func (t *tree) Children(ctx context.Context, path string) ([]string, error) {
	names, _, err := t.session.Children(ctx, path)
	return names, t.reading(err)
}

// Apply implements nodes.Tree. ZooKeeper has no check of a missing node: it is created and deleted.
func (t *tree) Apply(ctx context.Context, ops []nodes.Op) (written time.Time, err error) {
	requests := make([]any, 0, len(ops))
	for _, op := range ops {
		version := int32(op.Version)
		switch op.Kind {
		case nodes.OpCreate:
			requests = append(requests, &zk.CreateRequest{Path: op.Path, Data: op.Data, Acl: t.servers.ACL})
		case nodes.OpSet:
			requests = append(requests, &zk.SetDataRequest{Path: op.Path, Data: op.Data, Version: version})
		case nodes.OpDelete:
			requests = append(requests, &zk.DeleteRequest{Path: op.Path, Version: version})
		case nodes.OpCheck:
			requests = append(requests, &zk.CheckVersionRequest{Path: op.Path, Version: version})
		case nodes.OpMissing:
			requests = append(requests,
				&zk.CreateRequest{Path: op.Path, Acl: t.servers.ACL}, &zk.DeleteRequest{Path: op.Path})
		}
	}
	answers, err := t.session.Multi(ctx, requests...)
	for _, changed := range []error{zk.ErrBadVersion, zk.ErrNodeExists, zk.ErrNoNode, zk.ErrNotEmpty} {
		if errors.Is(err, changed) {
			return time.Time{}, fmt.Errorf("%w: %w", nodes.ErrConflict, err)
		}
	}
	for _, a := range answers {
		if a.Stat != nil {
			written = time.UnixMilli(a.Stat.Mtime).UTC()
		}
	}
	return written, t.translated(err)
}

// Sync implements nodes.Tree.
func (t *tree) Sync(ctx context.Context) error { return t.session.Sync(ctx, t.root) }

// Time is the time of the leader, which stamps each write.
func (t *tree) Time(ctx context.Context) (time.Time, error) {
	clock := nodes.Op{Kind: nodes.OpSet, Path: nodes.ClockPath(t.root), Version: nodes.AnyVersion}
	return t.Apply(ctx, []nodes.Op{clock})
}

// Health makes a write, so that a majority of the servers has answered. It has no findings: ZooKeeper acknowledges
// nothing that a majority has not on disk.
func (t *tree) Health(ctx context.Context) ([]statestore.Finding, error) {
	_, err := t.Time(ctx)
	return nil, err
}

// Final implements nodes.Tree.
func (t *tree) Final(err error) bool { return zkclient.Final(err) }

// Close ends the session.
func (t *tree) Close() { t.session.Close() }

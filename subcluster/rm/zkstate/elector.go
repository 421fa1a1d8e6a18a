// SPDX-License-Identifier: Apache-2.0

package zkstate

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync/atomic"

	"github.com/go-zookeeper/zk"
	"google.golang.org/protobuf/encoding/protowire"
)

// ElectorConfig is the configuration of an elector. Log, ACL and Auth of Servers may be missing.
type ElectorConfig struct {
	Servers Servers
	Base    string // yarn.resourcemanager.ha.automatic-failover.zk-base-path
	Cluster string // yarn.resourcemanager.cluster-id
	ID      string // of this ResourceManager: yarn.resourcemanager.ha.id

	connect func(context.Context, Servers) (tree, error) // tests replace it
}

// Elector is the right to lead, of one process at a time: an ephemeral node, which ZooKeeper removes at the end of the
// session that created it.
type Elector struct {
	cfg    ElectorConfig
	dir    string
	lock   string
	crumb  string
	marked atomic.Int64 // session that has written the breadcrumb
	tree   atomic.Pointer[tree]
}

// Claim is the answer of an elector.
type Claim struct {
	Won    bool   // this process has the lock, for Term from before the call
	Holder string // id of another process that has it, "" if it is free
}

// LockPath is the path of the lock that the leader of a cluster's pair has.
func LockPath(base, cluster string) string {
	return strings.TrimSuffix(base, "/") + "/" + cluster + "/ActiveStandbyElectorLock"
}

// OpenElector prepares the election. It connects in the background.
func OpenElector(cfg ElectorConfig) (*Elector, error) {
	cfg.Servers = cfg.Servers.WithDefaults()
	if cfg.connect == nil {
		cfg.connect = authenticated
	}
	lock := LockPath(cfg.Base, cfg.Cluster)
	dir := path.Dir(lock)
	e := &Elector{cfg: cfg, dir: dir, lock: lock, crumb: dir + "/ActiveBreadCrumb"}
	return e, e.connect()
}

// connect begins a session.
func (e *Elector) connect() error {
	ctx, cancel := context.WithTimeout(context.Background(), e.cfg.Servers.Timeout)
	defer cancel()
	t, err := e.cfg.connect(ctx, e.cfg.Servers)
	if err != nil {
		return fmt.Errorf("elector in ZooKeeper: %w", err)
	}
	e.tree.Store(&t)
	return nil
}

// Claim takes the lock, or confirms it, if no other process has it.
func (e *Elector) Claim(ctx context.Context) (Claim, error) {
	c, err := e.claim(ctx)
	if err != nil {
		return Claim{}, fmt.Errorf("elector in ZooKeeper: %w", err)
	}
	return c, nil
}

func (e *Elector) claim(ctx context.Context) (Claim, error) {
	t, acl := *e.tree.Load(), e.cfg.Servers.ACL
	// The attempt to create the lock is a write: if the lock exists, a majority of the servers has confirmed that, and
	// the read after it is not older. A read alone may come from a server that is cut off.
	err := t.multi(ctx, &zk.CreateRequest{Path: e.lock, Data: e.info(), Acl: acl, Flags: zk.FlagEphemeral})
	if errors.Is(err, zk.ErrNoNode) {
		if err = makePath(ctx, t, e.dir, acl); err == nil {
			return e.claim(ctx)
		}
	}
	if err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return Claim{}, err
	}
	own, c, err := e.read(ctx, t)
	if err != nil || !own {
		return c, err
	}
	id, granted := t.session()
	if granted < e.cfg.Servers.Timeout {
		return Claim{}, fmt.Errorf("ZooKeeper limits sessions to %v: set hadoop.zk.timeout-ms to at most that", granted)
	}
	if e.marked.Load() != id {
		if err := e.mark(ctx, t); err != nil {
			return Claim{}, err
		}
		e.marked.Store(id)
	}
	return Claim{Won: true}, nil
}

// mark writes the breadcrumb, in which Hadoop's elector expects the last leader.
func (e *Elector) mark(ctx context.Context, t tree) error {
	err := t.multi(ctx, create(e.crumb, e.info(), e.cfg.Servers.ACL))
	if errors.Is(err, zk.ErrNodeExists) {
		err = t.multi(ctx, set(e.crumb, e.info(), -1))
	}
	return err
}

// read returns the holder of the lock. own reports whether it is this session.
func (e *Elector) read(ctx context.Context, t tree) (own bool, c Claim, err error) {
	data, stat, err := t.get(ctx, e.lock)
	if errors.Is(err, zk.ErrNoNode) {
		return false, Claim{}, nil
	}
	if err != nil {
		return false, Claim{}, err
	}
	if id, _ := t.session(); stat.EphemeralOwner == id {
		return true, Claim{}, nil
	}
	return false, Claim{Holder: leaderOf(data)}, nil
}

// Look returns the holder without a claim.
func (e *Elector) Look(ctx context.Context) (Claim, error) {
	_, c, err := e.read(ctx, *e.tree.Load())
	if err != nil {
		return Claim{}, fmt.Errorf("elector in ZooKeeper: %w", err)
	}
	return c, nil
}

// Release removes the breadcrumb of this process, and begins another session. The lock ends with the former session: to
// delete it could delete the lock of another process, if the session had expired meanwhile.
func (e *Elector) Release(ctx context.Context) error {
	t := *e.tree.Load()
	own, _, err := e.read(ctx, t)
	if err == nil && own {
		err = e.unmark(ctx, t)
	}
	if err == nil && !own {
		return nil
	}
	t.close()
	e.marked.Store(0)
	return errors.Join(err, e.connect())
}

func (e *Elector) unmark(ctx context.Context, t tree) error {
	data, stat, err := t.get(ctx, e.crumb)
	if err == nil && string(data) == string(e.info()) {
		err = t.multi(ctx, &zk.DeleteRequest{Path: e.crumb, Version: stat.Version})
	}
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// Close ends the session, and with it the lock.
func (e *Elector) Close() error {
	if t := e.tree.Load(); t != nil {
		(*t).close()
	}
	return nil
}

// info is Hadoop's ActiveRMInfoProto of this process.
func (e *Elector) info() []byte {
	b := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), e.cfg.Cluster)
	return protowire.AppendString(protowire.AppendTag(b, 2, protowire.BytesType), e.cfg.ID)
}

// leaderOf reads the id in an ActiveRMInfoProto.
func leaderOf(info []byte) string {
	for len(info) > 0 {
		number, kind, n := protowire.ConsumeTag(info)
		if n < 0 {
			break
		}
		info = info[n:]
		if number == 2 && kind == protowire.BytesType {
			if id, n := protowire.ConsumeString(info); n >= 0 && id != "" {
				return id
			}
			break
		}
		if n = protowire.ConsumeFieldValue(number, kind, info); n < 0 {
			break
		}
		info = info[n:]
	}
	return "an unknown process"
}

// SPDX-License-Identifier: Apache-2.0

package zkstate

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/creelrm/creel/subcluster/rm/state"
)

// Config of a state. Servers, Parent and Name are required.
type Config struct {
	Servers   Servers
	Parent    string        // path of the parent of ZKRMStateRoot
	Name      string        // of the ResourceManager: another one's state is refused
	Holder    string        // this process, for messages
	Check     time.Duration // interval in which an idle holder asks whether it still is one; 1 s
	NodeBytes int           // at most, of a node; 512 KiB
	Records   Records       // nil: Hadoop's ResourceManager cannot continue the state

	limits  limits                                       // zero: standard
	connect func(context.Context, Servers) (tree, error) // tests replace it
}

// lastWords is the time for unwritten transactions after Run's context has ended.
const lastWords = 5 * time.Second

func (c Config) withDefaults() Config {
	c.Servers = c.Servers.WithDefaults()
	c.Check = cmp.Or(c.Check, time.Second)
	c.limits = cmp.Or(c.limits, standard)
	if c.NodeBytes > 0 {
		c.limits.nodeBytes = min(c.NodeBytes, c.limits.nodeBytes)
	}
	if c.connect == nil {
		c.connect = authenticated
	}
	return c
}

// Log is the state as its holder uses it.
type Log struct {
	cfg     Config
	tree    tree
	paths   paths
	queue   *queue
	started atomic.Bool

	// Only the goroutine of Open, and then that of Run, use these.
	head     head
	version  int32 // of CreelState
	copy     *mirror
	acls     int32 // version of the root's ACL
	standing standing
}

var _ state.Log = (*Log)(nil)

// Open makes this process the holder, and fences the previous one. It waits for ZooKeeper until the context ends.
func Open(ctx context.Context, cfg Config) (*Log, error) { return open(ctx, cfg, nil) }

// open is Open with the copy of a follower, or nil.
func open(ctx context.Context, cfg Config, warm *mirror) (*Log, error) {
	cfg = cfg.withDefaults()
	t, err := cfg.connect(ctx, cfg.Servers)
	if err != nil {
		return nil, failed(err)
	}
	l := &Log{cfg: cfg, tree: t, paths: pathsOf(cfg.Parent), queue: newQueue(), copy: warm}
	if err := l.take(ctx); err != nil {
		t.close()
		return nil, failed(err)
	}
	return l, nil
}

// failed names the state in an error.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("resource manager's state in ZooKeeper: %w", inWords(err))
}

// take fences the previous holder, and reads the state.
func (l *Log) take(ctx context.Context) error {
	const user = "creel"
	secret := rand.Text()
	for _, step := range []func() error{
		func() error { return l.tree.addAuth(ctx, Auth{Scheme: "digest", Secret: user + ":" + secret}) },
		func() error { return makePath(ctx, l.tree, l.paths.root, l.cfg.Servers.ACL) },
		func() error { return l.checkVersion(ctx) },
		func() error { return l.checkName(ctx) },
		func() error {
			return l.tree.setACL(ctx, l.paths.root, rootACL(l.cfg.Servers.ACL, user, secret))
		},
		func() error { return l.makeNodes(ctx) },
		func() error { return l.becomeHolder(ctx) },
		func() error { return l.removeUnfinished(ctx) },
	} {
		if err := repeat(ctx, step); err != nil {
			return l.verdict(err)
		}
	}
	if err := l.copy.read(ctx, l.tree, l.paths, l.head); err != nil {
		return err
	}
	return l.settle(ctx)
}

// checkName refuses the state of another ResourceManager, before it is fenced.
func (l *Log) checkName(ctx context.Context) error {
	h, _, err := headOf(ctx, l.tree, l.paths)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil
	case err != nil:
		return err
	case h.Name != l.cfg.Name:
		return fmt.Errorf("%w: %s is the state of %q, not of %q; set another yarn.resourcemanager.zk-state-store.parent-path",
			errUnusable, l.paths.root, h.Name, l.cfg.Name)
	}
	return nil
}

// makeNodes creates the nodes of a new state, and removes a lock that Hadoop's ResourceManager may have left.
func (l *Log) makeNodes(ctx context.Context) error {
	if err := l.tree.multi(ctx, remove(l.paths.lock)); err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	acl := l.cfg.Servers.ACL
	empty := head{Layout: layout, Name: l.cfg.Name, First: 1, ACLs: noACLs}
	nodes := []any{create(l.paths.holder, nil, acl), create(l.paths.state, empty.bytes(), acl)}
	if _, _, err := l.tree.get(ctx, l.paths.version); errors.Is(err, zk.ErrNoNode) {
		nodes = append(nodes, create(l.paths.version, ownVersion, acl))
	} else if err != nil {
		return err
	}
	err := l.tree.multi(ctx, l.paths.fenced(acl, nodes...)...)
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

// becomeHolder writes this process's name, and notes the version of CreelState. A repetition counts twice, which does
// no harm.
func (l *Log) becomeHolder(ctx context.Context) error {
	h, stat, err := headOf(ctx, l.tree, l.paths)
	if err != nil {
		return err
	}
	h.Opened++
	changes := []any{set(l.paths.holder, []byte(l.cfg.Holder), -1)}
	if l.cfg.Records == nil {
		changes = append(changes, set(l.paths.version, ownVersion, -1))
	} else if err := l.readStanding(ctx, &h); err != nil {
		return err
	}
	changes = append(changes, set(l.paths.state, h.bytes(), stat.Version))
	err = l.tree.multi(ctx, l.paths.fenced(l.cfg.Servers.ACL, changes...)...)
	if err != nil {
		if errors.Is(err, zk.ErrBadVersion) {
			return errors.New("an earlier repetition was applied late") // so repeat it
		}
		return err
	}
	l.head, l.version = h, stat.Version+1
	if !l.copy.continues(stat.Czxid, h) {
		l.copy = newMirror(stat.Czxid, h)
	}
	return nil
}

// removeUnfinished removes the nodes of a group that has not become visible.
func (l *Log) removeUnfinished(ctx context.Context) error {
	for n := l.head.Last + 1; ; n++ {
		_, _, err := l.tree.get(ctx, l.paths.node(n))
		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		if err == nil {
			err = l.tree.multi(ctx, l.paths.fenced(l.cfg.Servers.ACL, remove(l.paths.node(n)))...)
		}
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
	}
}

// Each implements state.Log.
func (l *Log) Each(f func(key string, value []byte) error) error {
	for _, key := range slices.Sorted(maps.Keys(l.copy.entries)) {
		if err := f(key, []byte(l.copy.entries[key].value)); err != nil {
			return err
		}
	}
	return nil
}

// Commit implements state.Log.
func (l *Log) Commit(tx *state.Tx, done func(error)) { l.queue.add(tx.Bytes(), done) }

// Confirm implements state.Log. It is a write, so a majority of the servers confirms it.
func (l *Log) Confirm(ctx context.Context) error {
	if err := l.queue.err(); err != nil {
		return err
	}
	err := repeat(ctx, func() error {
		return l.tree.multi(ctx, l.paths.fenced(l.cfg.Servers.ACL, set(l.paths.holder, []byte(l.cfg.Holder), -1))...)
	})
	return failed(l.verdict(err))
}

// Run implements state.Log.
func (l *Log) Run(ctx context.Context) (err error) {
	if !l.started.CompareAndSwap(false, true) {
		return failed(errors.New("Run was called twice"))
	}
	defer func() { l.close(err) }()
	patient, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastWords, giveUp) })()
	tick := time.NewTicker(l.cfg.Check)
	defer tick.Stop()
	for {
		select {
		case <-l.queue.wake:
			err = l.flush(patient)
		case <-tick.C:
			err = l.check(patient)
		case <-ctx.Done():
			return l.flush(patient)
		}
		if err != nil {
			return err
		}
	}
}

// check is Confirm for an idle holder. While ZooKeeper does not answer there is nothing to learn.
func (l *Log) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Check)
	defer cancel()
	err := l.Confirm(ctx)
	if errors.Is(err, state.ErrFenced) || errors.Is(err, state.ErrLost) {
		l.queue.fail(err)
		return err
	}
	return nil
}

// flush makes all queued transactions durable as one group, and calls their done functions.
func (l *Log) flush(ctx context.Context) error {
	ops, waiting := l.queue.take()
	if len(waiting) == 0 {
		return nil
	}
	err := failed(l.write(ctx, ops))
	if err != nil {
		l.queue.fail(err)
	}
	for _, done := range waiting {
		done(err)
	}
	return err
}

// write makes a group durable, with the records that follow from it.
func (l *Log) write(ctx context.Context, ops []byte) error {
	records, err := l.changes(ops)
	if err != nil {
		return err
	}
	return l.writeGroup(ctx, ops, records)
}

// writeGroup makes a group durable, with changes of records. Only the last write makes its nodes visible.
func (l *Log) writeGroup(ctx context.Context, ops []byte, records []Change, further ...any) error {
	repeated, first := l.copy.outdated(l.cfg.limits)
	ops = append(repeated, ops...)
	nodes, with := shares(ops, records, l.cfg.limits)
	acl, next := l.cfg.Servers.ACL, l.head
	for i, node := range nodes {
		next.Last++
		changes := []any{create(l.paths.node(next.Last), node, acl)}
		for _, c := range with[i] {
			changes = append(changes, c.op(l.paths, acl))
		}
		if i == len(nodes)-1 {
			next.First = first
			changes = append(changes, set(l.paths.state, next.bytes(), l.version))
			changes = append(changes, further...)
			for n := l.head.First; n < first; n++ {
				changes = append(changes, remove(l.paths.node(n)))
			}
		}
		if err := l.send(ctx, changes); err != nil {
			return err
		}
	}
	g := group{first: l.head.Last + 1, last: next.Last, bytes: len(ops)}
	l.head, l.version = next, l.version+1
	l.copy.next = next.Last + 1
	err := l.copy.apply(g, ops)
	l.copy.trim(first)
	return err
}

// send repeats a write until ZooKeeper has answered or the context ends. The first change creates a node.
func (l *Log) send(ctx context.Context, changes []any) error {
	var silent time.Time // since when ZooKeeper accepts no write
	for {
		err := l.tree.multi(ctx, l.paths.fenced(l.cfg.Servers.ACL, changes...)...)
		if errors.Is(err, zk.ErrNodeExists) && !silent.IsZero() {
			err = nil // an earlier repetition was applied
		}
		if err == nil || final(err) {
			if !silent.IsZero() {
				l.cfg.Servers.Log.Warn("the ResourceManager's state in ZooKeeper accepts writes again",
					"after", time.Since(silent).Round(time.Millisecond))
			}
			return l.verdict(err)
		}
		if silent.IsZero() {
			silent = time.Now()
			l.cfg.Servers.Log.Error("the ResourceManager's state in ZooKeeper accepts no write: changes wait", "error", err,
				"try", "check that a majority of the ZooKeeper servers runs and is reachable")
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(repeatAfter):
		}
	}
}

// verdict converts ZooKeeper's refusal of a write.
func (l *Log) verdict(err error) error {
	switch {
	case errors.Is(err, zk.ErrNoAuth):
		return fmt.Errorf("%w: %s opened it after this one", state.ErrFenced, l.successor())
	case errors.Is(err, zk.ErrNoNode), errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNodeExists):
		return fmt.Errorf("%w: another program has changed the nodes at %s (%w)", state.ErrLost, l.paths.root, err)
	}
	return err
}

// successor names the process that has fenced this one.
func (l *Log) successor() string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	name, _, err := l.tree.get(ctx, l.paths.holder)
	if err != nil || string(name) == l.cfg.Holder {
		return "another process"
	}
	return string(name)
}

func (l *Log) close(cause error) {
	l.queue.close(cause)
	l.tree.close()
}

// Close implements state.Log.
func (l *Log) Close() error {
	if !l.started.CompareAndSwap(false, true) {
		return failed(errors.New("Run closes the log that it ran"))
	}
	l.close(nil)
	return nil
}

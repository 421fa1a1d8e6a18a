// SPDX-License-Identifier: Apache-2.0

package zkstate

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/creelrm/creel/subcluster/rm/state"
)

// Records are nodes from which Hadoop's ResourceManager can continue the state. They follow from the entries, and a
// holder changes both in one transaction of ZooKeeper. Package hadoopstate implements it.
type Records interface {
	// Changes returns the changes of nodes that follow from changed entries, parents first. The result depends on the
	// arguments alone.
	Changes(keys []string, before, after Entries) ([]Change, error)
	// Rewrite returns the changes that make the nodes follow from the entries.
	Rewrite(ctx context.Context, nodes *Session, parent string, entries map[string]string) ([]Change, error)
	// Adopt continues from nodes that Hadoop's ResourceManager has changed: it returns operations that bring the
	// entries up to them, and the changes of nodes that Changes depends on.
	Adopt(
		ctx context.Context, nodes *Session, parent string, entries map[string]string,
	) (ops []byte, changes []Change, err error)
}

// Entries returns the value of an entry.
type Entries func(key string) (value string, found bool)

// Change is a change of a node.
type Change struct {
	Kind ChangeKind
	Path string // below ZKRMStateRoot
	Data []byte
	With bool // in the same transaction of ZooKeeper as the change before
}

// ChangeKind is the kind of a change.
type ChangeKind int

// These are the kinds of changes.
const (
	Create ChangeKind = iota
	Replace
	Remove
)

// op converts a change to an operation of ZooKeeper.
func (c Change) op(p paths, acl []zk.ACL) any {
	switch c.Kind {
	case Create:
		return create(p.root+c.Path, c.Data, acl)
	case Replace:
		return set(p.root+c.Path, c.Data, -1)
	}
	return remove(p.root + c.Path)
}

// changeBytes is the size of a change in a request, about: its path, data and ACL.
func changeBytes(c Change) int { return len(c.Path) + len(c.Data) + 150 }

// inParts divides changes into parts of at most size bytes each, unless changes that belong together are larger.
func inParts(changes []Change, size int) (parts [][]Change) {
	n := 0
	for at := 0; at < len(changes); {
		end, bytes := at, 0
		for end == at || end < len(changes) && changes[end].With {
			bytes += changeBytes(changes[end])
			end++
		}
		if n += bytes; len(parts) == 0 || n > size {
			parts, n = append(parts, nil), bytes
		}
		last := &parts[len(parts)-1]
		*last = append(*last, changes[at:end]...)
		at = end
	}
	return parts
}

// shares distributes a group and its changes to transactions of ZooKeeper, each with one node of the log. A group that
// does not fit into one request begins with nodes without operations, which carry the changes.
func shares(ops []byte, changes []Change, max limits) (nodes [][]byte, with [][]Change) {
	nodes = split(ops, max.nodeBytes)
	total := len(nodes[0])
	for _, c := range changes {
		total += changeBytes(c)
	}
	if len(nodes) == 1 && total <= max.requestBytes {
		return nodes, [][]Change{changes}
	}
	parts := inParts(changes, max.requestBytes)
	var all [][]byte
	for range parts {
		all = append(all, []byte{moreFollow})
	}
	return append(all, nodes...), append(parts, make([][]Change, len(nodes))...)
}

// changes returns the changes of records that follow from a group.
func (l *Log) changes(ops []byte) ([]Change, error) {
	if l.cfg.Records == nil {
		return nil, nil
	}
	var keys []string
	last := map[string]state.Op{}
	err := state.EachOp(ops, func(o state.Op) {
		key := string(o.Key)
		if _, again := last[key]; !again {
			keys = append(keys, key)
		}
		last[key] = o
	})
	if err != nil {
		return nil, err
	}
	after := func(key string) (string, bool) {
		if o, changed := last[key]; changed {
			return string(o.Value), !o.Delete
		}
		return l.copy.get(key)
	}
	out, err := l.cfg.Records.Changes(keys, l.copy.get, after)
	if err != nil {
		err = fmt.Errorf("the records for Hadoop's ResourceManager: %w", err)
	}
	return out, err
}

// standing is the relation of Hadoop's records to the log at an opening.
type standing int

const (
	none    standing = iota // there are none, or the last holder did not keep them
	current                 // they follow from the log
	stale                   // a group that did not become visible may have changed some
	ahead                   // Hadoop's ResourceManager has led since the last group
)

// standingOf derives the standing. acls is the version of the root's ACL before this opening: each opening of either
// implementation sets the ACL.
func standingOf(version []byte, h head, acls int32) standing {
	switch {
	case !isHadoops(version):
		return none
	case h.ACLs != acls:
		return ahead
	case h.Stale:
		return stale
	}
	return current
}

// noACLs is head.ACLs of a state that no process of creel's has held.
const noACLs = -1

// settle makes the records and the entries agree after an opening. Its group is the first one of this holder.
func (l *Log) settle(ctx context.Context) error {
	if l.cfg.Records == nil || l.standing == current {
		return nil
	}
	nodes := &Session{tree: l.tree, servers: l.cfg.Servers}
	entries := make(map[string]string, len(l.copy.entries))
	for key, e := range l.copy.entries {
		entries[key] = e.value
	}
	var ops []byte
	var changes []Change
	var err error
	if l.standing == ahead {
		l.cfg.Servers.Log.Info("a ResourceManager of Hadoop has led: its records are taken over", "nodes", l.paths.root)
		ops, changes, err = l.cfg.Records.Adopt(ctx, nodes, l.cfg.Parent, entries)
	} else {
		changes, err = l.cfg.Records.Rewrite(ctx, nodes, l.cfg.Parent, entries)
	}
	if err != nil {
		return fmt.Errorf("the records of Hadoop's ResourceManager: %w", err)
	}
	l.head.ACLs, l.head.Stale = l.acls, false
	var version []any
	if l.standing == none {
		version = []any{set(l.paths.version, hadoopVersion, -1)}
	}
	return l.writeGroup(ctx, ops, changes, version...)
}

// readStanding reads the parts of the standing, after this process has set the root's ACL.
func (l *Log) readStanding(ctx context.Context, h *head) error {
	_, root, err := l.tree.get(ctx, l.paths.root)
	if err != nil {
		return err
	}
	version, _, err := l.tree.get(ctx, l.paths.version)
	if err != nil {
		return err
	}
	_, _, err = l.tree.get(ctx, l.paths.node(h.Last+1))
	if err == nil {
		h.Stale = true
	} else if !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	l.acls = root.Aversion
	if l.standing = standingOf(version, *h, l.acls-1); l.standing == current {
		h.ACLs = l.acls
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package zkstate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"
	"google.golang.org/protobuf/encoding/protowire"
)

// layout is the version of CreelState.
const layout = 1

// paths are the nodes of a state.
type paths struct{ root, version, lock, holder, state string }

func pathsOf(parent string) paths {
	root := strings.TrimSuffix(parent, "/") + "/ZKRMStateRoot"
	return paths{
		root: root, version: root + "/RMVersionNode", lock: root + "/RM_ZK_FENCING_LOCK",
		holder: root + "/CreelHolder", state: root + "/CreelState",
	}
}

// node is the path of a node of the log.
func (p paths) node(number int64) string { return fmt.Sprintf("%s/%010d", p.state, number) }

// head is the value of CreelState.
type head struct {
	Layout int    `json:"layout"`
	Name   string `json:"name"`   // of the ResourceManager
	Opened int64  `json:"opened"` // times that a process became the holder
	First  int64  `json:"first"`  // number of the oldest node
	Last   int64  `json:"last"`   // number of the newest node; First-1: none
	// ACLs is the version of the root's ACL at the last opening after which Hadoop's records followed from the log.
	ACLs  int32 `json:"acls,omitempty"`
	Stale bool  `json:"stale,omitempty"` // a group that did not become visible may have changed records
}

func (h head) bytes() []byte {
	b, _ := json.Marshal(h) // it has numbers and a text only
	return b
}

// headOf reads CreelState. made is the transaction that created it: it differs between a state and its successor at the
// same path.
func headOf(ctx context.Context, t tree, p paths) (h head, stat *zk.Stat, err error) {
	data, stat, err := t.get(ctx, p.state)
	if err != nil {
		return head{}, nil, err
	}
	if err := json.Unmarshal(data, &h); err != nil || h.Layout == 0 {
		return head{}, nil, fmt.Errorf("%w: %s is not of creel: %.100q", errUnusable, p.state, data)
	}
	if h.Layout != layout {
		return head{}, nil, fmt.Errorf("%w: %s has layout %d, and this creel knows %d: another version wrote it",
			errUnusable, p.state, h.Layout, layout)
	}
	return h, stat, nil
}

// ownVersion is the value of RMVersionNode: a message with a major and a minor version. Hadoop's ResourceManager ends
// at a major version that is not its own, which is 1, and so does not start with a state that it cannot read.
var ownVersion = versionMessage(1001, 0)

func versionMessage(major, minor uint64) []byte {
	b := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), major)
	return protowire.AppendVarint(protowire.AppendTag(b, 2, protowire.VarintType), minor)
}

// errUnusable is wrapped by the error of nodes that this process must not change.
var errUnusable = errors.New("it cannot be used")

// hadoopVersion is the version of Hadoop's records that are kept beside the log.
var hadoopVersion = versionMessage(1, 5)

// isHadoops reports whether Hadoop's ResourceManager starts on a state with this version.
func isHadoops(version []byte) bool {
	return strings.HasPrefix(string(version), string(versionMessage(1, 0)[:2]))
}

// checkVersion refuses a state that Hadoop's ResourceManager has written, unless Hadoop's records are taken over.
func (l *Log) checkVersion(ctx context.Context) error {
	version, _, err := l.tree.get(ctx, l.paths.version)
	switch {
	case errors.Is(err, zk.ErrNoNode), err == nil && string(version) == string(ownVersion):
		return nil
	case err != nil:
		return err
	case !isHadoops(version):
		return fmt.Errorf("%w: %s has a version that creel does not know", errUnusable, l.paths.version)
	case l.cfg.Records != nil:
		return nil
	}
	_, root, err := l.tree.get(ctx, l.paths.root)
	if err != nil {
		return err
	}
	h, _, err := headOf(ctx, l.tree, l.paths)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	if err == nil && standingOf(version, h, root.Aversion) != ahead {
		return nil
	}
	return fmt.Errorf("%w: %s has the state of a Hadoop ResourceManager; set creel.rm.state.hadoop-records, or "+
		"another yarn.resourcemanager.zk-state-store.parent-path and copy the state by creel rm import --from",
		errUnusable, l.paths.root)
}

// makePath creates a path and its parents, if they are missing.
func makePath(ctx context.Context, t tree, path string, acl []zk.ACL) error {
	for end := 1; end < len(path); {
		if next := strings.IndexByte(path[end:], '/'); next >= 0 {
			end += next
		} else {
			end = len(path)
		}
		// An existing node is not created: the right to create may be missing.
		if _, _, err := t.get(ctx, path[:end]); errors.Is(err, zk.ErrNoNode) {
			err := t.multi(ctx, create(path[:end], nil, acl))
			if err != nil && !errors.Is(err, zk.ErrNodeExists) {
				return err
			}
		} else if err != nil {
			return err
		}
		end++
	}
	return nil
}

func create(path string, data []byte, acl []zk.ACL) *zk.CreateRequest {
	return &zk.CreateRequest{Path: path, Data: data, Acl: acl}
}

func set(path string, data []byte, version int32) *zk.SetDataRequest {
	return &zk.SetDataRequest{Path: path, Data: data, Version: version}
}

func remove(path string) *zk.DeleteRequest { return &zk.DeleteRequest{Path: path, Version: -1} }

// fenced surrounds operations by the lock, which only the holder can create.
func (p paths) fenced(acl []zk.ACL, ops ...any) []any {
	out := append([]any{create(p.lock, nil, acl)}, ops...)
	return append(out, remove(p.lock))
}

// rootACL is the ACL of the root: the rights of all nodes, of which one identity alone may create and delete children.
func rootACL(all []zk.ACL, user, secret string) []zk.ACL {
	const exclusive = zk.PermCreate | zk.PermDelete
	var out []zk.ACL
	for _, a := range all {
		if a.Perms &^= exclusive; a.Perms != 0 {
			out = append(out, a)
		}
	}
	return append(out, zk.DigestACL(exclusive, user, secret)...)
}

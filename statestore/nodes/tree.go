// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"errors"
	"time"

	"github.com/creelrm/creel/statestore"
)

// Tree is a tree of nodes in another system. A node has data and a version; its path is like that of a file. A call
// ends with its context.
//
// Errors: ErrNoNode for a missing node, ErrConflict for a transaction that found another version than it expected,
// creel.ErrNotPermitted if the system refuses the caller. Any other error may be temporary, unless Final. After it a
// transaction may have been carried out, or be carried out later.
type Tree interface {
	// Prepare makes the tree usable for this process, before its first use.
	Prepare(ctx context.Context) error
	// Get reads a node.
	Get(ctx context.Context, path string) ([]byte, *Stat, error)
	// Watch is Get with a channel on which something happens after the node's next change, and perhaps without one.
	Watch(ctx context.Context, path string) ([]byte, *Stat, <-chan struct{}, error)
	// Children lists the names of a node's children, in no order.
	Children(ctx context.Context, path string) ([]string, error)
	// Apply carries out all operations or none. written is the time of the changes, zero if it is unknown.
	Apply(ctx context.Context, ops []Op) (written time.Time, err error)
	// Sync makes later reads as recent as the changes of all processes before it.
	Sync(ctx context.Context) error
	// Time is the system's time now.
	Time(ctx context.Context) (time.Time, error)
	// Health checks that the system serves changes, and reports settings that weaken a promise.
	Health(ctx context.Context) ([]statestore.Finding, error)
	// Final reports that a repetition does not change an error.
	Final(err error) bool
	// Close ends all calls.
	Close()
}

// The errors of a Tree.
var (
	ErrNoNode   = errors.New("there is no such node")
	ErrConflict = errors.New("another process has changed the node")
)

// Stat is a node without its data.
type Stat struct {
	Version int64 // one higher with each change
	Created int64 // higher for a node that was created later; another one in a copy of the tree
	Changed int64 // another one after each change, also for a node that was deleted and created again
	// Ctime and Mtime are the times of its creation and of its last change.
	Ctime, Mtime time.Time
	Children     int
}

// OpKind is a kind of operation.
type OpKind int

// The kinds of operation. Each but OpMissing and OpCreate needs the node.
const (
	OpCreate  OpKind = iota // of a missing node
	OpSet                   // of a node's data
	OpDelete                // of a node without children
	OpCheck                 // that the node is unchanged
	OpMissing               // that there is no node
)

// AnyVersion is the version of an operation on a node whose present version is of no concern.
const AnyVersion = -1

// Op is an operation of a transaction.
type Op struct {
	Kind    OpKind
	Path    string
	Data    []byte
	Version int64 // that the node must have, for OpSet, OpDelete and OpCheck
}

// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"errors"
)

// These are errors of a Log.
var (
	// ErrClosed is the error of transactions that arrive after Run has ended.
	ErrClosed = errors.New("state is closed")
	// ErrFenced is wrapped by the errors of a holder after another process has opened the state.
	ErrFenced = errors.New("another process holds the state")
	// ErrLost is wrapped by the errors of a holder whose shared state has lost acknowledged transactions.
	ErrLost = errors.New("the state has lost acknowledged changes")
)

// Follower is the copy of a shared state that another process holds. The package's comment has its promises.
type Follower interface {
	// Follow brings the copy up to date. After an error the copy may be older.
	Follow(ctx context.Context) error
	// Lead makes this process the holder, and passes the copy to the returned Log.
	Lead(ctx context.Context) (Log, error)
	// Close releases the follower. Logs of Lead stay open.
	Close() error
}

// Log is the state as its holder uses it. The package's comment has its promises.
type Log interface {
	// Each calls f for every entry in the order of the keys. Call it before Run.
	Each(f func(key string, value []byte) error) error
	// Commit queues a transaction; done must not block. Any goroutine may call it. The transaction may be reused at
	// once. Commit waits only while the log is a whole buffer behind.
	Commit(tx *Tx, done func(error))
	// Confirm returns nil if this process is still the holder, or why it cannot know.
	Confirm(ctx context.Context) error
	// Run makes transactions durable until the context ends or the state fails, and then closes the log. Transactions
	// committed before the end are written.
	Run(ctx context.Context) error
	// Close closes a log on which Run was never called.
	Close() error
}

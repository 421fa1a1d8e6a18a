// SPDX-License-Identifier: Apache-2.0

// Package signed reads members from the state store. If a file has the cluster's secret, it accepts only members signed
// with it. So an attacker that can write into the store, but lacks the secret, cannot make routers send submissions and
// tokens elsewhere. The attacker can still silence, drain and remove members.
//
// A signature covers the member's epoch. A record of an earlier epoch is rejected if this process has accepted a later
// one, or the store has one (subcluster.Record.Superseded). An attacker that restores all of a member's old data
// together misleads starting processes until the member's next heartbeat.
package signed

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// Store is the source of members; watch.Source.
type Store interface {
	Records(ctx context.Context) (subcluster.Records, error)
	RecordsOf(ctx context.Context, queues []string, loads bool) (subcluster.Records, error)
	Watch(ctx context.Context, notify func(statestore.Change)) error
}

// warnEvery is the pause between logs of rejected members.
const warnEvery = time.Minute

// Reader is a Store that rejects unsigned members and those of an earlier epoch. If it accepted the member before, that
// record stays; otherwise the member is left out. It is safe for concurrent use. Make one with New.
type Reader struct {
	Store
	log *slog.Logger

	refused atomic.Int64

	mu       sync.Mutex
	believer *subcluster.Believer
	warned   time.Time
}

// New makes a Reader.
func New(store Store, signer *subcluster.Signer, log *slog.Logger) *Reader {
	return &Reader{Store: store, log: log, believer: subcluster.NewBeliever(signer)}
}

// Refused is the number of members with a rejected record in the last read.
func (r *Reader) Refused() int64 { return r.refused.Load() }

// Records reads the store and leaves out unsigned members. Members unchanged since the last read are not checked
// again.
func (r *Reader) Records(ctx context.Context) (subcluster.Records, error) {
	return r.believed(r.Store.Records(ctx))
}

// RecordsOf is Records with partial loads.
func (r *Reader) RecordsOf(ctx context.Context, queues []string, loads bool) (subcluster.Records, error) {
	return r.believed(r.Store.RecordsOf(ctx, queues, loads))
}

func (r *Reader) believed(records subcluster.Records, err error) (subcluster.Records, error) {
	if err != nil {
		return records, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	records, refused := r.believer.Believe(records)
	r.refused.Store(int64(len(refused)))
	if now := time.Now(); len(refused) > 0 && now.Sub(r.warned) >= warnEvery {
		r.warned = now
		r.log.Warn("ignored members not signed with the cluster's secret, or of an earlier epoch",
			"subclusters", refused, "try", "use the same creel.cluster.secret-file in all daemons, and find other writers "+
				"to the store")
	}
	return records, nil
}

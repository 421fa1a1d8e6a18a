// SPDX-License-Identifier: Apache-2.0

// Package signed reads members from the state store and believes those alone that
// were signed under the cluster's secret, where there is one in a file. Who can
// write into the store, but has not the secret, cannot make routers send
// submissions and tokens elsewhere. It can still silence, drain and remove members.
package signed

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// Store is what members are read from; watch.Source.
type Store interface {
	Records(ctx context.Context) (subcluster.Records, error)
	Watch(ctx context.Context, notify func(statestore.Change)) error
}

// warnEvery is how often refused members are told.
const warnEvery = time.Minute

// Reader is a Store that refuses what was not signed. A member that it believed
// before stays as it was; one that it never did is not there. It is safe for
// concurrent use. Make one with New.
type Reader struct {
	Store
	signer *subcluster.Signer
	log    *slog.Logger

	refused atomic.Int64

	mu     sync.Mutex
	good   map[creel.SubclusterID]*good
	warned time.Time
}

// good is what was last believed of a member.
type good struct {
	member   subcluster.Member
	load     string
	parsed   *subcluster.Load
	sequence int64
}

// New makes a Reader.
func New(store Store, signer *subcluster.Signer, log *slog.Logger) *Reader {
	return &Reader{Store: store, signer: signer, log: log, good: map[creel.SubclusterID]*good{}}
}

// Refused is of how many members something was refused at the last read.
func (r *Reader) Refused() int64 { return r.refused.Load() }

// Records reads the store and leaves out what was not signed. What has not
// changed since the last read is not checked again.
func (r *Reader) Records(ctx context.Context) (subcluster.Records, error) {
	records, err := r.Store.Records(ctx)
	if err != nil {
		return records, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var refused []creel.SubclusterID
	believed := make([]subcluster.Record, 0, len(records.Members))
	for i := range records.Members {
		record := records.Members[i]
		member, load := r.believe(&record)
		if !member || !load {
			refused = append(refused, record.ID)
		}
		if r.good[record.ID] != nil {
			believed = append(believed, record)
		}
	}
	for id := range r.good {
		if !slices.ContainsFunc(believed, func(m subcluster.Record) bool { return m.ID == id }) {
			delete(r.good, id) // it was removed
		}
	}
	records.Members = believed
	r.refused.Store(int64(len(refused)))
	if now := time.Now(); len(refused) > 0 && now.Sub(r.warned) >= warnEvery {
		r.warned = now
		r.log.Warn("members in the state store that are not signed under the cluster's secret are not believed",
			"subclusters", refused, "try", "give all daemons the same creel.cluster.secret-file, and look who else "+
				"writes into the store")
	}
	return records, nil
}

// believe replaces in a record what was not signed by what was before, and
// reports what it found of its two parts. The lock is held.
func (r *Reader) believe(record *subcluster.Record) (member, load bool) {
	known := r.good[record.ID]
	if known == nil || record.Member != known.member {
		member = r.signer.GoodMember(&record.Member) && (known == nil || record.Epoch >= known.member.Epoch)
		switch {
		case !member && known == nil:
			return false, true
		case !member:
			record.Member = known.member
		case known == nil || record.Epoch != known.member.Epoch:
			known = &good{member: record.Member}
			r.good[record.ID] = known
		default:
			known.member = record.Member
		}
	} else {
		member = true
	}
	if record.Load == "" || record.Load == known.load {
		return member, true
	}
	sequence, load := r.signer.GoodLoad(record.ID, record.Epoch, record.Load)
	if load = load && sequence > known.sequence; load {
		known.load, known.parsed, known.sequence = record.Load, record.Parsed, sequence
	} else {
		record.Load, record.Parsed = known.load, known.parsed
	}
	return member, load
}

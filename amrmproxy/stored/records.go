// SPDX-License-Identifier: Apache-2.0

// Package stored stores the AM-RM proxies' UAM records in the federation's state store, sealed with the cluster's
// secret.
package stored

import (
	"context"
	"io"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/amrmproxy"
	"github.com/creelrm/creel/statestore"
)

// UAMRecords is the part of the state store for UAM records.
type UAMRecords interface {
	SaveUAMRecord(ctx context.Context, r statestore.UAMRecord) (revision int64, err error)
	UAMRecordsOf(ctx context.Context, app creel.ApplicationID) ([]statestore.UAMRecord, error)
	DropUAMRecord(ctx context.Context, a creel.AttemptID) error
}

// Records implements amrmproxy.Store and amrmproxy.Sealer with the state store.
type Records struct {
	Records UAMRecords
	// Secrets are the keys that seal records, newest first.
	Secrets func(context.Context) ([]statestore.Key, error)
	Random  io.Reader // crypto/rand.Reader
}

// Entries implements amrmproxy.Store.
func (r *Records) Entries(ctx context.Context, app creel.ApplicationID) ([]amrmproxy.Entry, error) {
	records, err := r.Records.UAMRecordsOf(ctx, app)
	if err != nil {
		return nil, err
	}
	out := make([]amrmproxy.Entry, len(records))
	for i := range records {
		out[i] = entry(&records[i])
	}
	return out, nil
}

// Put implements amrmproxy.Store.
func (r *Records) Put(ctx context.Context, e amrmproxy.Entry) (int64, error) {
	return r.Records.SaveUAMRecord(ctx, record(e))
}

// Remove implements amrmproxy.Store.
func (r *Records) Remove(ctx context.Context, a creel.AttemptID) error {
	return r.Records.DropUAMRecord(ctx, a)
}

// Seal implements amrmproxy.Sealer.
func (r *Records) Seal(ctx context.Context, bound, plain []byte) ([]byte, error) {
	keys, err := r.Secrets(ctx)
	if err != nil {
		return nil, err
	}
	if len(keys) == 0 {
		return nil, &creel.Error{
			Kind: creel.ErrUnavailable,
			What: "the cluster has no secret to seal with",
			Try:  "set one",
		}
	}
	return statestore.Seal(r.Random, keys[0], bound, plain)
}

// Open implements amrmproxy.Sealer.
func (r *Records) Open(ctx context.Context, bound, sealed []byte) ([]byte, error) {
	keys, err := r.Secrets(ctx)
	if err != nil {
		return nil, err
	}
	return statestore.Open(keys, bound, sealed)
}

func entry(s *statestore.UAMRecord) amrmproxy.Entry {
	e := amrmproxy.Entry{
		Attempt: s.Attempt, Revision: s.Revision, Home: s.Home, Proxy: s.Proxy, Writers: s.Writers, Sealed: s.State,
	}
	for _, m := range s.UAMs {
		e.UAMs = append(e.UAMs, amrmproxy.EntryUAM{
			Member: m.Member, OwnID: m.OwnID, Attempt: m.Attempt, Phase: m.Phase,
		})
	}
	return e
}

func record(e amrmproxy.Entry) statestore.UAMRecord {
	s := statestore.UAMRecord{
		Attempt: e.Attempt, Revision: e.Revision, Home: e.Home, Proxy: e.Proxy, Writers: e.Writers, State: e.Sealed,
	}
	for _, u := range e.UAMs {
		s.UAMs = append(s.UAMs, statestore.UAM{
			Member: u.Member, OwnID: u.OwnID, Attempt: u.Attempt, Phase: u.Phase,
		})
	}
	return s
}

// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// recall remembers the last value of each read of the store. A read that has a statestore.Patience gets the last value
// if the store does not answer, and its age is noted there. All others get the error: a change must not rest on an old
// value.
type recall struct {
	Store
	view func() *subcluster.View
	now  func() time.Time

	mu   sync.Mutex
	last map[string]recalled
}

type recalled struct {
	value any
	at    time.Time
}

// maxRecalled bounds the remembered values. The oldest is dropped.
const maxRecalled = 256

func newRecall(store Store, view func() *subcluster.View, now func() time.Time) *recall {
	return &recall{Store: store, view: view, now: now, last: map[string]recalled{}}
}

// excused reports whether an answer may lack a part: the store does not answer, and the answer changes nothing.
func excused(ctx context.Context, err error) bool {
	return errors.Is(err, creel.ErrUnavailable) && statestore.PatienceOf(ctx) != nil
}

// without replaces an error by a part that the answer lacks, if that is excused.
func without(ctx context.Context, err error, part string) error {
	if !excused(ctx, err) {
		return err
	}
	statestore.PatienceOf(ctx).Lacks(part)
	return nil
}

// Records is statestore.Reader's. If this process has read none, the policies of the view replace them: the router
// decides by these.
func (r *recall) Records(ctx context.Context) (subcluster.Records, error) {
	records, err := remember(ctx, r, "records", func() (subcluster.Records, error) { return r.Store.Records(ctx) })
	view := r.view()
	if !excused(ctx, err) || view == nil {
		return records, err
	}
	statestore.PatienceOf(ctx).Lacks("policies written since the last view of the federation")
	return subcluster.Records{Policies: view.Policies.All()}, nil
}

// Documents is statestore.Documents'.
func (r *recall) Documents(ctx context.Context, class string) (statestore.DocumentSet, error) {
	return remember(ctx, r, "class "+class, func() (statestore.DocumentSet, error) {
		return r.Store.Documents(ctx, class)
	})
}

// DocumentHistory is statestore.Documents'.
func (r *recall) DocumentHistory(
	ctx context.Context, class, name string, before int64, limit int,
) ([]statestore.Document, error) {
	key := fmt.Sprintf("history %s %s %d %d", class, name, before, limit)
	return remember(ctx, r, key, func() ([]statestore.Document, error) {
		return r.Store.DocumentHistory(ctx, class, name, before, limit)
	})
}

// PolicyHistory is statestore.Policies'.
func (r *recall) PolicyHistory(
	ctx context.Context, q creel.QueuePath, before int64, limit int,
) ([]subcluster.Policy, error) {
	key := fmt.Sprintf("policy %s %d %d", q, before, limit)
	return remember(ctx, r, key, func() ([]subcluster.Policy, error) {
		return r.Store.PolicyHistory(ctx, q, before, limit)
	})
}

func remember[T any](ctx context.Context, r *recall, key string, read func() (T, error)) (T, error) {
	value, err := read()
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.last[key] = recalled{value, now}
		if len(r.last) > maxRecalled {
			r.dropOldest()
		}
		return value, nil
	}
	last, ok := r.last[key]
	if !ok || !excused(ctx, err) {
		return value, err
	}
	statestore.PatienceOf(ctx).Recalled(now.Sub(last.at))
	return last.value.(T), nil
}

// dropOldest removes the oldest value. The caller has mu.
func (r *recall) dropOldest() {
	var oldest string
	for key, v := range r.last {
		if oldest == "" || v.at.Before(r.last[oldest].at) {
			oldest = key
		}
	}
	delete(r.last, oldest)
}

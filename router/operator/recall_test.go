// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/router/operator"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/memory"
	"github.com/creelrm/creel/subcluster"
)

// away is a store that can stop answering.
type away struct {
	*memory.Store
	gone bool
}

func (a *away) err() error {
	if a.gone {
		return statestore.Unavailable("it is away", 0)
	}
	return nil
}

func (a *away) Documents(ctx context.Context, class string) (statestore.DocumentSet, error) {
	if err := a.err(); err != nil {
		return statestore.DocumentSet{}, err
	}
	return a.Store.Documents(ctx, class)
}

func (a *away) Records(ctx context.Context) (subcluster.Records, error) {
	if err := a.err(); err != nil {
		return subcluster.Records{}, err
	}
	return a.Store.Records(ctx)
}

// Without the store a read has the last values, or the parts that the router has itself. A change has an error.
func TestReadsWithoutTheStoreHaveLastValues(t *testing.T) {
	s := &away{Store: memory.New(memory.NewState("test", nil), time.Now)}
	view := subcluster.NewView(time.Now(), []subcluster.Status{
		{Member: subcluster.Member{ID: "a"}, State: subcluster.StateActive},
	}, nil)
	policy := subcluster.Policy{Queue: "root.q", Version: 1, Document: []byte(`{"home":{"policy":"random"}}`)}
	view.Policies = subcluster.NewPolicies([]subcluster.Policy{policy})
	config := operator.Config{View: func() *subcluster.View { return view }, Store: s}
	warm, cold := operator.New(config), operator.New(config)
	if _, err := s.PutDocument(t.Context(), statestore.DocumentWrite{
		Class: rebalancer.TreeClass, Name: rebalancer.TreeName, Author: "ann", Keep: 1,
		Data: []byte(`{"queues":[{"queue":"root.q","guarantee":"10%"}]}`),
	}); err != nil {
		t.Fatal(err)
	}
	read := func(o *operator.Operator, d time.Duration) (operator.QueueTree, *statestore.Patience, error) {
		ctx := statestore.WithPatience(t.Context(), d)
		tree, err := o.QueueTree(ctx)
		return tree, statestore.PatienceOf(ctx), err
	}
	before, p, err := read(warm, time.Minute)
	if err != nil || before.Document.Version == 0 || p.Oldest() != 0 || len(p.Lacking()) != 0 {
		t.Fatalf("%+v, age %v, lacks %v: %v", before, p.Oldest(), p.Lacking(), err)
	}
	s.gone = true
	after, p, err := read(warm, 0)
	if err != nil || after.Document.Version != before.Document.Version || p.Oldest() == 0 {
		t.Errorf("a router that read the tree: %+v, age %v: %v", after, p.Oldest(), err)
	}
	after, p, err = read(cold, 0)
	if err != nil || after.Document.Version != 0 || !slices.Contains(p.Lacking(), "the federation's queue tree") {
		t.Errorf("a router that did not: %+v, lacks %v: %v", after, p.Lacking(), err)
	}
	ctx := statestore.WithPatience(t.Context(), 0)
	list, err := cold.Policies(ctx)
	if err != nil || len(list) != 1 || list[0].Queue != "root.q" || len(statestore.PatienceOf(ctx).Lacking()) != 1 {
		t.Errorf("policies of the view: %+v: %v", list, err)
	}
	if _, err := warm.QueueTree(t.Context()); !errors.Is(err, creel.ErrUnavailable) {
		t.Errorf("without a patience: %v", err)
	}
	if _, err := warm.PutQueueTree(t.Context(), "ann", operator.QueueTreeWrite{DryRun: true, Expect: 1}); !errors.Is(
		err, creel.ErrUnavailable) {
		t.Errorf("a change: %v", err)
	}
}

// The rebalancer's breaches are read for the headline, and an unavailable store does not make the overview fail.
func TestBreachesOfTheLastMinutes(t *testing.T) {
	s := &away{Store: memory.New(memory.NewState("test", nil), time.Now)}
	view := subcluster.NewView(time.Now(), nil, nil)
	o := operator.New(operator.Config{View: func() *subcluster.View { return view }, Store: s})
	if got, err := o.Breaches(t.Context()); err != nil || len(got) != 0 {
		t.Errorf("without an audit: %+v, %v", got, err)
	}
	report, err := json.Marshal(rebalancer.AuditReport{Breaches: []rebalancer.AuditBreach{
		{At: view.At.Add(-time.Hour), Invariant: "escrow", Of: "root.old", Breach: "too much"},
		{At: view.At.Add(-time.Minute), Invariant: "escrow", Of: "root.a", Breach: "too much"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.PutDocument(t.Context(), statestore.DocumentWrite{
		Class: rebalancer.ControlClass, Name: rebalancer.AuditName, Data: report, Author: "leader",
	}); err != nil {
		t.Fatal(err)
	}
	if got, err := o.Breaches(t.Context()); err != nil || len(got) != 1 || got[0].Of != "root.a" {
		t.Errorf("present: %+v, %v", got, err)
	}
	s.gone = true
	ctx := statestore.WithPatience(t.Context(), time.Second)
	if got, err := o.Breaches(ctx); err != nil || len(got) != 1 || statestore.PatienceOf(ctx).Oldest() == 0 {
		t.Errorf("without the store: %+v, %v", got, err)
	}
}

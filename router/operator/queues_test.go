// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/policies/rebalancer"
	"github.com/creelrm/creel/router/operator"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/memory"
	"github.com/creelrm/creel/subcluster"
)

// The rebalancer recomputes the tree between a user's read and write: the user's version is still the one to replace.
func TestQueueTreeWriteAfterRevision(t *testing.T) {
	s := memory.New(memory.NewState("test", nil), time.Now)
	view := subcluster.NewView(time.Now(), []subcluster.Status{
		{Member: subcluster.Member{ID: "a"}, State: subcluster.StateActive},
	}, nil)
	o := operator.New(operator.Config{View: func() *subcluster.View { return view }, Store: s})
	write := operator.QueueTreeWrite{
		Document: []byte(`{"queues":[{"queue":"root.q","weight":2}]}`), Text: []byte("queues: # ours\n- {queue: root.q, weight: 2}\n"),
	}
	first, err := o.PutQueueTree(t.Context(), "ann", write)
	if err != nil || string(first.Document.Text) != string(write.Text) {
		t.Fatalf("%+v: %v", first.Document, err)
	}
	d := first.Document
	if _, err := s.PutDocument(t.Context(), statestore.DocumentWrite{
		Class: rebalancer.TreeClass, Name: rebalancer.TreeName, Expect: d.Version, Revises: d.Version, Author: d.Author,
		Text: d.Text, Data: []byte(`{"queues":[{"queue":"root.q","weight":2,"maximum":{"memory":9}}]}`),
	}); err != nil {
		t.Fatal(err)
	}
	for _, expect := range []int64{0, d.Version + 1} {
		write.Expect = expect
		if _, err := o.PutQueueTree(t.Context(), "ann", write); !errors.Is(err, creel.ErrConflict) {
			t.Errorf("write over version %d: %v", expect, err)
		}
	}
	write = operator.QueueTreeWrite{Document: []byte(`{"queues":[{"queue":"root.q","weight":3}]}`), Expect: d.Version}
	for _, dry := range []bool{true, false} {
		write.DryRun = dry
		second, err := o.PutQueueTree(t.Context(), "bob", write)
		if err != nil || !dry && string(second.Document.Text) != string(write.Document) {
			t.Fatalf("%+v, dry run %t: %v", second.Document, dry, err)
		}
	}
	h, err := o.QueueTreeHistory(t.Context(), 0, 10)
	if err != nil || len(h) != 2 || h[0].Author != "bob" || h[1].Version != d.Version {
		t.Errorf("history: %+v: %v", h, err)
	}
	write.Text = []byte("queues: [{queue: root.q, weight: 4}]")
	_, err = o.PutQueueTree(t.Context(), "bob", write)
	if !errors.Is(err, creel.ErrInvalidRequest) || !strings.Contains(err.Error(), "is not its document") {
		t.Errorf("text of another document: %v", err)
	}
}

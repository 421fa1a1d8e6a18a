// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/amrmproxy"
	"github.com/creelrm/creel/statestore"
)

// deafSpreads do what they are asked, and the next few answers are lost.
type deafSpreads struct {
	*statestore.Memory
	lose int
}

func (d *deafSpreads) SaveSpread(ctx context.Context, s statestore.Spread) (int64, error) {
	revision, err := d.Memory.SaveSpread(ctx, s)
	if d.lose > 0 {
		d.lose--
		return 0, creel.ErrUnavailable
	}
	return revision, err
}

// A save whose answer was lost is sealed anew when it is repeated, so the store
// cannot tell that it is the same. It must not be taken for another proxy's.
func TestASaveWhoseAnswerWasLostIsOurs(t *testing.T) {
	ctx := context.Background()
	store := &deafSpreads{Memory: statestore.NewMemory(statestore.NewTwin("test", nil), time.Now)}
	keys := func(context.Context) ([]statestore.Key, error) {
		return []statestore.Key{{ID: 1, Secret: []byte("a secret of the cluster, long enough")}}, nil
	}
	cfg := Config{Name: "p", Spreads: store, Secrets: keys}.withDefaults()
	attempt := creel.AttemptID{Application: creel.ApplicationID{ClusterTimestamp: 7, ID: 1}, Attempt: 1}
	record0 := &record{cfg: &cfg, attempt: attempt}
	save := func(r *record, user string) error {
		return r.save(ctx, &amrmproxy.Record{Attempt: attempt, Home: "sc-a", User: user})
	}
	store.lose = 2
	for range 2 {
		if err := save(record0, "ann"); !errors.Is(err, creel.ErrUnavailable) && !errors.Is(err, creel.ErrStale) {
			t.Fatal(err)
		}
	}
	for _, user := range []string{"ann", "bob", "eve"} { // what changed meanwhile is saved as well
		if err := save(record0, user); err != nil {
			t.Fatalf("%s: %v", user, err)
		}
	}
	other := &record{cfg: &cfg, attempt: attempt}
	known, err := other.load(ctx)
	if err != nil || known.User != "eve" {
		t.Fatalf("the store has %+v, %v", known, err)
	}
	if err := save(other, "theirs"); err != nil {
		t.Fatal(err)
	}
	store.lose = 1
	if err := save(record0, "ours"); !errors.Is(err, creel.ErrUnavailable) {
		t.Fatal(err)
	}
	if err := save(record0, "ours"); !errors.Is(err, creel.ErrStale) {
		t.Errorf("another proxy has the attempt, and saving says %v", err)
	}
}

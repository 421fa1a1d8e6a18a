// SPDX-License-Identifier: Apache-2.0

package statetest

import (
	"errors"
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster/rm/state"
)

// StartFollower makes a follower. The caller closes it.
func (d Deployment) StartFollower(t tester) state.Follower {
	t.Helper()
	f, err := d.Follow()
	must(t, err)
	return f
}

// followerLeads is a takeover: the follower does not disturb the holder, and its Lead fences the holder.
func followerLeads(t *testing.T, d Deployment) {
	if d.Follow == nil {
		t.Skip("the state cannot be followed")
	}
	f := d.StartFollower(t)
	must(t, f.Follow(t.Context())) // before there is a state
	first := d.Start(t)
	must(t, first.Save(func(tx *state.Tx) {
		tx.Put("a", []byte("1"))
		tx.Put("b", []byte("1"))
		tx.Put("c", []byte("1"))
	}))
	must(t, f.Follow(t.Context()))
	must(t, first.Save(func(tx *state.Tx) {
		tx.Put("a", []byte("2"))
		tx.Delete("b")
	}))
	must(t, f.Follow(t.Context()))
	must(t, first.Confirm(t.Context()))
	must(t, first.Save(Put("d", "after the last Follow")))
	l, err := f.Lead(t.Context())
	must(t, err)
	must(t, f.Close())
	if err := first.Save(Put("a", "too late")); !errors.Is(err, state.ErrFenced) {
		t.Errorf("the first holder's transaction was answered %v", err)
	}
	if err := first.Ended(); !errors.Is(err, state.ErrFenced) {
		t.Errorf("the first holder's Run returned %v", err)
	}
	want := map[string]string{"a": "2", "c": "1", "d": "after the last Follow"}
	if got := content(t, l); !maps.Equal(got, want) {
		t.Errorf("the follower leads with %v, want %v", got, want)
	}
}

// followedEqualsMap is the property: whenever followers follow, and however many processes held the state in between, a
// follower that leads has the entries of a plain map.
func followedEqualsMap(t *testing.T, d Deployment) {
	if d.Follow == nil {
		t.Skip("the state cannot be followed")
	}
	propertytest.Check(t, func(t *rapid.T) {
		model := d.Content(t)
		followers := []state.Follower{d.StartFollower(t), d.StartFollower(t)}
		h := d.Start(t)
		for range rapid.IntRange(0, 15).Draw(t, "steps") {
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0, 1, 2:
				must(t, h.Save(func(tx *state.Tx) { draw(t, tx, model) }))
			case 3, 4:
				must(t, rapid.SampledFrom(followers).Draw(t, "follower").Follow(t.Context()))
			case 5:
				must(t, h.End())
				h = d.Start(t)
			case 6:
				l, err := rapid.SampledFrom(followers).Draw(t, "leader").Lead(t.Context())
				must(t, err)
				_ = h.End() // it may notice its fence first
				got := map[string]string{}
				must(t, l.Each(func(key string, value []byte) error {
					got[key] = string(value)
					return nil
				}))
				h = start(l)
				if !maps.Equal(got, model) {
					t.Fatalf("a follower leads with %v, want %v", got, model)
				}
			}
		}
		must(t, h.End())
		for _, f := range followers {
			must(t, f.Close())
		}
		d.expect(t, model)
	})
}

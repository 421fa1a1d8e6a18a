// SPDX-License-Identifier: Apache-2.0

// Package epochs assigns a separate first epoch to each ResourceManager of a federation.
//
// A container's id consists of the application's id, a number, and the epoch of the ResourceManager that issued it. An
// application has containers of several members, so members with the same epoch issue the same ids. An AM cannot
// distinguish two such containers, and its proxy must release one of them. Hadoop leaves the choice to administrators
// (yarn.resourcemanager.epoch, 0 by default).
//
// A ResourceManager claims its epoch at its start (Claim) in a document of the store, by compare-and-set. It claims
// the epoch in its settings or its journal, or any free one. A member's claim stays until it claims again.
package epochs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
)

// Class and Name identify the document: the first epoch of each member, as JSON.
const (
	Class = "epochs"
	Name  = "members"
)

// Between is the distance between chosen first epochs: each start of a ResourceManager takes the next epoch.
// Configured epochs are assumed to be far enough apart.
const Between = 1000

// first is the first chosen epoch, above configured ones; the epoch of a container id has 23 bits.
const (
	first = 100_000
	limit = 1 << 23
)

// Any requests any free epoch.
const Any = -1

// Choose returns the first epoch of a member, given the members' claims. It is want, or for Any one that is far from
// all others and from the member's previous one: applications may still have containers with that.
func Choose(claimed map[creel.SubclusterID]int64, id creel.SubclusterID, want int64) (int64, error) {
	free := func(at, apart int64) (creel.SubclusterID, bool) {
		for other, is := range claimed {
			if other != id && at-is < apart && is-at < apart {
				return other, false
			}
		}
		return "", true
	}
	if want != Any {
		if other, ok := free(want, 1); !ok {
			return 0, &creel.Error{
				Kind: creel.ErrConflict,
				What: fmt.Sprintf("%s and %s have the same first epoch, %d", id, other, want),
				Why:  "their containers would have the same ids",
				Try: fmt.Sprintf("set another yarn.resourcemanager.epoch for %s (creel chooses one if unset); "+
					"if %s no longer exists, remove it: creel subcluster remove %s", id, other, other),
			}
		}
		return want, nil
	}
	for at := int64(first); at+Between <= limit; at += Between {
		if _, ok := free(at, Between); ok && at != claimed[id] {
			return at, nil
		}
	}
	return 0, &creel.Error{
		Kind: creel.ErrConflict, What: "no free epoch for " + string(id),
		Try: "set its yarn.resourcemanager.epoch, or remove members that no longer exist",
	}
}

// Claim claims a first epoch of a member, chosen by Choose, and returns it once it is stored. A
// creel.ErrConflict comes from Choose.
func Claim(
	ctx context.Context, store statestore.Documents, id creel.SubclusterID, want int64,
) (epoch int64, err error) {
	err = change(ctx, store, id, func(claimed map[creel.SubclusterID]int64) (err error) {
		if epoch, err = Choose(claimed, id, want); err == nil {
			claimed[id] = epoch
		}
		return err
	})
	return epoch, err
}

// Forget removes the claim of a member that is removed.
func Forget(ctx context.Context, store statestore.Documents, id creel.SubclusterID) error {
	return change(ctx, store, id, func(claimed map[creel.SubclusterID]int64) error {
		delete(claimed, id)
		return nil
	})
}

// change makes a change to the document, and repeats it after a conflict.
func change(
	ctx context.Context, store statestore.Documents, id creel.SubclusterID, do func(map[creel.SubclusterID]int64) error,
) error {
	for {
		set, err := store.Documents(ctx, Class)
		if err != nil {
			return err
		}
		is, _ := set.Find(Name)
		claimed := map[creel.SubclusterID]int64{}
		if len(is.Data) > 0 {
			if err := json.Unmarshal(is.Data, &claimed); err != nil {
				return fmt.Errorf("the members' first epochs in the store: %w", err)
			}
		}
		before := maps.Clone(claimed)
		if err := do(claimed); err != nil || maps.Equal(before, claimed) {
			return err
		}
		data, err := json.Marshal(claimed)
		if err != nil {
			return err
		}
		_, err = store.PutDocument(ctx, statestore.DocumentWrite{
			Class: Class, Name: Name, Expect: is.Version, Data: data, Source: set.Source, Quiet: true,
			Author: string(id), Comment: "first epochs of members",
		})
		if !errors.Is(err, creel.ErrConflict) {
			return err
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package statestore_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
)

func TestASealedValueOpensOnlyWhereItBelongs(t *testing.T) {
	old, current := statestore.Key{ID: 1, Secret: []byte("one")}, statestore.Key{ID: 2, Secret: []byte("two")}
	ring := []statestore.Key{current, old}
	for _, k := range ring {
		sealed, err := statestore.Seal(rand.Reader, k, []byte("attempt 1, sc-2"), []byte("token"))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(sealed, []byte("token")) {
			t.Fatal("it is not encrypted")
		}
		if plain, err := statestore.Open(
			ring,
			[]byte("attempt 1, sc-2"),
			sealed,
		); err != nil ||
			string(plain) != "token" {
			t.Fatalf("opened to %q, %v", plain, err)
		}
		refuse := func(what string, ring []statestore.Key, bound, sealed []byte) {
			t.Helper()
			if plain, err := statestore.Open(
				ring,
				bound,
				sealed,
			); !errors.Is(err, creel.ErrInvalidToken) ||
				plain != nil {
				t.Fatalf("%s opened to %q, %v", what, plain, err)
			}
		}
		refuse("one of another attempt", ring, []byte("attempt 2, sc-2"), sealed)
		for i := range sealed {
			changed := bytes.Clone(sealed)
			changed[i] ^= 1
			refuse("a changed one", ring, []byte("attempt 1, sc-2"), changed)
		}
		for i := range sealed {
			refuse("a short one", ring, []byte("attempt 1, sc-2"), sealed[:i])
		}
		refuse(
			"one of a key that is gone",
			[]statestore.Key{{ID: 3, Secret: []byte("three")}},
			[]byte("attempt 1, sc-2"),
			sealed,
		)
		refuse(
			"one of a wrong secret",
			[]statestore.Key{{ID: k.ID, Secret: []byte("x")}},
			[]byte("attempt 1, sc-2"),
			sealed,
		)
	}
	if _, err := statestore.Seal(bytes.NewReader(nil), current, nil, nil); err == nil {
		t.Fatal("sealed without randomness")
	}
	if _, err := statestore.Seal(rand.Reader, statestore.Key{}, nil, nil); !errors.Is(err, creel.ErrInvalidRequest) {
		t.Fatalf("sealed without a secret: %v", err)
	}
}

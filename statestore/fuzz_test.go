// SPDX-License-Identifier: Apache-2.0

package statestore_test

import (
	"bytes"
	"testing"

	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/storetest"
	"github.com/creelrm/creel/subcluster"
)

// A record that a parser accepts survives writing and reading unchanged.

func FuzzParseMember(t *testing.F) {
	f := propertytest.Fuzz(t)
	m, _ := statestore.EncodeMember(
		subcluster.Member{
			ID:         "sc-1",
			Epoch:      3,
			Addresses:  subcluster.Addresses{Client: "rm:8032"},
			Capability: `{"clusterMetrics":{}}`,
		},
	)
	f.Add(m)
	f.Add([]byte(`{"id":"a b"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := statestore.ParseMember(data)
		if err != nil {
			return
		}
		text, err := statestore.EncodeMember(m)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := statestore.ParseMember(text); err != nil || again != m {
			t.Fatalf("%+v became %+v, %v", m, again, err)
		}
	})
}

func FuzzParseUAMRecord(t *testing.F) {
	f := propertytest.Fuzz(t)
	s, _ := statestore.EncodeUAMRecord(
		statestore.UAMRecord{
			Attempt: storetest.Attempt(1, 1),
			Home:    "sc-1",
			UAMs:    []statestore.UAM{{Member: "sc-2", Token: []byte{0xff}}},
		},
	)
	f.Add(s)
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := statestore.ParseUAMRecord(data)
		if err != nil {
			return
		}
		text, err := statestore.EncodeUAMRecord(s)
		if err != nil {
			t.Fatal(err)
		}
		s.Revision = 0
		if again, err := statestore.ParseUAMRecord(
			text,
		); err != nil || len(again.UAMs) != len(s.UAMs) || again.Attempt != s.Attempt ||
			!bytes.Equal(again.State, s.State) {
			t.Fatalf("%+v became %+v, %v", s, again, err)
		}
	})
}

func FuzzParsePolicy(t *testing.F) {
	f := propertytest.Fuzz(t)
	p, _ := statestore.EncodePolicy(statestore.PolicyWrite{Queue: "root.a", Document: []byte("x"), Author: "alice"})
	f.Add(p)
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := statestore.ParsePolicy(data)
		if err != nil {
			return
		}
		text, err := statestore.EncodePolicy(
			statestore.PolicyWrite{Queue: p.Queue, Document: p.Document, Author: p.Author, Comment: p.Comment},
		)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := statestore.ParsePolicy(
			text,
		); err != nil || again.Queue != p.Queue ||
			!bytes.Equal(again.Document, p.Document) {
			t.Fatalf("%+v became %+v, %v", p, again, err)
		}
	})
}

func FuzzOpenSealed(t *testing.F) {
	f := propertytest.Fuzz(t)
	key := statestore.Key{ID: 1, Secret: []byte("s")}
	sealed, _ := statestore.Seal(bytes.NewReader(make([]byte, 12)), key, nil, []byte("p"))
	f.Add(sealed)
	f.Fuzz(func(t *testing.T, data []byte) {
		if plain, err := statestore.Open([]statestore.Key{key}, []byte("elsewhere"), data); err == nil {
			t.Fatalf("opened %q", plain)
		}
	})
}

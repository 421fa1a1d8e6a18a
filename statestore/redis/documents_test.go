// SPDX-License-Identifier: Apache-2.0

package redis_test

import (
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/redis"
	"github.com/creelrm/creel/statestore/redis/redistest"
	"github.com/creelrm/creel/subcluster"
)

// A creel of before writes a document and leaves the parts that another wrote: they are not read.
func TestPartsOfOlderWriterAreIgnored(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, redis.Config{URL: server.URL()})
	w := statestore.DocumentWrite{Class: "plan", Name: "current", Data: []byte("whole"), Parts: []subcluster.Part{
		{Text: []byte("head")}, {Leaf: "a", Text: []byte("rows")},
	}}
	cut, err := s.PutDocument(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	read := func(want string, version int64) {
		t.Helper()
		d, err := s.DocumentOf(t.Context(), "plan", "current", []string{"a"})
		if err != nil || string(d.Data) != want || d.Version != version {
			t.Fatalf("read is %q of version %d, want %q of %d: %v", d.Data, d.Version, want, version, err)
		}
	}
	read(subcluster.JoinParts([]string{"head", "rows"}), cut.Version)
	later := cut.Version + 1
	record := fmt.Sprintf(`%d %d 17 {"data":%q}`, later, cut.Version, base64.StdEncoding.EncodeToString([]byte("newer")))
	server.Do("HSET", "{creel:c}:doc:plan", "current", record, "", fmt.Sprint(later))
	read("newer", later)
	w.Expect = later
	if cut, err = s.PutDocument(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	read(subcluster.JoinParts([]string{"head", "rows"}), cut.Version)
}

// Intents and moves are recorded and removed again, all day: of the many that are over the store retains nothing.
func TestOfRemovedDocumentsNothingIsLeft(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, redis.Config{URL: server.URL()})
	for i := range 100 {
		w := statestore.DocumentWrite{
			Class: "moves", Name: fmt.Sprint("application", i), Data: []byte("x"), Keep: 1,
			Parts: []subcluster.Part{{Text: []byte("head")}},
		}
		d, err := s.PutDocument(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		w.Expect, w.Data, w.Keep, w.Parts = d.Version, nil, 0, nil
		if _, err = s.PutDocument(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	keys := server.Do("KEYS", "*:d*moves*").([]any)
	if n := server.Do("HLEN", "{creel:c}:doc:moves"); len(keys) != 1 || n != int64(1) {
		t.Errorf("left are the keys %v, and %v fields in the class; want the version of the class alone", keys, n)
	}
}

// A creel of before left a field for each document that it removed: they do not count, and go.
func TestRecordsRemovedByOlderReleaseAreIgnored(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, redis.Config{URL: server.URL()})
	for i := range 10 {
		server.Do("HSET", "{creel:c}:doc:intents", fmt.Sprint("a", i), fmt.Sprintf("%d %d 17 ", i+2, i+1), "", fmt.Sprint(i+2))
	}
	w := statestore.DocumentWrite{Class: "intents", Name: "b", Data: []byte("x"), Most: 1}
	if _, err := s.PutDocument(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	if n := server.Do("HLEN", "{creel:c}:doc:intents"); n != int64(2) {
		t.Errorf("%v fields are left, want the document's and the version of the class", n)
	}
}

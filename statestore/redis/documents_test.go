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
func TestPartsThatAnOlderWriterLeftAreNotRead(t *testing.T) {
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

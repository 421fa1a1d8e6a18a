// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/statestore/memory"
)

// A snapshot that Restore accepts is a store that works and is written the same
// again.
func FuzzRestore(t *testing.F) {
	f := propertytest.Fuzz(t)
	first, _ := fill(f, newClock()).Snapshot()
	f.Add(first)
	f.Add(
		[]byte(
			`{"schema":"1","homes":[{"application":{"ClusterTimestamp":1,"ID":1},"home":"a"},{"application":{"ClusterTimestamp":1,"ID":1},"home":"b"}]}`,
		),
	)
	f.Fuzz(func(t *testing.T, data []byte) {
		state := memory.NewState("x", nil)
		if state.Restore(data) != nil {
			return
		}
		text, err := state.Snapshot()
		if err != nil {
			return // a time that JSON cannot write
		}
		again := memory.NewState("y", nil)
		if err := again.Restore(text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if second, _ := again.Snapshot(); !bytes.Equal(text, second) {
			t.Fatalf("%s became %s", text, second)
		}
		now := newClock().Now()
		for _, m := range state.Records(now).Members {
			seen := map[string]bool{}
			for cursor := ""; ; {
				page, next, err := state.HomesAt(now, m.ID, cursor, 3)
				if err != nil {
					t.Fatal(err)
				}
				for _, h := range page {
					if k := fmt.Sprint(h.ID); seen[k] {
						t.Fatalf("%s is listed twice", k)
					} else {
						seen[k] = true
					}
				}
				if cursor = next; next == "" {
					break
				}
			}
		}
	})
}

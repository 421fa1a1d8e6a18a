// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"maps"
	"testing"

	"github.com/creelrm/creel/subcluster/rm/state"
)

// After a crash that leaves any prefix of the last block, with or without garbage behind it, an image opens with all
// earlier blocks and none of the last, and accepts more.
func TestTornImageIsTruncated(t *testing.T) {
	var first, second, third state.Tx
	first.Put("a", []byte("1"))
	first.Put("b", []byte("2"))
	second.Put("a", []byte("a longer value than the one before"))
	second.Delete("b")
	third.Put("c", nil)
	text := func(m map[string][]byte) map[string]string {
		out := map[string]string{}
		for k, v := range m {
			out[k] = string(v)
		}
		return out
	}
	var whole Image
	size := len(whole.Block(&second))
	for cut := range size {
		for _, garbage := range [][]byte{nil, make([]byte, 9), {0xC7, 0xEE, 0x1B, 0x10, 2}} {
			var i Image
			i.Write(i.Block(&first), true)
			i.Write(append(i.Block(&second)[:cut:cut], garbage...), false)
			got, err := i.Open()
			if err != nil || !maps.Equal(text(got), map[string]string{"a": "1", "b": "2"}) {
				t.Fatalf("cut at %d: %q, %v", cut, got, err)
			}
			i.Write(i.Block(&second, &third), true)
			got, err = i.Open()
			if err != nil || !maps.Equal(text(got), map[string]string{
				"a": "a longer value than the one before", "c": "",
			}) {
				t.Fatalf("cut at %d, and gone on: %q, %v", cut, got, err)
			}
		}
	}
	var i Image
	i.Write(i.Block(&first), true)
	i.bytes[headerBytes+frameBytes]++
	i.Write(i.Block(&second), true)
	if _, err := i.Open(); err == nil {
		t.Error("damage before a good block is taken for a crash's")
	}
}

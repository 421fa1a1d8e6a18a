// SPDX-License-Identifier: Apache-2.0

package rawjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/creelrm/creel/internal/propertytest"
	"pgregory.net/rapid"
)

// A list equals the document that encoding/json makes of the same items and has the stated length, also when it is
// written in pieces.
func TestAListIsItsDocument(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		type item struct {
			ID   string `json:"id"`
			From string `json:"from,omitempty"`
		}
		after := rapid.Bool().Draw(t, "after")
		l := List{Root: "apps", Name: "app"}
		var items []item
		long := rapid.SampledFrom([]int{1, 1000, 90_000}).Draw(t, "length")
		for i := range rapid.IntRange(0, 5).Draw(t, "items") {
			x := item{ID: fmt.Sprintf("%0*d", long, i)}
			raw, err := json.Marshal(x)
			if err != nil {
				t.Fatal(err)
			}
			l.Items = append(l.Items, raw)
			if after {
				x.From = fmt.Sprint("sc-", i)
			}
			items = append(items, x)
		}
		if after {
			l.After = func(i int) []byte { return fmt.Appendf(nil, `,"from":"sc-%d"`, i) }
		}
		want := []byte(`{"apps":{}}`)
		if len(items) > 0 {
			var err error
			if want, err = json.Marshal(map[string]any{"apps": map[string]any{"app": items}}); err != nil {
				t.Fatal(err)
			}
		}
		var written bytes.Buffer
		n, err := l.WriteTo(&written)
		if got := l.Append(nil); !bytes.Equal(got, want) || l.Len() != len(want) ||
			err != nil || int(n) != len(want) || !bytes.Equal(written.Bytes(), want) {
			t.Fatalf("%.200s, written %.200s (%d, %v), %d long; want %.200s", got, written.Bytes(), n, err, l.Len(), want)
		}
	})
}

// Every item is at its place in the document.
func TestPlacesAreThoseOfTheItems(t *testing.T) {
	for n := range 4 {
		l := List{Root: "apps", Name: "app"}
		for i := range n {
			l.Items = append(l.Items, fmt.Appendf(nil, `{"id":%d}`, 10*i*i))
		}
		doc, seen := l.Append(nil), 0
		for i, place := range l.Places(doc) {
			if seen++; !bytes.Equal(place, l.Items[i]) {
				t.Errorf("of %d, place %d has %q", n, i, place)
			}
		}
		if seen != n {
			t.Errorf("%d places of %d items", seen, n)
		}
	}
}

// Writing ends when the client disconnects.
func TestListIsNotWrittenToGoneClient(t *testing.T) {
	gone := errors.New("gone")
	l := List{Root: "apps", Name: "app"}
	for range 10 {
		l.Items = append(l.Items, bytes.Repeat([]byte("1"), 2*piece))
	}
	w := failing{after: 1, err: gone}
	if n, err := l.WriteTo(&w); !errors.Is(err, gone) || w.calls != 2 || n > 3*piece {
		t.Errorf("%d calls, %d bytes, %v", w.calls, n, err)
	}
}

type failing struct {
	after, calls int
	err          error
}

func (f *failing) Write(b []byte) (int, error) {
	if f.calls++; f.calls > f.after {
		return 0, f.err
	}
	return len(b), nil
}

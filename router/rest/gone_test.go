// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/creelrm/creel/internal/rawjson"
	"github.com/creelrm/creel/router"
)

// A client that has gone costs no merge and no encoding, in whatever form it asked for the list.
func TestListIsNotMergedForGoneClient(t *testing.T) {
	parts := func(held bool) []router.Part[items] {
		return []router.Part[items]{{Member: "sc-a", Value: items{Value: [][]byte{[]byte(`{"id":"1"}`)}, Held: held}}}
	}
	for _, accept := range []string{"application/json", "application/xml"} {
		for _, held := range []bool{false, true} {
			for _, gone := range []bool{true, false} {
				merged := 0
				h := &Handler{}
				w := httptest.NewRecorder()
				r := httptest.NewRequest(http.MethodGet, "/ws/v1/cluster/apps", nil)
				r.Header.Set("Accept", accept)
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				if gone {
					leave()
				}
				r = r.WithContext(ctx)
				if partial(w, r, parts(held)) == gone {
					t.Errorf("%s, held %v, gone %v: the parts are merged all the same", accept, held, gone)
				}
				h.writeList(w, r, parts(held), func() rawjson.List {
					merged++
					return rawjson.List{Root: "apps", Name: "app", Items: parts(held)[0].Value.Value}
				})
				if (merged == 0) != gone {
					t.Errorf("%s, held %v, gone %v: merged %d times, answered %q", accept, held, gone, merged, w.Body)
				}
			}
		}
	}
}

// A held part is equal to the member's, and its items are in the list that was made of it. A report that was merged
// with others is not in the list.
func TestHeldPartPointsIntoTheList(t *testing.T) {
	part := [][]byte{[]byte(`{"id":"1"}`), []byte(`{"id":"22"}`), []byte(`{"id":"3"}`)}
	made := madeOf(rawjson.List{Root: "apps", Name: "app", Items: [][]byte{part[2], []byte(`{"id":"22","of":2}`), part[0]}})
	if want := `{"apps":{"app":[{"id":"3"},{"id":"22","of":2},{"id":"1"}]}}`; string(made.Whole) != want {
		t.Fatalf("the list is %s", made.Whole)
	}
	held, own := made.Share(part)
	for i := range part {
		if !bytes.Equal(held[i], part[i]) || &held[i][0] == &part[i][0] {
			t.Errorf("item %d is %s", i, held[i])
		}
	}
	if own != len(part[1]) {
		t.Errorf("%d bytes are not in the list", own)
	}
	clear(made.Whole)
	if held[0][0] != 0 || held[1][0] != '{' || held[2][0] != 0 {
		t.Errorf("of a cleared list there are %q", held)
	}
	nodes := rawjson.List{Root: "nodes", Name: "node", Items: part, After: func(int) []byte { return nil }}
	if madeOf(nodes).Share != nil {
		t.Error("items with additions are shared")
	}
}

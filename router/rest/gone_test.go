// SPDX-License-Identifier: Apache-2.0

package rest

import (
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

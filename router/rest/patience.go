// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/creelrm/creel/internal/units"
	"github.com/creelrm/creel/statestore"
)

// storeWait bounds the time for which one answer to a read waits for the state store, over all its calls.
const storeWait = 500 * time.Millisecond

// Patient bounds the waits for the store of everything that is read with the context. While the store does not answer
// this router, it is not called.
func (h *Handler) Patient(ctx context.Context) context.Context {
	wait := storeWait
	if view := h.server.View(); view != nil && view.Freeze != nil && view.Freeze.Unread {
		wait = 0
	}
	return statestore.WithPatience(ctx, wait)
}

// patient is Patient for reads. A change waits as long as its client.
func (h *Handler) patient(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			r = r.WithContext(h.Patient(r.Context()))
		}
		next.ServeHTTP(w, r)
	})
}

// lacking returns the sentence about an answer that is old or incomplete because the store did not answer, "" if it is
// current and complete.
func lacking(ctx context.Context) string {
	p := statestore.PatienceOf(ctx)
	if p == nil {
		return ""
	}
	var facts []string
	if age := p.Oldest(); age > 0 {
		facts = append(facts, fmt.Sprintf("this was read %s ago", units.Age(age.Seconds())))
	}
	if parts := p.Lacking(); len(parts) > 0 {
		facts = append(facts, "unknown now: "+strings.Join(parts, ", "))
	}
	if len(facts) == 0 {
		return ""
	}
	return "the state store does not answer: " + strings.Join(facts, "; ")
}

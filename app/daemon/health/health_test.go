// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"errors"
	"net/http/httptest"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/creelrm/creel/app/daemon/health"
)

// /readyz?verbose has a line for each condition and dependency and is judged by
// all of them; /readyz is judged by the conditions alone.
func TestVerboseReadinessListsDependencies(t *testing.T) {
	h := health.New()
	var check error
	view := health.State{Text: "3 members, read 0.2s ago"}
	h.Check("first view", func() error { return check })
	h.Depend("view", func() health.State { return view })
	h.Depend("store", func() health.State { return health.State{Text: "it evicts", Warn: true} })
	mux := chi.NewRouter()
	h.Mount(mux)
	want := func(path string, code int, text string) {
		t.Helper()
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != code || w.Body.String() != text {
			t.Errorf("%s is %d\n%swant %d\n%s", path, w.Code, w.Body, code, text)
		}
	}
	want("/readyz", 503, "[-] serving: starting or stopping\n[+] first view\n")
	h.SetReady(true)
	want("/readyz", 200, "ok\n")
	want("/readyz?verbose", 200, "[+] serving\n[+] first view\n[+] view: 3 members, read 0.2s ago\n[!] store: it evicts\n")
	view.Err = errors.New("frozen: the store does not answer")
	want("/readyz", 200, "ok\n")
	want("/readyz?verbose", 503,
		"[+] serving\n[+] first view\n[-] view: frozen: the store does not answer\n[!] store: it evicts\n")
	check = errors.New("none")
	want("/readyz", 503, "[+] serving\n[-] first view: none\n")
}

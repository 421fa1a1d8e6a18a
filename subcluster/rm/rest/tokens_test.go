// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/creelrm/creel/internal/httpguard"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/subcluster/rm/rest"
	"github.com/creelrm/creel/subcluster/rm/server"
)

func TestDelegationTokensByRESTNeedTicket(t *testing.T) {
	c := start(t, nil)
	// serve is the handler behind a login: a ticket for callers with a name, or none.
	serve := func(tickets bool) *chi.Mux {
		mux := chi.NewRouter()
		mux.Use(func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				user := r.URL.Query().Get("user.name")
				login := httpguard.Login{User: user, Ticket: tickets && user != ""}
				next.ServeHTTP(w, r.WithContext(httpguard.WithLogin(r.Context(), login)))
			})
		})
		rest.New(c.s, rest.Config{}).Mount(mux)
		return mux
	}
	const path = base + "/delegation-token"
	call := func(h *chi.Mux, method, path, body, text string) reply {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		if text != "" {
			r.Header.Set("Hadoop-YARN-RM-Delegation-Token", text)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return reply{w.Code, w.Header(), w.Body.String()}
	}
	open, secure := serve(false), serve(true)
	for name, r := range map[string]reply{
		"without Kerberos": call(open, "POST", path+"?user.name=alice", `{"renewer":"yarn"}`, ""),
		"without a name":   call(secure, "POST", path, `{"renewer":"yarn"}`, ""),
		"only doAs":        call(secure, "POST", path+"?doAs=alice", `{"renewer":"yarn"}`, ""),
		"for another user": call(secure, "POST", path+"?user.name=mallory&doAs=alice", `{"renewer":"yarn"}`, ""),
	} {
		if r.status != 403 || strings.Contains(r.body, `"token"`) {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	if r := call(secure, "POST", path+"?user.name=alice", `{}`, ""); r.status != 400 {
		t.Errorf("without a renewer: %d %s", r.status, r.body)
	}
	issued := call(secure, "POST", path+"?user.name=gate&doAs=alice", `{"renewer":"yarn"}`, "")
	text, _ := at(t, issued.body, "token").(string)
	held, err := token.ParseURLString(text)
	if err != nil || issued.status != 200 {
		t.Fatalf("%d %s: %v", issued.status, issued.body, err)
	}
	id, err := token.ParseDelegation(held.Identifier)
	if err != nil || id.Owner != "alice" || id.RealUser != "gate" || id.Renewer != "yarn" ||
		at(t, issued.body, "max-validity") != float64(id.Max.UnixMilli()) {
		t.Errorf("the token is %+v, %v\n%s", id, err, issued.body)
	}
	expires := at(t, issued.body, "expiration-time").(float64)
	if who, err := server.TokenLogin(c.s, text); err != nil || who != (httpguard.Login{User: "alice", RealUser: "gate"}) {
		t.Errorf("the token is the login of %+v, %v", who, err)
	}
	forged := held
	forged.Password = append([]byte(nil), held.Password...)
	forged.Password[0] ^= 1
	for _, wrong := range []string{forged.URLString(), text[:len(text)-8], "", "no token"} {
		if who, err := server.TokenLogin(c.s, wrong); err == nil || who != (httpguard.Login{}) {
			t.Errorf("token %.20q is the login of %+v, %v", wrong, who, err)
		}
	}
	for name, r := range map[string]reply{
		"renewed by another":       call(secure, "POST", path+"/expiration?user.name=mallory", "", text),
		"renewed without Kerberos": call(open, "POST", path+"/expiration?user.name=yarn", "", text),
		"a forged token":           call(secure, "POST", path+"/expiration?user.name=yarn", "", forged.URLString()),
		"cancelled by another":     call(secure, "DELETE", path+"?user.name=mallory", "", text),
		"cancelled without one":    call(open, "DELETE", path+"?user.name=alice", "", text),
	} {
		if r.status != 403 {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	for _, wrong := range []string{"", "no token"} {
		if r := call(secure, "DELETE", path+"?user.name=alice", "", wrong); r.status != 400 {
			t.Errorf("header %q: %d %s", wrong, r.status, r.body)
		}
	}
	renewed := call(secure, "POST", path+"/expiration?user.name=yarn", "", text)
	if later, _ := at(t, renewed.body, "expiration-time").(float64); renewed.status != 200 || later < expires {
		t.Errorf("renewed: %d %s", renewed.status, renewed.body)
	}
	if r := call(secure, "DELETE", path+"?user.name=alice", "", text); r.status != 200 || r.body != "" {
		t.Errorf("cancelled: %d %s", r.status, r.body)
	}
	if r := call(secure, "POST", path+"/expiration?user.name=yarn", "", text); r.status != 403 {
		t.Errorf("renewed after the end: %d %s", r.status, r.body)
	}
	if who, err := server.TokenLogin(c.s, text); err == nil || who.User != "" {
		t.Errorf("a cancelled token is the login of %+v", who)
	}
}

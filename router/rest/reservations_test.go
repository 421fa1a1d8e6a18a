// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/router/routertest"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/statestore/memory"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
)

// A call about a reservation is answered by its home, whichever router it comes through, and by no other member:
// while the home is away the answer is busy. A ResourceManager without reservations rejects them in its own words,
// and a rejected one has no home.
func TestReservationsAreAnsweredByTheirHome(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 2})
	id := creel.ReservationID{ClusterTimestamp: 1700000000000, ID: 7}
	body := `{"queue":"default","reservation-id":"` + id.String() + `","reservation-definition":{"deadline":9999999999999}}`
	const refusal = "Reservation is not enabled"
	submitted := call(t, f.Routers[0].Web, "POST", base+"/reservation/submit"+asAlice, body)
	if submitted.status != 400 || !strings.Contains(submitted.body, refusal) {
		t.Errorf("submitted: %d %s", submitted.status, submitted.body)
	}
	if home, err := f.Store.Reservations().Home(t.Context(), id); err == nil {
		t.Errorf("what was refused lives at %s", home)
	}
	if _, _, err := f.Store.Reservations().Claim(t.Context(), id, f.Members[1].ID, nil); err != nil {
		t.Fatal(err)
	}
	everywhere := func(state string, status int, words string, class string) {
		t.Helper()
		for _, r := range f.Routers {
			for _, c := range [][2]string{
				{"POST", "/reservation/submit"}, {"POST", "/reservation/update"}, {"POST", "/reservation/delete"},
				{"GET", "/reservation/list?queue=default&reservation-id=" + id.String()},
			} {
				sent := body
				if c[0] == "GET" {
					sent = ""
				}
				if got := call(t, r.Web, c[0], base+c[1], sent); got.status != status || !strings.Contains(got.body, words) {
					t.Errorf("%s: %s %s: %d %s", state, c[0], c[1], got.status, got.body)
				}
			}
			_, err := f.As(r, "alice").UpdateReservation(t.Context(), &pb.ReservationUpdateRequestProto{
				ReservationId: &pb.ReservationIdProto{Id: proto.Int64(id.ID), ClusterTimestamp: proto.Int64(id.ClusterTimestamp)},
			})
			var refused *hrpc.RemoteError
			if !errors.As(err, &refused) || refused.Class != class {
				t.Errorf("%s: by RPC: %v", state, err)
			}
		}
	}
	f.Members[0].Cut()
	everywhere("another member is away", 400, refusal, yarnrpc.ClassYarn)
	f.Members[0].Mend()
	f.Members[1].Cut()
	everywhere("its home is away", 503, string(f.Members[1].ID), hrpc.ClassRetriable)
	f.Members[1].Mend()
	if home, err := f.Store.Reservations().Home(t.Context(), id); err != nil || home != f.Members[1].ID {
		t.Errorf("it moved to %s, %v", home, err)
	}
}

// overPlans serves the router's documents over members that answer so; no reservation has a home on record.
func overPlans(t *testing.T, members ...http.HandlerFunc) string {
	t.Helper()
	view := subcluster.NewView(time.Now(), statuses(t, members...), nil)
	pool := remote.NewPool(remote.Config{User: "creel", KindOf: yarnrpc.KindOf})
	t.Cleanup(func() { pool.Close() })
	mux := chi.NewRouter()
	rest.New(server.New(server.Config{
		View: func() *subcluster.View { return view }, Pool: pool,
		Reservations: memory.New(memory.NewState("test", nil), time.Now).Reservations(),
	}), rest.Config{Started: time.Now()}).Mount(mux)
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	return web.Listener.Addr().String()
}

// plan is a member that lists reservations as Hadoop's ResourceManager does: for an unknown one an empty list. It
// rejects changes of those.
func plan(known string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json;charset=utf-8")
		sent, _ := io.ReadAll(r.Body)
		switch asked := r.URL.Query().Get("reservation-id"); {
		case r.Method == "GET" && (asked == "" || asked == known):
			io.WriteString(w, `{"reservations":{"reservation-id":"`+known+`","user":"alice"}}`)
		case r.Method == "GET":
			io.WriteString(w, `{}`)
		case strings.HasSuffix(r.URL.Path, "/new-reservation"):
			io.WriteString(w, `{"reservation-id":"reservation_1_0003"}`)
		case !strings.Contains(string(sent), known):
			w.WriteHeader(400)
			io.WriteString(w, `{"RemoteException":{"exception":"BadRequestException","message":"not valid"}}`)
		}
	}
}

// A reservation that was made without a router is listed from its member, whatever members answer with an empty list,
// and changed there. While that member does not answer, the answer is not that it does not exist.
func TestAReservationWithoutARecordIsFound(t *testing.T) {
	const one, two = "reservation_1_0001", "reservation_1_0002"
	var away atomic.Bool
	second := func(w http.ResponseWriter, r *http.Request) {
		if away.Load() {
			panic(http.ErrAbortHandler)
		}
		plan(two)(w, r)
	}
	web := overPlans(t, plan(one), second)
	list := base + "/reservation/list?queue=default&reservation-id=" + two
	if r := call(t, web, "GET", list, ""); r.status != 200 || at(t, r.body, "reservations", "reservation-id") != two {
		t.Errorf("listed: %d %s", r.status, r.body)
	}
	change := func() reply {
		return call(t, web, "POST", base+"/reservation/update", `{"reservation-id":"`+two+`"}`)
	}
	if r := change(); r.status != 200 {
		t.Errorf("changed: %d %s", r.status, r.body)
	}
	away.Store(true)
	if r := change(); r.status != 503 || !strings.Contains(r.body, "sc-01") {
		t.Errorf("changed while it is away: %d %s", r.status, r.body)
	}
}

// planless is a member that has no reservations.
func planless(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json;charset=utf-8")
	code, words := 400, "Reservation is not enabled. Please enable & try again"
	if strings.HasSuffix(r.URL.Path, "/new-reservation") {
		code, words = 503, "Unable to create new reservation from RM web service"
	}
	w.WriteHeader(code)
	io.WriteString(w, `{"RemoteException":{"message":"`+words+`"}}`)
}

// Members without reservations are skipped: the others' answers are the answer, complete. Theirs is used if no member
// has any.
func TestMembersWithoutReservationsArePassedOver(t *testing.T) {
	const one = "reservation_1_0001"
	mixed, none := overPlans(t, planless, plan(one), planless), overPlans(t, planless, planless)
	for range 10 { // the order is random
		if r := call(t, mixed, "POST", base+"/reservation/new-reservation", ""); r.status != 200 {
			t.Fatalf("an id: %d %s", r.status, r.body)
		}
	}
	r := call(t, mixed, "GET", base+"/reservation/list?queue=default", "")
	if r.status != 200 || at(t, r.body, "reservations", "reservation-id") != one || r.head.Get("X-Missing-SubClusters") != "" {
		t.Errorf("listed: %d, missing %q: %s", r.status, r.head.Get("X-Missing-SubClusters"), r.body)
	}
	r = call(t, mixed, "POST", base+"/reservation/update", `{"reservation-id":"reservation_1_0002"}`)
	if r.status != 400 || !strings.Contains(r.body, "not valid") {
		t.Errorf("an unknown one changed: %d %s", r.status, r.body)
	}
	if r := call(t, none, "POST", base+"/reservation/new-reservation", ""); r.status != 503 || !strings.Contains(r.body, "Unable to") {
		t.Errorf("an id of nobody: %d %s", r.status, r.body)
	}
	if r := call(t, none, "GET", base+"/reservation/list?queue=default", ""); r.status != 400 || !strings.Contains(r.body, "not enabled") {
		t.Errorf("listed by nobody: %d %s", r.status, r.body)
	}
}

// The plans of several members are one document in XML, too.
func TestReservationsInXMLHaveOneRoot(t *testing.T) {
	web := overPlans(t, plan("reservation_1_0001"), plan("reservation_1_0002"))
	r := call(t, web, "GET", base+"/reservation/list?queue=default", "", "Accept", "application/xml")
	var doc struct {
		XMLName      xml.Name `xml:"reservationListInfo"`
		Reservations []struct {
			ID string `xml:"reservation-id"`
		} `xml:"reservations"`
	}
	if err := xml.Unmarshal([]byte(r.body), &doc); err != nil || len(doc.Reservations) != 2 ||
		doc.Reservations[1].ID != "reservation_1_0002" {
		t.Errorf("%v: %s", err, r.body)
	}
}

// The router itself reports the caller's identity, also while every member is away.
func TestRouterReportsCurrentUser(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 1, Routers: 1})
	f.Members[0].Cut()
	web := f.Routers[0].Web
	for query, want := range map[string]string{"": "dr.who", asAlice: "alice", "?user.name=gate&doAs=bob": "bob"} {
		r := call(t, web, "GET", base+"/userinfo"+query, "")
		if r.status != 200 || at(t, r.body, "requestedUser") != want || at(t, r.body, "rmLoginUser") == "" {
			t.Errorf("%q: %d %s", query, r.status, r.body)
		}
	}
}

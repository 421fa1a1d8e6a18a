// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/router/routertest"
)

// A call about a reservation is answered by its home, whichever router it comes through,
// and by nobody else: while the home is away it is busy. A ResourceManager without
// reservations refuses them in its own words, and what was refused has no home.
func TestReservationsAreAnsweredByTheirHome(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 2})
	id := creel.ReservationID{ClusterTimestamp: 1700000000000, ID: 7}
	body := `{"queue":"default","reservation-id":"` + id.String() + `","reservation-definition":{"deadline":9999999999999}}`
	const refusal = "Reservation is not enabled"
	submitted := call(t, f.Routers[0].Web, "POST", base+"/reservation/submit"+asAlice, body)
	if submitted.status != 400 || !strings.Contains(submitted.body, refusal) {
		t.Errorf("submitted: %d %s", submitted.status, submitted.body)
	}
	if home, err := f.Store.ReservationHome(t.Context(), id); err == nil {
		t.Errorf("what was refused lives at %s", home)
	}
	if _, _, err := f.Store.ClaimReservation(t.Context(), id, f.Members[1].ID); err != nil {
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
	if home, err := f.Store.ReservationHome(t.Context(), id); err != nil || home != f.Members[1].ID {
		t.Errorf("it moved to %s, %v", home, err)
	}
}

// Who one is the router answers by itself, also while every member is away.
func TestTheRouterTellsWhoOneIs(t *testing.T) {
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

// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
)

// Hadoop's YarnClient makes reservations in the plans of two Hadoop ResourceManagers through a router, beside a
// ResourceManager without plans. Each is made in the member that the queue's policy then names. It stays there when the
// policy changes. It is changed and deleted there, and an application in the reservation has its home there. Lists
// contain the plans of both.
func TestReservationsInThePlansOfHadoopsMembers(t *testing.T) {
	t.Parallel()
	f := &Federation{Logs: tempDir(t, "logs")}
	_, f.Store = StartRedis(t)
	f.proxyPort = commonPort(t, []string{"127.0.0.1", "127.0.0.4"})
	for number := 1; number <= 2; number++ {
		s := f.StartHadoopOf(t, hadoop.V342, number, hadoop.Conf{
			"yarn.resourcemanager.reservation-system.enable": "true",
			"yarn.scheduler.capacity.root.queues":            "default,other,plan",
			"yarn.scheduler.capacity.root.default.capacity":  "20",
			"yarn.scheduler.capacity.root.plan.capacity":     "50",
			"yarn.scheduler.capacity.root.plan.reservable":   "true",
		})
		f.Subclusters = append(f.Subclusters, s)
		startSimulated(t, s, 8192)
	}
	one, two := f.Subclusters[0], f.Subclusters[1]
	f.Subclusters = append(f.Subclusters, f.StartSubcluster(t, 3, nil)) // has no plans
	f.StartRouter(t, 1, nil)
	web := f.RouterAddresses[0].Web
	AwaitActive(t, web, 3)
	d := drive(t, hadoop.Client{Conf: f.ClientConf(0), User: hadoop.OSUser(t)})
	do := func(format string, args ...any) driverOutput {
		t.Helper()
		a := d.do(fmt.Sprintf(format, args...))
		if !a.OK {
			t.Fatalf("%+v", a)
		}
		return a
	}
	// reservedAt are the reservations that a ResourceManager lists, or the router.
	reservedAt := func(web string) map[string]int {
		t.Helper()
		code, body, missing := released(t, web, "/ws/v1/cluster/reservation/list?queue=plan&include-resource-allocations=true")
		var doc struct {
			Reservations json.RawMessage
		}
		if code != http.StatusOK || missing != "" || json.Unmarshal([]byte(body), &doc) != nil {
			t.Fatalf("%d, missing %q: %s", code, missing, body)
		}
		return containersOf(t, doc.Reservations)
	}

	// reserved makes a reservation of the containers, in the member that the policy names.
	reserved := func(s *Subcluster, containers int) (id string) {
		t.Helper()
		f.Creel(t, "policy", "set", "root.plan", fmt.Sprintf(`{"home":{"policy":"weighted","weights":{%q:1}}}`, s.ID), "--store", f.Store)
		if process.Poll(nil, func() bool { // the router reads policies from time to time
			id = do("reserve plan %d 600", containers).ID
			if reservedAt(s.Addresses.Web)[id] == containers {
				return true
			}
			do("unreserve %s", id)
			return false
		}) != nil {
			t.Fatalf("no reservation comes to %s", s.ID)
		}
		return id
	}

	for range 20 { // each gets its id of any member that has plans
		if a := d.do("new-reservation"); !a.OK {
			t.Fatalf("%+v", a)
		}
		code, body, _ := sent(t, http.MethodPost, web,
			"/ws/v1/cluster/reservation/new-reservation?user.name="+hadoop.OSUser(t))
		if code != http.StatusOK || !strings.Contains(body, "reservation_") {
			t.Fatalf("%d: %s", code, body)
		}
	}
	first, second := reserved(two, 2), reserved(one, 3)
	both := map[string]int{first: 2, second: 3}
	if all := do("reserved plan").Containers; !maps.Equal(all, both) {
		t.Errorf("by RPC: %v", all)
	}
	if all := reservedAt(web); !maps.Equal(all, both) {
		t.Errorf("by REST: %v", all)
	}
	if alone := do("reserved plan %s", first).Containers; !maps.Equal(alone, map[string]int{first: 2}) {
		t.Errorf("the first alone: %v", alone)
	}

	do("reserve-anew %s 1 600", first)
	if at := reservedAt(two.Addresses.Web); !maps.Equal(at, map[string]int{first: 1}) {
		t.Errorf("changed, at %s: %v", two.ID, at)
	}
	var in driverOutput
	if process.Poll(nil, func() bool { // its queue is made when its time has come
		in = d.do("submit-in " + first + " root.plan")
		return in.OK
	}) != nil {
		t.Fatalf("an application in the reservation: %+v", in)
	}
	id := in.ID
	if at := f.Home(t, id); at != two {
		t.Errorf("%s lives at %s, its reservation at %s", id, at.ID, two.ID)
	}
	AwaitState(t, web, id, "ACCEPTED")
	do("unreserve %s", first)
	if all := do("reserved plan").Containers; !maps.Equal(all, map[string]int{second: 3}) {
		t.Errorf("after the first was deleted: %v", all)
	}

	if a := d.do("reserve default 1 60"); a.OK || !strings.Contains(a.Message, "not managed by reservation system") {
		t.Errorf("in a queue that has no plan: %+v", a)
	}
	one.Hadoop.Kill()
	if a := d.do("unreserve " + second); a.OK || !strings.Contains(a.Message, one.ID) {
		t.Errorf("while its home is down: %+v", a)
	}
	if a := d.do("submit-in " + second + " root.plan"); a.OK || !strings.Contains(a.Message, one.ID) {
		t.Errorf("an application while the home of its reservation is down: %+v", a)
	}
}

// containersOf reads Hadoop's list of reservations. Hadoop writes a list of one as its element.
func containersOf(t *testing.T, list json.RawMessage) map[string]int {
	t.Helper()
	if len(list) == 0 {
		return map[string]int{}
	}
	if list[0] != '[' {
		list = slices.Concat([]byte{'['}, list, []byte{']'})
	}
	var all []struct {
		ID         string `json:"reservation-id"`
		Definition struct {
			Requests struct {
				Request struct {
					Containers int `json:"num-containers,string"`
				} `json:"reservation-request"`
			} `json:"reservation-requests"`
		} `json:"reservation-definition"`
	}
	if err := json.Unmarshal(list, &all); err != nil {
		t.Fatalf("%v: %s", err, list)
	}
	containers := map[string]int{}
	for _, r := range all {
		containers[r.ID] = r.Definition.Requests.Request.Containers
	}
	return containers
}

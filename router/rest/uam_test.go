// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/router/routertest"
	"github.com/creelrm/creel/statestore"
)

// overTwo is an application that has two containers at its home, and four by a UAM in another
// subcluster.
type overTwo struct {
	*routertest.Federation
	t           *testing.T
	app         creel.ApplicationID
	home, other *routertest.Member
	uam         routertest.UAM
}

// startOverTwo submits the application "spread" and runs it in both members, in the other one under
// an id of its own or not.
func startOverTwo(t *testing.T, ownID bool, settings ...string) *overTwo {
	s := &overTwo{t: t, Federation: routertest.Start(t, routertest.Options{
		Members: 2, GivesParts: true, Settings: settings,
	})}
	id, home := submit(t, s.Federation, s.Routers[0].Web, "spread", "default")
	var err error
	if s.app, err = creel.ParseApplicationID(id); err != nil {
		t.Fatal(err)
	}
	s.home, s.other = home, s.Members[0]
	if s.other == home {
		s.other = s.Members[1]
	}
	s.uam = routertest.UAM{Member: s.other, Of: s.app}
	if ownID {
		s.uam.OwnID = s.other.NewApplicationID()
	}
	if _, err := s.Store.SaveUAMRecord(t.Context(), statestore.UAMRecord{
		Attempt: s.attempt(), Home: home.ID,
		UAMs: []statestore.UAM{{Member: s.other.ID, OwnID: s.uam.OwnID, Phase: "running"}},
	}); err != nil {
		t.Fatal(err)
	}
	s.Take(s.home, s.attempt(), 2)
	s.Launch(s.uam, 4)
	return s
}

// direct is a client of the other member, past the routers.
func (s *overTwo) direct() yarnrpc.ApplicationClientProtocolClient {
	return yarnrpc.NewApplicationClientProtocolClient(s.RPC, s.other.Client.Address, hrpc.Login{User: "alice"})
}

func (s *overTwo) attempt() creel.AttemptID { return creel.AttemptID{Application: s.app, Attempt: 1} }

// listed returns an application's name and containers from the router's list by REST, "" if it has none.
func (s *overTwo) listed(query string) (name string, containers int) {
	s.t.Helper()
	list := call(s.t, s.Routers[0].Web, "GET", base+"/apps"+asAlice+query, "")
	if list.status != 200 {
		s.t.Fatalf("%s: %d %s", query, list.status, list.body)
	}
	apps, _ := at(s.t, list.body, "apps").(map[string]any)
	rows, _ := apps["app"].([]any)
	if len(rows) == 0 {
		return "", 0
	}
	row := rows[0].(map[string]any)
	if len(rows) > 1 || row["id"] != s.app.String() {
		s.t.Errorf("%s: %s", query, list.body)
	}
	n, _ := row["runningContainers"].(float64)
	return row["name"].(string), int(n)
}

// listedByRPC is listed by RPC.
func (s *overTwo) listedByRPC(req *pb.GetApplicationsRequestProto) (name string, containers int) {
	s.t.Helper()
	list, err := s.As(s.Routers[0], "alice").GetApplications(s.t.Context(), req)
	if err != nil {
		s.t.Fatal(err)
	}
	if len(list.GetApplications()) == 0 {
		return "", 0
	}
	a := list.GetApplications()[0]
	if len(list.GetApplications()) > 1 || pb.ToApplicationID(a.GetApplicationId()) != s.app {
		s.t.Errorf("%v: %v", req, list)
	}
	return a.GetName(), int(a.GetAppResource_Usage().GetNumUsedContainers())
}

type stateProto = pb.YarnApplicationStateProto

// While an application and its UAM run, its report and the list of applications under every filter agree in both
// protocols; and neither lists the UAM as an application.
func TestAnApplicationIsOneThing(t *testing.T) {
	for name, ownID := range map[string]bool{"the same id": false, "an id of its own": true} {
		t.Run(name, func(t *testing.T) {
			s := startOverTwo(t, ownID)
			const all = 2 + 4
			for _, query := range []string{
				"", "&states=RUNNING", "&name=spread", "&limit=1", "&user=alice", "&finalStatus=UNDEFINED",
				"&startedTimeBegin=1", "&queue=default", "&applicationTypes=TEST",
			} {
				if name, n := s.listed(query); name != "spread" || n != all {
					t.Errorf("REST list %s: %q with %d containers", query, name, n)
				}
			}
			for _, query := range []string{
				"&name=" + s.uam.Name(), "&states=FINISHED", "&finalStatus=SUCCEEDED", "&user=bob",
			} {
				if name, n := s.listed(query); name != "" {
					t.Errorf("REST list %s: %q with %d containers", query, name, n)
				}
			}
			for _, req := range []*pb.GetApplicationsRequestProto{
				{},
				{ApplicationStates: []stateProto{pb.YarnApplicationStateProto_RUNNING}},
				{Name: proto.String("spread")},
				{Limit: proto.Int64(1)},
				{Users: []string{"alice"}},
				{StartBegin: proto.Int64(1)},
			} {
				if name, n := s.listedByRPC(req); name != "spread" || n != all {
					t.Errorf("RPC list {%v}: %q with %d containers", req, name, n)
				}
			}
			for _, req := range []*pb.GetApplicationsRequestProto{
				{Name: proto.String(s.uam.Name())},
				{ApplicationStates: []stateProto{pb.YarnApplicationStateProto_FINISHED}},
				{Users: []string{"bob"}},
			} {
				if name, n := s.listedByRPC(req); name != "" {
					t.Errorf("RPC list {%v}: %q with %d containers", req, name, n)
				}
			}
			s.reports(all)
			s.counts(1, 0)
			// A router of an earlier version asks for tags and joins nothing under filters.
			earlier := &pb.GetApplicationsRequestProto{
				ApplicationStates: []stateProto{pb.YarnApplicationStateProto_FINISHED},
			}
			earlier.ProtoReflect().SetUnknown(pb.AppendText(nil, pb.FieldTag, ""))
			if list, err := s.direct().GetApplications(t.Context(), earlier); err != nil || len(list.GetApplications()) > 0 {
				t.Errorf("a router of an earlier version is given %v, %v", list, err)
			}
		})
	}
}

// reports requires this many containers in the application's report, by both protocols and as XML.
func (s *overTwo) reports(want int) {
	s.t.Helper()
	path := base + "/apps/" + s.app.String() + asAlice
	r := call(s.t, s.Routers[0].Web, "GET", path, "")
	row, _ := at(s.t, r.body, "app").(map[string]any)
	if n, _ := row["runningContainers"].(float64); int(n) != want || row["name"] != "spread" {
		s.t.Errorf("the report by REST has not %d containers: %s", want, r.body)
	}
	xml := call(s.t, s.Routers[0].Web, "GET", path, "", "Accept", "application/xml")
	if !strings.Contains(xml.body, fmt.Sprintf("<runningContainers>%d</runningContainers>", want)) {
		s.t.Errorf("the report as XML has not %d containers: %s", want, xml.body)
	}
	got, err := s.As(s.Routers[0], "alice").GetApplicationReport(s.t.Context(),
		&pb.GetApplicationReportRequestProto{ApplicationId: pb.FromApplicationID(s.app)})
	report := got.GetApplicationReport()
	if n := report.GetAppResource_Usage().GetNumUsedContainers(); err != nil || int(n) != want || report.GetName() != "spread" {
		s.t.Errorf("the report by RPC has not %d containers: %v, %v", want, report, err)
	}
}

// counts requires the numbers of running and finished applications, in the statistics and in the queue's counts.
func (s *overTwo) counts(running, finished int) {
	s.t.Helper()
	stats := call(s.t, s.Routers[0].Web, "GET", base+"/appstatistics"+asAlice+"&states=RUNNING,FINISHED", "")
	for i, want := range []int{running, finished} {
		item, _ := at(s.t, stats.body, "appStatInfo", "statItem").([]any)[i].(map[string]any)
		if n, _ := item["count"].(float64); int(n) != want {
			s.t.Errorf("%v are %d: %s", item["state"], want, stats.body)
		}
	}
	q, err := s.As(s.Routers[0], "alice").GetQueueInfo(s.t.Context(), &pb.GetQueueInfoRequestProto{
		QueueName: proto.String("default"), IncludeApplications: proto.Bool(true),
	})
	if apps := q.GetQueueInfo().GetApplications(); err != nil || len(apps) != 1 ||
		pb.ToApplicationID(apps[0].GetApplicationId()) != s.app || apps[0].GetName() != "spread" {
		s.t.Errorf("the queue's applications: %v, %v", apps, err)
	}
	stat := q.GetQueueInfo().GetQueueStatistics()
	if got := [4]int64{
		stat.GetNumAppsRunning(), stat.GetNumAppsCompleted(), stat.GetNumAppsSubmitted(), stat.GetNumAppsPending(),
	}; got != [4]int64{int64(running), int64(finished), int64(running + finished), 0} {
		s.t.Errorf("the queue's figures by RPC: running, completed, submitted, pending %v", got)
	}
	metrics := call(s.t, s.Routers[0].Web, "GET", base+"/metrics"+asAlice, "")
	for name, want := range map[string]int{
		"appsRunning": running, "appsCompleted": finished, "appsSubmitted": running + finished, "appsPending": 0,
		"appsKilled": 0, "appsFailed": 0,
	} {
		if n, _ := at(s.t, metrics.body, "clusterMetrics", name).(float64); int(n) != want {
			s.t.Errorf("%s is %v, want %d", name, n, want)
		}
	}
	tree := call(s.t, s.Routers[0].Web, "GET", base+"/scheduler"+asAlice, "")
	queues, _ := at(s.t, tree.body, "scheduler", "schedulerInfo", "queues", "queue").([]any)
	for _, each := range queues {
		leaf, _ := each.(map[string]any)
		if leaf["queueName"] != "default" {
			continue
		}
		users, _ := leaf["users"].(map[string]any)["user"].([]any)
		if len(users) == 0 {
			s.t.Fatalf("the queue has no users: %s", tree.body)
		}
		for name, of := range map[string]map[string]any{
			"numApplications": leaf, "numActiveApplications": leaf, "numActiveApplications ": users[0].(map[string]any),
		} {
			if n, _ := of[strings.TrimSpace(name)].(float64); int(n) != running {
				s.t.Errorf("%s is %v, want %d, of %v", name, n, running, of["queueName"])
			}
		}
	}
}

// A UAM that is recorded and not there yet is not a missing part; one whose member does not answer is.
func TestReportNamesMissingPart(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 2})
	id, home := submit(t, f, f.Routers[0].Web, "alone", "default")
	app, err := creel.ParseApplicationID(id)
	if err != nil {
		t.Fatal(err)
	}
	s := &overTwo{t: t, Federation: f, app: app, home: home, other: f.Members[0]}
	if s.other == home {
		s.other = f.Members[1]
	}
	s.Take(home, s.attempt(), 2)
	if _, err := f.Store.SaveUAMRecord(t.Context(), statestore.UAMRecord{
		Attempt: s.attempt(), Home: home.ID, UAMs: []statestore.UAM{{Member: s.other.ID, Phase: "launching"}},
	}); err != nil {
		t.Fatal(err)
	}
	report := func() string {
		r := call(t, f.Routers[0].Web, "GET", base+"/apps/"+id+asAlice, "")
		if n, _ := at(t, r.body, "app").(map[string]any)["runningContainers"].(float64); r.status != 200 || n != 2 {
			t.Fatalf("%d %s", r.status, r.body)
		}
		return r.head.Get("X-Missing-SubClusters")
	}
	if missing := report(); missing != "" {
		t.Errorf("a UAM that is not there yet: missing is %q", missing)
	}
	s.other.Cut()
	if missing := report(); !strings.Contains(missing, string(s.other.ID)) {
		t.Errorf("a UAM whose member does not answer: missing is %q", missing)
	}
	told, err := f.As(f.Routers[0], "alice").GetApplicationReport(t.Context(),
		&pb.GetApplicationReportRequestProto{ApplicationId: pb.FromApplicationID(app)})
	if said := told.GetApplicationReport().GetDiagnostics(); err != nil ||
		!strings.HasPrefix(said, "This report lacks its parts in "+string(s.other.ID)+" (") {
		t.Errorf("by RPC %q, %v", said, err)
	}
}

// An application whose UAM was released runs: no list of ended applications has it.
func TestAnApplicationDoesNotEndWithItsUAM(t *testing.T) {
	for name, ownID := range map[string]bool{"the same id": false, "an id of its own": true} {
		t.Run(name, func(t *testing.T) {
			s := startOverTwo(t, ownID)
			s.End(s.other, s.uam.Attempt())
			for _, query := range []string{"&states=FINISHED", "&state=FINISHED", "&finalStatus=SUCCEEDED", "&finishedTimeBegin=1"} {
				if name, _ := s.listed(query); name != "" {
					t.Errorf("REST list %s has %q", query, name)
				}
			}
			if name, _ := s.listedByRPC(&pb.GetApplicationsRequestProto{
				ApplicationStates: []stateProto{pb.YarnApplicationStateProto_FINISHED},
			}); name != "" {
				t.Errorf("the RPC list of those that have finished has %q", name)
			}
			if name, n := s.listed("&states=RUNNING"); name != "spread" || n != 2 {
				t.Errorf("the list of those that run has %q with %d containers", name, n)
			}
			s.counts(1, 0)
		})
	}
}

// While the home of an application is away, its UAM is no application either.
func TestUAMIsHiddenWhileHomeIsAway(t *testing.T) {
	s := startOverTwo(t, false)
	s.home.Cut()
	s.Until("home is missed", func() bool {
		list := call(t, s.Routers[0].Web, "GET", base+"/apps"+asAlice, "")
		return list.head.Get("X-Partial-Result") == "true"
	})
	if name, n := s.listed(""); name != "" {
		t.Errorf("the REST list has %q with %d containers", name, n)
	}
	if name, n := s.listedByRPC(&pb.GetApplicationsRequestProto{}); name != "" {
		t.Errorf("the RPC list has %q with %d containers", name, n)
	}
}

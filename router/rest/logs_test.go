// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/router/routertest"
	"github.com/creelrm/creel/subcluster/rm"
)

// logNode is a node of a member that this test simulates, which has a part of an application.
type logNode struct {
	s  *overTwo
	at *routertest.Member
	id creel.NodeID
	no int32 // of its next heartbeat
}

func (s *overTwo) logNode(at *routertest.Member, app creel.ApplicationID) *logNode {
	s.t.Helper()
	n := &logNode{s: s, at: at, id: creel.NodeID{Host: "logs-of-" + string(at.ID), Port: 1}}
	var refused error
	if err := at.D.Turn(s.t.Context(), func(m *rm.Machine, now time.Time) {
		_, refused = m.RegisterNode(now, &rm.RegisterNode{
			ID: n.id, Resource: creel.NewResource(4096, 4), Applications: []creel.ApplicationID{app},
		})
	}); err != nil || refused != nil {
		s.t.Fatal(errors.Join(err, refused))
	}
	return n
}

func (n *logNode) report(app creel.ApplicationID, status creel.LogAggregationStatus) {
	n.s.t.Helper()
	action := rm.NodeStop
	if err := n.at.D.Turn(n.s.t.Context(), func(m *rm.Machine, now time.Time) {
		out := m.NodeHeartbeat(now, &rm.NodeReport{
			ID: n.id, ResponseID: n.no, Logs: []rm.LogReport{{App: app, Status: status}},
		})
		n.no, action = out.ResponseID, out.Action
	}); err != nil || action != rm.NodeNormal {
		n.s.t.Fatal(action, err)
	}
}

// logs expects a status of the application's logs, in its report and in lists, by both protocols.
func (s *overTwo) logs(want creel.LogAggregationStatus) {
	s.t.Helper()
	path, router := base+"/apps/"+s.app.String()+asAlice, s.Routers[0]
	if r := call(s.t, router.Web, "GET", path, ""); at(s.t, r.body, "app", "logAggregationStatus") != want.String() {
		s.t.Errorf("%v: the report by REST is %s", want, r.body)
	}
	xml := call(s.t, router.Web, "GET", path, "", "Accept", "application/xml").body
	if !strings.Contains(xml, "<logAggregationStatus>"+want.String()+"</logAggregationStatus>") {
		s.t.Errorf("%v: the report as XML is %s", want, xml)
	}
	got, err := s.As(router, "alice").GetApplicationReport(s.t.Context(),
		&pb.GetApplicationReportRequestProto{ApplicationId: pb.FromApplicationID(s.app)})
	if is := got.GetApplicationReport().GetLogAggregationStatus(); err != nil || int32(is) != int32(want) {
		s.t.Errorf("%v: the report by RPC says %v, %v", want, is, err)
	}
	for _, query := range []string{"", "&name=spread", "&user=alice"} {
		list := call(s.t, router.Web, "GET", base+"/apps"+asAlice+query, "")
		for _, a := range at(s.t, list.body, "apps", "app").([]any) {
			if a := a.(map[string]any); a["id"] == s.app.String() && a["logAggregationStatus"] != want.String() {
				s.t.Errorf("%v: the list %s by REST says %v", want, query, a["logAggregationStatus"])
			}
		}
	}
	for _, req := range []*pb.GetApplicationsRequestProto{{}, {Name: proto.String("spread")}} {
		list, err := s.As(router, "alice").GetApplications(s.t.Context(), req)
		if err != nil || len(list.GetApplications()) != 1 ||
			int32(list.GetApplications()[0].GetLogAggregationStatus()) != int32(want) {
			s.t.Errorf("%v: the list {%v} by RPC is %v, %v", want, req, list, err)
		}
	}
}

// The log status of an application over two members is that of one ResourceManager with the nodes of both: while it
// runs, and after it and its UAM have ended, when no record shows where it had a UAM.
func TestLogsCoverNodesOfAllMembers(t *testing.T) {
	for name, ownID := range map[string]bool{"the same id": false, "an id of its own": true} {
		t.Run(name, func(t *testing.T) {
			s := startOverTwo(t, ownID, "yarn.log-aggregation-enable=true")
			uam := s.uam.Attempt().Application
			home, other := s.logNode(s.home, s.app), s.logNode(s.other, uam)
			s.logs(creel.LogNotStart)
			home.report(s.app, creel.LogRunning)
			s.logs(creel.LogRunning)
			other.report(uam, creel.LogRunningWithFailure)
			s.logs(creel.LogRunningWithFailure)
			home.report(s.app, creel.LogSucceeded)
			other.report(uam, creel.LogRunningWithFailure)
			s.End(s.other, s.uam.Attempt())
			s.End(s.home, s.attempt())
			if err := s.Store.DropUAMRecord(t.Context(), s.attempt()); err != nil {
				t.Fatal(err)
			}
			s.logs(creel.LogRunningWithFailure)
			other.report(uam, creel.LogFailed)
			s.logs(creel.LogFailed)
		})
	}
}

// While a member that may have had a UAM is away, an ended application's report has the status of the others, and
// nothing unknown is reported as missing. The member is asked again when it is back.
func TestEndedApplicationReportWhileMemberIsAway(t *testing.T) {
	s := startOverTwo(t, false, "yarn.log-aggregation-enable=true")
	home, other := s.logNode(s.home, s.app), s.logNode(s.other, s.app)
	home.report(s.app, creel.LogSucceeded)
	other.report(s.app, creel.LogRunning)
	s.End(s.other, s.uam.Attempt())
	s.End(s.home, s.attempt())
	other.report(s.app, creel.LogFailed)
	if err := s.Store.DropUAMRecord(t.Context(), s.attempt()); err != nil {
		t.Fatal(err)
	}
	path := base + "/apps/" + s.app.String() + asAlice
	s.other.Cut()
	r := call(t, s.Routers[0].Web, "GET", path, "")
	if at(t, r.body, "app", "logAggregationStatus") != "SUCCEEDED" || r.head.Get("X-Missing-SubClusters") != "" {
		t.Errorf("while it is away: %v %s", r.head, r.body)
	}
	s.other.Mend()
	s.Until("it is asked again", func() bool {
		return at(t, call(t, s.Routers[0].Web, "GET", path, "").body, "app", "logAggregationStatus") == "FAILED"
	})
	// Now it is known where the UAM was: a member that is away is missing.
	s.other.Cut()
	if r := call(t, s.Routers[0].Web, "GET", path, ""); !strings.Contains(r.head.Get("X-Missing-SubClusters"), string(s.other.ID)) {
		t.Errorf("while it is away again: %v %s", r.head, r.body)
	}
}

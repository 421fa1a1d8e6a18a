// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm/server"
)

// logNode is a node that this test plays.
type logNode struct {
	c        *cluster
	id       *pb.NodeIdProto
	tracker  yarnrpc.ResourceTrackerClient
	response int32
}

// logNode registers a node that has something of an application.
func (c *cluster) logNode(host string, app *pb.ApplicationIdProto) *logNode {
	c.t.Helper()
	n := &logNode{
		c: c, id: &pb.NodeIdProto{Host: &host, Port: new(int32(9))},
		tracker: yarnrpc.NewResourceTrackerClient(c.rpc, c.s.Addresses().Tracker, hrpc.Login{User: "yarn"}),
	}
	r, err := n.tracker.RegisterNodeManager(c.t.Context(), &pb.RegisterNodeManagerRequestProto{
		NodeId: n.id, HttpPort: new(int32(8042)), Resource: pb.FromResource(creel.NewResource(4096, 4)),
		RunningApplications: []*pb.ApplicationIdProto{app},
	})
	if err != nil || r.GetNodeAction() != pb.NodeActionProto_NORMAL {
		c.t.Fatal(r, err)
	}
	return n
}

// report sends a heartbeat with the node's log aggregation status for an application.
func (n *logNode) report(app *pb.ApplicationIdProto, s creel.LogAggregationStatus, said string) {
	n.c.t.Helper()
	r, err := n.tracker.NodeHeartbeat(n.c.t.Context(), &pb.NodeHeartbeatRequestProto{
		NodeStatus: &pb.NodeStatusProto{NodeId: n.id, ResponseId: &n.response},
		LogAggregationReportsForApps: []*pb.LogAggregationReportProto{{
			ApplicationId: app, LogAggregationStatus: new(pb.LogAggregationStatusProto(s)), Diagnostics: &said,
		}},
	})
	if err != nil || r.GetNodeAction() != pb.NodeActionProto_NORMAL {
		n.c.t.Fatal(r, err)
	}
	n.response = r.GetResponseId()
}

// The log aggregation status of an application is the same in its report and in lists, by REST and RPC, in JSON and
// XML. That includes long lists, which are cached encoded, and an ended application: all show a change at once.
func TestApplicationReportsLogProgress(t *testing.T) {
	c := start(t, func(cfg *server.Config) { cfg.Machine.LogAggregation = true })
	for i := range 30 {
		c.submit("bob", fmt.Sprint("app", i), `,"unmanaged-AM":true,"application-tags":{"tag":["`+
			strings.Repeat("x", 100)+`"]}`)
	}
	text := c.submit("bob", "logged", `,"unmanaged-AM":true`)
	id, err := creel.ParseApplicationID(text)
	if err != nil {
		t.Fatal(err)
	}
	app := pb.FromApplicationID(id)
	client := yarnrpc.NewApplicationClientProtocolClient(c.rpc, c.s.Addresses().Client, hrpc.Login{User: "bob"})
	const as = "?user.name=bob"
	apps, one := base+"/apps"+as, base+"/apps/"+text
	tag, last := "", "" // of the list that was asked for before the last change; of the last one
	says := func(want creel.LogAggregationStatus) {
		t.Helper()
		r, err := client.GetApplicationReport(t.Context(), &pb.GetApplicationReportRequestProto{ApplicationId: app})
		if got := r.GetApplicationReport().GetLogAggregationStatus(); err != nil || int32(got) != int32(want) {
			t.Errorf("%v: the report says %v: %v", want, got, err)
		}
		for range 2 {
			list, err := client.GetApplications(t.Context(), &pb.GetApplicationsRequestProto{})
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range list.GetApplications() {
				if pb.ToApplicationID(a.GetApplicationId()) == id && int32(a.GetLogAggregationStatus()) != int32(want) {
					t.Errorf("%v: the list says %v", want, a.GetLogAggregationStatus())
				}
			}
			if doc := c.call("GET", one+as, ""); at(t, doc.body, "app", "logAggregationStatus") != want.String() {
				t.Errorf("%v: the document is %s", want, doc.body)
			}
			doc := c.call("GET", one+as, "", "Accept", "application/xml")
			if !strings.Contains(doc.body, "<logAggregationStatus>"+want.String()+"</logAggregationStatus>") {
				t.Errorf("%v: the document is %s", want, doc.body)
			}
			all := c.call("GET", apps, "", "If-None-Match", tag)
			if all.status != 200 || len(all.body) < 8<<10 {
				t.Fatalf("%v: the list is %d of %d bytes", want, all.status, len(all.body))
			}
			for _, a := range at(t, all.body, "apps", "app").([]any) {
				if a := a.(map[string]any); a["id"] == text && a["logAggregationStatus"] != want.String() {
					t.Errorf("%v: the list by REST says %v", want, a["logAggregationStatus"])
				}
			}
			last, tag = all.head.Get("ETag"), "" // without a list the whole cached one is sent
		}
	}
	says(creel.LogNotStart)
	n := c.logNode("log-node", app)
	tag = last
	n.report(app, creel.LogRunning, "")
	says(creel.LogRunning)
	tag = last
	n.report(app, creel.LogRunningWithFailure, "no room on the disk")
	says(creel.LogRunningWithFailure)
	c.until("it is killed", func() bool {
		return c.call("PUT", one+"/state"+as, `{"state":"KILLED"}`).status == 200
	})
	says(creel.LogRunningWithFailure)
	tag = last
	n.report(app, creel.LogFailed, "")
	says(creel.LogFailed)
	n.report(app, creel.LogSucceeded, "")
	says(creel.LogFailed)
	// The nodes' messages are beside it, for callers with view access.
	doc := c.call("GET", "/api/v1/apps/"+text+"/logs"+as, "")
	const want = `"status":"FAILED","nodes":[{"node":"log-node:9","status":"FAILED","failures":["no room on the disk"]}],"count":1}`
	if doc.status != 200 || !strings.HasSuffix(doc.body, want) {
		t.Errorf("%d %s", doc.status, doc.body)
	}
	if none := c.call("GET", "/api/v1/apps/application_1_0001/logs"+as, ""); none.status != 404 {
		t.Errorf("of no application: %d %s", none.status, none.body)
	}
}

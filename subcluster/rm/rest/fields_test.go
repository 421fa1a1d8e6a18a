// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm/rest"
)

// Hadoop's web services submit every application with a label, which is "" if the document has none; by RPC it may
// have none.
func TestLabelOfSubmissionsWithoutOne(t *testing.T) {
	c := start(t, nil)
	app := func(id string) map[string]any {
		return c.get(base+"/apps/"+id, "app").(map[string]any)
	}
	byREST := c.submit("alice", "a", "")
	if label, shown := app(byREST)["appNodeLabelExpression"]; !shown || label != "" {
		t.Errorf("label by REST: %v, %v", label, shown)
	}
	client := yarnrpc.NewApplicationClientProtocolClient(c.rpc, c.s.Addresses().Client, hrpc.Login{User: "alice"})
	made, err := client.GetNewApplication(t.Context(), &pb.GetNewApplicationRequestProto{})
	if err != nil {
		t.Fatal(err)
	}
	id := pb.ToApplicationID(made.GetApplicationId())
	_, err = client.SubmitApplication(t.Context(), &pb.SubmitApplicationRequestProto{
		ApplicationSubmissionContext: &pb.ApplicationSubmissionContextProto{
			ApplicationId: made.GetApplicationId(), UnmanagedAm: new(true),
			AmContainerSpec: &pb.ContainerLaunchContextProto{}, Resource: pb.FromResource(creel.NewResource(128, 1)),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if label, shown := app(id.String())["appNodeLabelExpression"]; shown {
		t.Errorf("label by RPC: %v", label)
	}
}

func TestTagsKeepTheirCaseBySetting(t *testing.T) {
	c := start(t, nil)
	for keep, want := range map[bool]string{false: "mixed", true: "Mixed"} {
		mux := chi.NewRouter()
		rest.New(c.s, rest.Config{KeepTagCase: keep}).Mount(mux)
		ids, err := c.s.NewApplicationIDs(1)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest("POST", base+"/apps?user.name=alice", strings.NewReader(`{"application-id":"`+
			ids.String()+`","unmanaged-AM":true,"application-tags":{"tag":["Mixed"]},"am-container-spec":{},`+
			`"resource":{"memory":128,"vCores":1}}`))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		if mux.ServeHTTP(w, r); w.Code != 202 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		if got := c.get(base+"/apps/"+ids.String(), "app", "applicationTags"); got != want {
			t.Errorf("with KeepTagCase %v the tag is %v", keep, got)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/rest"
	"github.com/creelrm/creel/subcluster/rm/server"
)

// The OpenAPI document names every call below /api/v1 and no other, and responses have exactly its fields.
func TestTheOpenAPIDocumentIsTrue(t *testing.T) {
	c := start(t, func(cfg *server.Config) {
		mutable(cfg)
		cfg.Machine.LogAggregation = true
		cfg.Machine.Queues.Preemption = queues.Preemption{On: true, PerRound: 1}
	})
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(c.call("GET", "/api/v1/openapi.json", "").body))
	if err != nil {
		t.Fatal(err)
	}
	var described, served []string
	for path, calls := range doc.(map[string]any)["paths"].(map[string]any) {
		for method := range calls.(map[string]any) {
			described = append(described, strings.ToUpper(method)+" "+path)
		}
	}
	mux := chi.NewRouter()
	rest.New(c.s, rest.Config{}).Mount(mux)
	err = chi.Walk(mux, func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if strings.HasPrefix(route, "/api/") {
			served = append(served, method+" "+route)
		}
		return nil
	})
	slices.Sort(described)
	slices.Sort(served)
	if err != nil || !slices.Equal(described, served) || len(served) < 6 {
		t.Errorf("served %q, described %q, %v", served, described, err)
	}

	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("openapi.json", doc); err != nil {
		t.Fatal(err)
	}
	runs := c.submit("alice", "runs", `,"queue":"default"`)
	waits := c.submit("alice", "waits", `,"queue":"default","resource":{"memory":8192,"vCores":8}`)
	c.until("one has its AM, the other waits", func() bool {
		return strings.Contains(c.call("GET", "/api/v1/apps/"+waits+"/why", "").body, `"wait"`)
	})
	id, err := creel.ParseApplicationID(runs)
	if err != nil {
		t.Fatal(err)
	}
	app := pb.FromApplicationID(id)
	c.logNode("log-of-a", app).report(app, creel.LogRunningWithFailure, "no room on the disk")
	c.try("PUT", base+"/scheduler-conf?user.name=root", update("root.default", "maximum-applications", "7"), 200, "")
	c.try("PUT", "/api/v1/drains/log-of-a?user.name=root", `{"timeout_s":3600,"reason":"new disks"}`, 200, "DECOMMISSIONING")
	for _, path := range []struct{ path, schema, says string }{
		{"/api/v1/apps", "Apps", runs},
		{"/api/v1/apps?limit=1&state=RUNNING,ACCEPTED", "Apps", "next"},
		{"/api/v1/apps/changes?user.name=root", "AppChanges", "viewers"},
		{"/api/v1/nodes?state=RUNNING", "Nodes", "RUNNING"},
		{"/api/v1/nodes/" + c.nodeOf(runs) + "/containers?user.name=alice", "NodeContainers", runs},
		{"/api/v1/apps/" + runs + "/why?user.name=alice", "AppWait", "alice"},
		{"/api/v1/apps/" + waits + "/why?user.name=alice", "AppWait", "unlocks_when"},
		{"/api/v1/apps/" + runs + "/logs?user.name=alice", "LogsDoc", "log-of-"},
		{"/api/v1/queues/root.other/preempt?user.name=root", "Preemption", "victims"},
		{"/api/v1/drains?user.name=root", "Hosts", "new disks"},
		{"/api/v1/drains/log-of-a?user.name=root", "Host", "leaves_in_s"},
		{"/api/v1/scheduler-conf/changes?user.name=root", "Changes", "maximum-applications"},
		{"/api/v1/apps/application_1_0001/why", "RemoteException", "application_1_0001"},
	} {
		text := c.call("GET", path.path, "").body
		answer, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatalf("%s: %v", path.path, err)
		}
		schema, err := compiler.Compile("openapi.json#/components/schemas/" + path.schema)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(answer); err != nil || !strings.Contains(text, path.says) {
			t.Errorf("%s is no %s: %v\n%s", path.path, path.schema, err, text)
		}
	}
}

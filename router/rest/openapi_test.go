// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/creelrm/creel/router/operator"
	"github.com/creelrm/creel/router/rest"
	"github.com/creelrm/creel/router/routertest"
	"github.com/creelrm/creel/statestore/events"
)

// The OpenAPI document names every served path and no other, and the answers have its fields, and no others.
func TestTheOpenAPIDocumentIsTrue(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Routers: 1})
	web := f.Routers[0].Web
	var doc map[string]any
	if err := json.Unmarshal([]byte(call(t, web, "GET", "/api/v1/openapi.json", "").body), &doc); err != nil {
		t.Fatal(err)
	}
	paths := doc["paths"].(map[string]any)
	mux := chi.NewRouter()
	rest.New(f.Routers[0].Server, rest.Config{
		Started: time.Now(), Operator: operator.New(operator.Config{}), Events: events.NewLog(f.Store, time.Now),
	}).Mount(mux)
	served := map[string]bool{}
	err := chi.Walk(mux, func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if strings.HasPrefix(route, "/api/") {
			served[route] = true
			path, ok := paths[route].(map[string]any)
			if !ok || path[strings.ToLower(method)] == nil {
				t.Errorf("%s %s is not in the document", method, route)
			}
		}
		return nil
	})
	if err != nil || len(served) != len(paths) {
		t.Errorf("%d paths are served, %d in the document, %v", len(served), len(paths), err)
	}

	id, _ := submit(t, f, web, "one", "default")
	call(t, web, "PUT", "/ws/v1/cluster/apps/"+id+"/state?user.name=root", `{"state":"KILLED"}`)
	f.Until("the kill is an event", func() bool {
		body := call(t, web, "GET", "/api/v1/events?kind=kill&user.name=root", "").body
		return strings.Contains(body, id) && strings.Contains(body, `"user":"root"`)
	})
	var nodes rest.NodesDoc
	fetch(t, "http://"+web+"/api/v1/nodes", &nodes)
	node := nodes.Nodes[0].ID
	f.Until("a step is in the history", func() bool {
		return strings.Contains(call(t, web, "GET", "/api/v1/history", "").body, `"use":`)
	})
	for path, schema := range map[string]string{"/api/v1/subclusters": "Subclusters", "/api/v1/counts": "Counts", "/api/v1/fit?queue=default&memory_mb=1": "Fit", "/api/v1/overview": "Overview", "/api/v1/history": "History", "/api/v1/history?subject=member/x": "Problem", "/api/v1/system": "System", "/api/v1/daemons": "Daemons", "/api/v1/apps?group=queue": "Apps", "/api/v1/nodes": "Nodes", "/api/v1/nodes/" + node + "/containers": "NodeContainers", "/api/v1/scheduler": "Scheduler", "/api/v1/view": "View", "/api/v1/policies": "Policies", "/api/v1/queues": "QueueTree", "/api/v1/queues/history": "QueueTrees", "/api/v1/queues/mends": "Mends", "/api/v1/rebalancer": "Rebalancer", "/api/v1/moves": "Moves", "/api/v1/events": "Events", "/api/v1/apps/" + id + "/why": "Why", "/api/v1/nope": "Problem", "/api/v1/apps/x/why": "Problem"} {
		var answer any
		if err := json.Unmarshal([]byte(call(t, web, "GET", path, "").body), &answer); err != nil {
			t.Fatal(err)
		}
		follows(t, doc, path, answer, map[string]any{"$ref": "#/components/schemas/" + schema})
	}
	// An error's code and request id are there for every method.
	r := call(t, web, "POST", "/api/v1/counts", "{}")
	if r.status != http.StatusMethodNotAllowed || at(t, r.body, "code") != "method_not_allowed" ||
		r.head.Get("X-Request-Id") == "" || at(t, r.body, "request_id") != r.head.Get("X-Request-Id") {
		t.Errorf("POST of a path that is only read: %d %s", r.status, r.body)
	}
}

// typeOf returns a schema's type beside null.
func typeOf(schema map[string]any) string {
	if either, ok := schema["type"].([]any); ok {
		return either[0].(string)
	}
	return schema["type"].(string)
}

// nullable reports whether a schema allows null.
func nullable(schema map[string]any) bool {
	either, ok := schema["type"].([]any)
	return ok && either[len(either)-1] == "null"
}

// follows checks a value against the part of JSON Schema that the document uses.
func follows(t *testing.T, doc map[string]any, path string, v any, schema map[string]any) {
	t.Helper()
	if ref, ok := schema["$ref"].(string); ok {
		at := any(doc)
		for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
			at = at.(map[string]any)[part]
		}
		schema = at.(map[string]any)
	}
	kind := map[string]func(any) bool{
		"object": func(v any) bool { _, ok := v.(map[string]any); return ok }, "array": func(v any) bool { _, ok := v.([]any); return ok },
		"string": func(v any) bool { _, ok := v.(string); return ok }, "boolean": func(v any) bool { _, ok := v.(bool); return ok },
		"number": func(v any) bool { _, ok := v.(float64); return ok }, "integer": func(v any) bool { n, ok := v.(float64); return ok && n == float64(int64(n)) },
	}[typeOf(schema)]
	if v == nil && nullable(schema) {
		return
	}
	if !kind(v) {
		t.Errorf("%s is %v, no %v", path, v, schema["type"])
		return
	}
	if text, ok := v.(string); ok && schema["format"] == "date-time" {
		if _, err := time.Parse(time.RFC3339Nano, text); err != nil {
			t.Errorf("%s is %q, no time of RFC 3339", path, text)
		}
	}
	if allowed, ok := schema["enum"].([]any); ok {
		found := false
		for _, a := range allowed {
			found = found || a == v
		}
		if !found {
			t.Errorf("%s is %v, none of %v", path, v, allowed)
		}
	}
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			follows(t, doc, fmt.Sprintf("%s[%d]", path, i), e, schema["items"].(map[string]any))
		}
	case map[string]any:
		properties, _ := schema["properties"].(map[string]any)
		if properties == nil {
			return
		}
		required, _ := schema["required"].([]any)
		for _, name := range required {
			if _, there := v[name.(string)]; !there {
				t.Errorf("%s lacks %v", path, name)
			}
		}
		for name, e := range v {
			p, ok := properties[name].(map[string]any)
			if !ok {
				t.Errorf("%s.%s is not in the document", path, name)
				continue
			}
			follows(t, doc, path+"."+name, e, p)
		}
	}
}

// otherForms are names that documents of the store or of people have, with units that are not base units.
var otherForms = []string{
	"lease_ms", "slow_start_ms", "left_ms", // plans in the store
	"within_ms",          // audits in the store
	"preemption_seconds", // a field of queue trees, which people write
}

// Names of the API are in snake case, and each measure has its base unit: seconds, or MB as YARN has them.
func TestNamesOfTheAPIHaveOneForm(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Routers: 1, Members: 1})
	var doc struct {
		Paths map[string]map[string]struct {
			Parameters []struct{ Name, In string }
		}
		Components struct{ Schemas map[string]map[string]any }
	}
	if err := json.Unmarshal([]byte(call(t, f.Routers[0].Web, "GET", "/api/v1/openapi.json", "").body), &doc); err != nil {
		t.Fatal(err)
	}
	snake := regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	badUnit := regexp.MustCompile(`_(ms|us|ns|min|minutes|hours|seconds|sec|millis|kb|gb|bytes)$`)
	names := map[string]bool{}
	var walk func(where string, schema map[string]any)
	walk = func(where string, schema map[string]any) {
		properties, _ := schema["properties"].(map[string]any)
		for name, p := range properties {
			names[name] = true
			if !snake.MatchString(name) || badUnit.MatchString(name) && !slices.Contains(otherForms, name) {
				t.Errorf("%s.%s has another form", where, name)
			}
			walk(where+"."+name, p.(map[string]any))
		}
		if items, ok := schema["items"].(map[string]any); ok {
			walk(where, items)
		}
	}
	for name, schema := range doc.Components.Schemas {
		walk(name, schema)
	}
	for path, calls := range doc.Paths {
		for _, call := range calls {
			for _, p := range call.Parameters {
				if p.In == "query" && p.Name != "user.name" && !snake.MatchString(p.Name) {
					t.Errorf("%s: query parameter %s has another form", path, p.Name)
				}
			}
		}
	}
	for _, name := range otherForms {
		if !names[name] {
			t.Errorf("%s is in no document", name)
		}
	}
	if len(names) < 100 {
		t.Errorf("%d names were found", len(names))
	}
}

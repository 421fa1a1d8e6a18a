// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	wire "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/daemon/federation"
	"github.com/creelrm/creel/app/daemon/role"
	"github.com/creelrm/creel/app/daemon/tracing"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/statestore/memory"
)

// receiver takes spans by OTLP over HTTP, as a collector does.
type receiver struct {
	mu    sync.Mutex
	spans []*wire.Span
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	var batch collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &batch)
	}
	if err != nil || q.URL.Path != "/v1/traces" {
		http.Error(w, fmt.Sprint(q.URL.Path, err), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, of := range batch.GetResourceSpans() {
		for _, s := range of.GetScopeSpans() {
			r.spans = append(r.spans, s.GetSpans()...)
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	w.Write(nil)
}

// tree draws all spans of the trace that a span of the given name and attribute belongs
// to: each in a line, below its parent, in the order of their starts.
func (r *receiver) tree(attribute, value string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	trace := ""
	below := map[string][]*wire.Span{}
	for _, s := range r.spans {
		for _, a := range s.GetAttributes() {
			if a.GetKey() == attribute && a.GetValue().GetStringValue() == value {
				trace = hex.EncodeToString(s.GetTraceId())
			}
		}
	}
	for _, s := range r.spans {
		if hex.EncodeToString(s.GetTraceId()) == trace {
			parent := hex.EncodeToString(s.GetParentSpanId())
			below[parent] = append(below[parent], s)
		}
	}
	var out strings.Builder
	var draw func(parent, indent string)
	draw = func(parent, indent string) {
		children := below[parent]
		slices.SortFunc(children, func(a, b *wire.Span) int {
			return int(int64(a.GetStartTimeUnixNano()) - int64(b.GetStartTimeUnixNano()))
		})
		for _, s := range children {
			kind := strings.ToLower(strings.TrimPrefix(s.GetKind().String(), "SPAN_KIND_"))
			fmt.Fprintf(&out, "%s%s (%s)\n", indent, s.GetName(), kind)
			draw(hex.EncodeToString(s.GetSpanId()), indent+"  ")
		}
		delete(below, parent)
	}
	draw("", "")
	for _, orphans := range slices.Sorted(maps.Keys(below)) {
		fmt.Fprintf(&out, "below the unknown span %s:\n", orphans)
		draw(orphans, "  ")
	}
	return out.String()
}

// A submission is one trace over every process it passes: from the REST or RPC request, over claim and forward,
// through the journal, to the AM's first container and its end. The context is stored with the application. A real
// OTLP receiver reads the tree. Heartbeats have no spans.
func TestASubmissionIsOneTraceToItsEnd(t *testing.T) {
	var to receiver
	web := httptest.NewServer(&to)
	defer web.Close()
	dir := t.TempDir()
	conf, err := federation.Settings(dir, "", []string{
		"creel.trace.endpoint=" + web.URL + "/v1/traces", "creel.trace.sample=1",
	})
	if err != nil {
		t.Fatal(err)
	}
	flush, err := tracing.SetUp(t.Context(), conf, "test")
	if err != nil {
		t.Fatal(err)
	}
	fed, err := federation.New(t.Context(), federation.Config{
		Subclusters: 1, Nodes: 3, Routers: 1, NodeSize: creel.NewResource(4096, 4),
		NodeHeartbeat: 50 * time.Millisecond, Eager: 10 * time.Millisecond, Dir: dir,
		Store:    memory.New(memory.NewState("test", role.ValidPolicy), time.Now),
		Settings: conf, Lease: 10 * time.Second, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	s := cliClient{t, "http://" + fed.Routers[0].Address("web")}
	byREST := strings.Fields(s.run(0, "run", "-o", "name", "--quiet", "--containers", "3", "--", "sleep", "0.3"))[0]
	eventually(t, "its end is in its ResourceManager's list", func() bool {
		return strings.Contains(s.run(0, "app", "status", byREST), "FINISHED")
	})
	// One outlives its ResourceManager, and goes on in its trace.
	outlives := strings.TrimSpace(s.run(0, "app", "submit", "--env", "CREEL_SIM_MS=600000", "--", "sleep", "600"))
	eventually(t, "its AM is launched", func() bool {
		return strings.Contains(s.run(0, "app", "why", outlives), "am_not_registered")
	})
	if err := fed.RMs[0].Stop(); err != nil {
		t.Fatal(err)
	}
	if err := fed.RMs[0].Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its end is asked for", func() bool {
		var out strings.Builder
		kill := rootCommand()
		kill.SetOut(&out)
		kill.SetErr(&out)
		kill.SetArgs([]string{"app", "kill", outlives, "--server", s.server})
		return kill.Execute() == nil
	})
	eventually(t, "it is killed", func() bool { return strings.Contains(s.run(0, "app", "status", outlives), "KILLED") })
	byRPC := submittedByRPC(t, fed.Routers[0].Address("client"))
	if err := fed.Close(); err != nil {
		t.Fatal(err)
	}
	flush()

	tree := to.tree("creel.application", byREST)
	const request = `POST /ws/v1/cluster/apps (server)
  claim (client)
  HTTP POST (client)
    POST /ws/v1/cluster/apps (server)
`
	below, ok := strings.CutPrefix(tree, request)
	if !ok {
		t.Errorf("the submission by REST:\n%s\nwant\n%s", tree, request)
	}
	var stages []string
	for line := range strings.Lines(below) {
		stages = append(stages, strings.TrimSuffix(line, "\n"))
	}
	// The proxy's beside the ResourceManager's, which may come before or after.
	ofProxy := func(s string) bool { return strings.HasPrefix(s, "      proxy: ") }
	for _, c := range []struct{ got, want []string }{
		{slices.DeleteFunc(slices.Clone(stages), ofProxy), []string{
			"journal", "AM container", "launch AM", "register AM", "first ask", "first grant", "first container", "end",
		}},
		{slices.DeleteFunc(slices.Clone(stages), func(s string) bool { return !ofProxy(s) }), []string{
			"proxy: register", "proxy: first ask", "proxy: first grant",
		}},
	} {
		for i := range c.want {
			c.want[i] = "      " + c.want[i] + " (internal)"
		}
		if !slices.Equal(c.got, c.want) {
			t.Errorf("below it are %q, want %q:\n%s", c.got, c.want, tree)
		}
	}
	if tree := to.tree("creel.application", byRPC); !strings.HasPrefix(tree, `submitApplication (server)
  claim (client)
  submitApplication (client)
    submitApplication (server)
      journal (internal)
`) {
		t.Errorf("the submission by RPC:\n%s", tree)
	}

	if tree := to.tree("creel.application", outlives); strings.Count(tree, "      end (internal)") != 1 ||
		strings.Count(tree, "journal") != 1 || !strings.HasPrefix(tree, request) {
		t.Errorf("over a restart of its ResourceManager:\n%s", tree)
	}
	for _, span := range to.spans {
		if n := span.GetName(); n == "allocate" || n == "nodeHeartbeat" {
			t.Errorf("a heartbeat has a span: %s", n)
		}
	}
}

func submittedByRPC(t *testing.T, address string) string {
	t.Helper()
	client := hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})
	defer client.Close()
	rpc := yarnrpc.NewApplicationClientProtocolClient(client, address, hrpc.Login{User: "alice"})
	fresh, err := rpc.GetNewApplication(context.Background(), &pb.GetNewApplicationRequestProto{})
	if err != nil {
		t.Fatal(err)
	}
	memory := int64(512)
	if _, err := rpc.SubmitApplication(context.Background(), &pb.SubmitApplicationRequestProto{
		ApplicationSubmissionContext: &pb.ApplicationSubmissionContextProto{
			ApplicationId: fresh.GetApplicationId(), Queue: new("default"), UnmanagedAm: new(true),
			AmContainerSpec: &pb.ContainerLaunchContextProto{},
			Resource:        &pb.ResourceProto{Memory: &memory, VirtualCores: new(int32(1))},
		},
	}); err != nil {
		t.Fatal(err)
	}
	return pb.ToApplicationID(fresh.GetApplicationId()).String()
}

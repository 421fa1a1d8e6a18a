// SPDX-License-Identifier: Apache-2.0

package federation_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os/user"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/daemon/federation"
	"github.com/creelrm/creel/app/daemon/role"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	nmrpc "github.com/creelrm/creel/subcluster/nm/rpc"
)

// The federation of `creel up` serves every loopback client, over RPC and REST, whichever user runs the process.
func TestFederationServesUsersByRPCAndREST(t *testing.T) {
	dir := t.TempDir()
	s, err := federation.Settings(dir, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	store, closeStore, err := role.OpenStore(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore()
	fed, err := federation.New(t.Context(), federation.Config{
		Subclusters: 1, Nodes: 1, Routers: 1,
		NodeSize:      creel.NewResource(8192, 8),
		NodeHeartbeat: 50 * time.Millisecond,
		Dir:           dir, Store: store, Settings: s,
		Lease: time.Minute,
		Log:   slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer fed.Close()
	router := fed.Routers[0]
	self, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{self.Username, "alice", "bob"} {
		client := hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})
		defer client.Close()
		rpc := yarnrpc.NewApplicationClientProtocolClient(client, router.Address("client"), hrpc.Login{User: name})
		fresh, err := rpc.GetNewApplication(t.Context(), &yarnpb.GetNewApplicationRequestProto{})
		if err != nil {
			t.Fatalf("%s gets no application id by RPC: %v", name, err)
		}
		if _, err := rpc.SubmitApplication(t.Context(), &yarnpb.SubmitApplicationRequestProto{
			ApplicationSubmissionContext: unmanaged(fresh.GetApplicationId()),
		}); err != nil {
			t.Fatalf("%s submits by RPC: %v", name, err)
		}
		got, err := rpc.GetApplicationReport(t.Context(), &yarnpb.GetApplicationReportRequestProto{
			ApplicationId: fresh.GetApplicationId(),
		})
		if err != nil || got.GetApplicationReport().GetUser() != name {
			t.Fatalf("the report of %s's application names %q: %v", name, got.GetApplicationReport().GetUser(), err)
		}
		id := yarnpb.ToApplicationID(fresh.GetApplicationId())
		resp, err := http.Get(
			fmt.Sprintf("http://%s/ws/v1/cluster/apps/%s?user.name=%s", router.Address("web"), id, name),
		)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !strings.Contains(string(body), fmt.Sprintf(`"user":%q`, name)) {
			t.Fatalf("REST does not show %s's application as theirs: %s %v", name, body, err)
		}
	}
}

// unmanaged is a submission of an application whose AM is not started.
func unmanaged(id *yarnpb.ApplicationIdProto) *yarnpb.ApplicationSubmissionContextProto {
	return &yarnpb.ApplicationSubmissionContextProto{
		ApplicationId:   id,
		ApplicationName: proto.String("a test"),
		ApplicationType: proto.String("TEST"),
		Queue:           proto.String("default"),
		UnmanagedAm:     proto.Bool(true),
		AmContainerSpec: &yarnpb.ContainerLaunchContextProto{},
		Resource:        yarnpb.FromResource(creel.NewResource(128, 1)),
		Priority:        yarnpb.FromPriority(0),
	}
}

// A submission over yarn.router.asc-interceptor-max-size is refused by routers and
// ResourceManagers, by RPC as by REST, with its size and the limit; one below is taken.
func TestASubmissionOverItsLimitIsRefusedEverywhere(t *testing.T) {
	dir := t.TempDir()
	s, err := federation.Settings(dir, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	store, closeStore, err := role.OpenStore(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore()
	fed, err := federation.New(t.Context(), federation.Config{
		Subclusters: 1, Nodes: 1, Routers: 1,
		NodeSize: creel.NewResource(8192, 8), NodeHeartbeat: 50 * time.Millisecond,
		Dir: dir, Store: store, Settings: s, Lease: time.Minute, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer fed.Close()
	client := hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})
	defer client.Close()
	for at, entry := range fed.Entries() {
		if entry.Role != "router" && entry.Role != "rm" {
			continue
		}
		rpc := yarnrpc.NewApplicationClientProtocolClient(client, entry.Addresses["client"], hrpc.Login{User: "alice"})
		for _, size := range []int{7 << 20, 900 << 10} {
			fresh, err := rpc.GetNewApplication(t.Context(), &yarnpb.GetNewApplicationRequestProto{})
			if err != nil {
				t.Fatal(err)
			}
			c := unmanaged(fresh.GetApplicationId())
			c.AmContainerSpec.Command = []string{strings.Repeat("x", size)}
			_, err = rpc.SubmitApplication(t.Context(), &yarnpb.SubmitApplicationRequestProto{ApplicationSubmissionContext: c})
			if refused := err != nil && strings.Contains(err.Error(), "the limit is 1048576"); refused != (size > 1<<20) {
				t.Errorf("%s %d by RPC: %d bytes are answered %.200v", entry.Role, at, size, err)
			}
			fresh, err = rpc.GetNewApplication(t.Context(), &yarnpb.GetNewApplicationRequestProto{})
			if err != nil {
				t.Fatal(err)
			}
			doc := fmt.Sprintf(`{"application-id":%q,"application-type":"TEST","unmanaged-AM":true,"am-container-spec":
				{"commands":{"command":%q}},"resource":{"memory":128,"vCores":1}}`,
				yarnpb.ToApplicationID(fresh.GetApplicationId()), strings.Repeat("x", size))
			resp, err := http.Post("http://"+entry.Addresses["web"]+"/ws/v1/cluster/apps?user.name=alice",
				"application/json", strings.NewReader(doc))
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			want := http.StatusAccepted
			if size > 1<<20 {
				want = http.StatusBadRequest
			}
			if err != nil || resp.StatusCode != want ||
				(want != http.StatusAccepted && !strings.Contains(string(body), "the limit is 1048576")) {
				t.Errorf("%s %d by REST: %d bytes are answered %d %.200s (%v)", entry.Role, at, size, resp.StatusCode, body, err)
			}
		}
	}
}

// The simulated nodes of a federation queue opportunistic containers as its settings say.
func TestNodesQueueBySettings(t *testing.T) {
	dir := t.TempDir()
	s, err := federation.Settings(dir, "", []string{"yarn.nodemanager.opportunistic-containers-max-queue-length=10"})
	if err != nil {
		t.Fatal(err)
	}
	store, closeStore, err := role.OpenStore(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore()
	length := 0
	fed, err := federation.New(t.Context(), federation.Config{
		Subclusters: 1, Nodes: 1, Routers: 1,
		NodeSize: creel.NewResource(8192, 8), NodeHeartbeat: 50 * time.Millisecond,
		Dir: dir, Store: store, Settings: s, Lease: time.Minute, Log: slog.New(slog.DiscardHandler),
		ChangeNodes: func(_ int, c *nmrpc.Config) { length = c.Queue.Length },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer fed.Close()
	if length != 10 {
		t.Errorf("the queue of a node has %d places, want 10", length)
	}
}

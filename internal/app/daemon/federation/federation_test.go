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
	"github.com/creelrm/creel/internal/app/daemon/federation"
	"github.com/creelrm/creel/internal/app/daemon/role"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// The federation of `creel up` serves whoever calls on loopback, over RPC as
// over REST, whoever the process itself runs as.
func TestTheFederationServesEveryUserByRPCAndByREST(t *testing.T) {
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

// unmanaged is a submission whose application master is nobody.
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

// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/server"
)

// transitions counts the orders that reach a pair.
type transitions struct{ leads, standsBy int }

// standby serves the admin port of a standby, and returns a login's clients of it.
func standby(t *testing.T, automatic bool, n *transitions) func(user string) (
	yarnrpc.HAServiceProtocolClient, yarnrpc.ResourceManagerAdministrationProtocolClient,
) {
	t.Helper()
	ports, address, err := ListenAdmin(Config{Admin: "127.0.0.1:0"}, PairConfig{
		Pair: server.Pair{ID: "rm2", Leads: func() bool { return false }}, Automatic: automatic, Active: func() *server.Server { return nil },
		Lead:    func(context.Context) error { n.leads++; return errors.New("rm1 has the lease") },
		StandBy: func(context.Context) error { n.standsBy++; return nil },
		Gate:    server.NewGate(server.Config{AdminACL: queues.ParseACL("admin")}),
		Log:     slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- ports.Run(ctx) }()
	client := hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})
	t.Cleanup(func() {
		client.Close()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return func(user string) (yarnrpc.HAServiceProtocolClient, yarnrpc.ResourceManagerAdministrationProtocolClient) {
		who := hrpc.Login{User: user}
		return yarnrpc.NewHAServiceProtocolClient(client, address, who),
			yarnrpc.NewResourceManagerAdministrationProtocolClient(client, address, who)
	}
}

// expectClass checks the Java class of an error, "" for none.
func expectClass(t *testing.T, what string, err error, class string) {
	t.Helper()
	var e *hrpc.RemoteError
	if got := ""; errors.As(err, &e) {
		got = e.Class
		if got != class {
			t.Errorf("%s: %v", what, err)
		}
	} else if err != nil || class != "" {
		t.Errorf("%s: %v, want %q", what, err, class)
	}
}

// An administrator's transition is refused with automatic failover unless it is forced, and a failover controller's
// without.
func TestTransitionsNeedTheRightSource(t *testing.T) {
	const refused, failed = hrpc.ClassAccessControl, classServiceFailed
	for _, c := range []struct {
		automatic bool
		source    pb.HARequestSource
		lead      string
		standBy   string
	}{
		{true, pb.HARequestSource_REQUEST_BY_USER, refused, refused},
		{true, pb.HARequestSource_REQUEST_BY_USER_FORCED, failed, ""},
		{true, pb.HARequestSource_REQUEST_BY_ZKFC, failed, ""},
		{false, pb.HARequestSource_REQUEST_BY_USER, failed, ""},
		{false, pb.HARequestSource_REQUEST_BY_USER_FORCED, failed, ""},
		{false, pb.HARequestSource_REQUEST_BY_ZKFC, refused, refused},
	} {
		var n transitions
		ha, _ := standby(t, c.automatic, &n)("admin")
		info := &pb.HAStateChangeRequestInfoProto{ReqSource: c.source.Enum()}
		what := c.source.String()
		_, err := ha.TransitionToActive(t.Context(), &pb.TransitionToActiveRequestProto{ReqInfo: info})
		expectClass(t, what, err, c.lead)
		_, err = ha.TransitionToStandby(t.Context(), &pb.TransitionToStandbyRequestProto{ReqInfo: info})
		expectClass(t, what, err, c.standBy)
		want := 1
		if c.lead == refused {
			want = 0
		}
		if n.leads != want || n.standsBy != want {
			t.Errorf("%s, automatic failover %t: %d and %d orders were carried out", what, c.automatic, n.leads, n.standsBy)
		}
	}
}

func TestStandbyRefusesAdministrators(t *testing.T) {
	var n transitions
	login := standby(t, false, &n)
	ha, admin := login("admin")
	_, err := admin.RefreshQueues(t.Context(), &pb.RefreshQueuesRequestProto{})
	expectClass(t, "refreshQueues", err, hrpc.ClassStandby)
	status, err := ha.GetServiceStatus(t.Context(), &pb.GetServiceStatusRequestProto{})
	if err != nil || status.GetState() != pb.HAServiceStateProto_STANDBY || !status.GetReadyToBecomeActive() {
		t.Errorf("its status is %v, %v", status, err)
	}
	ha, _ = login("someone")
	info := &pb.HAStateChangeRequestInfoProto{ReqSource: pb.HARequestSource_REQUEST_BY_USER.Enum()}
	if _, err = ha.TransitionToActive(t.Context(), &pb.TransitionToActiveRequestProto{ReqInfo: info}); err == nil || n.leads > 0 {
		t.Errorf("someone made it active: %v", err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package yarnrpc_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs a server on loopback until the test ends and returns its address and a client.
func serve(t testing.TB, cfg hrpc.Config) (string, *hrpc.Client) {
	t.Helper()
	cfg.ErrorOf = yarnrpc.ErrorOf
	server, err := hrpc.NewServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx, listener) }()
	client := hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String(), client
}

// scheduler serves AMs that hold AMRM tokens.
type scheduler struct {
	yarnrpc.UnimplementedApplicationMasterProtocol
}

func (scheduler) Allocate(
	ctx context.Context,
	req *yarnpb.AllocateRequestProto,
) (*yarnpb.AllocateResponseProto, error) {
	who := hrpc.CallFrom(ctx).Identity
	switch id := req.GetResponseId(); {
	case id < 0:
		return nil, &creel.Error{Kind: creel.ErrNotRegistered, What: who.User + " is not registered"}
	case id > 1_000_000:
		return nil, yarnrpc.Throw(
			yarnrpc.ClassInvalidMasterRequest,
			errors.New("expect responseId to be 1 but get "+fmt.Sprint(id)),
		)
	}
	// Parts of the request used in the answer must stay valid until it is sent.
	answer := &yarnpb.AllocateResponseProto{ResponseId: proto.Int32(req.GetResponseId() + 1)}
	for _, ask := range req.Ask {
		answer.AllocatedContainers = append(
			answer.AllocatedContainers,
			&yarnpb.ContainerProto{Resource: ask.Capability, NodeHttpAddress: ask.ResourceName},
		)
	}
	if req.GetResponseId()%2 == 1 {
		reply := hrpc.Later(ctx)
		go reply(answer, nil)
		return nil, hrpc.ErrLater
	}
	return answer, nil
}

// An AM with a minted token allocates over SASL; kinds of errors, answers that come later arrive as they
// were meant; a token under a key that is gone is refused.
func TestAnAMAllocatesOverTheWire(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	start := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	keys := token.NewKeys(token.Rolling{}, start, rnd)
	accepted := keys.Accepted()
	var guard sync.Mutex // of accepted: the test rolls while the server asks
	attempt := creel.AttemptID{Application: creel.ApplicationID{ClusterTimestamp: 1795254163125, ID: 1}, Attempt: 1}
	address, client := serve(t, hrpc.Config{
		Services: []hrpc.Service{
			yarnrpc.Inline(yarnrpc.ApplicationMasterProtocolService(scheduler{}), "allocate"),
		},
		Tokens: func(identifier []byte) ([]byte, hrpc.Identity, error) {
			id, err := token.ParseAMRM(identifier)
			if err != nil {
				return nil, hrpc.Identity{}, err
			}
			guard.Lock()
			defer guard.Unlock()
			password, err := accepted.Password(id.KeyID, identifier)
			return password, hrpc.Identity{User: id.Attempt.String(), TokenKind: token.KindAMRM, Value: id}, err
		},
	})
	login := func(tok token.Token) hrpc.Login {
		return hrpc.Login{
			Credential: &hrpc.Credential{
				Identifier: tok.Identifier,
				Password:   tok.Password,
				Kind:       tok.Kind,
				Service:    tok.Service,
			},
		}
	}
	held := keys.Newest().AMRM(attempt)
	am := yarnrpc.NewApplicationMasterProtocolClient(client, address, login(held))

	for id := range int32(20) {
		req := &yarnpb.AllocateRequestProto{ResponseId: proto.Int32(id)}
		for n := range id {
			req.Ask = append(
				req.Ask,
				&yarnpb.ResourceRequestProto{
					Priority:      yarnpb.FromPriority(1),
					NumContainers: proto.Int32(1),
					ResourceName: proto.String(
						fmt.Sprintf("host-%d-%d", id, n),
					),
					Capability: yarnpb.FromResource(creel.NewResource(int64(1000*id+n), 1)),
				},
			)
		}
		answer, err := am.Allocate(t.Context(), req)
		if err != nil {
			t.Fatalf("%d: %v", id, err)
		}
		if answer.GetResponseId() != id+1 || len(answer.AllocatedContainers) != int(id) {
			t.Fatalf("%d: answered %d with %d containers", id, answer.GetResponseId(), len(answer.AllocatedContainers))
		}
		for n, c := range answer.AllocatedContainers {
			if want := fmt.Sprintf(
				"host-%d-%d",
				id,
				n,
			); c.GetNodeHttpAddress() != want ||
				c.GetResource().GetMemory() != int64(1000*id+int32(n)) {
				t.Fatalf("%d: container %d is %v", id, n, c)
			}
		}
	}
	if _, err := am.Allocate(
		t.Context(),
		&yarnpb.AllocateRequestProto{ResponseId: proto.Int32(-1)},
	); !errors.Is(
		err,
		creel.ErrNotRegistered,
	) {
		t.Errorf("not registered became %v", err)
	}
	_, err := am.Allocate(t.Context(), &yarnpb.AllocateRequestProto{ResponseId: proto.Int32(2_000_000)})
	var remote *hrpc.RemoteError
	if !errors.As(err, &remote) || remote.Class != yarnrpc.ClassInvalidMasterRequest ||
		remote.Message != "expect responseId to be 1 but get 2000000" {
		t.Errorf("a wrong response id became %v", err)
	}
	if _, err := am.RegisterApplicationMaster(
		t.Context(),
		&yarnpb.RegisterApplicationMasterRequestProto{},
	); !errors.Is(
		err,
		creel.ErrNotEnabled,
	) {
		t.Errorf("a method that is not served became %v", err)
	}

	// Many AMs at once, each with requests in memory others used.
	var group sync.WaitGroup
	failures := make(chan error, 8)
	for worker := range int32(8) {
		group.Go(func() {
			for n := range int32(50) {
				host := fmt.Sprintf("host-%d-%d", worker, n)
				answer, err := am.Allocate(
					t.Context(),
					&yarnpb.AllocateRequestProto{
						ResponseId: proto.Int32(n),
						Ask:        []*yarnpb.ResourceRequestProto{{ResourceName: &host}},
					},
				)
				if err != nil || len(answer.AllocatedContainers) != 1 ||
					answer.AllocatedContainers[0].GetNodeHttpAddress() != host {
					failures <- fmt.Errorf("worker %d, %d: %v, %w", worker, n, answer, err)
					return
				}
			}
		})
	}
	group.Wait()
	close(failures)
	for err := range failures {
		t.Error(err)
	}

	// The key rolls twice over; the AM that did not take the replacement is out.
	for range 2 {
		keys.Step(keys.Deadline(), rnd)
	}
	guard.Lock()
	accepted = keys.Accepted()
	guard.Unlock()
	late := hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})
	defer late.Close()
	if _, err := yarnrpc.NewApplicationMasterProtocolClient(late, address, login(held)).
		Allocate(t.Context(), &yarnpb.AllocateRequestProto{}); !errors.Is(
		err,
		creel.ErrInvalidToken,
	) {
		t.Errorf("a token whose key is gone gave %v", err)
	}
	if _, err := yarnrpc.NewApplicationMasterProtocolClient(late, address, login(keys.Newest().AMRM(attempt))).
		Allocate(t.Context(), &yarnpb.AllocateRequestProto{}); err != nil {
		t.Errorf("a new token gave %v", err)
	}
}

// A client of a simple port: the user arrives, and a server that is gone is a kind of error too.
func TestClientOverTheWire(t *testing.T) {
	address, client := serve(
		t,
		hrpc.Config{Simple: true, Services: []hrpc.Service{yarnrpc.ApplicationClientProtocolService(rm{})}},
	)
	login := hrpc.Login{User: "alice"}
	app := creel.ApplicationID{ClusterTimestamp: 1795254163125, ID: 7}
	answer, err := yarnrpc.NewApplicationClientProtocolClient(client, address, login).GetApplicationReport(t.Context(),
		&yarnpb.GetApplicationReportRequestProto{ApplicationId: yarnpb.FromApplicationID(app)})
	if err != nil || yarnpb.ToApplicationID(answer.GetApplicationReport().GetApplicationId()) != app {
		t.Fatalf("answered %v (%v)", answer, err)
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := closed.Addr().String()
	closed.Close()
	_, err = yarnrpc.NewApplicationClientProtocolClient(client, nobody, login).
		GetNewApplication(t.Context(), &yarnpb.GetNewApplicationRequestProto{})
	if !errors.Is(err, creel.ErrUnavailable) {
		t.Errorf("nobody there gave %v", err)
	}
}

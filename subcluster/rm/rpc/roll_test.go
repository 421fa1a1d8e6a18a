// SPDX-License-Identifier: Apache-2.0

package rpc_test

import (
	"errors"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// Keys roll while an AM works. It is handed new tokens and new connections
// with them are served, nodes learn the keys, and nothing stops; a token of a
// key that is gone authenticates nothing. (That a key is honoured for its grace is a
// matter of time and so proved in package token, with its time given.)
func TestKeysRollUnderARunningAM(t *testing.T) {
	cfg := config()
	cfg.KeyRoll = 1500 * time.Millisecond
	cfg.HeartbeatInterval = 10 * time.Millisecond
	c := start(t, cfg)
	c.nodes(1, nil)
	// The first response sets the node's heartbeat interval.
	c.until("the node sends heartbeats fast", func() bool { return c.farm.Metrics().Heartbeats.Load() > 3 })
	ctx := t.Context()
	_, first := c.launchUnmanaged("bob", nil)
	held, am := first, c.amClient(first)
	must(am.RegisterApplicationMaster(ctx, &pb.RegisterApplicationMasterRequestProto{}))
	var response int32
	var node *pb.NMTokenProto
	var release []*pb.ContainerIdProto
	heartbeat := func(am yarnrpc.ApplicationMasterProtocolClient, asks []*pb.ResourceRequestProto) *pb.AllocateResponseProto {
		a := must(am.Allocate(ctx, &pb.AllocateRequestProto{ResponseId: &response, Ask: asks, Release: release}))
		release = nil
		response = a.GetResponseId()
		if n := a.GetNmTokens(); len(n) > 0 {
			node = n[0]
		}
		if newer := a.GetAmRmToken(); newer != nil {
			held = token.FromProto(newer)
		}
		return a
	}
	keyOf := func(t token.Token) int32 { return must(token.ParseAMRM(t.Identifier)).KeyID }
	// reconnect is an AM that comes on a connection of its own.
	reconnect := func(held token.Token) (yarnrpc.ApplicationMasterProtocolClient, func() error) {
		fresh := hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})
		return yarnrpc.NewApplicationMasterProtocolClient(fresh, c.s.Addresses().Scheduler, login(held)), fresh.Close
	}
	startOne := func() error {
		a := heartbeat(am, ask(1, 128, 1))
		for len(a.GetAllocatedContainers()) == 0 {
			a = heartbeat(am, nil)
		}
		r, err := c.nodeClient(node).
			StartContainers(ctx, &pb.StartContainersRequestProto{StartContainerRequest: []*pb.StartContainerRequestProto{
				{
					ContainerLaunchContext: &pb.ContainerLaunchContextProto{},
					ContainerToken:         a.GetAllocatedContainers()[0].GetContainerToken(),
				},
			}})
		for _, c := range a.GetAllocatedContainers() {
			release = append(release, c.GetId())
		}
		if err == nil && len(r.GetFailedRequests()) > 0 {
			err = yarnrpc.FromSerialized(r.GetFailedRequests()[0].GetException())
		}
		return err
	}
	for key, last := 0, keyOf(first); key < 3; key++ {
		c.until("the AM is handed a token of a newer key", func() bool {
			heartbeat(am, nil)
			return keyOf(held) != last
		})
		again, done := reconnect(held)
		heartbeat(again, nil)
		if err := done(); err != nil {
			t.Error(err)
		}
		last = keyOf(held)
		// An AM that is held up for longer than the grace of its NM token is
		// refused and has to ask again; the grace is short here.
		c.until("a container starts", func() bool {
			err := startOne()
			if err != nil && !errors.Is(err, creel.ErrInvalidToken) {
				t.Fatal(err)
			}
			return err == nil
		})
	}
	// The first token's key is long gone: a new connection with it is refused,
	// and the old connection goes on.
	old, done := reconnect(first)
	defer done()
	if _, err := old.Allocate(
		ctx,
		&pb.AllocateRequestProto{ResponseId: &response},
	); !errors.Is(
		err,
		creel.ErrInvalidToken,
	) {
		t.Errorf("a token of a key that is gone: %v", err)
	}
	heartbeat(am, nil)
}

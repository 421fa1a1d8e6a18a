// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/amrmproxy"
	"github.com/creelrm/creel/amrmproxy/server"
	"github.com/creelrm/creel/internal/pauseclock"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster"
)

// home answers every call at once, keeps records in memory, and seals nothing.
type home struct{ ids atomic.Int32 }

func (*home) Register(
	context.Context, server.To, *pb.RegisterApplicationMasterRequestProto,
) (*pb.RegisterApplicationMasterResponseProto, error) {
	return &pb.RegisterApplicationMasterResponseProto{Queue: proto.String("default")}, nil
}

func (h *home) Allocate(
	context.Context, server.To, *pb.AllocateRequestProto,
) (*pb.AllocateResponseProto, error) {
	return &pb.AllocateResponseProto{ResponseId: proto.Int32(h.ids.Add(1))}, nil
}

func (*home) Finish(
	context.Context, server.To, *pb.FinishApplicationMasterRequestProto,
) (*pb.FinishApplicationMasterResponseProto, error) {
	return &pb.FinishApplicationMasterResponseProto{IsUnregistered: proto.Bool(true)}, nil
}

func (*home) RegisterDistributed(
	context.Context, server.To, *pb.RegisterApplicationMasterRequestProto,
) (*pb.RegisterDistributedSchedulingAMResponseProto, error) {
	panic("the proxy places no containers")
}

func (*home) AllocateDistributed(
	context.Context, server.To, *pb.DistributedSchedulingAllocateRequestProto,
) (*pb.DistributedSchedulingAllocateResponseProto, error) {
	panic("the proxy places no containers")
}

func (*home) Forget(creel.AttemptID) {}

func (*home) Submit(context.Context, creel.SubclusterID, string, *pb.ApplicationSubmissionContextProto) error {
	return nil
}

func (*home) Report(
	context.Context, creel.SubclusterID, string, creel.ApplicationID,
) (*pb.ApplicationReportProto, error) {
	return &pb.ApplicationReportProto{YarnApplicationState: pb.YarnApplicationStateProto_RUNNING.Enum()}, nil
}

func (*home) NewID(context.Context, creel.SubclusterID, string) (creel.ApplicationID, error) {
	return creel.ApplicationID{}, nil
}

func (*home) Kill(context.Context, creel.SubclusterID, string, creel.ApplicationID, string) (bool, error) {
	return true, nil
}

func (*home) Entries(context.Context, creel.ApplicationID) ([]amrmproxy.Entry, error) {
	return nil, nil
}
func (*home) Put(_ context.Context, e amrmproxy.Entry) (int64, error)  { return e.Revision + 1, nil }
func (*home) Remove(context.Context, creel.AttemptID) error            { return nil }
func (*home) Seal(_ context.Context, _, plain []byte) ([]byte, error)  { return plain, nil }
func (*home) Open(_ context.Context, _, sealed []byte) ([]byte, error) { return sealed, nil }

// A proxy that was paused for longer than an AM may be silent received no calls in that time. The session goes on,
// and ends as late as if there had been no pause.
func TestPausedProxyExpiresNoAM(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ahead atomic.Int64
		h := &home{}
		clock := pauseclock.NewClock(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }, nil)
		const expiry = time.Minute
		p, err := server.New(server.Config{
			Members: h, Clients: h, Store: h, Sealer: h,
			View:   func() *subcluster.View { return nil },
			Clock:  clock,
			Driver: amrmproxy.DriverConfig{Session: amrmproxy.Config{AMExpiry: expiry}, Linger: time.Second},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 2)
		go func() { done <- clock.Run(ctx) }()
		go func() { done <- p.Run(ctx) }()
		synctest.Wait()
		call := func(what amrmproxy.FromAM) (proto.Message, error) {
			var answer proto.Message
			failed := make(chan error, 1)
			p.Call(server.Caller{
				Attempt: creel.AttemptID{Application: creel.ApplicationID{ClusterTimestamp: 1, ID: 1}, Attempt: 1},
				Home:    "sc-1",
			}, what, func(m proto.Message, err error) { answer = m; failed <- err })
			return answer, <-failed
		}
		if _, err := call(amrmproxy.FromAM{Register: &pb.RegisterApplicationMasterRequestProto{}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(expiry / 2)
		ahead.Store(int64(10 * expiry))
		time.Sleep(expiry / 4)
		synctest.Wait()
		if n := p.Stats().Sessions; n != 1 {
			t.Fatalf("after a pause of ours there are %d sessions", n)
		}
		if _, err := call(amrmproxy.FromAM{Allocate: &pb.AllocateRequestProto{ResponseId: proto.Int32(0)}}); err != nil {
			t.Fatalf("after a pause of ours the AM hears %v", err)
		}
		time.Sleep(2*expiry - time.Second) // as long again as its home waits
		if n := p.Stats().Sessions; n != 1 {
			t.Fatal("the session ended before its time")
		}
		time.Sleep(5 * time.Second)
		if n := p.Stats().Sessions; n != 0 {
			t.Fatal("an AM that is really silent keeps its session")
		}
		cancel()
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

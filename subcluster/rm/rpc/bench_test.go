// SPDX-License-Identifier: Apache-2.0

package rpc_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// The figures here are of client and server in one process on one machine: at
// least half of the time is the client's.

// pump makes n calls from so many goroutines and reports the rate.
func pump(b *testing.B, inFlight int, call func(worker, i int) error) {
	b.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for w := range inFlight {
		wg.Go(func() {
			for i := int(next.Add(1)); i <= b.N; i = int(next.Add(1)) {
				if err := call(w, i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

func BenchmarkSubmissions(b *testing.B) {
	for _, kept := range []bool{false, true} {
		b.Run(fmt.Sprint("durable=", kept), func(b *testing.B) {
			cfg := config()
			cfg.Machine.Queues.MaxApplications = 1 << 30
			if kept {
				cfg.Dir = b.TempDir()
			}
			c := start(b, cfg)
			bob := c.as("bob")
			pump(b, 128, func(_, _ int) error {
				r, err := bob.GetNewApplication(b.Context(), &pb.GetNewApplicationRequestProto{})
				if err != nil {
					return err
				}
				_, err = bob.SubmitApplication(
					b.Context(),
					&pb.SubmitApplicationRequestProto{
						ApplicationSubmissionContext: &pb.ApplicationSubmissionContextProto{
							ApplicationId:   r.GetApplicationId(),
							AmContainerSpec: &pb.ContainerLaunchContextProto{Command: []string{"run"}},
							Resource:        pb.FromResource(creel.NewResource(128, 1)),
						},
					},
				)
				return err
			})
		})
	}
}

func BenchmarkReports(b *testing.B) {
	c := start(b, config())
	id := c.submission("bob", nil)
	bob := c.as("bob")
	b.Run("one application", func(b *testing.B) {
		pump(b, 64, func(int, int) error {
			_, err := bob.GetApplicationReport(
				b.Context(),
				&pb.GetApplicationReportRequestProto{ApplicationId: pb.FromApplicationID(id)},
			)
			return err
		})
	})
	for range 999 {
		c.submission("bob", nil)
	}
	b.Run("list of 1000", func(b *testing.B) {
		pump(b, 8, func(int, int) error {
			_, err := bob.GetApplications(b.Context(), &pb.GetApplicationsRequestProto{})
			return err
		})
	})
}

// BenchmarkContainers grants and releases containers for 100 AMs on 1,000
// nodes, each call asking for ten and giving ten back.
func BenchmarkContainers(b *testing.B) {
	cfg := config()
	cfg.Machine.Queues.Root.Children[0].UserFactor = 1000
	c := start(b, cfg)
	c.nodes(1000, nil)
	const ams, each = 100, 10
	type state struct {
		am      yarnrpc.ApplicationMasterProtocolClient
		last    int32
		release []*pb.ContainerIdProto
	}
	all := make([]*state, ams)
	for i := range all {
		_, amrm := c.launchUnmanaged("bob", nil)
		all[i] = &state{am: c.amClient(amrm)}
		must(all[i].am.RegisterApplicationMaster(b.Context(), &pb.RegisterApplicationMasterRequestProto{}))
	}
	var granted atomic.Int64
	pump(b, ams, func(w, _ int) error {
		s := all[w]
		a, err := s.am.Allocate(
			b.Context(),
			&pb.AllocateRequestProto{ResponseId: &s.last, Ask: ask(1, 128, each), Release: s.release},
		)
		if err != nil {
			return err
		}
		s.last, s.release = a.GetResponseId(), s.release[:0]
		for _, ct := range a.GetAllocatedContainers() {
			s.release = append(s.release, ct.GetId())
		}
		granted.Add(int64(len(a.GetAllocatedContainers())))
		return nil
	})
	b.ReportMetric(float64(granted.Load())/b.Elapsed().Seconds(), "containers/s")
}

// BenchmarkHeartbeats sends heartbeats of 1,000 nodes without containers.
func BenchmarkHeartbeats(b *testing.B) {
	c := start(b, config())
	const nodes = 1000
	clients := make([]yarnrpc.ResourceTrackerClient, 8)
	for i := range clients {
		h := hrpc.NewClient(hrpc.ClientConfig{})
		b.Cleanup(func() { h.Close() })
		clients[i] = yarnrpc.NewResourceTrackerClient(h, c.s.Addresses().Tracker, hrpc.Login{User: "yarn"})
	}
	key := make([]*pb.RegisterNodeManagerResponseProto, nodes)
	last := make([]int32, nodes)
	id := func(n int) *pb.NodeIdProto { return pb.FromNodeID(creel.NodeID{Host: fmt.Sprint("n", n), Port: 1}) }
	for n := range nodes {
		key[n] = must(
			clients[n%8].RegisterNodeManager(
				b.Context(),
				&pb.RegisterNodeManagerRequestProto{
					NodeId:   id(n),
					Resource: pb.FromResource(creel.NewResource(8192, 8)),
				},
			),
		)
	}
	const workers = 250 // each sends the heartbeats of nodes/workers nodes in turn
	turn := make([]int, workers)
	pump(b, workers, func(w, _ int) error {
		n := w*(nodes/workers) + turn[w]
		turn[w] = (turn[w] + 1) % (nodes / workers)
		r, err := clients[n%8].NodeHeartbeat(b.Context(), &pb.NodeHeartbeatRequestProto{
			NodeStatus: &pb.NodeStatusProto{
				NodeId:           id(n),
				ResponseId:       new(last[n]),
				NodeHealthStatus: &pb.NodeHealthStatusProto{IsNodeHealthy: new(true)},
			},
			LastKnownContainerTokenMasterKey: key[n].GetContainerTokenMasterKey(),
			LastKnownNmTokenMasterKey:        key[n].GetNmTokenMasterKey(),
		})
		last[n] = r.GetResponseId()
		return err
	})
}

// BenchmarkChangingList lists 5,000 finished applications, each time after a change, so that the list is encoded
// again.
func BenchmarkChangingList(b *testing.B) {
	c := start(b, config())
	bob := c.as("bob")
	kill := func(id creel.ApplicationID) {
		for !must(bob.ForceKillApplication(b.Context(), &pb.KillApplicationRequestProto{ApplicationId: pb.FromApplicationID(id)})).GetIsKillCompleted() {
		}
	}
	for range 5000 {
		kill(c.submission("bob", nil))
	}
	for b.Loop() {
		b.StopTimer()
		kill(c.submission("bob", nil))
		b.StartTimer()
		if _, err := bob.GetApplications(
			b.Context(),
			&pb.GetApplicationsRequestProto{Limit: new(int64(5000))},
		); err != nil {
			b.Fatal(err)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"sync"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/statestore/redis/redistest"
)

// BenchmarkSubmissionsOverZooKeeper compares submissions until they are durable, of 64 clients at once, over one
// ZooKeeper: at creel's ResourceManager, without and with the records that Hadoop reads, and at Hadoop's. A second
// ResourceManager of creel's without records is the control.
func BenchmarkSubmissionsOverZooKeeper(b *testing.B) {
	_, zk := hadoop.StartZooKeeper(b)
	conf := overZooKeeper(zk).With(hadoop.Conf{
		"yarn.resourcemanager.cluster-id":                 "shared",
		"yarn.scheduler.capacity.maximum-applications":    "100000",
		"yarn.resourcemanager.max-completed-applications": "100000",
	})
	below := func(path string, more hadoop.Conf) hadoop.Conf {
		return conf.With(more, hadoop.Conf{"yarn.resourcemanager.zk-state-store.parent-path": "/" + path})
	}
	ours := map[string]hadoop.Conf{
		"creel": {}, "control": {}, "records": {"creel.rm.state.hadoop-records": "true"},
	}
	clients := map[string]string{}
	for name, more := range ours {
		clients[name] = Start(b, Options{Name: name, Volatile: true, Conf: below(name, more)}).Client
	}
	clients["hadoop"] = hadoop.StartRM(b, hadoop.RM{Name: "hadoop", HeapMB: 1024, Conf: below("hadoop", nil)}).Client
	for _, name := range []string{"creel", "records", "control", "hadoop"} {
		b.Run(name, func(b *testing.B) {
			submitAll(b, clients[name], 64, b.N, submitDurably)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "submissions/s")
		})
	}
}

// BenchmarkSubmissionsByState compares submissions of 256 clients at once at creel's ResourceManagers, whose answers are
// durable: with a journal on disk, and with their state in Redis, flushed each second and before each answer. They take
// turns. A second one with a journal is the control. The best turn of each counts.
func BenchmarkSubmissionsByState(b *testing.B) {
	conf := hadoop.Conf{
		"yarn.scheduler.capacity.maximum-applications":    "1000000",
		"yarn.resourcemanager.max-completed-applications": "1000000",
	}
	in := func(s *redistest.Server) hadoop.Conf {
		return hadoop.Conf{
			"yarn.resourcemanager.recovery.enabled": "true", "yarn.resourcemanager.cluster-id": "shared",
			"creel.rm.state.url": s.URL(),
		}
	}
	states := []struct {
		name string
		conf hadoop.Conf
	}{
		{"disk", nil},
		{"redis", in(redistest.Start(b, "--appendonly", "yes"))},
		{"redis-always", in(redistest.Start(b, "--appendonly", "yes", "--appendfsync", "always"))},
		{"control", nil},
	}
	var clients []string
	for _, s := range states {
		options := Options{Name: s.name, Volatile: s.conf != nil, Conf: conf.With(s.conf)}
		clients = append(clients, Start(b, options).Client)
	}
	const turns, each = 6, 5000
	best := make([]float64, len(states))
	b.ResetTimer()
	for range b.N {
		for range turns {
			for i, address := range clients {
				began := time.Now()
				submitAll(b, address, 256, each, submit)
				best[i] = max(best[i], each/time.Since(began).Seconds())
			}
		}
	}
	for i, s := range states {
		b.ReportMetric(best[i], s.name+"/s")
		b.ReportMetric(best[i]/best[0], s.name+"/disk")
	}
}

// submitAll makes submissions by a number of clients at once.
func submitAll(b *testing.B, address string, clients, n int, submit func(*testing.B, user) (*pb.ApplicationIdProto, error)) {
	client := hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})
	defer client.Close()
	u := yarnrpc.NewApplicationClientProtocolClient(client, address, hrpc.Login{User: hadoop.OSUser(b)})
	work := make(chan int)
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for range work {
				if _, err := submit(b, u); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for i := range n {
		work <- i
	}
	close(work)
	all.Wait()
}

type user = yarnrpc.ApplicationClientProtocolClient

// submit returns when a ResourceManager has answered. creel's has stored the application then.
func submit(b *testing.B, u user) (*pb.ApplicationIdProto, error) {
	n, err := u.GetNewApplication(b.Context(), &pb.GetNewApplicationRequestProto{})
	if err != nil {
		return nil, err
	}
	id := n.GetApplicationId()
	_, err = u.SubmitApplication(b.Context(), &pb.SubmitApplicationRequestProto{
		ApplicationSubmissionContext: unmanaged(id, "bench"),
	})
	return id, err
}

// submitDurably returns when the application is stored: Hadoop answers before that.
func submitDurably(b *testing.B, u user) (*pb.ApplicationIdProto, error) {
	id, err := submit(b, u)
	for stored := false; err == nil && !stored; {
		time.Sleep(5 * time.Millisecond) // questions in turn would take the processor from the server
		var r *pb.GetApplicationReportResponseProto
		r, err = u.GetApplicationReport(b.Context(), &pb.GetApplicationReportRequestProto{ApplicationId: id})
		stored = r.GetApplicationReport().GetYarnApplicationState() >= pb.YarnApplicationStateProto_SUBMITTED
	}
	return id, err
}

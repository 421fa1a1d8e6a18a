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
		b.Run(name, func(b *testing.B) { submitAll(b, clients[name]) })
	}
}

func submitAll(b *testing.B, address string) {
	client := hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})
	defer client.Close()
	user := yarnrpc.NewApplicationClientProtocolClient(client, address, hrpc.Login{User: hadoop.OSUser(b)})
	work := make(chan int)
	var clients sync.WaitGroup
	for range 64 {
		clients.Go(func() {
			for range work {
				if err := submitDurably(b, user); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for i := range b.N {
		work <- i
	}
	close(work)
	clients.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "submissions/s")
}

// submitDurably returns when the application is stored: Hadoop answers before that.
func submitDurably(b *testing.B, user yarnrpc.ApplicationClientProtocolClient) error {
	n, err := user.GetNewApplication(b.Context(), &pb.GetNewApplicationRequestProto{})
	if err != nil {
		return err
	}
	id := n.GetApplicationId()
	_, err = user.SubmitApplication(b.Context(), &pb.SubmitApplicationRequestProto{
		ApplicationSubmissionContext: unmanaged(id, "bench"),
	})
	for stored := false; err == nil && !stored; {
		time.Sleep(5 * time.Millisecond) // questions in turn would take the processor from the server
		var r *pb.GetApplicationReportResponseProto
		r, err = user.GetApplicationReport(b.Context(), &pb.GetApplicationReportRequestProto{ApplicationId: id})
		stored = r.GetApplicationReport().GetYarnApplicationState() >= pb.YarnApplicationStateProto_SUBMITTED
	}
	return err
}

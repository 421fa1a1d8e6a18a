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

// BenchmarkSubmissionsOverZooKeeper compares submissions until they are durable, of 64 clients at once, at creel's and
// Hadoop's ResourceManager over one ZooKeeper.
func BenchmarkSubmissionsOverZooKeeper(b *testing.B) {
	_, zk := hadoop.StartZooKeeper(b)
	conf := overZooKeeper(zk).With(hadoop.Conf{
		"yarn.resourcemanager.cluster-id":                 "shared",
		"yarn.scheduler.capacity.maximum-applications":    "100000",
		"yarn.resourcemanager.max-completed-applications": "100000",
	})
	mine := Start(b, Options{Name: "creel", Volatile: true, Conf: conf})
	conf["yarn.resourcemanager.zk-state-store.parent-path"] = "/hadoop"
	his := hadoop.StartRM(b, hadoop.RM{Name: "hadoop", HeapMB: 1024, Conf: conf})
	b.Run("creel", func(b *testing.B) { submitAll(b, mine.Client) })
	b.Run("hadoop", func(b *testing.B) { submitAll(b, his.Client) })
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

// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"fmt"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// BenchmarkLoad is a report of 300 queues, without waiting applications or with 3,000 of 1,000 users.
func BenchmarkLoad(b *testing.B) {
	for _, apps := range []int{0, 3000} {
		b.Run(fmt.Sprintf("waiting=%d", apps), func(b *testing.B) {
			conf := rm.Defaults()
			conf.Volatile = true
			conf.Queues.Root.Children = nil
			for i := range 300 {
				conf.Queues.Root.Children = append(conf.Queues.Root.Children, queues.Queue{
					Name: fmt.Sprintf("q%d", i), Capacity: queues.PercentOf(100.0 / 300), MaxCapacity: queues.PercentOf(100),
				})
			}
			m, err := rm.New(conf)
			if err != nil {
				b.Fatal(err)
			}
			now := time.UnixMilli(1_000_000)
			for i := range 100 {
				_, err := m.RegisterNode(now, &rm.RegisterNode{
					ID: creel.NodeID{Host: fmt.Sprint("n", i), Port: 1}, HTTPPort: 1, Resource: creel.NewResource(65536, 64),
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			for i := range apps {
				err := m.Submit(now, &rm.Submission{
					ID:   creel.ApplicationID{ClusterTimestamp: 1, ID: int32(i + 1)},
					User: fmt.Sprint("user", i%1000), Queue: fmt.Sprint("q", i%300),
					AM: rm.Ask{ResourceName: "*", Resource: creel.NewResource(8192, 1), Count: 1},
				})
				if err != nil {
					b.Fatal(err)
				}
				saveAll(m, now)
			}
			l, users := new(Loads), 0
			for b.Loop() {
				l.Next(m, now)
			}
			load := l.Next(m, now)
			text, err := load.JSON()
			if err != nil {
				b.Fatal(err)
			}
			for i := range load.Queues {
				users += len(load.Queues[i].Users)
			}
			b.ReportMetric(float64(len(text)), "bytes")
			b.ReportMetric(float64(users), "users-told")
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/statestore/redis/redistest"
)

// BenchmarkPairTakeover kills the active one of a pair that has 10,000 nodes, 300,000 running containers and 10,000
// applications, while the nodes go on with their heartbeats. It times from the lead of the other one to an application's
// report, and to all nodes and containers; and from the kill to the lead, which is the lease's or session's end.
func BenchmarkPairTakeover(b *testing.B) {
	b.Run("redis", func(b *testing.B) {
		redis := redistest.Start(b, "--appendonly", "yes")
		pairTakeover(b, hadoop.Conf{"creel.rm.state.url": redis.URL(), "creel.rm.ha.lease": "3s"})
	})
	b.Run("zookeeper", func(b *testing.B) {
		_, zk := hadoop.StartZooKeeper(b)
		pairTakeover(b, hadoop.Conf{
			"yarn.resourcemanager.store.class": "org.apache.hadoop.yarn.server.resourcemanager.recovery.ZKRMStateStore",
			"hadoop.zk.address":                zk,
			"hadoop.zk.timeout-ms":             "5000",
		})
	})
}

// startPair starts a pair, whose rm1 is active. A standby opens its web and admin ports only, so both can have the same
// other ports, and the load finds either one.
func startPair(b *testing.B, shared hadoop.Conf) (pair [2]*daemon) {
	b.Helper()
	conf := queues().With(shared, hadoop.Conf{
		"yarn.scheduler.minimum-allocation-mb":  "128",
		"yarn.resourcemanager.recovery.enabled": "true",
		"yarn.resourcemanager.cluster-id":       "pair",
		"yarn.resourcemanager.ha.enabled":       "true",
		"yarn.resourcemanager.ha.rm-ids":        "rm1,rm2",
	})
	one, own := fixedPorts(b), fixedPorts(b)
	for key, address := range one {
		conf[key+".rm1"], conf[key+".rm2"] = address, address
		if strings.Contains(key, "admin") || strings.Contains(key, "webapp") {
			conf[key+".rm2"] = own[key]
		}
	}
	for i, id := range []string{"rm1", "rm2"} {
		pair[i] = startDaemon(b, "rm", conf.With(hadoop.Conf{"yarn.resourcemanager.ha.id": id}))
		if i == 0 {
			pair[0].Await(b, "the lead", func() bool {
				var info struct{ ClusterInfo struct{ HaState string } }
				return get("http://"+pair[0].Addresses["web"]+"/ws/v1/cluster/info", &info) && info.ClusterInfo.HaState == "ACTIVE"
			})
		}
	}
	return pair
}

func pairTakeover(b *testing.B, shared hadoop.Conf) {
	const nodes = 10_000
	pair := startPair(b, shared)
	ctx, stop := context.WithCancel(b.Context())
	ended := fill(ctx, b, pair[0], nodes, "--duration", "1h")
	defer func() { stop(); <-ended }()
	web := func(c *daemon) string { return "http://" + c.Addresses["web"] + "/ws/v1/cluster/" }
	whole := func(c *daemon) func() bool {
		return func() bool {
			m, ok := clusterMetrics(web(c))
			return ok && m.ActiveNodes == nodes && m.ContainersAllocated >= 30*nodes
		}
	}
	pair[0].Await(b, "all nodes, all containers and the load", func() bool {
		m, ok := clusterMetrics(web(pair[0]))
		return ok && m.ActiveNodes == nodes && m.ContainersAllocated > 30*nodes
	})
	some := anApplication(b, web(pair[0]))
	var lead, report, all time.Duration
	for i := range b.N {
		active, standby := pair[i%2], pair[1-i%2]
		killed := time.Now()
		active.Kill()
		standby.Await(b, "the lead", func() bool { return strings.Contains(standby.Output(), "taking over") })
		began := time.Now()
		lead += began.Sub(killed)
		var app any
		standby.Await(b, "a report", func() bool { return get(web(standby)+"apps/"+some, &app) })
		report += time.Since(began)
		standby.Await(b, "all nodes and containers", whole(standby))
		all += time.Since(began)
		active.start(b)
	}
	b.ReportMetric(0, "ns/op")
	for name, d := range map[string]time.Duration{"ms-to-lead": lead, "ms-to-report": report, "ms-to-all-containers": all} {
		b.ReportMetric(float64(d.Milliseconds())/float64(b.N), name)
	}
}

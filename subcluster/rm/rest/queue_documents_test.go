// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm/queueconf"
	"github.com/creelrm/creel/subcluster/rm/server"
)

// startQueues starts a cluster with the queues of a configuration.
func startQueues(t *testing.T, conf queueconf.Config, err error) *cluster {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return start(t, func(cfg *server.Config) { cfg.Machine.Queues, cfg.Machine.Placement = conf.Queues, conf.Placement })
}

// addNode registers a node that is not simulated.
func (c *cluster) addNode(r creel.Resource) {
	c.t.Helper()
	tracker := yarnrpc.NewResourceTrackerClient(c.rpc, c.s.Addresses().Tracker, hrpc.Login{User: "yarn"})
	if _, err := tracker.RegisterNodeManager(c.t.Context(), &pb.RegisterNodeManagerRequestProto{
		NodeId: pb.FromNodeID(creel.NodeID{Host: "127.0.0.9", Port: 1}), HttpPort: new(int32(2)),
		NmVersion: new("3.4.2"), Resource: pb.FromResource(r),
	}); err != nil {
		c.t.Fatal(err)
	}
}

// A FairScheduler's maximum in percent is cut to whole units. A queue below one that may not lose containers may not.
func TestFairQueueDocuments(t *testing.T) {
	conf, err := queueconf.ReadFair("fair-scheduler.xml", []byte(`<allocations>
		<queue name="a"><allowPreemptionFrom>false</allowPreemptionFrom>
			<queue name="b"><allowPreemptionFrom>true</allowPreemptionFrom></queue></queue>
		<queue name="c"><maxResources>33.3%</maxResources></queue>
		<queue name="d"><maxResources>memory-mb=29%, vcores=50%</maxResources></queue>
	</allocations>`), queueconf.Options{})
	c := startQueues(t, conf, err)
	before := c.get(base+"/metrics", "clusterMetrics", "totalMB").(float64)
	c.addNode(creel.NewResource(777, 7))
	total := c.get(base+"/metrics", "clusterMetrics", "totalMB").(float64)
	if total != before+777 {
		t.Fatalf("%v MB, and %v before", total, before)
	}
	root := []any{"scheduler", "schedulerInfo", "rootQueue", "childQueues", "queue"}
	queue := func(fields ...any) any { return c.get(base+"/scheduler", append(root, fields...)...) }
	names := map[any]int{}
	for i := range queue().([]any) {
		names[queue(i, "queueName")] = i
	}
	if queue(names["root.a"], "preemptable") != false || queue(names["root.c"], "preemptable") != true ||
		queue(names["root.a"], "childQueues", "queue", 0, "preemptable") != false {
		t.Errorf("preemptable: %v", queue())
	}
	for name, percent := range map[string]float64{"root.c": 33.3, "root.d": 29} {
		if got := queue(names[name], "maxResources", "memory"); got != float64(int64(total*(percent/100))) {
			t.Errorf("%s: at most %v of %v MB", name, got, total)
		}
	}
}

// A lifetime of 0 is written as 0, and one that is not configured as -1.
func TestLifetimesInQueueDocuments(t *testing.T) {
	var props []queueconf.Property
	for name, value := range map[string]string{
		"root.queues": "a,b", "root.a.capacity": "50", "root.b.capacity": "50",
		"root.a.maximum-application-lifetime": "0",
	} {
		props = append(props, queueconf.Property{Name: capacity + name, Value: value})
	}
	conf, err := queueconf.ReadCapacity(props, queueconf.Options{})
	c := startQueues(t, conf, err)
	for i, want := range []float64{0, -1} {
		for _, field := range []string{"maxApplicationLifetime", "defaultApplicationLifetime"} {
			if got := c.get(base+"/scheduler", "scheduler", "schedulerInfo", "queues", "queue", i, field); got != want {
				t.Errorf("queue %d: %s is %v, want %v", i, field, got, want)
			}
		}
	}
}

func readQueueKeys(keys map[string]string) (queueconf.Config, error) {
	var props []queueconf.Property
	for name, value := range keys {
		props = append(props, queueconf.Property{Name: capacity + name, Value: value})
	}
	return queueconf.ReadCapacity(props, queueconf.Options{})
}

// The mode is the unit of the configured capacity. A capacity of 0 percent, or none, has no amount and no weight.
func TestModesInQueueDocuments(t *testing.T) {
	for _, x := range []struct {
		legacy, a, b string // b has a capacity only if it is given
		mode, vector string // of b
		isAbsolute   bool
	}{
		{"true", "[memory=1024,vcores=1]", "[memory=512,vcores=1]", "absolute", "[memory-mb=512.0,vcores=1.0]", true},
		{"true", "[memory=1024,vcores=1]", "", "percentage", "[]", false},
		{"true", "[memory=1024,vcores=1]", "0", "percentage", "[memory-mb=0.0%,vcores=0.0%]", false},
		{"true", "1w", "", "percentage", "[]", false},
		{"false", "1w", "[memory=1w,vcores=2w]", "weight", "[memory-mb=1.0w,vcores=2.0w]", false},
		{"false", "50", "[memory=10%,vcores=20%]", "percentage", "[memory-mb=10.0%,vcores=20.0%]", false},
		{"false", "50", "[memory=10%,vcores=2w]", "mixed", "[memory-mb=10.0%,vcores=2.0w]", false},
		{"false", "1w", "", "unknown", "[]", false},
	} {
		t.Run(x.legacy+" "+x.b, func(t *testing.T) {
			keys := map[string]string{
				"legacy-queue-mode.enabled": x.legacy, "root.queues": "a,b", "root.a.capacity": x.a,
			}
			if x.b != "" {
				keys["root.b.capacity"] = x.b
			}
			conf, err := readQueueKeys(keys)
			c := startQueues(t, conf, err)
			b := func(fields ...any) any {
				return c.get(base+"/scheduler", append([]any{"scheduler", "schedulerInfo", "queues", "queue", 1}, fields...)...)
			}
			rows := b("capacities", "queueCapacitiesByPartition", 0, "queueCapacityVectorInfo", "configuredCapacityVector")
			if b("mode") != x.mode || rows != x.vector || b("isAbsoluteResource") != x.isAbsolute || b("weight") != -1.0 {
				t.Errorf("mode %v, vector %v, absolute %v, weight %v; want %v, %v, %v, -1",
					b("mode"), rows, b("isAbsoluteResource"), b("weight"), x.mode, x.vector, x.isAbsolute)
			}
		})
	}
}

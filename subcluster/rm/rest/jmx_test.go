// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"maps"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm/opportunistic"
	"github.com/creelrm/creel/subcluster/rm/server"
)

// bean returns the only bean of the ResourceManager with a name.
func (c *cluster) bean(name string) map[string]any {
	c.t.Helper()
	all := c.get("/jmx?qry=Hadoop:service=ResourceManager,name="+name, "beans").([]any)
	if len(all) != 1 {
		c.t.Fatalf("%d beans %s", len(all), name)
	}
	return all[0].(map[string]any)
}

func (c *cluster) wantBean(name string, want map[string]float64) {
	c.t.Helper()
	b := c.bean(name)
	for _, field := range slices.Sorted(maps.Keys(want)) {
		if b[field] != want[field] {
			c.t.Errorf("%s.%s is %v, want %v", name, field, b[field], want[field])
		}
	}
}

func TestBeansCountAnApplicationsSteps(t *testing.T) {
	c := start(t, nil)
	c.wantBean("ClusterMetrics", map[string]float64{
		"AMLaunchDelayNumOps": 0, "AMRegisterDelayNumOps": 0, "AMContainerAllocationDelayNumOps": 0,
	})
	const queue = "QueueMetrics,q0=root,q1=default"
	c.wantBean(queue, map[string]float64{
		"AggregateOffSwitchContainersAllocated": 0, "running_0": 0, "running_60": 0, "running_300": 0, "running_1440": 0,
	})
	c.submit("alice", "a", "")
	m := c.register("")
	host := "" // of a node that the ask names
	for _, n := range c.get(base+"/nodes", "nodes", "node").([]any) {
		host = n.(map[string]any)["nodeHostName"].(string)
	}
	answers, granted := int32(0), 0
	ask := []*pb.ResourceRequestProto{
		request(1, host, 1), request(1, "/default-rack", 1), request(1, "*", 1), request(2, "*", 2),
	}
	c.until("three containers are granted", func() bool {
		answer, err := m.Allocate(t.Context(), &pb.AllocateRequestProto{ResponseId: &answers, Ask: ask})
		if err != nil {
			t.Fatal(err)
		}
		answers, ask = answer.GetResponseId(), nil
		granted += len(answer.GetAllocatedContainers())
		return granted == 3
	})
	c.wantBean("ClusterMetrics", map[string]float64{
		"AMLaunchDelayNumOps": 1, "AMRegisterDelayNumOps": 1, "AMContainerAllocationDelayNumOps": 1,
	})
	for _, name := range []string{queue, "QueueMetrics,q0=root"} { // the AM's and two others were asked for anywhere
		c.wantBean(name, map[string]float64{
			"AggregateContainersAllocated": 4, "AggregateNodeLocalContainersAllocated": 1,
			"AggregateRackLocalContainersAllocated": 0, "AggregateOffSwitchContainersAllocated": 3,
			"running_0": 1, "running_60": 0, "running_300": 0, "running_1440": 0,
		})
	}
	c.wantBean("CapacitySchedulerMetrics", map[string]float64{
		"AllocateNumOps": float64(answers), "CommitSuccessNumOps": 4,
	})
	c.until("a node's heartbeat was measured", func() bool {
		b := c.bean("CapacitySchedulerMetrics")
		return b["NodeUpdateNumOps"].(float64) >= 1 && b["NodeUpdateAvgTime"].(float64) > 0
	})
	if b := c.bean("CapacitySchedulerMetrics"); b["AllocateAvgTime"].(float64) <= 0 {
		t.Errorf("the time of allocates: %v", b)
	}
}

func request(priority int32, place string, count int32) *pb.ResourceRequestProto {
	return &pb.ResourceRequestProto{
		Priority: pb.FromPriority(priority), ResourceName: &place,
		Capability: pb.FromResource(creel.NewResource(256, 1)), NumContainers: &count,
	}
}

func TestBeansOfEachRPCPort(t *testing.T) {
	c := start(t, nil)
	c.submit("alice", "a", "")
	c.register("")
	port := func(address string) string {
		_, number, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		return number
	}
	a := c.s.Addresses()
	am := port(a.Scheduler)
	c.wantBean("RpcActivityForPort"+am, map[string]float64{"RpcProcessingTimeNumOps": 1, "RpcCallSuccesses": 1})
	c.wantBean("RpcDetailedActivityForPort"+am, map[string]float64{"RegisterApplicationMasterNumOps": 1})
	c.wantBean("RpcDetailedActivityForPort"+port(a.Tracker), map[string]float64{"RegisterNodeManagerNumOps": 2})
	if b := c.bean("RpcActivityForPort" + port(a.Tracker)); b["RpcProcessingTimeNumOps"].(float64) < 2 ||
		b["ReceivedBytes"].(float64) <= 0 || b["SentBytes"].(float64) <= 0 {
		t.Errorf("the port of nodes: %v", b)
	}
	for _, address := range []string{a.Client, a.Admin} {
		if b := c.bean("RpcActivityForPort" + port(address)); !strings.HasSuffix(address, ":"+b["tag.port"].(string)) {
			t.Errorf("%s: %v", address, b)
		}
	}
}

func TestBeanCountsOpportunisticContainers(t *testing.T) {
	const bean = "OpportunisticSchedulerMetrics"
	c := start(t, nil)
	if all := c.get("/jmx?qry=Hadoop:service=ResourceManager,name="+bean, "beans").([]any); len(all) > 0 {
		t.Errorf("without opportunistic containers: %v", all)
	}
	o := opportunistic.Defaults()
	c = start(t, func(cfg *server.Config) { cfg.Machine.Opportunistic = &o })
	c.wantBean(bean, map[string]float64{
		"AllocatedOContainers": 0, "AggregateOContainersAllocated": 0, "AggregateOContainersReleased": 0,
		"AggregateNodeLocalOContainersAllocated": 0, "AggregateRackLocalOContainersAllocated": 0,
		"AggregateOffSwitchOContainersAllocated": 0,
	})
}

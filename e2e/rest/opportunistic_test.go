// SPDX-License-Identifier: Apache-2.0

package rest

import (
	_ "embed"
	"net/http"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/rm"
	pb "github.com/creelrm/creel/internal/yarnpb"
)

//go:embed testdata/opportunistic-requests.txt
var opportunisticRequestLines string

//go:embed testdata/opportunistic-known.txt
var opportunisticKnownLines string

// opportunisticState is an AM with a guaranteed container and three opportunistic ones on one node.
type opportunisticState struct {
	*system
	allocate   func(*pb.AllocateRequestProto) *pb.AllocateResponseProto
	guaranteed *pb.ContainerProto
	placed     []*pb.ContainerProto
}

// Documents and metrics of containers that wait at a node, are promoted, and end are those of Hadoop's
// ResourceManager.
func TestOpportunisticDocuments(t *testing.T) {
	conf := patient.With(hadoop.Conf{
		"yarn.resourcemanager.opportunistic-container-allocation.enabled":     "true",
		"yarn.resourcemanager.nm-container-queuing.sorting-nodes-interval-ms": "100",
	})
	theirRM := hadoop.StartRM(t, hadoop.RM{Conf: conf})
	ourRM := rm.Start(t, rm.Options{Volatile: true, Conf: conf})
	theirs := &opportunisticState{system: newSystem(t, "Hadoop", theirRM.Process, theirRM.Addresses)}
	ours := &opportunisticState{system: newSystem(t, "creel", ourRM.Process, ourRM.Addresses)}
	known, all := rules(t, opportunisticKnownLines), requests(t, opportunisticRequestLines)
	fields := 0
	for _, phase := range []struct {
		name string
		play func(*opportunisticState)
	}{
		{"queued-", (*opportunisticState).queued},
		{"promoted-", (*opportunisticState).promoted},
		{"demoted-", (*opportunisticState).demoted},
		{"ended-", (*opportunisticState).ended},
	} {
		for _, s := range []*opportunisticState{theirs, ours} {
			phase.play(s)
		}
		for _, q := range all {
			q.name = phase.name + q.name
			accepts := []string{"application/json", "application/xml"}
			if !strings.HasPrefix(q.path, "/ws/") {
				accepts = []string{""}
			}
			for _, accept := range accepts {
				where := q.name
				if strings.HasSuffix(accept, "xml") {
					where += ":xml"
				}
				a := theirs.answer(t, q, accept)
				compare(t, where, "testdata/opportunistic-known.txt", known, theirs.name, a, ours.answer(t, q, accept))
				fields += len(a)
			}
		}
	}
	unused(t, "testdata/opportunistic-known.txt", known)
	t.Logf("%d fields compared, %d rules", fields, len(known))
}

// beans waits until Hadoop's copies of the beans, which it refreshes each ten seconds, have the numbers of containers.
func (s *opportunisticState) beans(guaranteed, opportunistic string) {
	for _, b := range [][3]string{
		{"OpportunisticSchedulerMetrics", "AllocatedOContainers", opportunistic},
		{"QueueMetrics,q0=root,q1=default", "AllocatedContainers", guaranteed},
	} {
		name := "Hadoop:service=ResourceManager,name=" + b[0]
		s.until("its beans have caught up", func() bool {
			f := s.answer(s.t, request{name: "beans", method: http.MethodGet, path: "/jmx?qry=" + name}, "")
			return f[".beans["+name+"]."+b[1]] == b[2]
		})
	}
}

// queued brings the AM its containers: the node runs the guaranteed one and two of the others, and one waits.
func (s *opportunisticState) queued() {
	s.nodes = []*node{s.addNode("127.0.0.2")}
	s.nodes[0].queue.OpportQueueCapacity = proto.Int32(10)
	s.heartbeats()
	id := s.submit("alice", "running", nil)
	am := s.amClient("alice", id, "amhost", "http://127.0.0.1:9/ui")
	response := int32(0)
	s.allocate = func(r *pb.AllocateRequestProto) *pb.AllocateResponseProto {
		r.ResponseId, r.Progress = &response, proto.Float32(0.25)
		a := must(am.Allocate(s.t.Context(), r))(s.t)
		response = a.GetResponseId()
		return a
	}
	get := func(what string, n int, a *pb.ResourceRequestProto) (got []*pb.ContainerProto) {
		asks := []*pb.ResourceRequestProto{a}
		s.until(what, func() bool {
			got = append(got, s.allocate(&pb.AllocateRequestProto{Ask: asks}).GetAllocatedContainers()...)
			asks = nil
			return len(got) >= n
		})
		return got
	}
	s.guaranteed = get("alice has a guaranteed container", 1, ask(1, "*", 1024, 1, true))[0]
	waits := ask(2, "*", 512, 3, true)
	waits.ExecutionTypeRequest = &pb.ExecutionTypeRequestProto{
		ExecutionType: pb.ExecutionTypeProto_OPPORTUNISTIC.Enum(), EnforceExecutionType: proto.Bool(true),
	}
	s.placed = get("alice has three opportunistic containers", 3, waits)
	n := s.nodes[0]
	n.queue = pb.OpportunisticContainersStatusProto{
		RunningOpportContainers: proto.Int32(2), OpportMemoryUsed: proto.Int64(1024), OpportCoresUsed: proto.Int32(2),
		QueuedOpportContainers: proto.Int32(1), WaitQueueLength: proto.Int32(1), OpportQueueCapacity: proto.Int32(10),
		EstimatedQueueWaitTime: proto.Int32(-1),
	}
	n.containers = []*pb.ContainerStatusProto{
		status(s.guaranteed, pb.ContainerStateProto_C_RUNNING, pb.ContainerSubStateProto_CSS_RUNNING),
		status(s.placed[0], pb.ContainerStateProto_C_RUNNING, pb.ContainerSubStateProto_CSS_RUNNING),
		status(s.placed[1], pb.ContainerStateProto_C_RUNNING, pb.ContainerSubStateProto_CSS_RUNNING),
		status(s.placed[2], pb.ContainerStateProto_C_RUNNING, pb.ContainerSubStateProto_CSS_SCHEDULED),
	}
	s.runs("the node's containers are known", 4)
	s.beans("1", "3")
}

// runs lets nodes and the AM send heartbeats until the attempt has a number of containers that run.
func (s *opportunisticState) runs(what string, n int) {
	attempt := pb.FromAttemptID(creel.AttemptID{Application: s.apps["running"], Attempt: 1})
	s.until(what, func() bool {
		s.allocate(&pb.AllocateRequestProto{})
		r := must(s.as("alice").GetContainers(s.t.Context(), &pb.GetContainersRequestProto{ApplicationAttemptId: attempt}))(s.t)
		running := slices.DeleteFunc(r.GetContainers(), func(c *pb.ContainerReportProto) bool {
			return c.GetContainerState() != pb.ContainerStateProto_C_RUNNING
		})
		return len(running) == n
	})
}

func status(
	c *pb.ContainerProto, state pb.ContainerStateProto, sub pb.ContainerSubStateProto,
) *pb.ContainerStatusProto {
	return &pb.ContainerStatusProto{
		ContainerId: c.Id, State: &state, ContainerSubState: &sub, Capability: c.Resource, ExecutionType: c.ExecutionType,
	}
}

// promoted makes the first opportunistic container guaranteed.
func (s *opportunisticState) promoted() {
	s.update(s.placed[0], pb.ContainerUpdateTypeProto_PROMOTE_EXECUTION_TYPE, pb.ExecutionTypeProto_GUARANTEED)
	n := s.nodes[0]
	n.containers[1].ExecutionType = pb.ExecutionTypeProto_GUARANTEED.Enum()
	n.queue.RunningOpportContainers, n.queue.OpportCoresUsed = proto.Int32(1), proto.Int32(1)
	n.queue.OpportMemoryUsed = proto.Int64(512)
	s.runs("the containers still run", 4)
	s.beans("2", "2")
}

// update changes a container's execution type.
func (s *opportunisticState) update(c *pb.ContainerProto, u pb.ContainerUpdateTypeProto, to pb.ExecutionTypeProto) {
	updates := []*pb.UpdateContainerRequestProto{{
		ContainerVersion: proto.Int32(c.GetVersion()), ContainerId: c.Id, Capability: c.Resource,
		UpdateType: &u, ExecutionType: &to,
	}}
	s.until("the container is updated", func() bool {
		r := s.allocate(&pb.AllocateRequestProto{UpdateRequests: updates})
		updates = nil
		return len(r.GetUpdatedContainers()) == 1
	})
}

// demoted makes the guaranteed container opportunistic.
func (s *opportunisticState) demoted() {
	s.update(s.guaranteed, pb.ContainerUpdateTypeProto_DEMOTE_EXECUTION_TYPE, pb.ExecutionTypeProto_OPPORTUNISTIC)
	n := s.nodes[0]
	n.containers[0].ExecutionType = pb.ExecutionTypeProto_OPPORTUNISTIC.Enum()
	n.queue.RunningOpportContainers, n.queue.OpportCoresUsed = proto.Int32(2), proto.Int32(2)
	n.queue.OpportMemoryUsed = proto.Int64(1536)
	s.runs("the containers still run", 4)
	s.beans("1", "3")
}

// ended ends the second opportunistic container, and releases the third and the demoted one.
func (s *opportunisticState) ended() {
	n := s.nodes[0]
	done := status(s.placed[1], pb.ContainerStateProto_C_COMPLETE, pb.ContainerSubStateProto_CSS_DONE)
	done.ExitStatus = proto.Int32(0)
	n.containers = []*pb.ContainerStatusProto{n.containers[1], done}
	n.queue = pb.OpportunisticContainersStatusProto{OpportQueueCapacity: proto.Int32(10)}
	s.heartbeats()
	n.containers = n.containers[:1]
	s.allocate(&pb.AllocateRequestProto{Release: []*pb.ContainerIdProto{s.placed[2].Id, s.guaranteed.Id}})
	s.runs("one container is left", 1)
	s.beans("1", "0")
}

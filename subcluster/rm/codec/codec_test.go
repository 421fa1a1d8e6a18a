// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/token"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

var (
	attempt = creel.AttemptID{Application: creel.ApplicationID{ClusterTimestamp: 1700000000000, ID: 7}, Attempt: 1}
	node    = creel.NodeID{Host: "n1", Port: 8041}
)

func mintOf(user string) *Mint {
	return &Mint{
		NMKey:        token.NewMac(token.Key{ID: 2, Secret: []byte("nm")}),
		ContainerKey: token.NewMac(token.Key{ID: 3, Secret: []byte("container")}),
		User:         user,
		Expiry:       time.Minute,
		RM:           42,
		Service:      creel.NodeID.String,
	}
}

func grantOf(id int64) rm.Grant {
	return rm.Grant{
		ID:      creel.ContainerID{Attempt: attempt, ID: id},
		Place:   &rm.Place{Node: node, HTTPAddress: "n1:8042"},
		Shape:   &amounts.Shape{Resource: creel.NewResource(1024, 2)},
		Created: 1000,
	}
}

func TestContainerTokenHasGrantAndExpiry(t *testing.T) {
	g := grantOf(9)
	made := mintOf("ann").Container(&g)
	id, err := token.ParseContainer(made.Identifier)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case id.ID != g.ID, id.Node != node, id.User != "ann", id.RMIdentifier != 42, id.KeyID != 3, id.AM:
		t.Errorf("the token says %+v", id)
	case !id.Resource.Equal(g.Resource), !id.Expires.Equal(time.UnixMilli(1000).Add(time.Minute)):
		t.Errorf("the token says %+v", id)
	}
	if !(token.Key{ID: 3, Secret: []byte("container")}).Verify(made.Identifier, made.Password) {
		t.Error("the token is not signed with the key for containers")
	}
}

func TestAnAnswerIsApartFromTheMachines(t *testing.T) {
	machine := rm.Answer{ResponseID: 3, Granted: []rm.Grant{grantOf(1)}, NMTokens: []*rm.Place{{Node: node}}}
	out := AllocateResponse(CopyAnswer(nil, time.Time{}, &machine), attempt, mintOf("ann"), nil)
	machine.Granted[0] = grantOf(2) // the machine's next answer
	machine.ResponseID = 4
	if got := pb.ToContainerID(out.GetAllocatedContainers()[0].GetId()); got.ID != 1 || out.GetResponseId() != 3 {
		t.Errorf("answer %d grants %s", out.GetResponseId(), got)
	}
	if len(out.GetNmTokens()) != 1 || pb.ToNodeID(out.GetNmTokens()[0].GetNodeId()) != node {
		t.Errorf("tokens for nodes: %v", out.GetNmTokens())
	}
}

func TestACompletionIsTheNodesOwnMessage(t *testing.T) {
	told := &pb.ContainerStatusProto{State: pb.ContainerStateProto_C_COMPLETE.Enum(), ExitStatus: new(int32(3))}
	told.ProtoReflect().SetUnknown([]byte{0xf8, 0x07, 1})
	c := rm.Completion{ID: grantOf(1).ID, Shape: grantOf(1).Shape, ExitStatus: 3, Message: told}
	if got := mintOf("ann").completed(&c); got != told {
		t.Error("a field that we do not know is lost")
	}
	c.ExitStatus = -100 // the ResourceManager knows better
	if got := mintOf("ann").completed(&c); got == told || got.GetExitStatus() != -100 {
		t.Errorf("told %v", got)
	}
}

func TestInvalidUtilizationIsZero(t *testing.T) {
	for told, want := range map[float32]float32{
		0.5:                             0.5,
		0:                               0,
		-1:                              0,
		float32(math.NaN()):             0,
		float32(math.Inf(1)):            0,
		float32(math.Inf(-1)):           0,
		1 << 20:                         1 << 20,
		1<<20 + 1:                       0,
		math.MaxFloat32:                 0,
		math.SmallestNonzeroFloat32 * 2: math.SmallestNonzeroFloat32 * 2,
	} {
		use := &pb.ResourceUtilizationProto{Cpu: &told}
		var report rm.NodeReport
		NodeHeartbeat(&pb.NodeHeartbeatRequestProto{
			NodeStatus: &pb.NodeStatusProto{NodeUtilization: use, ContainersUtilization: use},
		}, &report, &rm.NodeUse{})
		if got := report.Utilization; got == nil || got.NodeCPU != want || got.ContainersCPU != want {
			t.Errorf("a node that measured %v vcores: %+v in use, want %v", told, got, want)
		}
	}
}

// Memory in use and physical resources are 0 if they are negative or impossibly large.
func TestImpossibleHostMeasurementIsZero(t *testing.T) {
	const most = rm.MostOfNode
	for told, want := range map[int64]int64{0: 0, 4096: 4096, most: most, -1: 0, most + 1: 0, math.MaxInt64: 0, math.MinInt64: 0} {
		node := RegisterNode(&pb.RegisterNodeManagerRequestProto{PhysicalResource: &pb.ResourceProto{Memory: &told, VirtualCores: new(int32(-5))}})
		if node.Physical.MemoryMB != want || node.Physical.VCores != 0 {
			t.Errorf("of %d MB and -5 vcores are counted %v, want %d MB", told, node.Physical, want)
		}
	}
	var report rm.NodeReport
	use := &pb.ResourceUtilizationProto{Pmem: new(int32(math.MinInt32)), Vmem: new(int32(-1))}
	NodeHeartbeat(&pb.NodeHeartbeatRequestProto{
		NodeStatus: &pb.NodeStatusProto{NodeUtilization: use, ContainersUtilization: use},
	}, &report, &rm.NodeUse{})
	if got := *report.Utilization; got != (rm.NodeUse{}) {
		t.Errorf("of less than no memory in use are counted %+v", got)
	}
}

// Pending containers are reported as MaxInt32 at most; waiting AMs are added to them.
func TestPendingContainersAndWaitingAMsAddUp(t *testing.T) {
	m := Metrics(&rm.ClusterView{PendingContainers: math.MaxInt32, InLineContainers: 2})
	if want := int64(math.MaxInt32) + 2; m.ContainersPending != want {
		t.Errorf("%d containers are pending, want %d", m.ContainersPending, want)
	}
}

func TestANodeLearnsOnlyTheKeysItLacks(t *testing.T) {
	container, nm := token.Key{ID: 3, Secret: []byte("c")}, token.Key{ID: 2, Secret: []byte("n")}
	if k := KeysFor(container, nm, nil, nil); k.Container.GetKeyId() != 3 || k.NM.GetKeyId() != 2 {
		t.Errorf("a new node learns %v", k)
	}
	if k := KeysFor(container, nm, container.Proto(), token.Key{ID: 1, Secret: []byte("o")}.Proto()); k.Container != nil ||
		k.NM.GetKeyId() != 2 {
		t.Errorf("a node with one old key learns %v", k)
	}
}

func TestAStartThatIsRepeatedIsNoRefusal(t *testing.T) {
	id := grantOf(1).ID
	answer := func(text string) *pb.StartContainersResponseProto {
		return &pb.StartContainersResponseProto{FailedRequests: []*pb.ContainerExceptionMapProto{{
			ContainerId: pb.FromContainerID(id),
			Exception:   &pb.SerializedExceptionProto{Message: &text},
		}}}
	}
	if StartRefusal(answer("Container "+id.String()+" already is running on this node!!"), id) != nil {
		t.Error("a start whose answer was lost is taken for a failure")
	}
	if StartRefusal(answer("the token has expired"), id) == nil {
		t.Error("a refused start counts as done")
	}
	if StartRefusal(answer("the token has expired"), grantOf(2).ID) != nil {
		t.Error("another container's refusal is this one's")
	}
}

func TestLoadHasRateSinceLast(t *testing.T) {
	conf := rm.Defaults()
	m, err := rm.New(conf)
	if err != nil {
		t.Fatal(err)
	}
	now := time.UnixMilli(1_000_000)
	var l Loads
	first := l.Next(m, now)
	l.granted -= 50
	if second := l.Next(m, now.Add(5*time.Second)); first.Metrics.ContainersPerSecond != 0 ||
		second.Metrics.ContainersPerSecond != 10 || len(second.Queues) == 0 {
		t.Errorf("%+v, then %+v", first.Metrics, second.Metrics)
	}
}

// Proxies give idle UAMs back where they read this.
func TestLoadReportsRestartableUAMs(t *testing.T) {
	m, err := rm.New(rm.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	load := new(Loads).Next(m, time.UnixMilli(1_000_000))
	text, err := load.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if l, err := subcluster.ParseLoad(text); err != nil || !l.BeginsAgain {
		t.Errorf("%s is read as %v, %v", text, l.BeginsAgain, err)
	}
	if l, err := subcluster.ParseLoad([]byte(`{"clusterMetrics":{},"creel":{"nodes":"n"}}`)); err != nil || l.BeginsAgain {
		t.Errorf("a member that does not say so: %v, %v", l.BeginsAgain, err)
	}
}

// UAMs of other subclusters' applications are counted apart: in the cluster's metrics, and in those of their queue.
func TestLoadSeparatesUAMs(t *testing.T) {
	m, err := rm.New(rm.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	now := time.UnixMilli(1_000_000)
	for i, name := range []string{"a user's", creel.UAMName("sc-1")} {
		if err := m.Submit(now, &rm.Submission{
			ID:   creel.ApplicationID{ClusterTimestamp: 1, ID: int32(i + 1)},
			User: "ann", Queue: "default", Name: name, Unmanaged: true,
		}); err != nil {
			t.Fatal(err)
		}
		saveAll(m, now)
	}
	load := new(Loads).Next(m, now)
	text, err := load.JSON()
	if err != nil {
		t.Fatal(err)
	}
	read, err := subcluster.ParseLoad(text)
	if err != nil {
		t.Fatal(err)
	}
	one := subcluster.UAMLoad{Running: 1}
	if q := read.Find("root.default"); read.Metrics.AppsRunning != 2 || read.UAMs != one || q.AppsRunning != 2 || q.UAMs != one {
		t.Errorf("of two that run one is a UAM: %+v, %+v, read of %s", read.UAMs, q, text)
	}
	if err := m.Audit(); err != nil {
		t.Error(err)
	}
}

// Nothing of one UAM alone is left in a router's metrics at any step of its life: also when its attempt is over and its
// end not durable, so that it neither runs nor waits, nor before its beginning is.
func TestAUAMLeavesNothingInFigures(t *testing.T) {
	for _, scheduler := range []queues.Scheduler{queues.CapacityScheduler, queues.FairScheduler} {
		conf := rm.Defaults()
		conf.Queues.Scheduler = scheduler
		m, err := rm.New(conf)
		if err != nil {
			t.Fatal(err)
		}
		now, id := time.UnixMilli(1_000_000), creel.ApplicationID{ClusterTimestamp: 1, ID: 1}
		look := func(step string) {
			load, uams, v := new(Loads).Next(m, now), m.UAMs(), m.Cluster()
			uams.TakeFromCluster(&v)
			got := []int64{
				v.AppsPending, v.AppsRunning, v.AppsSubmitted, v.AppsKilled,
				load.Metrics.AppsPending - load.UAMs.Pending, load.Metrics.AppsRunning - load.UAMs.Running,
			}
			for q := range m.Queues {
				uams.TakeFromQueue(&q)
				got = append(got, int64(q.Apps), int64(q.ActiveApps), int64(q.PendingApps), q.AppsSubmitted, q.AppsKilled)
				for _, u := range q.Users {
					got = append(got, int64(u.Running-u.RunningUAMs), int64(u.Pending-u.PendingUAMs))
				}
				l := load.Find(q.Path)
				got = append(got, l.AppsPending-l.UAMs.Pending, l.AppsRunning-l.UAMs.Running)
			}
			if slices.ContainsFunc(got, func(n int64) bool { return n != 0 }) {
				t.Errorf("%v, %s: figures are left: %v", scheduler, step, got)
			}
		}
		lives := func(of string) {
			for i := range 10 {
				look(fmt.Sprint(of, ", step ", i))
				for _, a := range m.Actions(nil) {
					switch a := a.(type) {
					case rm.SaveApp:
						m.Saved(now, a.Seq)
					case rm.SaveAttempt:
						m.Saved(now, a.Seq)
					}
				}
			}
		}
		if err := m.Submit(now, &rm.Submission{
			ID: id, User: "ann", Queue: "default", Name: creel.UAMName("sc-1"), Unmanaged: true,
		}); err != nil {
			t.Fatal(err)
		}
		lives("submitted")
		if _, err := m.Kill(now, id, "no longer needed"); err != nil {
			t.Fatal(err)
		}
		lives("killed")
		if err := m.Audit(); err != nil {
			t.Error(err)
		}
	}
}

// Tracking URLs lead through the web proxy that the operator names, else through the
// ResourceManager; an unmanaged AM's page is not proxied.
func TestATrackingURLNamesTheWebProxy(t *testing.T) {
	runs := rm.AppView{ID: attempt.Application, Attempt: attempt, State: creel.AppRunning, TrackingURL: "am:1"}
	unmanaged := runs
	unmanaged.Unmanaged = true
	killed := rm.AppView{ID: attempt.Application, Attempt: attempt, State: creel.AppKilled}
	at := Cluster{Web: "rm:8088"}
	behind := Cluster{Web: "rm:8088", Proxy: "router:8089"}
	for _, c := range []struct {
		cluster Cluster
		app     rm.AppView
		want    string
	}{
		{at, runs, "http://rm:8088/proxy/application_1700000000000_0007/"},
		{behind, runs, "http://router:8089/proxy/application_1700000000000_0007/"},
		{behind, unmanaged, "am:1"},
		{Cluster{Web: "rm:8090", TLS: true}, runs, "https://rm:8090/proxy/application_1700000000000_0007/"},
		{Cluster{Web: "rm:8090", TLS: true}, killed, "https://rm:8090/cluster/app/application_1700000000000_0007"},
	} {
		if got := c.cluster.TrackingURL(&c.app); got != c.want {
			t.Errorf("tracking URL %s, want %s", got, c.want)
		}
	}
}

// The choice of homes and splits depends on the labels that a ResourceManager publishes. One without labels publishes
// that it has none.
func TestLoadHasLabels(t *testing.T) {
	conf := rm.Defaults()
	m, err := rm.New(conf)
	if err != nil {
		t.Fatal(err)
	}
	now := time.UnixMilli(1_000_000)
	if l := new(Loads).Next(m, now).Labels; !l.Known || len(l.Partitions)+len(l.Queues) != 0 {
		t.Errorf("without labels it publishes %+v", l)
	}
	conf.Labels, conf.AMLabel = rm.LabelsByCall, "ssd"
	leaf := &conf.Queues.Root.Children[0]
	leaf.Labels, leaf.DefaultLabel = []string{"gpu"}, "gpu"
	leaf.Shares = []queues.LabelShare{{Label: "gpu", Capacity: queues.PercentOf(100)}}
	if m, err = rm.New(conf); err != nil {
		t.Fatal(err)
	}
	err = m.Recover(now, &rm.Recover{Labels: rm.Labels{
		Cluster: []rm.Label{{Name: "gpu", Exclusive: true}, {Name: "ssd"}},
		Nodes:   []rm.NodeLabel{{Node: node, Label: "gpu"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	l := new(Loads).Next(m, now).Labels
	if len(l.Partitions) != 2 || l.Partitions[0].Shared || !l.Partitions[1].Shared || l.AMs != "ssd" {
		t.Errorf("its partitions are %+v", l)
	}
	path := creel.RootQueue.Child(leaf.Name)
	if l.Default(path) != "gpu" || l.May(path, "ssd") || !l.May(path, "gpu") || len(l.Queues) != 1 {
		t.Errorf("its queues say %+v", l.Queues)
	}
}

// The splitter of an application's asks learns from the load where the application's queue would be created.
func TestLoadMarksDynamicParentQueues(t *testing.T) {
	conf := rm.Defaults()
	made := &queues.AutoCreate{Depth: 2}
	conf.Queues.Root.Children = []queues.Queue{
		{Name: "default", Capacity: queues.PercentOf(50)},
		{Name: "users", Capacity: queues.PercentOf(50), AutoCreate: made, Children: []queues.Queue{
			{Name: "staff", Capacity: queues.PercentOf(100), AutoCreate: made},
		}},
	}
	for scheduler, want := range map[queues.Scheduler]string{queues.CapacityScheduler: "[root.users]", queues.FairScheduler: "[root]"} {
		conf.Queues.Scheduler = scheduler
		m, err := rm.New(conf)
		if err != nil {
			t.Fatal(err)
		}
		if l := new(Loads).Next(m, time.UnixMilli(1)); fmt.Sprint(l.Makes) != want {
			t.Errorf("%v: %v, want %s", scheduler, l.Makes, want)
		}
	}
}

// Demand that the AM share holds back counts as pending in its queue, so that the rebalancer's plan gives other
// members a part of it. Hadoop's own metrics count it, too.
func TestALoadCountsAMsInLine(t *testing.T) {
	conf := rm.Defaults()
	conf.Labels = rm.LabelsByCall
	leaf := &conf.Queues.Root.Children[0]
	leaf.Labels = []string{"gpu"}
	leaf.Shares = []queues.LabelShare{{Label: "gpu", Capacity: queues.PercentOf(100)}}
	m, err := rm.New(conf)
	if err != nil {
		t.Fatal(err)
	}
	now := time.UnixMilli(1_000_000)
	if err := m.Recover(now, &rm.Recover{Labels: rm.Labels{Cluster: []rm.Label{{Name: "gpu", Exclusive: true}}}}); err != nil {
		t.Fatal(err)
	}
	// There is no node: the share for AMs holds back all but the first of each label.
	for i, label := range []string{"", "", "gpu", "gpu"} {
		am := rm.Ask{ResourceName: "*", Resource: creel.NewResource(2048, 1), Count: 1}
		am.Label = rm.LabelExpression{Text: label, Given: label != ""}
		err := m.Submit(now, &rm.Submission{
			ID:   creel.ApplicationID{ClusterTimestamp: 1, ID: int32(i + 1)},
			User: "ann", Queue: leaf.Name, AM: am,
		})
		if err != nil {
			t.Fatal(err)
		}
		saveAll(m, now)
	}
	load := new(Loads).Next(m, now)
	path := creel.RootQueue.Child(leaf.Name)
	for q := range m.Queues {
		if q.Path == path && (q.InLine.MemoryMB != 2048 || q.Partitions[0].InLine.MemoryMB != 2048) {
			t.Fatalf("%+v are in line, and %+v, want an AM of each", q.InLine, q.Partitions[0].InLine)
		}
	}
	for label, want := range map[string]int64{"": 4096, "gpu": 4096} {
		for _, q := range []creel.QueuePath{path, creel.RootQueue} {
			if got := load.FindOn(q, label); got == nil || got.Pending.MemoryMB != want {
				t.Errorf("of %s on %q it reports %+v, want %d MB that wait", q, label, got, want)
			}
		}
	}
	if p := load.Labels.Find("gpu"); p == nil || p.Pending.MemoryMB != 4096 {
		t.Errorf("of the label it reports %+v, want 4096 MB that wait", p)
	}
	if mb := load.Metrics.PendingMB; mb != 4096 {
		t.Errorf("of the cluster it reports %d MB that wait, want 4096", mb)
	}
}

// saveAll has all written that a machine wants written.
func saveAll(m *rm.Machine, now time.Time) {
	for acts := m.Actions(nil); len(acts) > 0; acts = m.Actions(nil) {
		for _, a := range acts {
			switch a := a.(type) {
			case rm.SaveApp:
				m.Saved(now, a.Seq)
			case rm.SaveAttempt:
				m.Saved(now, a.Seq)
			}
		}
	}
}

// A queue's row has its maximum if that is less than the cluster, the user limit if that is less than the queue, and
// the users whom limits hold back.
func TestLoadReportsLimitedDemand(t *testing.T) {
	conf := rm.Defaults()
	leaf := &conf.Queues.Root.Children[0]
	leaf.Capacity, leaf.MaxCapacity, leaf.UserFactor = queues.PercentOf(50), queues.PercentOf(75), 0.5
	conf.Queues.Root.Children = append(conf.Queues.Root.Children, queues.Queue{
		Name: "other", Capacity: queues.PercentOf(50), MaxCapacity: queues.PercentOf(100), UserFactor: 100,
	})
	m, err := rm.New(conf)
	if err != nil {
		t.Fatal(err)
	}
	now := time.UnixMilli(1_000_000)
	_, err = m.RegisterNode(now, &rm.RegisterNode{
		ID: creel.NodeID{Host: "n1", Port: 1}, HTTPPort: 1, Resource: creel.NewResource(16384, 16),
	})
	if err != nil {
		t.Fatal(err)
	}
	m.SetUserCaps(now, rm.UserCaps{
		Queue: "root.default", Limit: creel.NewResource(2048, 2),
		Each: rm.UserCap{Cap: creel.NewResource(1024, 1), Until: now.Add(time.Minute)},
	})
	for i := range 2 { // each AM needs more than everybody's part
		err := m.Submit(now, &rm.Submission{
			ID:   creel.ApplicationID{ClusterTimestamp: 1, ID: int32(i + 1)},
			User: "ann", Queue: leaf.Name, AM: rm.Ask{ResourceName: "*", Resource: creel.NewResource(2048, 1), Count: 1},
		})
		if err != nil {
			t.Fatal(err)
		}
		saveAll(m, now)
	}
	load := (&Loads{}).Next(m, now)
	q := load.Find("root.default")
	if q == nil || q.Most == nil || q.EachUser == nil || len(q.Users) != 1 {
		t.Fatalf("the load tells %+v", q)
	}
	if most, each := creel.NewResource(12288, 12), creel.NewResource(5120, 5); !q.Most.Equal(most) || !q.EachUser.Equal(each) {
		t.Errorf("the queue may have %s and each user %s, want %s and %s", q.Most, q.EachUser, most, each)
	}
	if u := q.Users[0]; u.User != "ann" || u.Pending.MemoryMB != 4096 || u.Most.MemoryMB != 1024 || !u.Granted().Fits(u.Most) {
		t.Errorf("of ann it tells %+v", u)
	}
	if other := load.Find("root.other"); other.Most != nil || other.EachUser != nil || other.Users != nil {
		t.Errorf("of a queue without limits it tells %+v", other)
	}
}

// The registration response reports whether an application's containers end with their attempt.
func TestRegistrationReportsKeepContainers(t *testing.T) {
	for _, keep := range []bool{false, true} {
		app := rm.AppView{Context: &pb.ApplicationSubmissionContextProto{KeepContainersAcrossApplicationAttempts: &keep}}
		answer := RegisterAMResponse(&AMRegistration{App: app}, creel.AttemptID{}, nil, nil)
		ends := pb.NumberIn(answer.ProtoReflect().GetUnknown(), pb.FieldEnds) == 1
		if ends == keep {
			t.Errorf("containers are kept: %v, and the AM is told that they end: %v", keep, ends)
		}
	}
}

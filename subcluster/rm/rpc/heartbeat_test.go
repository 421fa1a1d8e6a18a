// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"
)

// whole returns the report of a heartbeat as a handler makes it that remembers
// nothing.
func whole(in []byte) (*rm.NodeReport, error) {
	var r pb.NodeHeartbeatRequestProto
	if err := r.UnmarshalVT(in); err != nil {
		return nil, err
	}
	var out rm.NodeReport
	codec.NodeHeartbeat(&r, &out, &rm.NodeUse{})
	return &out, nil
}

// sameReport compares two inputs of the machine; nil and empty lists of containers are equal.
func sameReport(a, b *rm.NodeReport) error {
	x, y := *a, *b
	if !slices.EqualFunc(x.Containers, y.Containers, func(p, q rm.ContainerStatus) bool {
		m, _ := p.Message.(*pb.ContainerStatusProto)
		n, _ := q.Message.(*pb.ContainerStatusProto)
		p.Message, q.Message = nil, nil
		return p == q && (m == nil) == (n == nil) && proto.Equal(m, n)
	}) {
		return fmt.Errorf("containers\n%v, with nothing remembered\n%v", x.Containers, y.Containers)
	}
	x.Containers, y.Containers = nil, nil
	if !reflect.DeepEqual(x, y) {
		return fmt.Errorf("report\n%+v, with nothing remembered\n%+v", x, y)
	}
	return nil
}

func encode(m *pb.NodeHeartbeatRequestProto) []byte {
	b, err := m.MarshalVT()
	if err != nil {
		panic(err)
	}
	return b
}

var oneNode = creel.NodeID{Host: "n1", Port: 8041}

func heartbeatOf(
	id creel.NodeID,
	response int32,
	containers ...*pb.ContainerStatusProto,
) *pb.NodeHeartbeatRequestProto {
	return &pb.NodeHeartbeatRequestProto{
		NodeStatus: &pb.NodeStatusProto{
			NodeId:             pb.FromNodeID(id),
			ResponseId:         &response,
			ContainersStatuses: containers,
			NodeHealthStatus: &pb.NodeHealthStatusProto{
				IsNodeHealthy:        new(true),
				HealthReport:         new("fine"),
				LastHealthReportTime: new(int64(1700000000000)),
			},
			NodeUtilization: &pb.ResourceUtilizationProto{
				Pmem: new(int32(100 * response)),
				Vmem: new(int32(7)),
				Cpu:  new(float32(0.5)),
			},
		},
		LastKnownNmTokenMasterKey: &pb.MasterKeyProto{KeyId: &response},
	}
}

func statusOf(id creel.ContainerID, state creel.ContainerState, diagnostics string) *pb.ContainerStatusProto {
	return &pb.ContainerStatusProto{
		ContainerId:   pb.FromContainerID(id),
		State:         new(pb.ContainerStateProto(state)),
		Diagnostics:   &diagnostics,
		ExitStatus:    new(int32(-1000)),
		Capability:    pb.FromResource(creel.NewResource(1024, 1)),
		ExecutionType: pb.ExecutionTypeProto_GUARANTEED.Enum(),
	}
}

func numbered(i int) creel.ContainerID {
	return creel.NewContainerID(
		creel.AttemptID{Application: creel.ApplicationID{ClusterTimestamp: 1700000000000, ID: 1}, Attempt: 1},
		0,
		int64(i),
	)
}

func runningOnes(n int) (list []*pb.ContainerStatusProto) {
	for i := range n {
		list = append(list, statusOf(numbered(i+1), creel.ContainerRunning, ""))
	}
	return list
}

// hear has a heartbeat come in and be taken, and returns how many of its statuses were
// decoded.
func take(t *testing.T, p *heartbeats, m *pb.NodeHeartbeatRequestProto) (decoded int) {
	t.Helper()
	in := encode(m)
	b := p.get()
	if err := b.UnmarshalVT(in); err != nil {
		t.Fatal(err)
	}
	want, err := whole(in)
	if err != nil {
		t.Fatal(err)
	}
	if err := sameReport(&b.report, want); err != nil {
		t.Fatal(err)
	}
	b.taken(rm.NodeNormal)
	decoded = len(b.NodeStatus.ContainersStatuses)
	p.put(b)
	return decoded
}

func TestRepeatedNodeReportIsNotDecoded(t *testing.T) {
	p := newHeartbeats()
	ones := runningOnes(30)
	tell := func(what string, want int) {
		t.Helper()
		if n := take(t, p, heartbeatOf(oneNode, 1, ones...)); n != want {
			t.Errorf("%s: %d statuses were decoded, want %d", what, n, want)
		}
	}
	tell("first reported", 30)
	tell("reported again", 0)
	ones[7] = statusOf(numbered(8), creel.ContainerRunning, "slow")
	tell("one changed", 1)
	tell("and is so still", 0)
	ones = slices.Delete(ones, 10, 10+ahead-1)
	tell("some are gone", 0)
	ones = slices.Insert(ones, 3, statusOf(numbered(99), creel.ContainerRunning, ""))
	tell("one is new", 1)
	ones[0] = statusOf(numbered(1), creel.ContainerComplete, "done")
	tell("one has ended", 1)
	tell("an end is decoded each time", 1)
	ones = slices.Delete(ones, 1, 3+ahead)
	tell("more are gone at once than are looked for", len(ones))
	tell("which is known then", 1)
	other := oneNode
	other.Port++
	if n := take(t, p, heartbeatOf(other, 1, ones...)); n != len(ones) {
		t.Errorf("another node's words are known: %d decoded", n)
	}
}

func TestNodeReportCacheIsBounded(t *testing.T) {
	p := newHeartbeats()
	ones := runningOnes(maxRemembered + 500)
	take(t, p, heartbeatOf(oneNode, 1, ones...))
	if n := take(t, p, heartbeatOf(oneNode, 2, ones...)); n != 500 {
		t.Errorf("%d were decoded", n)
	}
	if list := p.nodes[oneNode]; len(list) != maxRemembered || cap(list) > maxRemembered+maxRemembered/4 {
		t.Errorf("%d are remembered in room for %d", len(list), cap(list))
	}
	if size := reflect.TypeFor[runningStatus]().Size(); size > 40 {
		t.Errorf("%d bytes for each", size)
	}
}

func TestRejectedNodeIsNotCached(t *testing.T) {
	for _, action := range []rm.NodeAction{rm.NodeResync, rm.NodeStop} {
		p := newHeartbeats()
		take(t, p, heartbeatOf(oneNode, 1, runningOnes(3)...))
		b := p.get()
		if err := b.UnmarshalVT(encode(heartbeatOf(oneNode, 2, runningOnes(5)...))); err != nil {
			t.Fatal(err)
		}
		b.taken(action)
		if len(p.nodes) != 0 {
			t.Errorf("%v: %v", action, p.nodes)
		}
	}
}

// pair is two machines of one kind: one behind a handler that remembers, one
// behind a handler that does not, the reference.
type pair struct {
	t        *rapid.T
	m        [2]*rm.Machine
	p        *heartbeats
	now      time.Time
	attempts []creel.AttemptID
	allocate map[creel.AttemptID]int32
	response map[creel.NodeID]int32
	// on holds the nodes' containers as the nodes report them; the other field holds all there ever were.
	on  map[creel.NodeID][]*pb.ContainerStatusProto
	ids []creel.ContainerID
}

func (w *pair) same(what string, f func(m *rm.Machine) any) any {
	w.t.Helper()
	var out [2]any
	for i, m := range w.m {
		out[i] = f(m)
		for actions := m.Actions(nil); len(actions) > 0; actions = m.Actions(nil) {
			for _, a := range actions {
				switch a := a.(type) {
				case rm.LaunchAM:
					if !a.Unmanaged {
						m.AMLaunched(w.now, a.Attempt)
					}
				case rm.SaveApp:
					if !a.Deleted {
						m.Saved(w.now, a.Seq)
					}
				case rm.SaveAttempt:
					m.Saved(w.now, a.Seq)
				}
			}
		}
	}
	if a, b := fmt.Sprintf("%+v", out[0]), fmt.Sprintf("%+v", out[1]); a != b {
		w.t.Fatalf("%s is answered\n%s, behind a handler that remembers nothing\n%s", what, a, b)
	}
	return out[0]
}

func (w *pair) registerNode(id creel.NodeID) {
	r := &pb.RegisterNodeManagerRequestProto{
		NodeId:   pb.FromNodeID(id),
		HttpPort: new(int32(8042)),
		Resource: pb.FromResource(creel.NewResource(32<<10, 32)),
	}
	for _, c := range w.on[id] {
		r.ContainerStatuses = append(
			r.ContainerStatuses,
			&pb.NMContainerStatusProto{ContainerId: c.ContainerId, ContainerState: c.State, Resource: c.Capability},
		)
	}
	event := codec.RegisterNode(r)
	event.Rack = "/default-rack"
	w.response[id] = 0
	w.same("a registration", func(m *rm.Machine) any {
		answer, err := m.RegisterNode(w.now, &event)
		return fmt.Sprintf("%+v %v", answer, err)
	})
}

func (w *pair) heartbeat(id creel.NodeID, response int32, statuses []*pb.ContainerStatusProto) *rm.NodeAnswer {
	w.t.Helper()
	in := encode(heartbeatOf(id, response, statuses...))
	b := w.p.get()
	if err := b.UnmarshalVT(in); err != nil {
		w.t.Fatal(err)
	}
	report, err := whole(in)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := sameReport(&b.report, report); err != nil {
		w.t.Fatal(err)
	}
	clear(in) // a connection reads the next frame into it
	reports := []*rm.NodeReport{&b.report, report}
	var answer *rm.NodeAnswer
	w.same("a heartbeat", func(m *rm.Machine) any {
		i := slices.Index(w.m[:], m)
		out := *m.NodeHeartbeat(w.now, reports[i])
		if i == 0 {
			b.taken(out.Action)
			answer = &out
		}
		return out
	})
	w.p.put(b)
	return answer
}

// TestHeartbeatsDecodeTheSameWithAndWithoutMemory: for any reports in any order, the machine's input, its responses
// and its state are the same.
func TestHeartbeatsDecodeTheSameWithAndWithoutMemory(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		w := &pair{t: t, p: newHeartbeats(), now: time.Unix(1_700_000_000, 0), allocate: map[creel.AttemptID]int32{},
			response: map[creel.NodeID]int32{}, on: map[creel.NodeID][]*pb.ContainerStatusProto{}}
		for i := range w.m {
			cfg := rm.Defaults()
			cfg.Volatile, cfg.ClusterTimestamp = true, 1
			m, err := rm.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			w.m[i] = m
		}
		nodes := []creel.NodeID{{Host: "n1", Port: 1}, {Host: "n1", Port: 2}, {Host: "n2", Port: 1}}
		for _, id := range nodes {
			w.registerNode(id)
		}
		node := func() creel.NodeID { return rapid.SampledFrom(nodes).Draw(t, "node") }
		steps := map[string]func(*rapid.T){
			"submit": func(*rapid.T) {
				if len(w.attempts) == 3 {
					return
				}
				id := creel.ApplicationID{ClusterTimestamp: 1, ID: int32(len(w.attempts) + 1)}
				attempt := creel.AttemptID{Application: id, Attempt: 1}
				w.attempts = append(w.attempts, attempt)
				w.same("a submission", func(m *rm.Machine) any {
					return m.Submit(w.now, &rm.Submission{ID: id, User: "bob", Queue: "default", Unmanaged: true})
				})
				w.same("an AM", func(m *rm.Machine) any {
					_, err := m.RegisterAM(w.now, &rm.RegisterAM{Attempt: attempt, Host: "am"})
					return err
				})
			},
			"allocate": func(t *rapid.T) {
				if len(w.attempts) == 0 {
					return
				}
				attempt := rapid.SampledFrom(w.attempts).Draw(t, "attempt")
				r := &rm.AllocateRequest{
					ResponseID: w.allocate[attempt],
					Asks: []rm.Ask{
						{
							Priority:     1,
							ResourceName: "*",
							Resource:     creel.NewResource(1024, 1),
							Count:        rapid.Int32Range(0, 12).Draw(t, "count"),
						},
					},
				}
				for range rapid.IntRange(0, 2).Draw(t, "releases") {
					if len(w.ids) > 0 {
						r.Release = append(r.Release, rapid.SampledFrom(w.ids).Draw(t, "released"))
					}
				}
				w.same("allocate", func(m *rm.Machine) any {
					out, err := m.Allocate(w.now, attempt, r)
					if err != nil {
						return err.Error()
					}
					if m == w.m[0] {
						w.allocate[attempt] = out.ResponseID
						for _, g := range out.Granted {
							w.ids = append(w.ids, g.ID)
							w.on[g.Node] = append(w.on[g.Node], statusOf(g.ID, creel.ContainerRunning, ""))
						}
					}
					told := fmt.Sprint(len(out.Granted))
					for _, c := range out.Completed {
						message, _ := c.Message.(*pb.ContainerStatusProto)
						told += fmt.Sprintln(
							c.ID,
							c.ExitStatus,
							c.Diagnostics,
							c.Resource,
							message.GetDiagnostics(),
							message.GetExitStatus(),
						)
					}
					return told
				})
			},
			"kill": func(t *rapid.T) {
				if len(w.attempts) == 0 {
					return
				}
				id := rapid.SampledFrom(w.attempts).Draw(t, "killed").Application
				w.same("a kill", func(m *rm.Machine) any {
					done, err := m.Kill(w.now, id, "enough")
					return fmt.Sprint(done, err)
				})
			},
			"register": func(*rapid.T) { w.registerNode(node()) },
			"leave": func(*rapid.T) {
				id := node()
				w.same("a leave", func(m *rm.Machine) any { m.UnregisterNode(w.now, id); return nil })
			},
			"out of step": func(t *rapid.T) {
				id := node()
				w.heartbeat(id, w.response[id]+rapid.Int32Range(-2, 2).Draw(t, "off"), w.on[id])
			},
			"lie": func(t *rapid.T) { // of any container, in any state, any number of times
				id := node()
				var list []*pb.ContainerStatusProto
				for range rapid.IntRange(0, 6).Draw(t, "lies") {
					c := numbered(rapid.IntRange(0, 3).Draw(t, "unknown"))
					if len(w.ids) > 0 && rapid.Bool().Draw(t, "known") {
						c = rapid.SampledFrom(w.ids).Draw(t, "one")
					}
					list = append(
						list,
						statusOf(
							c,
							creel.ContainerState(rapid.IntRange(0, 4).Draw(t, "state")),
							rapid.SampledFrom([]string{"", "x"}).Draw(t, "diagnostics"),
						),
					)
				}
				w.response[id] = w.heartbeat(id, w.response[id], list).ResponseID
			},
			"change": func(t *rapid.T) {
				list := w.on[node()]
				if len(list) == 0 {
					return
				}
				i := rapid.IntRange(0, len(list)-1).Draw(t, "which")
				state := rapid.SampledFrom([]creel.ContainerState{creel.ContainerNew, creel.ContainerRunning, creel.ContainerComplete}).
					Draw(t, "state")
				list[i] = statusOf(
					pb.ToContainerID(list[i].ContainerId),
					state,
					rapid.SampledFrom([]string{"", "well"}).Draw(t, "diagnostics"),
				)
			},
			"shuffle": func(t *rapid.T) {
				id := node()
				w.on[id] = rapid.Permutation(w.on[id]).Draw(t, "order")
			},
			"later": func(t *rapid.T) {
				w.now = w.now.Add(time.Duration(rapid.IntRange(1, 400).Draw(t, "seconds")) * time.Second)
				w.same("time", func(m *rm.Machine) any { m.Tick(w.now); return nil })
			},
			"": func(t *rapid.T) {
				var states [2][]byte
				for i, m := range w.m {
					states[i] = m.AppendState(nil)
				}
				if !bytes.Equal(states[0], states[1]) {
					t.Fatalf("the machines are not the same:\n%s\n%s", states[0], states[1])
				}
			},
		}
		heartbeat := func(*rapid.T) { // as a node does it
			id := node()
			answer := w.heartbeat(id, w.response[id], w.on[id])
			w.response[id] = answer.ResponseID
			for _, gone := range answer.Cleanup {
				for i, c := range w.on[id] {
					if pb.ToContainerID(c.ContainerId) == gone {
						w.on[id][i] = statusOf(gone, creel.ContainerComplete, "killed")
					}
				}
			}
			w.on[id] = slices.DeleteFunc(w.on[id], func(c *pb.ContainerStatusProto) bool {
				return slices.Contains(answer.Forget, pb.ToContainerID(c.ContainerId))
			})
			if answer.Action != rm.NodeNormal {
				w.registerNode(id)
			}
		}
		for i := range 4 { // oftener than the rest
			steps[fmt.Sprint("heartbeat", i)] = heartbeat
		}
		t.Repeat(steps)
	})
}

// FuzzHeartbeat: of any two messages, the second decodes to the same report as without the first, and is rejected in
// the same cases.
func FuzzHeartbeat(t *testing.F) {
	f := propertytest.Fuzz(t)
	good := encode(heartbeatOf(oneNode, 1, runningOnes(3)...))
	changed := encode(
		heartbeatOf(
			oneNode,
			2,
			append(
				runningOnes(2),
				statusOf(numbered(3), creel.ContainerComplete, "done"),
				statusOf(numbered(4), creel.ContainerNew, ""),
			)...),
	)
	f.Add(good, good)
	f.Add(good, changed)
	f.Add(changed, good)
	f.Add(good, good[:len(good)-3])
	f.Add(good, bytes.ReplaceAll(good, // 0.5 vcores in use are a NaN
		binary.LittleEndian.AppendUint32(nil, math.Float32bits(0.5)),
		binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(math.NaN())))))
	f.Add(good, append(slices.Clone(good), good...)) // two statuses are one, merged
	f.Add(good, protowire.AppendVarint(protowire.AppendTag(slices.Clone(good), 1, protowire.VarintType), 7))
	f.Add(
		good,
		append(encode(&pb.NodeHeartbeatRequestProto{TokenSequenceNo: new(int64(4))}), good...),
	) // fields in another order
	f.Add(
		good,
		protowire.AppendTag(
			protowire.AppendTag(slices.Clone(good), 77, protowire.StartGroupType),
			77,
			protowire.EndGroupType,
		),
	)
	// Statuses before the node's name.
	swapped := protowire.AppendBytes(
		protowire.AppendTag(nil, containersStatuses, protowire.BytesType),
		[]byte{0x10, 0x02},
	)
	swapped = protowire.AppendBytes(
		protowire.AppendTag(swapped, nodeID, protowire.BytesType),
		[]byte{0x0a, 0x02, 'n', '1'},
	)
	f.Add(good, protowire.AppendBytes(protowire.AppendTag(nil, nodeStatus, protowire.BytesType), swapped))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		p := newHeartbeats()
		for _, in := range [][]byte{first, second, second, first} {
			b := p.get()
			err := b.UnmarshalVT(in)
			want, refused := whole(in)
			if (err == nil) != (refused == nil) || err != nil && err.Error() != refused.Error() {
				t.Fatalf("decoded with %v, with nothing remembered with %v", err, refused)
			}
			if err != nil {
				continue
			}
			if err := sameReport(&b.report, want); err != nil {
				t.Fatal(err)
			}
			var r pb.NodeHeartbeatRequestProto
			if err := r.UnmarshalVT(in); err != nil {
				t.Fatal(err)
			}
			if !proto.Equal(b.LastKnownNmTokenMasterKey, r.LastKnownNmTokenMasterKey) ||
				!proto.Equal(b.LastKnownContainerTokenMasterKey, r.LastKnownContainerTokenMasterKey) {
				t.Fatal("other keys")
			}
			b.taken(rm.NodeNormal)
			p.put(b)
		}
	})
}

// BenchmarkHeartbeatDecode decodes heartbeats of a node that runs so many containers.
func BenchmarkHeartbeatDecode(b *testing.B) {
	for _, n := range []int{0, 30} {
		in := encode(heartbeatOf(oneNode, 1, runningOnes(n)...))
		b.Run(fmt.Sprintf("containers=%d/remembered", n), func(b *testing.B) {
			p := newHeartbeats()
			b.ReportAllocs()
			for b.Loop() {
				r := p.get()
				if err := r.UnmarshalVT(in); err != nil {
					b.Fatal(err)
				}
				r.taken(rm.NodeNormal)
				p.put(r)
			}
		})
		b.Run(fmt.Sprintf("containers=%d/new", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := whole(in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

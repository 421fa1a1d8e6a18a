// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// unitTypes have units; bandwidth and gpu have bounds.
var unitTypes = hadoop.Conf{
	"yarn.resource-types":                                "bandwidth,disk,yarn.io/gpu",
	"yarn.resource-types.bandwidth.units":                "M",
	"yarn.resource-types.bandwidth.minimum-allocation":   "2",
	"yarn.resource-types.bandwidth.maximum-allocation":   "4000",
	"yarn.resource-types.disk.units":                     "Gi",
	"yarn.resource-types.yarn.io/gpu.maximum-allocation": "4",
}

// An inUnit is an amount of a resource type: "5 G", "5" without a unit, or `5 ""` with an empty one.
type inUnit struct{ name, text string }

func (u inUnit) String() string { return u.name + "=" + u.text }

func (u inUnit) parts() (value int64, unit *string) {
	text, rest, given := strings.Cut(u.text, " ")
	fmt.Sscan(text, &value)
	if given {
		rest = strings.Trim(rest, `"`)
		unit = &rest
	}
	return value, unit
}

// amountsInUnits are asked for, registered and set.
var amountsInUnits = []inUnit{
	{"bandwidth", "5"}, {"bandwidth", "3 G"}, {"bandwidth", "7000 k"}, {"bandwidth", "1500 k"}, {"bandwidth", "2 Mi"},
	{"bandwidth", `3000000 ""`}, {"bandwidth", "3000000"}, {"bandwidth", "5 G"}, {"bandwidth", "5 X"}, {"bandwidth", "1 T"},
	{"bandwidth", "1"}, {"bandwidth", "0"}, {"disk", "3"}, {"disk", "1 Ti"}, {"disk", "3000 Mi"}, {"disk", "2 G"}, {"disk", "1 g"},
	{"disk", `5 ""`}, {"yarn.io/gpu", "2"}, {"yarn.io/gpu", `2 ""`}, {"yarn.io/gpu", "2000 m"}, {"yarn.io/gpu", "1500 m"},
	{"yarn.io/gpu", "1 k"}, {"yarn.io/gpu", "5"}, {"tape", "5"}, {"memory-mb", "1 Gi"}, {"memory-mb", "2048"},
	{"memory-mb", "1 G"}, {"vcores", "2000 m"}, {"vcores", "2"},
}

// sized returns a resource whose map has one amount as it is written.
func sized(u inUnit, mb, cores int64) *pb.ResourceProto {
	r := pb.FromResource(creel.NewResource(mb, cores))
	value, unit := u.parts()
	e := &pb.ResourceInformationProto{Key: &u.name, Value: &value, Units: unit, Type: pb.ResourceTypesProto_COUNTABLE.Enum()}
	for i, old := range r.ResourceValueMap {
		if old.GetKey() == u.name {
			r.ResourceValueMap[i] = e
			return r
		}
	}
	r.ResourceValueMap = append(r.ResourceValueMap, e)
	return r
}

// said is an error without its details.
func said(err error) string {
	if err == nil {
		return "accepted"
	}
	return "rejected"
}

// restAmounts are the amounts of a resource in a document.
func restAmounts(f facts, at string) string {
	var b strings.Builder
	for _, name := range []string{"memory-mb", "vcores", "bandwidth", "disk", "yarn.io/gpu", "tape"} {
		of := at + ".resourceInformations.resourceInformation[" + name + "]"
		if v, ok := f[of+".value"]; ok {
			fmt.Fprintf(&b, "%s %s %s of %s to %s, ", name, v, f[of+".units"], f[of+".minimumAllocation"], f[of+".maximumAllocation"])
		}
	}
	return b.String()
}

func (s *configuredSystem) document(path string) facts {
	return s.answer(s.t, request{name: strings.ReplaceAll(path, "/", "-"), method: "GET", path: "/ws/v1/cluster/" + path},
		"application/json")
}

// unitsOfNodes registers nodes with amounts in units, and sets such amounts.
func (s *configuredSystem) unitsOfNodes() map[string]string {
	out, ctx := map[string]string{}, s.t.Context()
	admin := yarnrpc.NewResourceManagerAdministrationProtocolClient(s.client, s.Admin, hrpc.Login{User: hadoop.OSUser(s.t)})
	shown := func(id creel.NodeID) string {
		s.heartbeats()
		f := s.document("nodes/" + id.String())
		return f["STATUS"] + " " + restAmounts(f, ".node.totalResource")
	}
	for i, u := range amountsInUnits {
		n := &node{id: creel.NodeID{Host: "127.0.0.2", Port: int32(1 + i)}}
		r, err := s.tracker("127.0.0.2").RegisterNodeManager(ctx, &pb.RegisterNodeManagerRequestProto{
			NodeId: pb.FromNodeID(n.id), HttpPort: proto.Int32(2), NmVersion: proto.String("3.4.2"),
			Resource: sized(u, 8192, 8), NodeStatus: s.status(n), PhysicalResource: sized(u, 16384, 16),
		})
		out["register "+u.String()] = said(err)
		if err == nil && r.GetNodeAction() == pb.NodeActionProto_NORMAL {
			s.nodes = append(s.nodes, n)
			out["register "+u.String()] = shown(n.id)
		}
	}
	of := &node{id: creel.NodeID{Host: "127.0.0.3", Port: 1}}
	must(s.tracker("127.0.0.3").RegisterNodeManager(ctx, &pb.RegisterNodeManagerRequestProto{
		NodeId: pb.FromNodeID(of.id), HttpPort: proto.Int32(2), NmVersion: proto.String("3.4.2"),
		Resource: sized(inUnit{"bandwidth", "9"}, 8192, 8), NodeStatus: s.status(of),
		PhysicalResource: pb.FromResource(creel.NewResource(16384, 16)),
	}))(s.t)
	s.nodes = append(s.nodes, of)
	for _, u := range amountsInUnits {
		reset := func() {
			must(admin.UpdateNodeResource(ctx, &pb.UpdateNodeResourceRequestProto{NodeResourceMap: []*pb.NodeResourceMapProto{{
				NodeId:         pb.FromNodeID(of.id),
				ResourceOption: &pb.ResourceOptionProto{Resource: pb.FromResource(creel.NewResource(4096, 4)), OverCommitTimeout: proto.Int32(0)},
			}}}))(s.t)
			s.until("the node is as before", func() bool {
				f := s.document("nodes/" + of.id.String())
				return f[".node.totalResource.memory"] == "4096" && restAmounts(f, ".node.totalResource") != ""
			})
		}
		reset()
		_, err := admin.UpdateNodeResource(ctx, &pb.UpdateNodeResourceRequestProto{NodeResourceMap: []*pb.NodeResourceMapProto{{
			NodeId:         pb.FromNodeID(of.id),
			ResourceOption: &pb.ResourceOptionProto{Resource: sized(u, 8192, 8), OverCommitTimeout: proto.Int32(0)},
		}}})
		out["update "+u.String()] = said(err) + " " + s.settled(func() string { return shown(of.id) }, err == nil)
	}
	for _, u := range amountsInUnits {
		value, unit := u.parts()
		for name, text := range map[string]string{
			"": fmt.Sprint(value), " as text": fmt.Sprintf("%q", fmt.Sprint(value)), " and a half": fmt.Sprint(value) + ".5",
		} {
			if name != "" && u.text != "5" && u.text != "3 G" {
				continue
			}
			info := fmt.Sprintf(`{"name":%q,"value":%s}`, u.name, text)
			if unit != nil {
				info = fmt.Sprintf(`{"name":%q,"value":%s,"units":%q}`, u.name, text, *unit)
			}
			body := json.RawMessage(`{"resource":{"memory":8192,"vCores":8,"resourceInformations":{"resourceInformation":[` + info +
				`]}},"overCommitTimeout":0}`)
			code, _ := s.call("POST", "nodes/"+of.id.String()+"/resource", body)
			// Hadoop ignores the amounts of other types in this document.
			out["POST "+u.String()+name] = fmt.Sprint(code/100) + " " + s.settled(func() string {
				ofNode, _, _ := strings.Cut(shown(of.id), "bandwidth")
				return ofNode
			}, code == 200)
		}
	}
	for _, half := range []string{
		`{"memory":8192.5,"vCores":8}`, `{"memory":8192,"vCores":8.5}`, `{"memory":"8192","vCores":"8"}`, `{"memory":8192}`,
		`{"memory":8192.0,"vCores":8}`, `{"memory":-1,"vCores":8}`, `{"vCores":8}`,
	} {
		code, _ := s.call("POST", "nodes/"+of.id.String()+"/resource", json.RawMessage(`{"resource":`+half+`,"overCommitTimeout":0}`))
		out["POST "+half] = fmt.Sprint(code/100) + " " + s.settled(func() string { return shown(of.id) }, code == 200)
	}
	return out
}

// settled returns a text when it has been the same for a while; Hadoop changes a node by events.
func (s *configuredSystem) settled(read func() string, wait bool) string {
	last := read()
	for same := 0; wait && same < 4; {
		time.Sleep(10 * time.Millisecond)
		if next := read(); next == last {
			same++
		} else {
			last, same = next, 0
		}
	}
	return last
}

// unitsOfAsks submits and asks with amounts in units, on a cluster that has none of them.
func (s *configuredSystem) unitsOfAsks() map[string]string {
	out, ctx := map[string]string{}, s.t.Context()
	id := s.submit("alice", "asks", nil)
	am := s.amClient("alice", id, "amhost", "http://127.0.0.1:9/ui")
	response := int32(0)
	for i, u := range amountsInUnits {
		a := ask(int32(i+1), "*", 512, 1, true)
		a.Capability = sized(u, 512, 1)
		r, err := am.Allocate(ctx, &pb.AllocateRequestProto{ResponseId: &response, Ask: []*pb.ResourceRequestProto{a}})
		if out["allocate "+u.String()] = said(err); err == nil {
			response = r.GetResponseId()
		}
	}
	var doc struct {
		App struct {
			ResourceRequests []struct {
				Priority   json.RawMessage // an object with the number
				Capability json.RawMessage
			}
		}
	}
	if _, text := s.call("GET", "apps/"+id.String(), nil); json.Unmarshal([]byte(text), &doc) != nil {
		s.t.Fatalf("no report: %s", text)
	}
	for _, u := range amountsInUnits {
		out["asks for "+u.String()] = ""
	}
	for _, r := range doc.App.ResourceRequests {
		var priority struct{ Priority int }
		if json.Unmarshal(r.Priority, &priority.Priority) != nil {
			must(0, json.Unmarshal(r.Priority, &priority))(s.t)
		}
		u := amountsInUnits[priority.Priority-1]
		out["asks for "+u.String()] = restAmounts(must(readJSON([]byte(`{"of":`+string(r.Capability)+"}")))(s.t), ".of")
	}
	for _, u := range amountsInUnits {
		value, unit := u.parts()
		info := fmt.Sprintf(`{"name":%q,"value":%d}`, u.name, value)
		if unit != nil {
			info = fmt.Sprintf(`{"name":%q,"value":%d,"units":%q}`, u.name, value, *unit)
		}
		q := shape{name: "units", method: "POST", path: "apps?user.name=alice", head: jsonHead, body: submissionOf(
			`"resource":{"memory":512,"vCores":1,"resourceInformations":{"resourceInformation":[` + info + `]}},` + launch)}
		f, id := s.send(q, q.body)
		key := "submit by REST " + u.String()
		if out[key] = f["STATUS"]; f["STATUS"] == "2xx" {
			out[key] = s.settled(func() string { return s.asked(id) }, true)
		}

		key = "submit by RPC " + u.String()
		app := must(s.as("alice").GetNewApplication(ctx, &pb.GetNewApplicationRequestProto{}))(s.t)
		_, err := s.as("alice").SubmitApplication(ctx, &pb.SubmitApplicationRequestProto{
			ApplicationSubmissionContext: &pb.ApplicationSubmissionContextProto{
				ApplicationId: app.GetApplicationId(), ApplicationName: proto.String("a"), Queue: proto.String("default"),
				AmContainerSpec: &pb.ContainerLaunchContextProto{}, Resource: sized(u, 512, 1),
			},
		})
		if out[key] = said(err); err == nil {
			id := pb.ToApplicationID(app.GetApplicationId()).String()
			out[key] = s.settled(func() string { return s.asked(id) }, true)
		}
		if u == amountsInUnits[0] {
			for _, e := range app.GetMaximumCapability().GetResourceValueMap() {
				out["largest "+e.GetKey()] = fmt.Sprint(e.GetValue(), " ", e.GetUnits())
			}
		}
	}
	types := must(s.as("alice").GetResourceTypeInfo(ctx, &pb.GetAllResourceTypeInfoRequestProto{}))(s.t)
	for _, t := range types.GetResourceTypeInfo() {
		out["type "+t.GetName()] = t.GetUnits() + " " + t.GetType().String()
	}
	return out
}

// asked is the size that an application's AM waits for, or its state.
func (s *configuredSystem) asked(id string) string {
	var f facts
	s.until("the application is no longer new", func() bool {
		f = s.document("apps/" + id)
		return !slices.Contains([]string{`"NEW"`, `"NEW_SAVING"`, `"SUBMITTED"`}, f[".app.state"])
	})
	state := f[".app.state"]
	for path := range f {
		if at, ok := strings.CutSuffix(path, ".capability.memory"); ok {
			return state + " " + restAmounts(f, at+".capability")
		}
	}
	return cmp.Or(state, f["STATUS"])
}

// Amounts in other units than their type's are read and shown as by Hadoop: in submissions, asks, registrations and
// changes of nodes.
func TestUnitsOfResourceTypesMatchHadoop(t *testing.T) {
	d := startDuo(t, &configuration{}, "", nil, unitTypes)
	t.Run("asks", func(t *testing.T) { d.compareCalls(t, (*configuredSystem).unitsOfAsks) })
	t.Run("nodes", func(t *testing.T) { d.compareCalls(t, (*configuredSystem).unitsOfNodes) })
	q := request{name: "overview", method: "GET", path: "/ws/v1/cluster/scheduler-overview"}
	theirs, ours := d.theirs.answer(t, q, "application/json"), d.ours.answer(t, q, "application/json")
	for _, f := range []facts{theirs, ours} {
		delete(f, ".schedulerBusy") // a reading of the moment
		// Ten seconds after its start Hadoop's becomes the amount of the largest node.
		delete(f, ".maximumAllocation.resourceInformations.resourceInformation[disk].value")
	}
	compare(t, q.name, "", nil, "Hadoop", theirs, ours)
}

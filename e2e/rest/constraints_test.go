// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/internal/hrpc"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// Four nodes of 8 GB, two on each rack; each has its host's letter for an attribute, and
// those with a disk another.
var constrainedNodes = []struct{ host, attributes string }{
	{"127.0.0.2", "host=a disk=ssd"},
	{"127.0.0.3", "host=b disk=hdd"},
	{"127.0.0.4", "host=c disk=ssd"},
	{"127.0.0.5", "host=d"},
}

// Two more, which come when labels do.
var labelledNodes = []struct{ host, attributes string }{
	{"127.0.0.6", "host=e"},
	{"127.0.0.7", "host=f"},
}

const racksByScript = `#!/bin/sh
for host in "$@"; do case $host in 127.0.0.[23]) echo /r1;; *) echo /r2;; esac; done
`

type constraint = pb.PlacementConstraintProto

func clause(scope string, least, most int32, targets ...*pb.PlacementConstraintTargetProto) *constraint {
	return &constraint{SimpleConstraint: &pb.SimplePlacementConstraintProto{
		Scope: &scope, MinCardinality: &least, MaxCardinality: &most, TargetExpressions: targets,
		AttributeOpCode: pb.NodeAttributeOpCodeProto_NO_OP.Enum(),
	}}
}

// tags are a target: "tag,tag" of the application itself, or "namespace:tag".
func tags(text string) *pb.PlacementConstraintTargetProto {
	namespace, list, ok := strings.Cut(text, ":")
	if !ok {
		namespace, list = "self", text
	}
	return &pb.PlacementConstraintTargetProto{
		TargetType: pb.PlacementConstraintTargetProto_ALLOCATION_TAG.Enum(), TargetKey: &namespace,
		TargetValues: strings.Split(list, ","),
	}
}

func in(scope, what string) *constraint    { return clause(scope, 1, math.MaxInt32, tags(what)) }
func notIn(scope, what string) *constraint { return clause(scope, 0, 0, tags(what)) }
func cardinality(scope string, least, most int32, what string) *constraint {
	return clause(scope, least, most, tags(what))
}

// attribute is a constraint on "name=value" or "name!=value" of a node.
func attribute(text string) *constraint {
	op := pb.NodeAttributeOpCodeProto_EQ
	name, value, ok := strings.Cut(text, "!=")
	if ok {
		op = pb.NodeAttributeOpCodeProto_NE
	} else {
		name, value, _ = strings.Cut(text, "=")
	}
	c := clause("node", 1, math.MaxInt32, &pb.PlacementConstraintTargetProto{
		TargetType: pb.PlacementConstraintTargetProto_NODE_ATTRIBUTE.Enum(), TargetKey: &name,
		TargetValues: []string{value},
	})
	c.SimpleConstraint.AttributeOpCode = op.Enum()
	return c
}

func composed(kind pb.CompositePlacementConstraintProto_CompositeType, list ...*constraint) *constraint {
	c := &pb.CompositePlacementConstraintProto{CompositeType: &kind}
	if kind != pb.CompositePlacementConstraintProto_DELAYED_OR {
		c.ChildConstraints = list
		return &constraint{CompositeConstraint: c}
	}
	for _, k := range list {
		c.TimedChildConstraints = append(c.TimedChildConstraints, &pb.TimedPlacementConstraintProto{
			PlacementConstraint: k, SchedulingDelay: proto.Int64(1),
			DelayUnit: pb.TimedPlacementConstraintProto_OPPORTUNITIES.Enum(),
		})
	}
	return &constraint{CompositeConstraint: c}
}

func and(list ...*constraint) *constraint {
	return composed(pb.CompositePlacementConstraintProto_AND, list...)
}

func or(list ...*constraint) *constraint {
	return composed(pb.CompositePlacementConstraintProto_OR, list...)
}

func delayedOr(list ...*constraint) *constraint {
	return composed(pb.CompositePlacementConstraintProto_DELAYED_OR, list...)
}

// A placementAsk is a scheduling request of one of a case's applications: one, or two, which has
// the application tag blue. {one} and {two} in a namespace stand for their ids.
type placementAsk struct {
	app, tags string
	count     int32
	of        *constraint
	change    func(*pb.SchedulingRequestProto)
	differs   map[string]string // by handler: why ours does otherwise
}

// A constraintCase is wishes, one after the other, each when those before it are where
// they are or wait or are rejected.
type constraintCase struct {
	name       string
	registered map[string]*constraint // by tag, of the application one
	together   bool                   // in one call of one application
	wishes     []placementAsk
}

// pinned is a container that must be on the node with that letter.
func pinned(app, tags, host string) placementAsk {
	return placementAsk{app: app, tags: tags, count: 1, of: attribute("host=" + host)}
}

func with(w placementAsk, change func(*pb.SchedulingRequestProto)) placementAsk {
	w.change = change
	return w
}

// but notes why ours does otherwise with a handler.
func (w placementAsk) but(handler, why string) placementAsk {
	w.differs = maps.Clone(w.differs)
	if w.differs == nil {
		w.differs = map[string]string{}
	}
	w.differs[handler] = why
	return w
}

var constraintCases = []constraintCase{
	{name: "attribute", wishes: []placementAsk{
		pinned("one", "x", "c"),
		{app: "one", tags: "y", count: 2, of: attribute("host=b")},
		{app: "one", tags: "z", count: 1, of: attribute("disk=hdd")},
		{app: "one", tags: "n", count: 1, of: and(attribute("disk!=ssd"), attribute("host!=d"))},
		{app: "one", tags: "u", count: 1, of: and(attribute("disk!=ssd"), attribute("host!=b"))}, // it has no disk
		{app: "one", tags: "v", count: 1, of: attribute("disk=tape")},
	}},
	{name: "affinity", wishes: []placementAsk{
		pinned("one", "db", "c"),
		{app: "one", tags: "web", count: 2, of: in("node", "db")},
		{app: "one", tags: "far", count: 1, of: and(in("rack", "db"), notIn("node", "db"))},
		{app: "one", tags: "none", count: 1, of: in("node", "nobody")},
	}},
	{name: "anti-affinity", wishes: []placementAsk{
		{app: "one", tags: "hb", count: 5, of: notIn("node", "hb")}, // a fifth node is not there
		pinned("one", "x", "a"), pinned("one", "x", "b"), pinned("one", "x", "c"),
		{app: "one", tags: "y", count: 2, of: notIn("node", "x")},
		{app: "one", tags: "r", count: 1, of: notIn("rack", "x")},
	}},
	{name: "anti-affinity by rack", wishes: []placementAsk{
		pinned("one", "x", "a"),
		{app: "one", tags: "y", count: 1, of: and(notIn("rack", "x"), attribute("host!=c"))},
		{app: "one", tags: "s", count: 3, of: and(notIn("rack", "s"), attribute("disk=ssd"))},
	}},
	{name: "cardinality", wishes: []placementAsk{
		{app: "one", tags: "c", count: 9, of: cardinality("node", 0, 1, "c")}, // two on each
		pinned("one", "m", "d"),
		{app: "one", tags: "n", count: 2, of: cardinality("node", 1, 2, "m")},
		{app: "one", tags: "o", count: 1, of: cardinality("node", 2, 3, "m")},
	}},
	{name: "several tags", wishes: []placementAsk{
		pinned("one", "p", "a"), pinned("one", "q", "b"), pinned("one", "p,q", "c"),
		{app: "one", tags: "both", count: 1, of: clause("node", 1, math.MaxInt32, tags("p"), tags("q"))},
		{app: "one", tags: "of", count: 1, of: and(in("node", "p,q"), attribute("disk!=ssd"))},
		{app: "one", tags: "not", count: 1, of: and(notIn("node", "p"), notIn("node", "q"))},
		{app: "one", tags: "nor", count: 1, of: and(notIn("node", "p,q"), attribute("host=a"))},
	}},
	{name: "and, or", wishes: []placementAsk{
		pinned("one", "x", "b"), pinned("one", "y", "c"),
		{app: "one", tags: "o", count: 1, of: or(in("node", "nobody"), in("node", "x"))},
		{app: "one", tags: "n", count: 1, of: and(or(in("node", "x"), in("node", "y")), notIn("node", "o"))},
		{app: "one", tags: "none", count: 1, of: and(in("node", "x"), in("node", "y"))},
	}},
	{name: "delayed or", wishes: []placementAsk{
		pinned("one", "x", "b"),
		{app: "one", tags: "d", count: 1, of: delayedOr(in("node", "x"), in("rack", "x"))},
	}},
	{name: "namespaces", wishes: []placementAsk{
		pinned("one", "x", "a"), pinned("two", "x", "c"),
		{app: "one", tags: "self", count: 1, of: in("node", "self:x")},
		{app: "one", tags: "other", count: 1, of: in("node", "not-self:x")},
		{app: "one", tags: "all", count: 2, of: and(notIn("node", "all:x"), notIn("node", "all"))},
		{app: "one", tags: "id", count: 1, of: in("node", "app-id/{two}:x")},
		{app: "two", tags: "id", count: 1, of: in("node", "app-id/{one}:x")},
		{app: "one", tags: "tag", count: 1, of: in("node", "app-tag/blue:x")},
		{app: "one", tags: "red", count: 1, of: in("node", "app-tag/red:x")},
	}},
	{name: "registered", registered: map[string]*constraint{"hb": notIn("node", "hb"), "x": attribute("host=d")}, wishes: []placementAsk{
		{app: "one", tags: "hb", count: 4},
		{app: "one", tags: "x", count: 1},
		{app: "one", tags: "x", count: 1, of: attribute("host=a")},
		{app: "one", tags: "x,hb", count: 1, of: attribute("host=b")},
	}},
	{name: "room", wishes: []placementAsk{
		with(pinned("one", "big", "a"), func(r *pb.SchedulingRequestProto) {
			r.ResourceSizing.Resources = pb.FromResource(creel.NewResource(4096, 1))
			r.ResourceSizing.NumAllocations = proto.Int32(3)
		}),
	}},
	{name: "invalid", wishes: []placementAsk{
		{app: "one", tags: "x", count: 1, of: in("node", "nowhere:x")},
		{app: "one", tags: "x", count: 1, of: in("node", "app-id/x:x")},
		{app: "one", tags: "x", count: 1, of: in("node", "app-id/application_1_0001:x")},
		placementAsk{app: "one", tags: "x", count: 1, of: or(in("node", "nowhere:x"), in("node", "nobody"))}.
			but("scheduler", "the second alternative may hold yet, and ours waits for it"),
		with(pinned("one", "x", "a"), func(r *pb.SchedulingRequestProto) {
			r.ExecutionType = &pb.ExecutionTypeRequestProto{ExecutionType: pb.ExecutionTypeProto_OPPORTUNISTIC.Enum()}
		}).but("scheduler", "the same refusal in Hadoop's names of its parts").
			but("placement-processor", "Hadoop gives a guaranteed container in its place"),
		with(pinned("one", "x", "a"), func(r *pb.SchedulingRequestProto) {
			r.ResourceSizing.Resources = pb.FromResource(creel.NewResource(1<<20, 1))
		}).but("scheduler", "Hadoop gives what is largest in its place").
			but("placement-processor", "Hadoop gives what is largest in its place"),
		pinned("one", "after", "b"),
	}},
	{name: "without a constraint", wishes: []placementAsk{
		placementAsk{app: "one", tags: "x", count: 32}.
			but("placement-processor", "Hadoop rejects what it has not placed in three rounds, of so many per node"),
	}},
	{name: "less than none", wishes: []placementAsk{
		with(pinned("one", "x", "a"), func(r *pb.SchedulingRequestProto) { r.ResourceSizing.NumAllocations = proto.Int32(-1) }).
			but("scheduler", saysNothing).but("placement-processor", saysNothing),
	}},
	{name: "without a tag", wishes: []placementAsk{
		pinned("one", "", "b").but("placement-processor", saysNothing),
	}},
}

// togetherCases hold requests whose order matters, in one call.
var togetherCases = []constraintCase{
	{name: "listed first", together: true, wishes: []placementAsk{
		with(placementAsk{app: "one", tags: "p", count: 1, of: and(notIn("node", "q"), attribute("host=a"))}, later),
		{app: "one", tags: "q", count: 1, of: and(notIn("node", "p"), attribute("host=a"))},
	}},
	{name: "popular", together: true, wishes: []placementAsk{
		{app: "one", tags: "p", count: 1, of: and(notIn("node", "q"), attribute("host=a"))},
		{app: "one", tags: "q", count: 1, of: and(notIn("node", "p"), attribute("host=a"))},
		{app: "one", tags: "q", count: 1, of: and(notIn("node", "p"), attribute("host=a"))},
	}},
	{name: "each other", together: true, wishes: []placementAsk{
		{app: "one", tags: "p", count: 1, of: in("node", "q")},
		{app: "one", tags: "q", count: 1, of: attribute("host=b")},
	}},
}

// later makes a request wait for those of the first priority.
func later(r *pb.SchedulingRequestProto) { r.Priority = pb.FromPriority(2) }

// sharedCases are asked when there are a node with a shared label, host e, and one with an
// exclusive label, host f.
var sharedCases = []constraintCase{
	{name: "borrowed", wishes: []placementAsk{
		placementAsk{app: "one", tags: "hb", count: 6, of: notIn("node", "hb")}.but("placement-processor", borrowsNothing),
		placementAsk{app: "one", tags: "x", count: 1, of: and(in("node", "hb"), attribute("host=e"))}.
			but("placement-processor", borrowsNothing),
		placementAsk{app: "one", tags: "y", count: 1, of: attribute("host=f")}.but("placement-processor", choosesFirst),
		placementAsk{app: "one", tags: "z", count: 1, of: and(notIn("node", "x"), attribute("host=e"))}.
			but("placement-processor", choosesFirst),
	}},
}

const (
	borrowsNothing = "Hadoop's processor chooses nodes of shared labels and cannot book there; ours borrows with both handlers"
	choosesFirst   = "Hadoop's processor chooses nodes of all labels and then cannot book there; ours says that no node is suitable"
)

// saysNothing is the reason of a wish that Hadoop neither grants nor rejects.
const saysNothing = "Hadoop says nothing, ever"

const refusedInGeneral = "Hadoop's class is the general one; ours says which feature is off, and how to switch it on"

// placedApp is one application of a case and its AM.
type placedApp struct {
	id       creel.ApplicationID
	am       yarnrpc.ApplicationMasterProtocolClient
	response int32
}

// constrain sets every node's attributes.
func (s *configuredSystem) constrain() {
	s.t.Helper()
	admin := yarnrpc.NewResourceManagerAdministrationProtocolClient(s.client, s.Admin, hrpc.Login{User: hadoop.OSUser(s.t)})
	req := &pb.NodesToAttributesMappingRequestProto{Operation: pb.AttributeMappingOperationTypeProto_REPLACE.Enum()}
	for _, n := range append(slices.Clone(constrainedNodes), labelledNodes...) {
		of := &pb.NodeToAttributesProto{Node: &n.host}
		for p := range strings.FieldsSeq(n.attributes) {
			name, value, _ := strings.Cut(p, "=")
			of.NodeAttributes = append(of.NodeAttributes, &pb.NodeAttributeProto{
				AttributeKey:  &pb.NodeAttributeKeyProto{AttributePrefix: proto.String("rm.yarn.io"), AttributeName: &name},
				AttributeType: pb.NodeAttributeTypeProto_STRING.Enum(), AttributeValue: &value,
			})
		}
		req.NodeToAttributes = append(req.NodeToAttributes, of)
	}
	must(admin.MapAttributesToNodes(s.t.Context(), req))(s.t)
}

// starts submits an application and registers its AM.
func (s *configuredSystem) starts(name string, registered map[string]*constraint) *placedApp {
	s.t.Helper()
	a := &placedApp{id: s.submit("alice", name, func(c *pb.ApplicationSubmissionContextProto) {
		if name == "two" {
			c.ApplicationTags = []string{"blue"}
		}
	})}
	delete(s.apps, name)
	s.apps["alice "+name] = a.id
	a.am = s.amClient("alice", a.id, "amhost", "http://127.0.0.1:9/ui", func(r *pb.RegisterApplicationMasterRequestProto) {
		for tag, c := range registered {
			r.PlacementConstraints = append(r.PlacementConstraints, &pb.PlacementConstraintMapEntryProto{
				AllocationTags: []string{tag}, PlacementConstraint: c,
			})
		}
	})
	return a
}

// request returns the request for a wish, under a key of its own.
func (w *placementAsk) request(key int, ids *strings.Replacer) *pb.SchedulingRequestProto {
	r := &pb.SchedulingRequestProto{
		AllocationRequestId: proto.Int64(int64(key)), Priority: pb.FromPriority(1),
		ExecutionType: &pb.ExecutionTypeRequestProto{ExecutionType: pb.ExecutionTypeProto_GUARANTEED.Enum()},
		ResourceSizing: &pb.ResourceSizingProto{
			NumAllocations: &w.count, Resources: pb.FromResource(creel.NewResource(256, 1)),
		},
	}
	if w.tags != "" {
		r.AllocationTags = strings.Split(w.tags, ",")
	}
	if w.of != nil {
		r.PlacementConstraint = w.of.CloneVT()
		named(r.PlacementConstraint, ids)
	}
	if w.change != nil {
		w.change(r)
	}
	return r
}

// askBy sends a list of wishes in one call, under keys from first on. It reports the outcome of each until nothing
// more happens: containers by node, rejections with their reason, or the refused call. The placement processor grants
// or rejects every wish, by threads of its own, so its outcomes are awaited.
func (s *configuredSystem) askBy(
	handler string, a *placedApp, first int, list []placementAsk, ids *strings.Replacer,
) (out []string) {
	s.t.Helper()
	var asks []*pb.SchedulingRequestProto
	hosts, refused := make([]map[string]int, len(list)), make([]string, len(list))
	wanted, got := int32(0), int32(0)
	for i := range list {
		r := list[i].request(first+i, ids)
		wanted += max(r.GetResourceSizing().GetNumAllocations(), 1)
		asks, hosts[i] = append(asks, r), map[string]int{}
	}
	of := func(key int64) int { return int(key) - first } // Hadoop's scheduler repeats its earlier rejections
	ends := handler == "popular tags" || handler == "placement-processor" &&
		!slices.ContainsFunc(list, func(w placementAsk) bool { return w.differs[handler] == saysNothing })
	deadline := time.Now().Add(process.Guard)
	// With the scheduler's handler a wish may wait for ever: quiet is a while in which nothing comes.
	for quiet := 0; got < wanted && (quiet < 20 || ends && time.Now().Before(deadline)); quiet++ {
		s.heartbeats()
		out, err := a.am.Allocate(s.t.Context(), &pb.AllocateRequestProto{ResponseId: &a.response, SchedulingRequests: asks})
		if err != nil {
			text, _, _ := strings.Cut(err.Error(), "\n")
			return slices.Repeat([]string{"refused: " + text}, len(list))
		}
		a.response, asks = out.GetResponseId(), nil
		for _, c := range out.GetAllocatedContainers() {
			if i := of(c.GetAllocationRequestId()); i >= 0 && i < len(list) {
				hosts[i][c.GetNodeId().GetHost()]++
				quiet, got = 0, got+1
			}
		}
		for _, x := range out.GetRejectedSchedulingRequests() {
			n := x.GetRequest().GetResourceSizing().GetNumAllocations()
			if i := of(x.GetRequest().GetAllocationRequestId()); i >= 0 && i < len(list) {
				refused[i] += fmt.Sprintf(" rejected %d: %v", n, x.GetReason())
				quiet, got = 0, got+n
			}
		}
		if got < wanted {
			time.Sleep(20 * time.Millisecond)
		}
	}
	for i := range list {
		var on []string
		for host, n := range hosts[i] {
			on = append(on, fmt.Sprintf("%d on %s", n, host))
		}
		slices.Sort(on)
		text := strings.TrimSpace(strings.Join(on, ", ") + refused[i])
		if text == "" {
			text = "waits"
		}
		out = append(out, text)
	}
	return out
}

// named puts ids into the namespaces of a constraint.
func named(c *constraint, ids *strings.Replacer) {
	for _, t := range c.GetSimpleConstraint().GetTargetExpressions() {
		t.TargetKey = proto.String(ids.Replace(t.GetTargetKey()))
	}
	for _, k := range c.GetCompositeConstraint().GetChildConstraints() {
		named(k, ids)
	}
	for _, k := range c.GetCompositeConstraint().GetTimedChildConstraints() {
		named(k.GetPlacementConstraint(), ids)
	}
}

// plays returns the outcome of each wish of a case.
func (s *configuredSystem) plays(handler string, c *constraintCase) (out []string) {
	s.t.Helper()
	apps := map[string]*placedApp{"one": s.starts("one", c.registered), "two": s.starts("two", nil)}
	ids := strings.NewReplacer("{one}", apps["one"].id.String(), "{two}", apps["two"].id.String())
	back := strings.NewReplacer(
		strings.TrimPrefix(apps["one"].id.String(), "application"), "_ONE",
		strings.TrimPrefix(apps["two"].id.String(), "application"), "_TWO",
	)
	step := 1
	if c.together {
		step = len(c.wishes)
	}
	for i := 0; i < len(c.wishes); i += step {
		for _, said := range s.askBy(handler, apps[c.wishes[i].app], i+1, c.wishes[i:i+step], ids) {
			out = append(out, back.Replace(said))
		}
	}
	s.end()
	return out
}

// The same scheduling requests, made by the same AMs of a real ResourceManager and of
// ours, with each handler: containers must come on the same nodes, wait, or be rejected
// for the same reason.
func TestPlacementConstraintsMatchHadoop(t *testing.T) {
	script := filepath.Join(t.TempDir(), "racks.sh")
	if err := os.WriteFile(script, []byte(racksByScript), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, handler := range []string{"scheduler", "placement-processor", "popular tags", "disabled"} {
		t.Run(handler, func(t *testing.T) {
			conf := hadoop.Conf{
				"yarn.resourcemanager.placement-constraints.handler": handler,
				"net.topology.script.file.name":                      script,
				"yarn.node-labels.enabled":                           "true",
			}
			cases := slices.Concat(constraintCases, togetherCases)
			switch handler {
			case "disabled":
				cases = cases[:1]
			case "popular tags":
				cases = togetherCases
				conf["yarn.resourcemanager.placement-constraints.handler"] = "placement-processor"
				conf["yarn.resourcemanager.placement-constraints.algorithm.iterator"] = "POPULAR_TAGS"
			}
			d := startDuo(t, &configuration{}, "", nil, conf)
			d.both(func(s *configuredSystem) {
				for _, n := range constrainedNodes {
					s.addSized(n.host, 8192, 8)
				}
			})
			d.await("the nodes", len(constrainedNodes))
			d.both((*configuredSystem).constrain)
			wishes := d.playCases(t, handler, cases)
			if handler == "scheduler" || handler == "placement-processor" {
				d.both(func(s *configuredSystem) {
					s.call("POST", "add-node-labels", map[string]any{"nodeLabelInfo": []map[string]any{
						{"name": "x", "exclusivity": true}, {"name": "y", "exclusivity": false},
					}})
					for host, label := range map[string]string{"127.0.0.6": "y", "127.0.0.7": "x"} {
						s.addSized(host, 8192, 8)
						s.call("POST", "nodes/"+host+":1/replace-labels?labels="+label, map[string]any{})
					}
				})
				d.await("nodes with labels", len(constrainedNodes)+2)
				wishes += d.playCases(t, handler, sharedCases)
			}
			t.Logf("%d cases, %d requests", len(cases), wishes)
		})
	}
}

// playCases plays cases on both, and returns the number of their wishes.
func (d *duo) playCases(t *testing.T, handler string, cases []constraintCase) (wishes int) {
	for i := range cases {
		c := &cases[i]
		t.Run(c.name, func(t *testing.T) {
			theirs, ours := d.theirs.plays(handler, c), d.ours.plays(handler, c)
			wishes += len(theirs)
			for k, w := range c.wishes {
				why := w.differs[handler]
				if handler == "disabled" {
					why = refusedInGeneral
				}
				switch same := theirs[k] == ours[k]; {
				case same && why != "":
					t.Errorf("%s %s: %s in both: no difference any more: %s", w.app, w.tags, theirs[k], why)
				case !same && why == "":
					t.Errorf("%s %s: a real ResourceManager: %s\nours: %s", w.app, w.tags, theirs[k], ours[k])
				case same:
					t.Logf("%s %s: %s", w.app, w.tags, theirs[k])
				default:
					t.Logf("%s %s: a real ResourceManager: %s\nours: %s\n(%s)", w.app, w.tags, theirs[k], ours[k], why)
				}
			}
		})
	}
	return wishes
}

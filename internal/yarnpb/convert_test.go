// SPDX-License-Identifier: Apache-2.0

package yarnpb_test

import (
	"math"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/internal/yarnpb"
)

// Identifiers and resources survive the way over the wire.
func TestConversionsRoundTrip(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		app := creel.ApplicationID{ClusterTimestamp: rapid.Int64().Draw(t, "ts"), ID: rapid.Int32().Draw(t, "app")}
		attempt := creel.AttemptID{Application: app, Attempt: rapid.Int32().Draw(t, "attempt")}
		container := creel.ContainerID{Attempt: attempt, ID: rapid.Int64().Draw(t, "container")}
		node := creel.NodeID{Host: rapid.String().Draw(t, "host"), Port: rapid.Int32().Draw(t, "port")}
		resource := creel.NewResource(rapid.Int64().Draw(t, "mb"), int64(rapid.Int32().Draw(t, "cores")),
			creel.Amount{Name: "yarn.io/gpu", Value: rapid.Int64().Draw(t, "gpu")}, creel.Amount{Name: "disk", Value: rapid.Int64().Draw(t, "disk")})
		m := &yarnpb.ContainerProto{Id: yarnpb.FromContainerID(container), NodeId: yarnpb.FromNodeID(node),
			Resource: yarnpb.FromResource(resource), Priority: yarnpb.FromPriority(3)}
		b, err := m.MarshalVT()
		if err != nil {
			t.Fatal(err)
		}
		read := new(yarnpb.ContainerProto)
		if err := read.UnmarshalVT(b); err != nil {
			t.Fatal(err)
		}
		if got := yarnpb.ToContainerID(read.Id); got != container {
			t.Fatalf("container %v became %v", container, got)
		}
		if got := yarnpb.ToNodeID(read.NodeId); got != node {
			t.Fatalf("node %v became %v", node, got)
		}
		if got := yarnpb.ToResource(read.Resource); !got.Equal(resource) {
			t.Fatalf("resource %v became %v", resource, got)
		}
		if yarnpb.ToPriority(read.Priority) != 3 {
			t.Fatal("priority lost")
		}
		if got := yarnpb.ToAttemptID(yarnpb.FromAttemptID(attempt)); got != attempt {
			t.Fatalf("attempt %v became %v", attempt, got)
		}
		if got := yarnpb.ToApplicationID(yarnpb.FromApplicationID(app)); got != app {
			t.Fatalf("application %v became %v", app, got)
		}
	})
}

// Our resource is the resource Hadoop wrote, to the byte.
func TestResourceAsJavaWritesIt(t *testing.T) {
	for _, r := range recordings(t, "client") {
		if r.name != "GetNewApplicationResponseProto" {
			continue
		}
		m := new(yarnpb.GetNewApplicationResponseProto)
		if err := m.UnmarshalVT(r.bytes); err != nil {
			t.Fatal(err)
		}
		if ours := yarnpb.FromResource(creel.NewResource(4096, 4)); !proto.Equal(ours, m.MaximumCapability) {
			t.Fatalf("we write %v, Hadoop wrote %v", ours, m.MaximumCapability)
		}
		if got := yarnpb.ToApplicationID(m.ApplicationId).String(); got != "application_1795254163125_0001" {
			t.Fatal(got)
		}
		return
	}
	t.Fatal("no getNewApplication answer was recorded")
}

func TestToResource(t *testing.T) {
	info := func(key string, v int64, units *string) *yarnpb.ResourceInformationProto {
		return &yarnpb.ResourceInformationProto{Key: &key, Value: &v, Units: units}
	}
	s := proto.String
	for name, c := range map[string]struct {
		in   *yarnpb.ResourceProto
		want creel.Resource
	}{
		"nil":                       {nil, creel.Resource{}},
		"old client, no map":        {&yarnpb.ResourceProto{Memory: proto.Int64(512), VirtualCores: proto.Int32(2)}, creel.NewResource(512, 2)},
		"fields win over the map":   {&yarnpb.ResourceProto{Memory: proto.Int64(512), ResourceValueMap: []*yarnpb.ResourceInformationProto{info("memory-mb", 9, s("Mi"))}}, creel.NewResource(512, 0)},
		"only the map, in Gi":       {&yarnpb.ResourceProto{ResourceValueMap: []*yarnpb.ResourceInformationProto{info("memory-mb", 2, s("Gi")), info("vcores", 3, s(""))}}, creel.NewResource(2048, 3)},
		"memory without units":      {&yarnpb.ResourceProto{ResourceValueMap: []*yarnpb.ResourceInformationProto{info("memory-mb", 700, nil)}}, creel.NewResource(700, 0)},
		"others to plain counts":    {&yarnpb.ResourceProto{ResourceValueMap: []*yarnpb.ResourceInformationProto{info("disk", 3, s("k"))}}, creel.NewResource(0, 0, creel.Amount{Name: "disk", Value: 3000})},
		"units nobody knows":        {&yarnpb.ResourceProto{ResourceValueMap: []*yarnpb.ResourceInformationProto{info("disk", 3, s("furlong"))}}, creel.NewResource(0, 0, creel.Amount{Name: "disk", Value: 3})},
		"a nameless entry is noise": {&yarnpb.ResourceProto{ResourceValueMap: []*yarnpb.ResourceInformationProto{info("", 3, s(""))}}, creel.Resource{}},
	} {
		if got := yarnpb.ToResource(c.in); !got.Equal(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if got := yarnpb.FromResource(creel.NewResource(1, math.MaxInt64)).GetVirtualCores(); got != math.MaxInt32 {
		t.Errorf("too many cores are written as %d", got)
	}
}

func BenchmarkFromContainerID(b *testing.B) {
	id := creel.ContainerID{Attempt: creel.AttemptID{Application: creel.ApplicationID{ClusterTimestamp: 1795254163125, ID: 1}, Attempt: 1}, ID: 5}
	b.ReportAllocs()
	for b.Loop() {
		if yarnpb.FromContainerID(id) == nil {
			b.Fatal("nothing")
		}
	}
}

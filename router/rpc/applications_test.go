// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/subcluster"
)

// serverOf returns a router's core over members that are never called.
func serverOf(members ...creel.SubclusterID) *server.Server {
	var all []subcluster.Status
	for i, id := range members {
		m := subcluster.Status{State: subcluster.StateActive}
		m.ID = id
		m.Load.Metrics.TotalMB = int64(1+i) << 20
		all = append(all, m)
	}
	view := subcluster.NewView(time.Now(), all, nil)
	return server.New(server.Config{View: func() *subcluster.View { return view }})
}

// aReport draws a report of one of few applications.
func aReport(t *rapid.T) *yarnpb.ApplicationReportProto {
	id := creel.ApplicationID{ClusterTimestamp: 1_700_000_000_000, ID: int32(rapid.IntRange(1, 6).Draw(t, "id"))}
	r := &yarnpb.ApplicationReportProto{
		ApplicationId:        yarnpb.FromApplicationID(id),
		Name:                 new(rapid.StringMatching("[a-z]{0,9}").Draw(t, "name")),
		UnmanagedApplication: new(rapid.Bool().Draw(t, "unmanaged")),
		StartTime:            new(rapid.Int64Range(0, 3).Draw(t, "start")),
		AppResource_Usage: &yarnpb.ApplicationResourceUsageReportProto{
			NumUsedContainers: new(rapid.Int32Range(0, 9).Draw(t, "containers")),
			UsedResources:     yarnpb.FromResource(creel.NewResource(rapid.Int64Range(0, 9).Draw(t, "MB"), 1)),
		},
	}
	if rapid.Bool().Draw(t, "tagged") {
		r.ApplicationTags = append(r.ApplicationTags, "nightly")
	}
	if rapid.Bool().Draw(t, "a UAM of its own id") {
		r.ApplicationTags = append(r.ApplicationTags, creel.UAMTag(creel.ApplicationID{ClusterTimestamp: 1, ID: 7}))
	}
	if rapid.Bool().Draw(t, "with what we do not know") {
		unknown := protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 5)
		r.ProtoReflect().SetUnknown(unknown)
	}
	return r
}

// slowly is the list as it was made before: all is decoded.
func slowly(t *rapid.T, s *server.Server, ids []creel.SubclusterID, lists [][]byte, limit int) []byte {
	var parts []router.Part[[]*yarnpb.ApplicationReportProto]
	for i, b := range lists {
		list := &yarnpb.GetApplicationsResponseProto{}
		if err := list.UnmarshalVT(b); err != nil {
			t.Fatal(err)
		}
		for _, a := range list.GetApplications() {
			if app, ok := router.UAMOf(a.GetUnmanagedApplication(), a.GetApplicationTags()); ok {
				a.ApplicationId = yarnpb.FromApplicationID(app)
			}
		}
		parts = append(parts, router.Part[[]*yarnpb.ApplicationReportProto]{Member: ids[i], Value: list.Applications})
	}
	fields := appFields()
	fields.Join = func(same []router.Part[*yarnpb.ApplicationReportProto]) *yarnpb.ApplicationReportProto {
		return merge(s, same)
	}
	apps, _ := router.MergeApps(parts, fields, s.HomeSeen, limit)
	b, err := (&yarnpb.GetApplicationsResponseProto{Applications: apps}).MarshalVT()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A list joined as bytes equals, to the last field, the list decoded, merged and encoded: applications of several
// members, UAMs, unknown fields.
func TestByteJoinedListEqualsMessages(t *testing.T) {
	ids := []creel.SubclusterID{"sc-a", "sc-b", "sc-c"}
	s := serverOf(ids...)
	propertytest.Check(t, func(t *rapid.T) {
		var lists [][]byte
		var parts []router.Part[[]appReport]
		for _, id := range ids {
			list := &yarnpb.GetApplicationsResponseProto{}
			for range rapid.IntRange(0, 5).Draw(t, "reports") {
				list.Applications = append(list.Applications, aReport(t))
			}
			b, err := list.MarshalVT()
			if err != nil {
				t.Fatal(err)
			}
			lists = append(lists, b)
			read, err := readApplications(slices.Clone(b))
			if err != nil {
				t.Fatal(err)
			}
			parts = append(parts, router.Part[[]appReport]{Member: id, Value: read})
		}
		limit := rapid.IntRange(0, 4).Draw(t, "limit")
		want := slowly(t, s, ids, lists, limit)
		got := joinApplications(s, parts, limit, nil)
		var a, b yarnpb.GetApplicationsResponseProto
		if err := proto.Unmarshal(got, &a); err != nil {
			t.Fatal(err)
		}
		if err := proto.Unmarshal(want, &b); err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(&a, &b) {
			t.Fatalf("joined as bytes:\n%v\nas messages:\n%v", &a, &b)
		}
	})
}

// Any bytes of a member are cut apart or rejected, and parts cut out can be joined again.
func FuzzReadApplications(t *testing.F) {
	f := propertytest.Fuzz(t)
	report := &yarnpb.ApplicationReportProto{
		ApplicationId: yarnpb.FromApplicationID(creel.ApplicationID{ClusterTimestamp: 2, ID: 1}), Name: new("a"),
		UnmanagedApplication: new(true), ApplicationTags: []string{creel.UAMTag(creel.ApplicationID{ClusterTimestamp: 1, ID: 7})},
	}
	b, err := (&yarnpb.GetApplicationsResponseProto{Applications: []*yarnpb.ApplicationReportProto{report, {}}}).MarshalVT()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:len(b)-1])
	f.Add([]byte{0x0a, 0x02, 0x08, 0x01}) // an id that is a number
	s := serverOf("sc-a")
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := readApplications(b)
		if err != nil {
			return
		}
		joined := joinApplications(s, []router.Part[[]appReport]{{Member: "sc-a", Value: list}}, 0, nil)
		if again, err := readApplications(joined); err != nil || len(again) > len(list) {
			t.Fatalf("%d reports of %d, %v", len(again), len(list), err)
		}
	})
}

// A held part has the same reports as the member's, in the bytes of the list that was made of them.
func TestHeldReportsPointIntoTheList(t *testing.T) {
	s := serverOf("sc-a")
	var part []appReport
	for id := range int32(3) {
		r := &yarnpb.ApplicationReportProto{
			ApplicationId: yarnpb.FromApplicationID(creel.ApplicationID{ClusterTimestamp: 1, ID: id + 1}), User: new("ann"),
		}
		raw, err := r.MarshalVT()
		if err != nil {
			t.Fatal(err)
		}
		a, err := readReport(raw)
		if err != nil {
			t.Fatal(err)
		}
		part = append(part, a)
	}
	copies := server.Copies{}
	list := joinApplications(s, []router.Part[[]appReport]{{Member: "sc-a", Value: part}}, 2, copies)
	held, own := sharedReports(part, copies)
	for i := range part {
		if held[i].id != part[i].id || !bytes.Equal(held[i].raw, part[i].raw) || &held[i].raw[0] == &part[i].raw[0] {
			t.Errorf("report %d is %+v", i, held[i])
		}
	}
	if own != len(part[0].raw) { // the limit excludes the oldest
		t.Errorf("%d bytes are not in the list", own)
	}
	if clear(list); held[1].raw[0] != 0 || held[2].raw[0] != 0 {
		t.Error("reports are not in the list")
	}
}

// BenchmarkApplications is a list of 10,000 applications of three members: each member's
// part read, all joined.
func BenchmarkApplications(b *testing.B) {
	ids := []creel.SubclusterID{"sc-a", "sc-b", "sc-c"}
	s := serverOf(ids...)
	lists := make([][]byte, len(ids))
	for i := range 10_000 {
		at := i % len(ids)
		r := &yarnpb.ApplicationReportProto{
			ApplicationId: yarnpb.FromApplicationID(creel.ApplicationID{ClusterTimestamp: int64(at), ID: int32(i)}),
			User:          new("alice"), Queue: new("root.prod.etl"), Name: new(fmt.Sprintf("nightly aggregation %d", i)),
			Host: new("N/A"), RpcPort: new(int32(-1)), TrackingUrl: new("http://rm.example.com:8088/proxy/application"),
			Diagnostics: new(""), StartTime: new(int64(1_700_000_000_000)), ApplicationType: new("SPARK"),
			AppResource_Usage: &yarnpb.ApplicationResourceUsageReportProto{
				NumUsedContainers: new(int32(4)), UsedResources: yarnpb.FromResource(creel.NewResource(8192, 4)),
				ReservedResources: yarnpb.FromResource(creel.NewResource(0, 0)),
				NeededResources:   yarnpb.FromResource(creel.NewResource(8192, 4)),
			},
		}
		raw, err := r.MarshalVT()
		if err != nil {
			b.Fatal(err)
		}
		lists[at] = protowire.AppendBytes(protowire.AppendTag(lists[at], fieldApplications, protowire.BytesType), raw)
	}
	b.ReportAllocs()
	for b.Loop() {
		parts := make([]router.Part[[]appReport], len(ids))
		for i, id := range ids {
			read, err := readApplications(lists[i])
			if err != nil {
				b.Fatal(err)
			}
			parts[i] = router.Part[[]appReport]{Member: id, Value: read}
		}
		joinApplications(s, parts, 0, nil)
	}
}

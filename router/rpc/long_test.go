// SPDX-License-Identifier: Apache-2.0

package rpc_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/router/routertest"
)

// Members do not send an unchanged long list again, and the next list after a change contains the change. The members
// still decide each time which items a user may see.
func TestUnchangedListIsNotResent(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Routers: 1, Settings: []string{
		"yarn.acl.enable=true", "yarn.webapp.filter-entity-list-by-user=true",
		"yarn.scheduler.capacity.root.acl_administer_queue=root",
	}})
	alice, mallory := f.As(f.Routers[0], "alice"), f.As(f.Routers[0], "mallory")
	var ids []*pb.ApplicationIdProto
	for i := range 40 {
		id, _ := submit(t, f, f.Routers[0], fmt.Sprint(strings.Repeat("long ", 100), i))
		ids = append(ids, pb.FromApplicationID(id))
	}
	sent := func() int64 { return f.Members[0].Client.Answered.Load() + f.Members[1].Client.Answered.Load() }
	every := &pb.GetApplicationsRequestProto{}
	var last *pb.GetApplicationsResponseProto
	f.Until("the members' lists hold", func() bool {
		before := sent()
		got := must(alice.GetApplications(t.Context(), every))(t)
		if n := len(got.GetApplications()); n != len(ids) || len(got.ProtoReflect().GetUnknown()) > 0 {
			t.Fatalf("%d applications, and beside them %q", n, got.ProtoReflect().GetUnknown())
		}
		if proto.Equal(got, last) && sent()-before < int64(proto.Size(got))/10 {
			return true
		}
		last = got
		return false
	})
	for _, id := range ids {
		priority := &pb.UpdateApplicationPriorityRequestProto{
			ApplicationId: id, ApplicationPriority: &pb.PriorityProto{Priority: proto.Int32(3)},
		}
		must(alice.UpdateApplicationPriority(t.Context(), priority))(t)
		changed := false
		for _, a := range must(alice.GetApplications(t.Context(), every))(t).GetApplications() {
			changed = changed || proto.Equal(a.GetApplicationId(), id) && a.GetPriority().GetPriority() == 3
		}
		if !changed {
			t.Fatalf("the list does not have the new priority of %v", id)
		}
		if others := must(mallory.GetApplications(t.Context(), every))(t).GetApplications(); len(others) > 0 {
			t.Fatalf("mallory sees %v", others[0])
		}
	}
	// A client that sends a tag of its own gets the list all the same.
	tagged := &pb.GetApplicationsRequestProto{}
	tagged.ProtoReflect().SetUnknown(pb.AppendText(nil, pb.FieldTag, "of a client"))
	if n := len(must(alice.GetApplications(t.Context(), tagged))(t).GetApplications()); n != len(ids) {
		t.Errorf("%d applications", n)
	}
}

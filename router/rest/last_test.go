// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"strings"
	"testing"
	"time"

	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/router/routertest"
)

// While a member does not answer, a user who asked for a list before gets the member's last list, with its age; any
// other user learns that it is missing.
func TestUnresponsiveMemberIsShownByLastList(t *testing.T) {
	f := routertest.Start(t, routertest.Options{Members: 2, LastParts: time.Hour, OpenFor: time.Minute})
	one := f.Routers[0].Web
	id, home := submit(t, f, one, "known", "default")
	alice := f.As(f.Routers[0], "alice")
	lists := []string{base + "/apps" + asAlice, base + "/nodes" + asAlice}
	before := map[string]string{}
	for _, path := range lists {
		r := call(t, one, "GET", path, "")
		if before[path] = r.body; r.status != 200 || r.head.Get("X-Last-Known-SubClusters") != "" {
			t.Fatalf("%s: %d %v", path, r.status, r.head)
		}
	}
	if _, err := alice.GetApplications(t.Context(), &pb.GetApplicationsRequestProto{}); err != nil {
		t.Fatal(err)
	}

	home.Cut()
	for _, path := range lists {
		r := call(t, one, "GET", path, "")
		if old := r.head.Get("X-Last-Known-SubClusters"); r.status != 200 || !strings.HasPrefix(old, string(home.ID)+" (") ||
			r.head.Get("X-Partial-Result") != "" {
			t.Errorf("%s: %d %v", path, r.status, r.head)
		}
		if strings.Count(r.body, `"id":`) != strings.Count(before[path], `"id":`) {
			t.Errorf("%s has %s, and before %s", path, r.body, before[path])
		}
	}
	list, err := alice.GetApplications(t.Context(), &pb.GetApplicationsRequestProto{})
	if apps := list.GetApplications(); err != nil || len(apps) != 1 || apps[0].GetName() != "known" ||
		pb.ToApplicationID(apps[0].GetApplicationId()).String() != id ||
		!strings.HasPrefix(apps[0].GetDiagnostics(), "This report is ") {
		t.Errorf("by RPC: %v, %v", list, err)
	}
	if _, err := f.As(f.Routers[0], "bob").GetApplications(t.Context(), &pb.GetApplicationsRequestProto{}); err == nil ||
		!strings.Contains(err.Error(), string(home.ID)) {
		t.Errorf("bob, who did not ask before, is told %v", err)
	}
	bobs := call(t, one, "GET", base+"/apps?user.name=bob", "")
	if !strings.Contains(bobs.head.Get("X-Missing-SubClusters"), string(home.ID)) || strings.Contains(bobs.body, "known") {
		t.Errorf("bob, who did not ask before, is given %v %s", bobs.head, bobs.body)
	}
}

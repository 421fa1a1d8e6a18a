// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel/e2e/hadoop"
	pb "github.com/creelrm/creel/internal/yarnpb"
)

// With yarn.webapp.filter-entity-list-by-user, lists over REST and RPC, the output of Hadoop's yarn and the page of
// applications have only the ones that the caller may view, as with a real ResourceManager: as its user, by its
// access list, as an administrator of its queue or of the cluster.
func TestListsHideInvisibleApplications(t *testing.T) {
	me := hadoop.OSUser(t)
	conf := hadoop.Conf{
		"yarn.acl.enable": "true", "yarn.admin.acl": me + " ops", "yarn.webapp.filter-entity-list-by-user": "true",
		"hadoop.user.group.static.mapping.overrides":                      me + "=;alice=;bob=;carol=staff;dora=;olga=ops;eve=;dr.who=",
		"yarn.scheduler.capacity.root.acl_administer_queue":               " ",
		"yarn.scheduler.capacity.root.acl_submit_applications":            "*",
		"yarn.scheduler.capacity.root.other.acl_administer_queue":         "dora",
		"yarn.scheduler.capacity.root.other.acl_application_max_priority": "",
	}
	d := startDuo(t, &configuration{}, "", nil, conf)
	inPage := regexp.MustCompile(`application_\d+_\d+`)
	var said [2][]string
	for i, s := range []*configuredSystem{d.theirs, d.ours} {
		one := s.submit("alice", "one", nil)
		two := s.submit("bob", "two", func(c *pb.ApplicationSubmissionContextProto) {
			c.AmContainerSpec.Application_ACLs = []*pb.ApplicationACLMapProto{{
				AccessType: pb.ApplicationAccessTypeProto_APPACCESS_VIEW_APP.Enum(), Acl: proto.String("alice staff"),
			}}
		})
		three := s.submit("bob", "three", func(c *pb.ApplicationSubmissionContextProto) { c.Queue = proto.String("other") })
		names := map[string]string{one.String(): "one", two.String(): "two", three.String(): "three"}
		named := func(ids []string) string {
			var out []string
			for _, id := range ids {
				if name := names[id]; name != "" && !slices.Contains(out, name) {
					out = append(out, name)
				}
			}
			slices.Sort(out)
			return strings.Join(out, ",")
		}
		for _, user := range []string{"alice", "bob", "carol", "dora", "olga", "eve", me, ""} {
			path := "apps"
			if user != "" {
				path += "?user.name=" + user
			}
			_, body := s.call(http.MethodGet, path, nil)
			var doc struct {
				Apps *struct{ App []struct{ ID string } }
			}
			if err := json.Unmarshal([]byte(body), &doc); err != nil {
				t.Fatalf("%s: %v", body, err)
			}
			var byREST, byRPC []string
			if doc.Apps != nil {
				for _, a := range doc.Apps.App {
					byREST = append(byREST, a.ID)
				}
			}
			said[i] = append(said[i], fmt.Sprintf("%s by REST: %s", user, named(byREST)))
			if user == "" {
				continue
			}
			for _, a := range must(s.as(user).GetApplications(t.Context(), &pb.GetApplicationsRequestProto{}))(t).GetApplications() {
				byRPC = append(byRPC, pb.ToApplicationID(a.GetApplicationId()).String())
			}
			said[i] = append(said[i], fmt.Sprintf("%s by RPC: %s", user, named(byRPC)))
			res, err := http.Get("http://" + s.Web + "/cluster/apps?user.name=" + user)
			if err != nil {
				t.Fatal(err)
			}
			page, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			said[i] = append(said[i], fmt.Sprintf("%s on the page: %s", user, named(inPage.FindAllString(string(page), -1))))
		}
		for _, user := range []string{"alice", "eve"} {
			r := hadoop.Client{User: user, Conf: s.Addresses.Conf()}.Run(t, hadoop.ApplicationCLI, "application", "-list",
				"-appStates", "ALL")
			said[i] = append(said[i], fmt.Sprintf("yarn application -list as %s: %s", user,
				named(inPage.FindAllString(r.Stdout, -1))))
		}
	}
	if !slices.Equal(said[0], said[1]) {
		t.Errorf("a real ResourceManager says\n%s\nours\n%s", strings.Join(said[0], "\n"), strings.Join(said[1], "\n"))
	}
	t.Log(strings.Join(said[0], "\n"))
	if !slices.Contains(said[0], "alice by REST: one,two") || !slices.Contains(said[0], "eve by RPC: ") ||
		!slices.Contains(said[0], "carol on the page: two") {
		t.Error("the filter of a real ResourceManager is not in force")
	}
}

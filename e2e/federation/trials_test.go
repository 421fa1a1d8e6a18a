// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
)

// awaitRefusals waits until a router has tried all members and reports these kinds of refusals, by member.
func awaitRefusals(t *testing.T, web string, want map[string][]string) {
	t.Helper()
	var got map[string][]string
	var tried int
	if process.Poll(nil, func() bool {
		var doc struct {
			Subclusters []struct {
				ID      string
				Refuses []struct{ Kind string }
			}
		}
		if _, err := Call(t, http.MethodGet, web, "/api/v1/subclusters", nil, &doc); err != nil {
			return false
		}
		got = map[string][]string{}
		for _, s := range doc.Subclusters {
			got[s.ID] = nil
			for _, r := range s.Refuses {
				got[s.ID] = append(got[s.ID], r.Kind)
			}
		}
		tried = strings.Count(text(t, web, "/metrics"), `creel_member_refuses{service="kill",`)
		return tried == len(want) && maps.EqualFunc(got, want, slices.Equal[[]string])
	}) != nil {
		t.Errorf("%d members tried, refusals %v, want %v", tried, got, want)
	}
}

// text reads a page of a daemon.
func text(t *testing.T, web, path string) string {
	t.Helper()
	_, body, _ := released(t, web, path)
	return body
}

// A member that lets routers act for no other user is active, and each surface reports what it refuses, with a remedy.
// After a restart with the right rules the reports end.
func TestMemberWithoutProxyUserIsReported(t *testing.T) {
	t.Parallel()
	f := &Federation{Logs: tempDir(t, "logs")}
	_, f.Store = StartRedis(t)
	f.proxyPort = commonPort(t, []string{"127.0.0.2"})
	groups := "hadoop.proxyuser." + hadoop.OSUser(t) + ".groups"
	member := f.StartSubcluster(t, 1, hadoop.Conf{groups: ""})
	f.Subclusters = []*Subcluster{member}
	f.StartRouter(t, 1, nil)
	web := f.RouterAddresses[0].Web
	AwaitActive(t, web, 1)
	awaitRefusals(t, web, map[string][]string{"sc-1": {"impersonation"}})

	const refused, remedy = "sc-1 refuses calls for other users", "and .groups at the member"
	server := "http://" + web
	for surface, got := range map[string]string{
		"list":      f.Creel(t, "subcluster", "list", "--server", server),
		"show":      f.Creel(t, "subcluster", "show", "sc-1", "--server", server),
		"members":   text(t, web, "/members"),
		"member":    text(t, web, "/members/sc-1"),
		"readiness": text(t, web, "/readyz?verbose"),
		"metrics":   text(t, web, "/metrics"),
		"status":    f.Creel(t, "status", "--server", server),
	} {
		for _, want := range map[string][]string{
			"list":      {"active", "refuses calls for other users"},
			"show":      {"active", "refuses calls for other users", remedy},
			"members":   {"refuses calls for other users", remedy},
			"member":    {"refuses calls for other users", remedy},
			"readiness": {refused, remedy},
			"metrics":   {`creel_member_refuses{service="impersonation",subcluster="sc-1"} 1`},
			"status":    {refused, remedy},
		}[surface] {
			if !strings.Contains(got, want) {
				t.Errorf("%s lacks %q:\n%s", surface, want, got)
			}
		}
	}
	check := []string{"config", "check", "--role", "rm", "--subcluster", "sc-1", "--store", f.Store, "--conf"}
	const warning = "warning: routers could not act for other users at this member"
	if out := f.Creel(t, append(check, member.RM.Conf())...); !strings.Contains(out, warning) {
		t.Errorf("config check:\n%s", out)
	}

	conf := f.common(t, nil).With(member.Addresses.Conf(), hadoop.Conf{"yarn.resourcemanager.epoch": "1000"})
	conf.Write(t, filepath.Join(member.RM.dir, "conf"))
	if out := f.Creel(t, append(check, member.RM.Conf())...); strings.Contains(out, "warning: routers") {
		t.Errorf("config check of the right rules:\n%s", out)
	}
	member.RM.Restart(t)
	awaitRefusals(t, web, map[string][]string{"sc-1": nil})
	if out := f.Creel(t, "status", "--server", server); strings.Contains(out, "refuses") {
		t.Errorf("status after the repair:\n%s", out)
	}
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"

	daemonrole "github.com/creelrm/creel/app/daemon/role"
	"github.com/creelrm/creel/internal/settings"
)

// A drain in a federation in which every user is an administrator ends with one warning.
func TestDrainWarnsIfEveryUserMayDrain(t *testing.T) {
	const warning = "creel: warning: yarn.admin.acl of this router is *"
	for acl, want := range map[string]int{"*": 1, "root": 0} {
		fed := smallWith(t, []string{"yarn.admin.acl=" + acl})
		s := cliClient{t, "http://" + fed.Routers[0].Address("web")}
		out := s.run(exitOK, "subcluster", "drain", "sc-1", "--user", "root")
		if got := strings.Count(out, warning); got != want {
			t.Errorf("yarn.admin.acl=%s: %d warnings, want %d:\n%s", acl, got, want, out)
		}
	}
}

// Sample configurations name administrators, and let routers act for their clients.
func TestSamplesNameAdministrators(t *testing.T) {
	for dir, role := range map[string]settings.Role{
		"../../deploy/conf": settings.RM, "../../deploy/hadoop": settings.Agent,
	} {
		s, err := settings.Load(settings.Sources{ConfDir: dir, Defines: []string{"creel.store.url=redis://redis:6379"}})
		if err != nil {
			t.Fatal(err)
		}
		if acl := s.ACL("yarn.admin.acl"); acl == "" || strings.Contains(acl, "*") {
			t.Errorf("%s: yarn.admin.acl is %q", dir, acl)
		}
		if found := daemonrole.Warnings(s, role); len(found) > 0 {
			t.Errorf("%s: %q", dir, found)
		}
	}
	values, err := os.ReadFile("../../deploy/helm/creel/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(values), "\n    yarn.admin.acl: creel\n") {
		t.Error("values.yaml of the chart sets no yarn.admin.acl")
	}
}

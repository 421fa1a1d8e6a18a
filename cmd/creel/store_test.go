// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/creelrm/creel/app/daemon/role"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/statestore/redis/redistest"
)

// A member of the federation runs: it is renamed only with consent. Then processes of the new name start, and of the
// old name do not.
func TestStoreRenameChangesFederationName(t *testing.T) {
	store := "redis://" + redistest.Start(t).Addr
	starts := func(name string) error {
		t.Helper()
		s, err := settings.Load(settings.Sources{
			Defines: []string{"creel.store.url=" + store, "creel.federation.name=" + name},
		})
		if err != nil {
			t.Fatal(err)
		}
		_, done, err := role.OpenStore(t.Context(), s)
		if err == nil {
			err = done()
		}
		return err
	}
	if err := starts("north"); err != nil {
		t.Fatal(err)
	}
	registerEast(t, store)
	for _, c := range []struct {
		args []string
		exit int
		out  string
	}{
		{[]string{"north"}, exitUsage, "the old name and the new one"},
		{[]string{"north", "two words"}, exitUsage, "no spaces"},
		{[]string{"west", "south"}, exitNotPermitted, `its federation is "north"`},
		{[]string{"north", "south"}, exitConflict, "agent of east"},
		{[]string{"north", "south", "--accept-running", "-D", "creel.federation.name=south"}, exitOK, "creel.federation.name=south"},
		{[]string{"north", "south"}, exitOK, ""},
	} {
		var out bytes.Buffer
		root := rootCommand()
		root.SetOut(&out)
		root.SetErr(&out)
		root.SetArgs(append([]string{"store", "rename", "--store", store}, c.args...))
		err := root.ExecuteContext(t.Context())
		if err != nil {
			out.WriteString(err.Error())
		}
		if got := exitCode(err); got != c.exit || !strings.Contains(out.String(), c.out) {
			t.Errorf("%q: exit code %d, %s", c.args, got, &out)
		}
	}
	if err := starts("south"); err != nil {
		t.Errorf("a process of the new name: %v", err)
	}
	if err := starts("north"); err == nil {
		t.Error("a process of the old name starts")
	}
}

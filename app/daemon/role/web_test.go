// SPDX-License-Identifier: Apache-2.0

package role

import (
	"slices"
	"strings"
	"testing"

	"github.com/creelrm/creel/internal/servlets"
)

// Every key has one value: what is set, else creel's default, else Hadoop's.
func TestConfHasHadoopsDefaults(t *testing.T) {
	list := properties(minimal(t, "dfs.ha.fencing.methods=shell", "yarn.cluster.max-application-priority=7"))
	find := func(name string) (found []servlets.Property) {
		for _, p := range list {
			if p.Name == name {
				found = append(found, p)
			}
		}
		return found
	}
	for name, want := range map[string]string{
		"dfs.ha.fencing.methods": "shell", "yarn.cluster.max-application-priority": "7",
		"yarn.resourcemanager.am.max-attempts": "2", "adl.http.timeout": "-1",
	} {
		if found := find(name); len(found) != 1 || found[0].Value != want {
			t.Errorf("%s is %+v, want %s", name, found, want)
		}
	}
	if found := find("no.such.key"); len(found) > 0 {
		t.Errorf("%+v", found)
	}
	if !slices.IsSortedFunc(list, func(a, b servlets.Property) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the keys are not in order")
	}
}

// SPDX-License-Identifier: Apache-2.0

package role

import (
	"slices"
	"testing"

	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/policies"
)

// Policy names are the same in settings and documents, and reach the daemons.
func TestPolicySettings(t *testing.T) {
	for key, names := range map[string][]string{"creel.router.policy": policies.HomeNames(), "creel.proxy.policy": policies.SplitNames()} {
		row, ok := settings.Find(key)
		if !ok || !slices.Equal(row.Choices, names) {
			t.Errorf("%s may be %q, the policies are %q", key, row.Choices, names)
		}
	}
	s, err := settings.Load(settings.Sources{})
	if err != nil {
		t.Fatal(err)
	}
	if p, err := basePolicy(
		s,
	); err != nil || p.HomeName() != policies.Default().HomeName() ||
		p.SplitName() != policies.Default().SplitName() {
		t.Errorf("without settings: %s and %s, %v", p.HomeName(), p.SplitName(), err)
	}
	s, err = settings.Load(settings.Sources{Defines: []string{"creel.router.policy=hash", "creel.proxy.policy=home"}})
	if err != nil {
		t.Fatal(err)
	}
	router, err := RouterSettings(s)
	if err != nil || router.Server.Policy.HomeName() != "hash" {
		t.Errorf("the router's is %s, %v", router.Server.Policy.HomeName(), err)
	}
	proxy, err := ProxySettings(s)
	if err != nil || proxy.Policy.SplitName() != "home" {
		t.Errorf("the proxy's is %s, %v", proxy.Policy.SplitName(), err)
	}
}

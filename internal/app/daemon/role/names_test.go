// SPDX-License-Identifier: Apache-2.0

package role

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/creelrm/creel/internal/settings"
)

// Every server of a daemon maps login names by the rules of the settings.
func TestRulesOfNamesReachTheServers(t *testing.T) {
	load := func(defines ...string) *settings.Settings {
		s, err := settings.Load(settings.Sources{
			Env: func(string) (string, bool) { return "", false }, Defines: defines,
		})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, step := range []struct{ rules, name, want string }{
		{"", "alice@REALM", "alice"},
		{authToLocal + "=RULE:[1:$1@$0](.*@REALM)s/@.*/_r/", "alice@REALM", "alice_r"},
		{authToLocal + "=RULE:[1:$1@$0](.*@REALM)s/@.*/_r/", "alice@OTHER", ""},
	} {
		var defines []string
		if step.rules != "" {
			defines = append(defines, step.rules)
		}
		s := load(defines...)
		for port, names := range map[string]interface{ Short(string) (string, error) }{
			"RPC": RPCLimits(s).Names, "web": webSettings(s).Names,
		} {
			if got, err := names.Short(step.name); got != step.want || (err == nil) != (step.want != "") {
				t.Errorf("%s, rules %q: %s is %q, %v", port, step.rules, step.name, got, err)
			}
		}
	}
	mit := load(authToLocal+"=RULE:[2:$1]", authToLocal+".mechanism=mit")
	if got, err := RPCLimits(mit).Names.Short("alice@REALM"); got != "alice@REALM" || err != nil {
		t.Errorf("with mechanism mit: %q, %v", got, err)
	}
}

func TestDefaultRealmOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "krb5.conf")
	if realm, err := defaultRealm(path); realm != "" || err != nil {
		t.Errorf("without a file: %q, %v", realm, err)
	}
	if err := os.WriteFile(path, []byte("[libdefaults]\n default_realm = REALM\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if realm, err := defaultRealm(path); realm != "REALM" || err != nil {
		t.Errorf("%q, %v", realm, err)
	}
}

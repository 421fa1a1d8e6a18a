// SPDX-License-Identifier: Apache-2.0

package role

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
		web, err := webSettings(s, settings.RM)
		if err != nil {
			t.Fatal(err)
		}
		for port, names := range map[string]interface{ Short(string) (string, error) }{
			"RPC": RPCLimits(s).Names, "web": web.Names,
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

// The realms and errors are those of Java 17's sun.security.krb5.Config, except "later include", which Java rejects and
// MIT's library reads, and "order", which Java leaves open.
func TestDefaultRealmOfIncludedFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "DIR", dir)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	realm := func(name string) string { return "[libdefaults]\n default_realm = " + name + "\n" }
	write("one.conf", realm("ONE"))
	write("realms.conf", "[realms]\n x = {\n }\n")
	write("some/b-1_x", realm("B"))
	write("some/a.conf", realm("A"))
	write("some/.hidden.conf", realm("HIDDEN"))
	write("hidden/.hidden.conf", realm("HIDDEN"))
	write("hidden/a~", realm("TILDE"))
	write("hidden/sub.conf/a.conf", realm("SUB"))
	write("chain0", realm("DEEP"))
	for i := 1; i <= 11; i++ {
		write(fmt.Sprintf("chain%d", i), fmt.Sprintf("include DIR/chain%d\n", i-1))
	}
	write("long", strings.Repeat("# a comment\n", 1<<17))
	for name, c := range map[string]struct{ text, want, problem string }{
		"include":            {"include DIR/one.conf\n", "ONE", ""},
		"indented":           {"  include   DIR/one.conf  \n", "ONE", ""},
		"first value":        {"include DIR/one.conf\n" + realm("OWN"), "ONE", ""},
		"other section":      {"include DIR/realms.conf\n" + realm("OWN"), "OWN", ""},
		"later include":      {realm("OWN") + "include DIR/one.conf\n", "OWN", ""},
		"order":              {"includedir DIR/some\n", "A", ""},
		"names":              {"includedir DIR/hidden\n" + realm("OWN"), "OWN", ""},
		"tab":                {"include\tDIR/one.conf\n", "", ""},
		"nested block":       {"[libdefaults]\n x = {\n default_realm = IN\n }\n default_realm = OUT\n", "OUT", ""},
		"missing file":       {"include DIR/none.conf\n" + realm("OWN"), "", "no such file"},
		"missing directory":  {"includedir DIR/none\n" + realm("OWN"), "", "no such file"},
		"relative":           {"include one.conf\n", "", "not absolute"},
		"relative directory": {"includedir some\n", "", "not absolute"},
		"quotes":             {"include \"DIR/one.conf\"\n", "", "not absolute"},
		"itself":             {"include DIR/krb5.conf\n" + realm("OWN"), "", "included twice"},
		"twice":              {"include DIR/one.conf\ninclude DIR/one.conf\n", "", "included twice"},
		"deep":               {"include DIR/chain9\n", "DEEP", ""},
		"too deep":           {"include DIR/chain10\n", "", "more than 10 files"},
		"too long":           {"include DIR/long\n" + realm("OWN"), "", "longer than"},
	} {
		write("krb5.conf", c.text)
		got, err := defaultRealm(filepath.Join(dir, "krb5.conf"))
		if got != c.want || (err == nil) != (c.problem == "") || err != nil && !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%s: %q, %v; want %q, %s", name, got, err, c.want, c.problem)
		}
	}
}

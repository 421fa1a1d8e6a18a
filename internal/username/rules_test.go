// SPDX-License-Identifier: Apache-2.0

package username_test

import (
	_ "embed"
	"strings"
	"testing"

	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/internal/username"
)

//go:embed testdata/hadoop.txt
var hadoopAnswers string

func TestRulesAnswerAsHadoopsDo(t *testing.T) {
	for line := range strings.Lines(hadoopAnswers) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		mechanism, rules, name, want := f[0], strings.ReplaceAll(f[1], `\n`, "\n"), f[2], f[3]
		got := "invalid"
		if r, err := username.ParseRules(rules, mechanism, ""); err == nil {
			got = "error"
			if short, err := r.Short(name); err == nil {
				got = "=" + short
			}
		}
		if want == "=" {
			want = "error" // Hadoop has a user without a name
		}
		if got != want {
			t.Errorf("%s %q maps %q: %s, want %s", mechanism, rules, name, got, want)
		}
	}
}

// Hadoop accepts these rules, and fails for each name to which they apply, or reads them in a way that Go does not.
func TestRulesThatCannotWorkAreRejected(t *testing.T) {
	for _, rules := range []string{
		"RULE:[1:$]", "RULE:[1:$$1]", "RULE:[1:$2]", "RULE:[1:${1}]", "RULE:[1:$99999999999]",
		"RULE:[1:$1]s/(.)/$3/", "RULE:[1:$1]s/a/$/", `RULE:[1:$1]s/a/\/`, "RULE:[1:$1]s/a/${x}/",
		"RULE:[1:$1]s/a*/x/g", "RULE:[1:$1]s/.*/x/g", "RULE:[1:$1]s/[a-z&&[^b]]/x/", "RULE:[1:$1]s/[[:alpha:]]/x/",
		"RULE:[1:$1]s/(?=a)/x/", "RULE:[1:$1]s/(?U)a/x/", `RULE:[1:$1]s/(a)\1/x/`, "RULE:[1:$1]s/a++/x/",
		"RULE:[1:$1]s/a{,2}/x/", `RULE:[1:$1]s/\h/x/`, "RULE:[1:$1]s/[]a]/x/", strings.Repeat("DEFAULT ", 1001),
	} {
		if _, err := username.ParseRules(rules, "hadoop", ""); err == nil {
			t.Errorf("%.60q was accepted", rules)
		}
	}
	if _, err := username.ParseRules("DEFAULT", "heimdal", ""); err == nil {
		t.Error("an unknown mechanism was accepted")
	}
}

func TestDefaultRuleAcceptsItsRealm(t *testing.T) {
	realm := username.DefaultRealm("# default_realm = NO\n[realms]\n default_realm = OTHER\n" +
		"[libdefaults]\n\tdefault_realm = REALM\n")
	r, err := username.ParseRules("DEFAULT", "hadoop", realm)
	if err != nil || !r.HasDefault() {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"alice": "alice", "alice@REALM": "alice", "svc/host@REALM": "svc"} {
		if got, err := r.Short(name); got != want || err != nil {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	for _, name := range []string{"alice@OTHER", "svc/host", "alice@realm"} {
		if got, err := r.Short(name); err == nil {
			t.Errorf("%s is %q", name, got)
		}
	}
}

// No rules grow a name beyond its bound, and with mechanism hadoop every result is a short name.
func FuzzRules(t *testing.F) {
	f := propertytest.Fuzz(t)
	for line := range strings.Lines(hadoopAnswers) {
		if fields := strings.Split(strings.TrimSpace(line), "\t"); len(fields) > 3 && len(line)%7 == 0 {
			f.Add(fields[1], fields[2])
		}
	}
	f.Add("RULE:[1:$1$1$1$1]s/(.*)/$1$1$1$1/", strings.Repeat("a", 900)+"@R")
	f.Fuzz(func(t *testing.T, rules, name string) {
		r, err := username.ParseRules(rules, "hadoop", "REALM")
		if err != nil {
			return
		}
		short, err := r.Short(name)
		if err != nil {
			return
		}
		long := strings.ContainsAny(name, "@") && strings.ContainsAny(short, "@/")
		if len(short) > 1024 || long || short == "" && name != "" {
			t.Fatalf("%q maps %q to %q", rules, name, short)
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package router_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/subcluster/remote"
)

var update = flag.Bool("update", false, "rewrite docs/reference/merging.md")

// References of rules exist: the types of items, the fields they weigh by, the type of every merged document.
func TestRulesReferToExistingMembers(t *testing.T) {
	used := map[string]bool{}
	for _, d := range router.Documents {
		if used[d.Type] = true; (d.Route == router.Merged) != (d.Type != "") {
			t.Errorf("%s %s is %s and has type %q", d.Protocol, d.Name, d.Route, d.Type)
		}
	}
	for _, typ := range router.Types {
		for _, f := range typ.Fields {
			used[f.Type] = true
			if _, ok := router.TypeOf(f.Type); f.Type != "" && !ok {
				t.Errorf("%s.%s: no type %q", typ.Name, f.Name, f.Type)
			}
			switch f.Rule {
			case router.BySize, router.ByField:
				rules, _ := router.TypeOf(typ.Name)
				if _, ok := rules.Field(
					f.Of,
				); f.Of != "" && !ok &&
					typ.Name != "SchedulerInfo" { // a root is its own whole
					t.Errorf("%s.%s counts by %q, which is no field beside it", typ.Name, f.Name, f.Of)
				}
				if f.Of == "" && f.Rule == router.ByField {
					t.Errorf("%s.%s counts by nothing", typ.Name, f.Name)
				}
			case router.Logs:
				rules, _ := router.TypeOf(typ.Name)
				for _, path := range []string{f.Of, f.Ended} {
					outer, inner, nested := strings.Cut(path, ".")
					field, ok := rules.Field(outer)
					if nested && ok {
						of, _ := router.TypeOf(field.Type)
						_, ok = of.Field(inner)
					}
					if !ok {
						t.Errorf("%s.%s looks at %q, which is no field", typ.Name, f.Name, path)
					}
				}
			case router.Join, router.Newest:
				inner, ok := router.TypeOf(f.Type)
				for _, k := range f.Key {
					if !ok {
						continue
					}
					if _, known := inner.Field(k); !known {
						t.Errorf("%s.%s is joined by %q, which %s has not", typ.Name, f.Name, k, f.Type)
					}
				}
			case router.Merge:
				if f.Type == "" {
					t.Errorf("%s.%s is merged as nothing", typ.Name, f.Name)
				}
			}
		}
	}
	for _, typ := range router.Types {
		if !used[typ.Name] {
			t.Errorf("no document or field is of type %s", typ.Name)
		}
	}
}

// docs/reference/merging.md agrees with the tables; -update writes it.
func TestMergingIsDocumented(t *testing.T) {
	var b strings.Builder
	b.WriteString("# How the answers of several subclusters become one\n\n" +
		"<!-- Generated from router/documents.go, router/rule_*.go and subcluster/remote/releases.go by `go test ./router -update`. -->\n\n" +
		"The router answers as one ResourceManager that has the nodes and applications of all members. " +
		"Which members a call goes to stands in the first tables; how their answers become one stands field by field in the last.\n\n" +
		"A field that no table lists is kept from the first member (by id), logged once and counted in " +
		"`creel_router_unlisted_fields_total`. A member that did not answer, or refused, is named in `X-Missing-SubClusters`.\n\n" +
		"Requests of one user for the same REST document that come from one address while the router makes it share the next, which begins when " +
		"that one is done or after 20 ms: none is answered with what was read before it came.\n")
	protocol := ""
	for _, d := range router.Documents {
		if d.Protocol != protocol {
			protocol = d.Protocol
			fmt.Fprintf(&b, "\n## %s\n\n| call | goes to | merged as | |\n| --- | --- | --- | --- |\n", protocol)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", d.Name, d.Route, d.Type, d.Note)
	}
	b.WriteString("\n## What older releases of Hadoop lack\n\nThe agent of a Hadoop ResourceManager publishes its release. " +
		"What a release of Apache's before that in the table does not have is not asked of such a member: of a merged answer it is named in " +
		"`X-Missing-SubClusters`, or once in the router's log where it is by RPC, whose messages have no place for it, " +
		"and where no member has it the answer is 404 (by RPC that the feature is not enabled), each with the release. " +
		"All else is asked of every member.\n\n| protocol | call | since |\n| --- | --- | --- |\n")
	for _, s := range remote.Releases {
		fmt.Fprintf(&b, "| %s | `%s` | %s |\n", s.Protocol, s.Name, s.Release)
	}
	b.WriteString("\n## Fields\n\nA mean by member size is weighted by the members' memory. " +
		"In a sum, the largest number of 32 or 64 bits is \"no limit\" and stays that. " +
		"\"First\" is the first member by id, and the home's where an application's entries are merged.\n")
	for _, typ := range router.Types {
		fmt.Fprintf(&b, "\n### %s\n\n| field | rule | |\n| --- | --- | --- |\n", typ.Name)
		for i := range typ.Fields {
			f := &typ.Fields[i]
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Name, f, f.Note)
		}
	}
	const file = "../docs/reference/merging.md"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil || string(have) != b.String() {
		t.Errorf("%s is stale (%v): go test ./router -update", file, err)
	}
}

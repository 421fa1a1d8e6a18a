// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/creelrm/creel/subcluster/rm/queues"
)

// Which scheduler it is, is asked in one place; which ordering policy, only where
// that policy is. Everything else calls their methods.
func TestOnlyPoliciesAskWhichPolicyItIs(t *testing.T) {
	schedulers := []string{"CapacityScheduler", "FairScheduler"}
	orders := []string{"Fifo", "FairShare", "DRF", "HDRF", "PriorityFirst", "Utilization", "PriorityUtilization"}
	asked := map[string]int{}
	for _, dir := range []string{".", ".."} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(err, files)
		}
		for _, name := range files {
			base := filepath.Base(name)
			if strings.HasSuffix(base, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			here := dir == "."
			mayKnow := here && strings.HasPrefix(base, "order_") || here && strings.HasPrefix(base, "policy_")
			ast.Inspect(f, func(n ast.Node) bool {
				x, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if of, ok := x.X.(*ast.Ident); !ok || of.Name != "queues" {
					return true
				}
				switch {
				case slices.Contains(schedulers, x.Sel.Name):
					asked[x.Sel.Name]++
					if !here || base != "policy.go" {
						t.Errorf("%s tests for the %s; make it a method of policy", name, x.Sel.Name)
					}
				case slices.Contains(orders, x.Sel.Name):
					asked[x.Sel.Name]++
					if !mayKnow {
						t.Errorf("%s tests for the ordering %s; make it a field of ordering", name, x.Sel.Name)
					}
				}
				return true
			})
		}
	}
	if asked["FairScheduler"] != 1 || asked["DRF"] != 1 {
		t.Errorf("the search does not see what is there: %v", asked)
	}
}

// Each ordering policy that a queue may be configured with has its value.
func TestEveryOrderingPolicyIsThere(t *testing.T) {
	for p := queues.PolicyDefault + 1; p <= queues.HDRF; p++ {
		if o := orderings[p]; o == nil || o.apps == nil || o.children == nil {
			t.Errorf("policy %d has no complete ordering", p)
		}
	}
	if len(orderings) != int(queues.HDRF) {
		t.Errorf("%d orderings for %d policies", len(orderings), queues.HDRF)
	}
}

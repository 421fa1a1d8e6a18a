// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"strings"
	"testing"
)

// TestAuditorFindsErrors breaks one sum at a time. Both audits must report it, the quick one as soon as an event
// touches the broken part.
func TestAuditorFindsErrors(t *testing.T) {
	for name, breach := range map[string]func(m *Machine){
		"amounts without a container": func(m *Machine) {
			m.sched.Charge(&m.apps.list[0].App, &m.nodes.list[0].Node, m.sizes.At(0))
		},
		"who listens":            func(m *Machine) { m.nodes.commands.Open(0, false) },
		"who may get containers": func(m *Machine) { m.sched.SetOpen(&m.apps.list[0].App, false) },
		"the container lists":    func(m *Machine) { m.nodes.list[0].live[0].node = nil },
	} {
		w := newWorld(t, nil)
		w.node("n", 8192, 8, "")
		near := NewAuditor(w.m, 0)
		id := w.unmanaged("u", "default")
		w.asks(id, ask(1, "*", 1024, 1, 2))
		if err := near.Check(); err != nil {
			t.Fatal(err)
		}
		breach(w.m)
		if err := w.m.Audit(); err == nil {
			t.Errorf("%s: the full audit saw nothing", name)
		}
		n := w.m.nodes.list[0]
		w.m.sched.SetTotal(&n.Node, new(n.Total())) // an event that touches the node
		w.m.sched.SetPriority(&w.m.apps.list[0].App, 1)
		if err := near.Check(); err == nil {
			t.Errorf("%s: the audit of changes saw nothing", name)
		} else if strings.Contains(err.Error(), "\n\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAuditOfChangesReadsNodesAlone: the sums of an application's containers follow from the lists of changed nodes,
// so that no check reads all containers of an application.
func TestAuditOfChangesReadsNodesAlone(t *testing.T) {
	w := newWorld(t, nil)
	w.node("n", 8192, 8, "")
	near := NewAuditor(w.m, 0)
	id := w.unmanaged("u", "default")
	a := w.m.apps.byID[id.Application]
	check := func(what string, containers int) {
		t.Helper()
		if err := near.Check(); err != nil {
			t.Fatal(err)
		}
		holds, _, current := near.near.sums(a)
		if n := holds[""].Containers; !current || int(n) != containers {
			t.Errorf("%s: sums of %d containers, current %v, want %d", what, n, current, containers)
		}
	}
	check("none", 0)
	got := w.asks(id, ask(1, "*", 1024, 1, 3))
	check("granted", 3)
	w.release(id, got.Granted[0].ID)
	check("one released", 2)
	w.m.sched.Charge(&a.App, &w.m.nodes.list[0].Node, w.m.sizes.At(0))
	if _, _, current := near.near.sums(a); current {
		t.Error("sums equal to books that have more")
	}
}

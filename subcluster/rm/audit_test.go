// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"strings"
	"testing"
)

// TestAuditorSeesWhatIsWrong breaks one sum at a time; both audits must say so,
// the quick one as soon as an event touches what is broken.
func TestAuditorSeesWhatIsWrong(t *testing.T) {
	for name, breach := range map[string]func(m *Machine){
		"node":                func(m *Machine) { m.nodeList[0].free.mem += 1024 },
		"children sum":        func(m *Machine) { m.tree.root.used.cpu++ },
		"the application":     func(m *Machine) { m.appList[0].pendingCount++ },
		"the user":            func(m *Machine) { m.appList[0].user.used.mem-- },
		"the index":           func(m *Machine) { m.ix.drop(m.nodeList[0]) },
		"who listens":         func(m *Machine) { m.notes.listen(0, false) },
		"the container lists": func(m *Machine) { m.nodeList[0].live[0].node = nil },
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
		w.m.nodeChanged(w.m.nodeList[0])
		w.m.appChanged(w.m.appList[0])
		if err := near.Check(); err == nil {
			t.Errorf("%s: the audit of changes saw nothing", name)
		} else if strings.Contains(err.Error(), "\n\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package sched

import "testing"

// The third container of the fixture does not fit into the 2 GiB that are left: the node collects resources for it.
func TestReservationsEndWhenTheyCannotBeUsed(t *testing.T) {
	for name, end := range map[string]func(f *fixture){
		"closed":   func(f *fixture) { f.s.SetOpen(&f.app, false) },
		"no asks":  func(f *fixture) { f.s.DropAsks(&f.app) },
		"draining": func(f *fixture) { f.s.SetUse(&f.node, Draining) },
	} {
		f := newFixture(t)
		f.s.main.nodes.roomOn(&f.node)
		f.s.Schedule()
		if f.node.Reserved() != &f.app || f.s.main.reservations.count != 1 {
			t.Fatalf("%s: %d reservations, want that of the node", name, f.s.main.reservations.count)
		}
		if held, n := f.app.Reserved(); n != 1 || !held.Is(&f.size.V) {
			t.Errorf("%s: the application has %v on %d nodes reserved, want one container", name, held, n)
		}
		end(f)
		held, n := f.app.Reserved()
		if f.node.Reserved() != nil || f.s.main.reservations.count != 0 || n != 0 || !held.IsZero() {
			t.Errorf("%s: %d reservations of %v are left", name, f.s.main.reservations.count, held)
		}
	}
}

func TestReservationsAreLimitedByShare(t *testing.T) {
	for _, c := range []struct {
		share  float64
		active int
		want   int
	}{{0, 100, 1}, {0.05, 100, 5}, {0.05, 10, 1}, {1, 10, 10}} {
		p := &partition{active: c.active}
		p.reservations = reservations{part: p, share: c.share}
		if got := p.reservations.most(); got != c.want {
			t.Errorf("share %v of %d nodes: %d, want %d", c.share, c.active, got, c.want)
		}
	}
}

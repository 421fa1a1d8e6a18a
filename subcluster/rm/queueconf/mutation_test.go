// SPDX-License-Identifier: Apache-2.0

package queueconf_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster/rm/queueconf"
	"pgregory.net/rapid"
)

const prefix = "yarn.scheduler.capacity."

// Rejections are worded as by a real ResourceManager 3.4.2.
func TestAMutationIsRefusedInYARNsWords(t *testing.T) {
	conf := map[string]string{prefix + "root.queues": "default, other", prefix + "root.default.capacity": "60"}
	before := maps.Clone(conf)
	add := func(path string) queueconf.Mutation {
		return queueconf.Mutation{Add: []queueconf.QueueSettings{{Queue: path}}}
	}
	for _, c := range []struct {
		m    queueconf.Mutation
		says string
	}{
		{queueconf.Mutation{Remove: []string{"root.nope"}}, "Queue root.nope not found"},
		{queueconf.Mutation{Remove: []string{"root"}}, "Can't remove queue root"},
		{queueconf.Mutation{Remove: []string{"elsewhere.default"}}, "Can't remove queue elsewhere.default"},
		{add("root.other"), "Can't add existing queue root.other"},
		{add("root"), "Can't add invalid queue root"},
		{add("root..x"), "Can't add invalid queue root..x"},
	} {
		changes, err := c.m.Changes(conf)
		if err == nil || err.Error() != c.says || changes != nil {
			t.Errorf("%s: %v %v, want %q", &c.m, changes, err, c.says)
		}
	}
	if !maps.Equal(conf, before) {
		t.Errorf("a refused mutation changed %v", conf)
	}
}

// A leaf that gets its first child loses its ordering policy for leaves, and a parent that loses its last child loses
// the one for parents. A removed queue's settings go with it, those of other queues of the same name do not.
func TestMutationKeepsUnnamedSettings(t *testing.T) {
	conf := map[string]string{
		prefix + "root.queues":                    "a,ab",
		prefix + "root.a.capacity":                "60",
		prefix + "root.a.ordering-policy":         "fair",
		prefix + "root.ab.capacity":               "40",
		"creel.scheduler.root.ab.node-order":      "pack",
		"creel.scheduler.root.a.node-order":       "pack",
		prefix + "maximum-applications":           "50",
		prefix + "root.ab.user-settings.u.weight": "2",
	}
	m := queueconf.Mutation{
		Remove: []string{"root.ab"},
		Add: []queueconf.QueueSettings{{Queue: "root.a.x", Settings: []queueconf.Setting{
			{Key: "capacity", Value: "100"}, {Key: "state"},
		}}},
		Update: []queueconf.QueueSettings{{Queue: "root.a", Settings: []queueconf.Setting{{Key: "capacity", Value: "100"}}}},
		Global: []queueconf.Setting{{Key: prefix + "maximum-applications"}, {Key: prefix + "queue-mappings", Value: "u:x:a"}},
	}
	changes, err := m.Changes(conf)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		prefix + "root.queues":              "a",
		prefix + "root.a.queues":            "x",
		prefix + "root.a.capacity":          "100",
		prefix + "root.a.x.capacity":        "100",
		"creel.scheduler.root.a.node-order": "pack",
		prefix + "queue-mappings":           "u:x:a",
	}
	if got := queueconf.With(conf, changes); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := strings.Join(m.Queues(), " "); got != "root.a root.a.x root.ab" {
		t.Errorf("it names %s", got)
	}
}

// Every change can be undone exactly, unless a key has changed again.
func TestAnUndoneChangeLeavesNothing(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		conf := rapid.MapOf(rapid.SampledFrom([]string{"a", "b", "c", "d"}), rapid.SampledFrom([]string{"1", "2"}))
		from, to, later := conf.Draw(t, "from"), conf.Draw(t, "to"), conf.Draw(t, "later")
		changes := queueconf.Difference(from, to)
		if got := queueconf.With(from, changes); !maps.Equal(got, to) {
			t.Fatalf("from %v by %v: %v, want %v", from, changes, got, to)
		}
		back, err := queueconf.Undo(to, changes)
		if err != nil || !maps.Equal(queueconf.With(to, back), from) {
			t.Fatalf("undone: %v %v, want %v", back, err, from)
		}
		moved := false
		for _, c := range changes {
			now, there := later[c.Name]
			was, had := to[c.Name]
			moved = moved || there != had || now != was
		}
		if _, err := queueconf.Undo(later, changes); (err != nil) != moved {
			t.Fatalf("undo of %v in %v: %v", changes, later, err)
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"slices"
	"strings"

	"github.com/creelrm/creel"
)

// Table has the subclusters of each host and rack. It is immutable, and safe for concurrent use.
type Table struct {
	at    map[string]int32 // lower-case name to index in sets
	sets  [][]creel.SubclusterID
	hosts int
}

// NewTable makes the table of members' published nodes; a machine list, which may be nil, overrides them.
func NewTable(members map[creel.SubclusterID]Nodes, overrides []Override) *Table {
	b := builder{at: map[string]int32{}, of: map[string]int32{}}
	listed := make(map[string]bool, len(overrides))
	for _, o := range overrides {
		listed[fold(o.Host)] = true
		b.hosts++
		b.add(o.Host, o.Member)
		if o.Rack != "" {
			b.add(o.Rack, o.Member)
		}
	}
	ids := make([]creel.SubclusterID, 0, len(members))
	for id := range members {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		racks := map[string]bool{}
		for host, rack := range members[id] {
			if listed[fold(host)] {
				continue
			}
			b.hosts++
			b.add(host, id)
			racks[rack] = true
		}
		for rack := range racks {
			b.add(rack, id)
		}
	}
	return &Table{at: b.at, sets: b.sets, hosts: b.hosts}
}

// Where returns the subclusters that have the host or rack, sorted; nil for an unknown name. The result must not be
// changed. A nil Table has no entries.
func (t *Table) Where(name string) []creel.SubclusterID {
	if t == nil {
		return nil
	}
	i, ok := t.at[fold(name)]
	if !ok {
		return nil
	}
	return t.sets[i]
}

// Hosts is the number of hosts in the table.
func (t *Table) Hosts() int {
	if t == nil {
		return 0
	}
	return t.hosts
}

// fold returns a name in the tables' form. It does not copy a lower-case name.
func fold(name string) string { return strings.ToLower(name) }

// builder makes a table. Most names belong to one member, so equal sets are shared.
type builder struct {
	at    map[string]int32
	sets  [][]creel.SubclusterID
	of    map[string]int32 // joined ids of a set, to its index in sets
	hosts int
}

func (b *builder) add(name string, id creel.SubclusterID) {
	name = fold(name)
	var set []creel.SubclusterID
	if i, ok := b.at[name]; ok {
		set = b.sets[i]
	}
	at, found := slices.BinarySearch(set, id)
	if found {
		return
	}
	set = slices.Insert(slices.Clone(set), at, id)
	var key strings.Builder
	for _, id := range set {
		key.WriteString(string(id))
		key.WriteByte(' ')
	}
	i, ok := b.of[key.String()]
	if !ok {
		i = int32(len(b.sets))
		b.sets = append(b.sets, set)
		b.of[key.String()] = i
	}
	b.at[name] = i
}

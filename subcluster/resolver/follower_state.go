// SPDX-License-Identifier: Apache-2.0

package resolver

import (
	"context"
	"errors"
	"fmt"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
)

// FollowerState maintains the table of all members' hosts and racks, round by round. It has one owner; the zero value
// is empty.
type FollowerState struct {
	has   map[creel.SubclusterID]readNodes
	table *Table
}

// readNodes are a member's nodes as last read.
type readNodes struct {
	digest string
	nodes  Nodes
}

// Read fetches the documents of a class (statestore.Documents).
type Read func(ctx context.Context, class string) (statestore.DocumentSet, error)

// Table returns the current table; nil before the first round with a view or a list.
func (f *FollowerState) Table() *Table { return f.table }

// Behind reports whether a round with this view would have work.
func (f *FollowerState) Behind(view *subcluster.View) bool {
	if view == nil {
		return false
	}
	if f.gone(view) {
		return true
	}
	for i := range view.Members {
		if f.behind(&view.Members[i]) {
			return true
		}
	}
	return false
}

// behind reports whether a heartbeat names an unread document. A member without a digest has not published yet in its
// present epoch: its earlier nodes remain.
func (f *FollowerState) behind(m *subcluster.Status) bool {
	return m.Load.Nodes != "" && m.Load.Nodes != f.has[m.ID].digest
}

func (f *FollowerState) gone(view *subcluster.View) bool {
	for id := range f.has {
		if _, ok := view.Member(id); !ok {
			return true
		}
	}
	return false
}

// Round reads newly named documents, and makes a new table if they or the machine list have changed. pause is called
// once before a member is read again, and may report that no time is left. The error names the parts of the table
// that were not refreshed.
func (f *FollowerState) Round(
	ctx context.Context,
	read Read,
	view *subcluster.View,
	list []Override,
	listChanged bool,
	pause func(context.Context) bool,
) error {
	changed := listChanged || f.table == nil
	if view == nil {
		if changed {
			f.table = NewTable(nil, list)
		}
		return nil
	}
	if f.has == nil {
		f.has = map[creel.SubclusterID]readNodes{}
	}
	for id := range f.has {
		if _, ok := view.Member(id); !ok {
			delete(f.has, id)
			changed = true
		}
	}
	var problem error
	waited := false
	for i := range view.Members {
		m := &view.Members[i]
		if !f.behind(m) {
			continue
		}
		if !waited && f.has[m.ID].digest != "" {
			if waited = true; !pause(ctx) {
				break
			}
		}
		nodes, err := f.read(ctx, read, m)
		if errors.Is(err, creel.ErrInvalidRequest) {
			problem = err
			f.has[m.ID] = readNodes{m.Load.Nodes, f.has[m.ID].nodes} // an unreadable document is not read again
			continue
		}
		if err != nil {
			problem = err
			break // read the others in the next round: the store may be in trouble
		}
		if nodes != nil {
			f.has[m.ID] = readNodes{m.Load.Nodes, nodes}
			changed = true
		}
	}
	if changed {
		members := make(map[creel.SubclusterID]Nodes, len(f.has))
		for id, h := range f.has {
			members[id] = h.nodes
		}
		f.table = NewTable(members, list)
	}
	return problem
}

// read fetches the document named in a heartbeat. It returns nil if the store has another version: then the next
// heartbeat names that one.
func (f *FollowerState) read(ctx context.Context, read Read, m *subcluster.Status) (Nodes, error) {
	set, err := read(ctx, Class(m.ID))
	if err != nil {
		return nil, fmt.Errorf("subcluster %s: %w", m.ID, err)
	}
	d, ok := set.Find(Document)
	if !ok || Digest(d.Data) != m.Load.Nodes {
		return nil, nil
	}
	nodes, err := Decode(d.Data)
	if err != nil {
		return nil, fmt.Errorf("subcluster %s: %w", m.ID, err)
	}
	return nodes, nil
}

// SPDX-License-Identifier: Apache-2.0

package amrmproxy

import (
	"cmp"
	"slices"

	"github.com/creelrm/creel"
)

// links has the links of a session.
type links struct {
	home    *link
	members []*link // by id, including home
}

// member returns the link to a member, a new one if there is none.
func (l *links) member(id creel.SubclusterID) *link {
	i, ok := l.find(id)
	if !ok {
		l.members = slices.Insert(l.members, i, &link{id: id})
	}
	return l.members[i]
}

func (l *links) find(id creel.SubclusterID) (int, bool) {
	return slices.BinarySearchFunc(
		l.members,
		id,
		func(m *link, id creel.SubclusterID) int { return cmp.Compare(m.id, id) },
	)
}

// any reports whether f is true of a link.
func (l *links) any(f func(*link) bool) bool { return slices.ContainsFunc(l.members, f) }

// filter returns the links of which f is true.
func (l *links) filter(f func(*link) bool) (out []*link) {
	for _, m := range l.members {
		if f(m) {
			out = append(out, m)
		}
	}
	return out
}

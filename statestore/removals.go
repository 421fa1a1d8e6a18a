// SPDX-License-Identifier: Apache-2.0

package statestore

import (
	"context"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// RemovalsClass is the class of documents that record removals from the federation. The document's name is the
// member's, and its time is the removal's, by the store's clock.
const RemovalsClass = "removed"

// NoteRemoval records that a member was removed, so that no process waits for it and its records are deleted. A
// repeat is success.
func NoteRemoval(ctx context.Context, s Documents, id creel.SubclusterID, by string) error {
	before, err := s.DocumentOf(ctx, RemovalsClass, string(id), nil)
	if err != nil || len(before.Data) > 0 {
		return err
	}
	_, err = s.PutDocument(ctx, DocumentWrite{
		Class: RemovalsClass, Name: string(id), Expect: before.Version, Data: []byte("{}"), Author: by, Quiet: true,
	})
	return err
}

// Removals are the recorded removals of members from the federation. A member's absence from a view is no evidence: a
// store that lost its records lacks the member too, although it may still run applications.
type Removals struct{ DocumentSet }

// RemovalsIn reads the removals.
func RemovalsIn(ctx context.Context, s interface {
	Documents(ctx context.Context, class string) (DocumentSet, error)
},
) (Removals, error) {
	set, err := s.Documents(ctx, RemovalsClass)
	return Removals{set}, err
}

// Removed reports whether a member was removed and has not come back since, according to a view. Without a view
// (nil) it reports false.
func (r *Removals) Removed(view *subcluster.View, id creel.SubclusterID) bool {
	_, noted := r.Find(string(id))
	return noted && view != nil && view.Freeze == nil && !Returned(view, id)
}

// Returned reports whether a view has a member as live, and not only remembered from an earlier view.
func Returned(view *subcluster.View, id creel.SubclusterID) bool {
	m, there := view.Member(id)
	return there && !m.Forgotten && m.State.Alive()
}

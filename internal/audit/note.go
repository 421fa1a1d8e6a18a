// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"slices"
	"strings"
)

// Note carries details of a call that only its handler knows. The code that writes the audit line reads them. The
// handler fills the note before it answers.
type Note struct {
	Target string // the changed object, if the request does not name it
	Err    error  // the rejection, if the answer is a document with the error instead of an error
}

type noteKey struct{}

// WithNote adds a note to a context, for handlers to fill.
func WithNote(ctx context.Context) (context.Context, *Note) {
	n := new(Note)
	return context.WithValue(ctx, noteKey{}, n), n
}

// NoteOf returns the note of a call; an unused one if the call writes no line.
func NoteOf(ctx context.Context) *Note {
	if n, ok := ctx.Value(noteKey{}).(*Note); ok {
		return n
	}
	return new(Note)
}

// named is the largest number of names in a target.
const named = 20

// Targets returns the target of a call that concerns several objects: each name once, in their order.
func Targets(names []string) string {
	var once []string
	for _, n := range names {
		if n != "" && !slices.Contains(once, n) {
			if len(once) == named {
				return strings.Join(once, ",") + ",…"
			}
			once = append(once, n)
		}
	}
	return strings.Join(once, ",")
}

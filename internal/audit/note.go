// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"slices"
	"strings"
)

// Note is what the handler of a call knows of it that who writes its line cannot see from
// outside. The handler writes it before it answers.
type Note struct {
	Target string // what is changed, where the request does not tell it by itself
	Err    error  // what was refused, where the answer is a document that says so and no error
}

type noteKey struct{}

// WithNote gives the handlers below a context a note to write.
func WithNote(ctx context.Context) (context.Context, *Note) {
	n := new(Note)
	return context.WithValue(ctx, noteKey{}, n), n
}

// NoteOf is the note of a call; one that nobody reads where the call leaves no line.
func NoteOf(ctx context.Context) *Note {
	if n, ok := ctx.Value(noteKey{}).(*Note); ok {
		return n
	}
	return new(Note)
}

// named is how many things a target names.
const named = 20

// Targets is the target of a call about several things: each once, in their order.
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

// SPDX-License-Identifier: Apache-2.0

package constraints

import (
	"slices"
	"strings"
)

// Want is the part of a scheduling request besides its amount. It is immutable after NewWant.
type Want struct {
	Tags       []string    // of its containers, in order
	Constraint *Constraint // nil for none
	Label      string      // of the partition of the ask
	Owner      any         // returned in grants
	key        string
}

// NewWant makes a Want. owner is for the caller.
func NewWant(tags []string, c *Constraint, label string, owner any) *Want {
	tags = slices.Compact(slices.Sorted(slices.Values(tags)))
	return &Want{Tags: tags, Constraint: c, Label: label, Owner: owner, key: strings.Join(tags, ",")}
}

// Key is equal for equal tags.
func (w *Want) Key() string { return w.key }

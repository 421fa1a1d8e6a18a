// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/creelrm/creel"
)

// fullCodes are the waits for nodes that are full. Their cause is the queue that holds the room.
var fullCodes = []string{"no_node_has_room", "reservation"}

// Greatest returns the wait with the most containers that are not granted, the home's first; nil if nothing waits.
func (d *WhyDoc) Greatest() *MemberWait {
	var most *MemberWait
	for i := range d.Waits {
		m := &d.Waits[i]
		if m.Wait != nil && m.Wait.Text != "" && (most == nil || m.Wait.Asked > most.Wait.Asked) {
			most = m
		}
	}
	return most
}

// Explain sets the cause of the greatest wait, and its remedy. holder explains why a queue gets no more of nodes that
// are full, and returns "" if no queue is above its guarantee; nil: only the member's own reason is known.
func (d *WhyDoc) Explain(holder func(queue creel.QueuePath) (cause, remedy string)) {
	m := d.Greatest()
	if m == nil {
		return
	}
	if holder != nil && slices.Contains(fullCodes, m.Wait.Code) && d.label() == "" {
		if d.Cause, d.Remedy = holder(d.Queue); d.Cause != "" {
			return
		}
	}
	d.Cause, d.Remedy = m.Wait.Text, m.Wait.Unlock
	if units := m.Wait.Binding(); len(units) > 0 && len(units) < len(m.Wait.Limit) {
		d.Cause += fmt.Sprintf(" Only %s exceeds the limit.", strings.Join(units, ", "))
	}
}

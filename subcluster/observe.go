// SPDX-License-Identifier: Apache-2.0

package subcluster

import (
	"fmt"
	"slices"
	"time"

	"github.com/creelrm/creel"
)

// Observer derives a view from each read of the store. It is a value: only the view carries state from one read to
// the next.
type Observer struct {
	// Longest is the longest time between two successful reads while both this process and the store run; 0 for no
	// limit.
	Longest time.Duration
	// Validate, if set, checks each policy that is new to the view: a rejected document does not replace the known
	// one.
	Validate func(queue creel.QueuePath, document []byte) error
}

// Observe returns the view that follows from one read, whose result is records or an error. After an error the
// members stay unchanged, and the view has the reason; it is nil without a previous view.
func (o Observer) Observe(before *View, records Records, err error) *View {
	switch {
	case err != nil && before == nil:
		return nil
	case err != nil:
		return Unreachable(before, err.Error())
	}
	if o.Validate != nil {
		vet(before, &records, o.Validate)
	}
	previous := before
	if before != nil && before.Freeze == nil && o.Longest > 0 {
		// After such a gap either the store was paused and accepted no heartbeats, or this process was paused.
		// Members that were well get one lease to send a heartbeat.
		if gap := records.Now.Sub(before.At); gap > o.Longest {
			previous = Unseen(before, gap)
		}
	}
	return Build(previous, records, records.Now)
}

// vet replaces a policy that does not validate by the known one.
func vet(before *View, records *Records, validate func(creel.QueuePath, []byte) error) {
	copied := false
	for i := 0; i < len(records.Policies); i++ {
		p := records.Policies[i]
		var have Policy
		var ok bool
		if before != nil {
			have, ok = before.Policies.At(p.Queue)
		}
		if len(p.Document) == 0 || ok && have.Version == p.Version {
			continue
		}
		err := validate(p.Queue, p.Document)
		if err == nil {
			continue
		}
		if !copied { // the store may share its slices
			records.Policies, records.Problems = slices.Clone(records.Policies), slices.Clone(records.Problems)
			copied = true
		}
		records.Problems = append(
			records.Problems,
			fmt.Sprintf("policy of %q, version %d, is not used: %v", p.Queue, p.Version, err),
		)
		if ok {
			records.Policies[i] = have
		} else {
			records.Policies = slices.Delete(records.Policies, i, i+1)
			i--
		}
	}
}

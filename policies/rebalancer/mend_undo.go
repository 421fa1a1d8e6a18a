// SPDX-License-Identifier: Apache-2.0

package rebalancer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/creelrm/creel"
)

// Undo returns the changes that undo a mend of a member. It returns an error if a setting was changed again since, or
// if the mend was not carried out. Added queues are removed, children before their parents.
func (m *MemberMend) Undo(conf QueueConf) ([]QueueChange, error) {
	var changes []QueueChange
	added := map[creel.QueuePath]bool{}
	for i := range m.Changes {
		c := &m.Changes[i]
		if c.Remove {
			return nil, &creel.Error{
				Kind: creel.ErrInvalidRequest, What: fmt.Sprintf("%s is not added to %s again", c.Queue, m.Member),
				Why: "a queue was removed when its addition was undone", Try: "creel queue mend",
			}
		}
		if now := strings.TrimSpace(conf[capacityPrefix+string(c.Queue)+"."+c.Key]); now != c.Is {
			return nil, &creel.Error{
				Kind: creel.ErrConflict,
				What: fmt.Sprintf("the queues of %s stay as they are", m.Member),
				Why: fmt.Sprintf("%s of %s is %q there, and not %q: it has been changed since, or the mend was not "+
					"carried out", c.Key, c.Queue, now, c.Is),
				Try: "see `creel queue mend --dry-run`",
			}
		}
		switch {
		case !c.Add:
			changes = append(changes, QueueChange{Queue: c.Queue, Key: c.Key, Was: c.Is, Is: c.Was, Why: "undone"})
		case !added[c.Queue]:
			added[c.Queue] = true
			changes = append(changes, QueueChange{Queue: c.Queue, Remove: true, Why: "undone"})
		}
	}
	slices.SortStableFunc(changes, func(a, b QueueChange) int {
		return strings.Compare(string(b.Queue), string(a.Queue))
	})
	return changes, nil
}

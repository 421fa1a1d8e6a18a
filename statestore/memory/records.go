// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"bytes"
	"slices"

	"github.com/creelrm/creel/statestore"
)

func cloneRecord(s *statestore.UAMRecord) statestore.UAMRecord {
	c := *s
	c.State = slices.Clone(s.State)
	c.Writers = slices.Clone(s.Writers)
	c.UAMs = slices.Clone(s.UAMs)
	for i := range c.UAMs {
		c.UAMs[i].Token = slices.Clone(c.UAMs[i].Token)
	}
	return c
}

func sameRecord(s, o *statestore.UAMRecord) bool {
	return s.Attempt == o.Attempt && s.Revision == o.Revision && s.Home == o.Home && s.Proxy == o.Proxy &&
		bytes.Equal(s.State, o.State) && slices.Equal(s.Writers, o.Writers) &&
		slices.EqualFunc(s.UAMs, o.UAMs, func(a, b statestore.UAM) bool {
			return a.Member == b.Member && a.OwnID == b.OwnID && a.Attempt == b.Attempt && a.Epoch == b.Epoch &&
				a.Phase == b.Phase && bytes.Equal(a.Token, b.Token)
		})
}

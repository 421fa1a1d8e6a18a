// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"testing"

	"github.com/creelrm/creel/statestore/intents"
)

// A verb of another version is no rejection by the member, which is not asked.
func TestUnknownVerbCallsNoMember(t *testing.T) {
	for _, rest := range []bool{false, true} {
		i := intents.Intent{Verb: "suspend", REST: rest}
		for _, m := range []Member{creelMember{}, hadoopMember{}} {
			if _, err := m.CarryOut(t.Context(), i); !errors.Is(err, intents.ErrUnknownVerb) {
				t.Errorf("%T, by REST %t: %v", m, rest, err)
			}
		}
	}
}

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
		if _, err := CarryOut(t.Context(), nil, i); !errors.Is(err, intents.ErrUnknownVerb) {
			t.Errorf("by REST %t: %v", rest, err)
		}
	}
}

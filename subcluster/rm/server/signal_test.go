// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"

	"github.com/creelrm/creel"
)

// Who signals a container is told so when the signal is in the journal, and while that takes
// nothing it is refused: it would never reach the node.
func TestASignalIsAnsweredWhenItIsDurable(t *testing.T) {
	if o := new(Server).Signal(Caller{}, creel.ContainerID{}, 1); !o.durable || !o.grows {
		t.Errorf("durable %v, grows %v", o.durable, o.grows)
	}
}

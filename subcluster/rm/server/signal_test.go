// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"

	"github.com/creelrm/creel"
)

// A signal to a container is confirmed when it is in the journal. While the journal accepts nothing the signal is
// rejected: it would never reach the node.
func TestASignalIsAnsweredWhenItIsDurable(t *testing.T) {
	if o := new(Server).Signal(Caller{}, creel.ContainerID{}, 1); !o.durable || !o.grows {
		t.Errorf("durable %v, grows %v", o.durable, o.grows)
	}
}

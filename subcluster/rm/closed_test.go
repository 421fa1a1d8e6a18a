// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"errors"
	"testing"

	"github.com/creelrm/creel"
)

func TestClosedResourceManagerAcceptedCalls(t *testing.T) {
	const full, drained = "no room in /data", "by root (new disks)"
	for _, c := range []struct {
		name  string
		claim int64
		in    Closed
		want  error
	}{
		{"of a client, on a full disk", 0, Closed{Full: full}, creel.ErrReadOnly},
		{"of a router, on a full disk", 3, Closed{Full: full}, creel.ErrReadOnly},
		{"of a router, to a member that is drained", 3, Closed{Drained: drained}, creel.ErrUnavailable},
		{"of a client or a proxy, to a member that is drained", 0, Closed{Drained: drained}, nil},
		{"of a router, to one that is open", 3, Closed{}, nil},
	} {
		if err := c.in.Refuses(&Submission{Claim: c.claim}); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("a submission %s: %v, want %v", c.name, err, c.want)
		}
	}
}

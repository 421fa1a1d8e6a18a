// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"testing"

	pb "github.com/creelrm/creel/internal/yarnpb"
)

// Hadoop's NodeManager reads the number of a response by which it must register again, but not its tokens. It would
// never ask for them.
func TestResyncingNodeGetsNoNumberOfTokens(t *testing.T) {
	for action, want := range map[pb.NodeActionProto]int64{
		pb.NodeActionProto_NORMAL: 7, pb.NodeActionProto_RESYNC: 0, pb.NodeActionProto_SHUTDOWN: 0,
	} {
		r := &pb.NodeHeartbeatResponseProto{NodeAction: action.Enum()}
		SystemCredentials(r, 3, func(known int64) ([]*pb.SystemCredentialsForAppsProto, int64) {
			if known != 3 {
				t.Errorf("the node has %d", known)
			}
			return []*pb.SystemCredentialsForAppsProto{{}}, 7
		})
		if got := r.GetTokenSequenceNo(); got != want || (len(r.SystemCredentialsForApps) == 1) != (want == 7) {
			t.Errorf("%v: number %d with %d applications", action, got, len(r.SystemCredentialsForApps))
		}
	}
	r := &pb.NodeHeartbeatResponseProto{NodeAction: pb.NodeActionProto_NORMAL.Enum()}
	SystemCredentials(r, 0, func(int64) ([]*pb.SystemCredentialsForAppsProto, int64) { return nil, 0 })
	if r.TokenSequenceNo != nil {
		t.Error("a number without tokens")
	}
}

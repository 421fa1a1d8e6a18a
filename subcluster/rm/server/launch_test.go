// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"testing"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

func TestANodesWordOnAMaster(t *testing.T) {
	master := creel.ContainerID{
		Attempt: creel.AttemptID{Application: creel.ApplicationID{ClusterTimestamp: 1, ID: 1}, Attempt: 1},
		ID:      1,
	}
	other := master
	other.ID = 2
	answer := func(id creel.ContainerID, err error) *pb.StartContainersResponseProto {
		return &pb.StartContainersResponseProto{
			FailedRequests: []*pb.ContainerExceptionMapProto{
				{ContainerId: pb.FromContainerID(id), Exception: yarnrpc.ToSerialized(err)},
			},
		}
	}
	running := &creel.Error{
		Kind: creel.ErrConflict,
		What: "Container " + master.String() + " already is running on this node!!",
	}
	if err := refusal(answer(master, running), master); err != nil {
		t.Errorf("a start whose answer was lost is taken for a failure: %v", err)
	}
	expired := &creel.Error{Kind: creel.ErrInvalidToken, What: "the token has expired"}
	if err := refusal(answer(master, expired), master); !errors.Is(err, creel.ErrInvalidToken) {
		t.Errorf("a refused master counts as started: %v", err)
	}
	if err := refusal(answer(other, expired), master); err != nil {
		t.Errorf("another container's refusal is this one's: %v", err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"testing"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
)

func TestANodesWordOnAnAM(t *testing.T) {
	am := creel.ContainerID{
		Attempt: creel.AttemptID{Application: creel.ApplicationID{ClusterTimestamp: 1, ID: 1}, Attempt: 1},
		ID:      1,
	}
	other := am
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
		What: "Container " + am.String() + " already is running on this node!!",
	}
	if err := refusal(answer(am, running), am); err != nil {
		t.Errorf("a start whose answer was lost is taken for a failure: %v", err)
	}
	expired := &creel.Error{Kind: creel.ErrInvalidToken, What: "the token has expired"}
	if err := refusal(answer(am, expired), am); !errors.Is(err, creel.ErrInvalidToken) {
		t.Errorf("a refused AM counts as started: %v", err)
	}
	if err := refusal(answer(other, expired), am); err != nil {
		t.Errorf("another container's refusal is this one's: %v", err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"testing"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm/codec"
)

func TestUnknownUnitsOfHeartbeatsAreRejected(t *testing.T) {
	size := func(units string) *pb.ResourceProto {
		r := pb.FromResource(creel.NewResource(1024, 1))
		r.ResourceValueMap = append(r.ResourceValueMap, &pb.ResourceInformationProto{Key: new("a"), Units: &units})
		return r
	}
	for name, heartbeat := range map[string]func(r *pb.ResourceProto) *pb.AllocateRequestProto{
		"ask": func(r *pb.ResourceProto) *pb.AllocateRequestProto {
			return &pb.AllocateRequestProto{Ask: []*pb.ResourceRequestProto{{}, {Capability: r}}}
		},
		"update": func(r *pb.ResourceProto) *pb.AllocateRequestProto {
			return &pb.AllocateRequestProto{UpdateRequests: []*pb.UpdateContainerRequestProto{{Capability: r}}}
		},
		"scheduling request": func(r *pb.ResourceProto) *pb.AllocateRequestProto {
			return &pb.AllocateRequestProto{SchedulingRequests: []*pb.SchedulingRequestProto{
				{ResourceSizing: &pb.ResourceSizingProto{Resources: r}},
			}}
		},
	} {
		if err := codec.ConvertUnits(heartbeat(size("Ki")), nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := codec.ConvertUnits(heartbeat(size("kB")), nil); err == nil {
			t.Errorf("%s in kB was accepted", name)
		}
	}
}

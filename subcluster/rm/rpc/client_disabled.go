// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/rm/server"
)

// Profiles are not enabled; YARN answers with an exception.

var errProfiles = &creel.Error{
	Kind: creel.ErrNotEnabled,
	What: "Resource profile is not enabled, please enable resource profile feature before using its functions. (by setting yarn.resourcemanager.resource-profiles.enabled to true)",
}

func (c *clientHandler) GetResourceProfiles(
	context.Context,
	*pb.GetAllResourceProfilesRequestProto,
) (*pb.GetAllResourceProfilesResponseProto, error) {
	return nil, errProfiles
}

func (c *clientHandler) GetResourceProfile(
	context.Context,
	*pb.GetResourceProfileRequestProto,
) (*pb.GetResourceProfileResponseProto, error) {
	return nil, errProfiles
}

func (c *clientHandler) GetResourceTypeInfo(
	context.Context,
	*pb.GetAllResourceTypeInfoRequestProto,
) (*pb.GetAllResourceTypeInfoResponseProto, error) {
	return &pb.GetAllResourceTypeInfoResponseProto{ResourceTypeInfo: resourceTypes(c.s)}, nil
}

var errReservations = yarnrpc.Throw(
	yarnrpc.ClassYarn,
	&creel.Error{Kind: creel.ErrNotEnabled, What: "Reservation is not enabled. Please enable & try again"},
)

func (c *clientHandler) GetNewReservation(
	context.Context,
	*pb.GetNewReservationRequestProto,
) (*pb.GetNewReservationResponseProto, error) {
	return nil, errReservations
}

func (c *clientHandler) SubmitReservation(
	context.Context,
	*pb.ReservationSubmissionRequestProto,
) (*pb.ReservationSubmissionResponseProto, error) {
	return nil, errReservations
}

func (c *clientHandler) UpdateReservation(
	context.Context,
	*pb.ReservationUpdateRequestProto,
) (*pb.ReservationUpdateResponseProto, error) {
	return nil, errReservations
}

func (c *clientHandler) DeleteReservation(
	context.Context,
	*pb.ReservationDeleteRequestProto,
) (*pb.ReservationDeleteResponseProto, error) {
	return nil, errReservations
}

func (c *clientHandler) ListReservations(
	context.Context,
	*pb.ReservationListRequestProto,
) (*pb.ReservationListResponseProto, error) {
	return nil, errReservations
}

func resourceTypes(s *server.Server) []*pb.ResourceTypeInfoProto {
	info := func(name, units string) *pb.ResourceTypeInfoProto {
		return &pb.ResourceTypeInfoProto{Name: &name, Units: &units, Type: pb.ResourceTypesProto_COUNTABLE.Enum()}
	}
	list := []*pb.ResourceTypeInfoProto{info(creel.MemoryName, "Mi"), info(creel.VCoresName, "")}
	for _, t := range s.MachineConfig().ResourceTypes {
		list = append(list, info(t.Name, t.Unit))
	}
	return list
}

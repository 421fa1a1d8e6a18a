// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/router"
	"github.com/creelrm/creel/router/server"
	"github.com/creelrm/creel/subcluster/remote"
)

// SubmitReservation finds a home by the policy of the reservation's queue. Here and below, a call without a
// reservation id goes to any member, which rejects it.
func (h *Handler) SubmitReservation(
	ctx context.Context, req *yarnpb.ReservationSubmissionRequestProto,
) (*yarnpb.ReservationSubmissionResponseProto, error) {
	call := raw(ctx, "submitReservation", req)
	r := server.Reservation{
		ID: yarnpb.ToReservationID(req.GetReservationId()), Queue: creel.QueuePath(req.GetQueue()), User: user(ctx),
	}
	if d := req.GetReservationDefinition(); d.GetDeadline() > 0 && d.GetRecurrenceExpression() == "0" {
		r.Deadline = time.UnixMilli(d.GetDeadline())
	}
	var err error
	if r.ID.IsZero() {
		_, err = server.Any(ctx, h.server, call)
	} else {
		err = h.server.Reserve(ctx, r, func(ctx context.Context, m *remote.Member) error {
			_, err := call(ctx, m)
			return err
		})
	}
	return &yarnpb.ReservationSubmissionResponseProto{}, err
}

// UpdateReservation goes to the home of the reservation.
func (h *Handler) UpdateReservation(
	ctx context.Context, req *yarnpb.ReservationUpdateRequestProto,
) (*yarnpb.ReservationUpdateResponseProto, error) {
	call := raw(ctx, "updateReservation", req)
	var err error
	if id := yarnpb.ToReservationID(req.GetReservationId()); id.IsZero() {
		_, err = server.Any(ctx, h.server, call)
	} else {
		_, err = server.AtReservation(ctx, h.server, id, call)
	}
	return &yarnpb.ReservationUpdateResponseProto{}, err
}

// DeleteReservation goes to the home of the reservation, and deletes the record of the home.
func (h *Handler) DeleteReservation(
	ctx context.Context, req *yarnpb.ReservationDeleteRequestProto,
) (*yarnpb.ReservationDeleteResponseProto, error) {
	call := raw(ctx, "deleteReservation", req)
	var err error
	if id := yarnpb.ToReservationID(req.GetReservationId()); id.IsZero() {
		_, err = server.Any(ctx, h.server, call)
	} else {
		_, err = server.Unreserve(ctx, h.server, id, call)
	}
	return &yarnpb.ReservationDeleteResponseProto{}, err
}

// raw returns a call that forwards a message unchanged.
func raw(
	ctx context.Context, method string, req proto.Message,
) func(ctx context.Context, m *remote.Member) ([]byte, error) {
	caller := user(ctx)
	body, err := proto.Marshal(req)
	return func(ctx context.Context, m *remote.Member) ([]byte, error) {
		if err != nil {
			return nil, err
		}
		return m.Client(ctx, remote.Write, caller, method, body)
	}
}

// ListReservations asks the home of the named reservation if the home is recorded. Otherwise it joins the plans of
// all members that have plans.
func (h *Handler) ListReservations(
	ctx context.Context, req *yarnpb.ReservationListRequestProto,
) (*yarnpb.ReservationListResponseProto, error) {
	if text := req.GetReservationId(); text != "" {
		id, err := creel.ParseReservationID(text)
		if err != nil {
			return nil, err
		}
		if h.server.HasHome(ctx, id) {
			answer, err := server.AtReservation(ctx, h.server, id, raw(ctx, "listReservations", req))
			if err != nil {
				return nil, err
			}
			list := &yarnpb.ReservationListResponseProto{}
			return list, parse(answer, list)
		}
	}
	body, err := proto.Marshal(req)
	if err != nil {
		return nil, err
	}
	parts, err := askAll(ctx, h, remote.List, "listReservations",
		func(_ creel.SubclusterID, send sender) (*yarnpb.ReservationListResponseProto, error) {
			list, err := parsed[yarnpb.ReservationListResponseProto](send(body))
			return list, server.OfNoPlan(err)
		})
	if err != nil {
		return nil, err
	}
	all := &yarnpb.ReservationListResponseProto{}
	present, _ := router.Present(parts)
	for _, p := range present {
		all.Reservations = append(all.Reservations, p.Value.GetReservations()...)
	}
	return all, nil
}

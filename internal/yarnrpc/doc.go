// SPDX-License-Identifier: Apache-2.0

// Package yarnrpc is YARN's protocols as Go interfaces: one per protocol, one method per call. XService puts an
// implementation on an hrpc server, XClient calls one, UnimplementedX fills the methods a server does not serve. They
// are generated from protocols.txt by gen.go; only the meaning of errors (errors.go) is written by hand.
//
// # Serving
//
//	type handler struct{ yarnrpc.UnimplementedApplicationClientProtocol; ... }
//	func (h *handler) GetNewApplication(ctx context.Context, req *yarnpb.GetNewApplicationRequestProto) (
//		*yarnpb.GetNewApplicationResponseProto, error)
//
//	hrpc.Config{
//		Services: []hrpc.Service{yarnrpc.ApplicationClientProtocolService(handler)},
//		ErrorOf:  yarnrpc.ErrorOf,
//	}
//
// hrpc.CallFrom(ctx) has the caller. A method that answers upon a later event takes hrpc.Later(ctx) and returns nil,
// hrpc.ErrLater. A method that never blocks may be served without a goroutine of its own: [Inline]. To answer an
// exception without a kind of error, return [Throw].
//
// # Calling
//
//	client := hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})
//	rm := yarnrpc.NewApplicationClientProtocolClient(client, "127.0.0.1:8032", hrpc.Login{User: "alice"})
//	answer, err := rm.GetNewApplication(ctx, &yarnpb.GetNewApplicationRequestProto{})
//	if errors.Is(err, creel.ErrStandby) ...
//
// Nothing is retried here. [RetryOf] reports which calls may be repeated after a failure that leaves open whether the
// call was served.
//
//go:generate go run gen.go
package yarnrpc

// SPDX-License-Identifier: Apache-2.0

// Package yarnrpc is YARN's protocols as Go interfaces: one per protocol, one method per call. XService serves an
// implementation on an hrpc server. XClient calls a server. UnimplementedX answers the methods that a server does not
// serve. gen.go generates them from protocols.txt. Only the kinds of errors (errors.go) are written by hand.
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
// hrpc.CallFrom(ctx) returns the call, with its caller. A method that answers upon a later event calls hrpc.Later(ctx)
// and returns nil, hrpc.ErrLater. A method that never blocks may be served without its own goroutine: [Inline]. To
// answer with an exception that has no kind of error, return [Throw].
//
// # Calling
//
//	client := hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf})
//	rm := yarnrpc.NewApplicationClientProtocolClient(client, "127.0.0.1:8032", hrpc.Login{User: "alice"})
//	answer, err := rm.GetNewApplication(ctx, &yarnpb.GetNewApplicationRequestProto{})
//	if errors.Is(err, creel.ErrStandby) ...
//
// This package retries nothing. [RetryOf] reports which calls may be repeated after a failure that leaves open whether
// the server served the call.
//
//go:generate go run gen.go
package yarnrpc

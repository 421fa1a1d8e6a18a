// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"context"

	"google.golang.org/protobuf/proto"
)

// Handler serves one method on decoded messages. The request belongs to the
// handler. The response is encoded after the handler returns (or after the
// function of Later was called) and must not change until then.
type Handler func(ctx context.Context, request proto.Message) (proto.Message, error)

// RawHandler serves a method on encoded messages: a proxy, a router that
// forwards untouched. The request bytes are valid until the handler returns;
// the response bytes are copied when it returns.
type RawHandler func(ctx context.Context, request []byte) ([]byte, error)

// Method is one row of a service's table. Exactly one of Serve (with
// NewRequest) and Raw is set.
type Method struct {
	NewRequest func() proto.Message
	Serve      Handler
	Raw        RawHandler

	// FreeRequest, when set, gets the request back (to a pool that NewRequest
	// draws from) after the answer is encoded. The handler must not keep the
	// request or parts of it; the response may have parts of it. It is not
	// called for a call that took Later: its handler knows when.
	FreeRequest func(proto.Message)

	// Inline serves the call on the goroutine that reads its connection: no
	// hand-off, and answers of calls that came together leave together. For
	// methods that never block. Unless it took Later, an inline handler must
	// not keep its context after it returns: the Call in it is used again.
	Inline bool
}

// Service is a protocol as one port serves it.
type Service struct {
	Protocol string // declaringClassProtocolName, also named in the connection context
	Version  uint64 // clientProtocolVersion; 1 for every YARN protocol
	Methods  map[string]Method

	// Other, when set, serves the methods that Methods does not name.
	Other *Method
}

// Interceptor is called before a call's handler: for audit, metrics, tracing, rejection. The next interceptor and the
// handler get the context it returns (nil: unchanged). done, when not nil, is called exactly once with the outcome
// just before the answer is encoded, even if the answer comes later or the connection has ended. An error rejects the
// call.
//
// request is the decoded message, or nil for a raw method.
type Interceptor func(ctx context.Context, call *Call, request proto.Message) (
	next context.Context,
	done func(response proto.Message, err error),
	err error,
)

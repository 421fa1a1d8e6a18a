// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"context"

	"google.golang.org/protobuf/proto"
)

// Handler serves one method on decoded messages. The request belongs to the handler. The response is encoded after the
// handler returns, or after the function of Later is called. It must not change until then.
type Handler func(ctx context.Context, request proto.Message) (proto.Message, error)

// RawHandler serves a method on encoded messages, for example in a proxy or in a router that forwards bytes. The
// request bytes are valid until the handler returns. The response bytes are copied when it returns.
type RawHandler func(ctx context.Context, request []byte) ([]byte, error)

// Method is one row of a service's table. Exactly one of Serve (with
// NewRequest) and Raw is set.
type Method struct {
	NewRequest func() proto.Message
	Serve      Handler
	Raw        RawHandler

	// FreeRequest, if set, receives the request after the answer is encoded, and can return it to the pool of
	// NewRequest. The handler must not retain the request or parts of it. The response may contain parts of it. It is
	// not called if the handler called Later: that handler frees the request itself.
	FreeRequest func(proto.Message)

	// Inline serves the call on the goroutine that reads its connection. This avoids a switch of goroutines, and
	// answers of calls that arrived together leave together. Only methods that never block may use it. Unless it called
	// Later, an inline handler must not retain its context after it returns: the Call in it is reused.
	Inline bool
}

// Service is a protocol that a port serves.
type Service struct {
	Protocol string // declaringClassProtocolName, also named in the connection context
	Version  uint64 // clientProtocolVersion; 1 for every YARN protocol
	Methods  map[string]Method

	// Other, if set, serves the methods that Methods does not name.
	Other *Method
}

// Interceptor is called before a call's handler, for audit, metrics, tracing or rejection. The next interceptor and the
// handler get the returned context (nil: unchanged). done, if not nil, is called exactly once with the outcome, just
// before the answer is encoded. That includes later answers and ended connections. An error rejects the call.
//
// request is the decoded message, or nil for a raw method.
type Interceptor func(ctx context.Context, call *Call, request proto.Message) (
	next context.Context,
	done func(response proto.Message, err error),
	err error,
)

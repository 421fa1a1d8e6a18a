// SPDX-License-Identifier: Apache-2.0

package yarnrpc

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/yarnpb"
)

// Caller sends one call and decodes its answer into response. *hrpc.Peer implements it, and so does any type that
// chooses among peers.
type Caller interface {
	Call(ctx context.Context, method string, request, response proto.Message) error
}

var _ Caller = (*hrpc.Peer)(nil)

// Retry is whether a call may be repeated when the network failed after it was sent. It is Hadoop's annotation of the
// method, by which Java clients decide whether to fail over.
type Retry int8

// RetryNever: repeat only a call that certainly did not arrive. RetryAtMostOnce: the server recognizes a repetition by
// its response id, so clients may call it or its successor again. RetryAlways: repeating is harmless.
const (
	RetryNever Retry = iota
	RetryAtMostOnce
	RetryAlways
)

// RetryOf is the retry class of a method; RetryNever for an unknown one.
func RetryOf(protocol, method string) Retry { return retries[protocol][method] }

// Inline marks methods of a service that never block: the goroutine that reads the connection serves them. It panics if
// the service has no such method, because the name is wrong in the program.
func Inline(s hrpc.Service, methods ...string) hrpc.Service {
	for _, name := range methods {
		m, ok := s.Methods[name]
		if !ok {
			panic(fmt.Sprintf("yarnrpc: %s has no method %s", s.Protocol, name))
		}
		m.Inline = true
		s.Methods[name] = m
	}
	return s
}

// message is a pointer to a message.
type message[T any] interface {
	*T
	proto.Message
}

// answer converts a typed answer into hrpc's type: an interface must not contain a nil pointer.
func answer[T any, M message[T]](m M, err error) (proto.Message, error) {
	if m == nil {
		return nil, err
	}
	return m, err
}

// call makes a call. It also finds the kind of failures that only their text identifies.
func call[T any, M message[T]](
	ctx context.Context,
	c Caller,
	method string,
	request proto.Message,
	response M,
) (M, error) {
	if err := c.Call(ctx, method, request, response); err != nil {
		return nil, refine(err)
	}
	return response, nil
}

// AllocatePassed is Allocate for callers that forward the answer. See yarnpb.ForwardedAllocate for the parts that
// remain encoded.
func (c ApplicationMasterProtocolClient) AllocatePassed(
	ctx context.Context,
	req *yarnpb.AllocateRequestProto,
) (*yarnpb.AllocateResponseProto, error) {
	answer, err := call(ctx, c.Caller, "allocate", req, new(yarnpb.ForwardedAllocate))
	if err != nil {
		return nil, err
	}
	return &answer.AllocateResponseProto, nil
}

// refine finds the kind of an error that hrpc cannot determine. A failed connection is ErrUnavailable. A
// ResourceManager wraps access denials and similar errors in a YarnException whose text begins with the class of the
// cause.
func refine(err error) error {
	var transport *hrpc.TransportError
	if errors.As(err, &transport) {
		return &unavailable{err}
	}
	var remote *hrpc.RemoteError
	if !errors.As(err, &remote) || remote.Class != ClassYarn {
		return err
	}
	class, _, found := strings.Cut(remote.Message, ":")
	if !found || strings.ContainsAny(class, " \n") {
		return err
	}
	kind := KindOf(class)
	if kind == nil {
		return err
	}
	told := *remote
	told.Kind = kind
	return &told
}

// unavailable is a transport error with its kind.
type unavailable struct{ error }

func (u *unavailable) Unwrap() []error { return []error{u.error, creel.ErrUnavailable} }

func unimplemented(protocol, method string) error {
	return &creel.Error{
		Kind: creel.ErrNotEnabled,
		What: "method " + method + " of " + protocol + " is not served here",
		Try:  "ask a ResourceManager of one of the members directly",
	}
}

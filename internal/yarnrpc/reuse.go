// SPDX-License-Identifier: Apache-2.0

package yarnrpc

import (
	"context"
	"fmt"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/yarnpb"
)

// Reuse has the requests of methods decoded into arenas that are used again once the call is answered, so that a
// heartbeat costs next to no allocation. For methods that keep nothing of a request: no message, no string, no slice of
// it may outlive the answer. A handler that takes hrpc.Later keeps its request until it replies; one that calls
// hrpc.OnEncoded itself gives the arena up to the collector.
//
// Interceptors see such a request in a wrapper; Request takes it out. Reuse panics when the service has no such method.
func Reuse(s hrpc.Service, methods ...string) hrpc.Service {
	for _, name := range methods {
		m, ok := s.Methods[name]
		if !ok {
			panic(fmt.Sprintf("yarnrpc: %s has no method %s", s.Protocol, name))
		}
		fresh, serve := m.NewRequest, m.Serve
		var pool sync.Pool
		m.NewRequest = func() proto.Message {
			if r, ok := pool.Get().(*reused); ok {
				return r
			}
			r := &reused{Message: fresh()}
			r.free = func() { pool.Put(r) }
			return r
		}
		m.Serve = func(ctx context.Context, req proto.Message) (proto.Message, error) {
			if r, ok := req.(*reused); ok && hrpc.CallFrom(ctx) != nil {
				hrpc.OnEncoded(ctx, r.free)
			}
			return serve(ctx, Request(req))
		}
		s.Methods[name] = m
	}
	return s
}

// Request is the request an interceptor was shown, taken out of its wrapper if it has one.
func Request(m proto.Message) proto.Message {
	if r, ok := m.(*reused); ok {
		return r.Message
	}
	return m
}

// reused is a request with the memory it is decoded into.
type reused struct {
	proto.Message
	arena yarnpb.Arena
	free  func()
}

// UnmarshalVT decodes into the arena; hrpc prefers it to the stock runtime.
func (r *reused) UnmarshalVT(b []byte) error {
	return r.arena.Unmarshal(b, r.Message.(yarnpb.ArenaMessage))
}

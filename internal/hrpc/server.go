// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"context"
	"errors"
	"net"

	"google.golang.org/protobuf/proto"
)

// Server serves Hadoop RPC on listeners.
type Server struct{ cfg Config }

// NewServer checks a Config and makes a Server of it. It starts nothing.
func NewServer(cfg Config) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Server{cfg: cfg.withDefaults()}, nil
}

// Run accepts connections from the listener and serves them until ctx ends,
// then drains: it stops reading, waits up to Config.DrainTime for the calls in
// flight, closes everything and returns nil. It closes the listener.
func (s *Server) Run(ctx context.Context, listener net.Listener) error {
	return errors.New("hrpc: not there yet")
}

// callState is what hrpc keeps in a Call for itself.
type callState struct {
	context.Context
	release func()
}

type callKey struct{}

func (c *Call) later() func(proto.Message, error) { return nil }
func (c *Call) laterRaw() func([]byte, error)     { return nil }

// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"context"
	"errors"

	"google.golang.org/protobuf/proto"
)

// Client makes calls. It keeps one connection per (address, login, protocol),
// opened at the first call and again after it failed, closed when idle.
type Client struct{ cfg ClientConfig }

// NewClient makes a Client with a random client id. It starts nothing; the
// first call does. Close it.
func NewClient(cfg ClientConfig) *Client { return &Client{cfg: cfg} }

// Close ends all connections, fails the calls that wait with ErrClosed and
// waits for the client's goroutines.
func (c *Client) Close() error { return nil }

// Peer names a target once, so that a call need not. It holds no resource.
func (c *Client) Peer(t Target) *Peer { return &Peer{} }

// Peer is one target of a Client. It is safe for concurrent use.
type Peer struct{}

// Call sends a request and waits for its answer, decoded into response. The
// error is a *RemoteError, a *TransportError, or ctx's (wrapped).
func (p *Peer) Call(ctx context.Context, method string, request, response proto.Message) error {
	return errors.New("hrpc: not there yet")
}

// CallRaw is Call for encoded messages. The answer belongs to the caller.
func (p *Peer) CallRaw(ctx context.Context, method string, request []byte) ([]byte, error) {
	return nil, errors.New("hrpc: not there yet")
}

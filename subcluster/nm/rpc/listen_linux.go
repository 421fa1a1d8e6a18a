// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

// listenLoopback opens one socket for all addresses 127.x.y.z, bound to the loopback interface so that other machines
// cannot reach it. Nil without an error means that each node needs a separate socket.
func listenLoopback(cfg Config, port int) (net.Listener, error) {
	if cfg.PortEach {
		return nil, nil
	}
	var tied error
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return errors.Join(c.Control(func(fd uintptr) {
			tied = syscall.SetsockoptString(int(fd), syscall.SOL_SOCKET, syscall.SO_BINDTODEVICE, "lo")
		}), tied)
	}}
	l, err := lc.Listen(context.Background(), "tcp4", net.JoinHostPort("0.0.0.0", strconv.Itoa(port)))
	if tied != nil {
		if cfg.Nodes <= 1000 {
			return nil, nil // this system does not permit it: use a port for each node
		}
		return nil, fmt.Errorf(
			"the socket of %d nodes cannot be tied to the loopback interface: %w; use 1000 nodes or fewer, which get a port each",
			cfg.Nodes,
			tied,
		)
	}
	return l, err
}

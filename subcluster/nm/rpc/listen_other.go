// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package rpc

import "net"

// listenLoopback is nil on systems other than Linux.
func listenLoopback(Config, int) (net.Listener, error) { return nil, nil }

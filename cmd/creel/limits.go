// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/settings"
)

// rpcLimits are the limits every Hadoop RPC door shares.
func rpcLimits(s *settings.Settings) hrpc.Config {
	return hrpc.Config{
		MaxFrame:           int(s.Long("ipc.maximum.data.length")),
		MaxConnections:     s.Int("creel.ipc.server.max-connections"),
		MaxPerAddress:      s.Int("creel.ipc.server.max-connections-per-address"),
		MaxCallsPerConn:    s.Int("creel.ipc.server.max-calls-per-connection"),
		MaxRequestBytes:    s.Bytes("creel.ipc.server.max-request-memory"),
		MaxReplyBytes:      int(s.Bytes("creel.ipc.server.max-reply-bytes")),
		MaxReplyBytesTotal: s.Bytes("creel.ipc.server.max-reply-memory"),
		HandshakeTime:      s.Duration("creel.ipc.server.handshake-timeout"),
		StallTime:          s.Duration("creel.ipc.server.stall-timeout"),
		IdleThreshold:      s.Int("ipc.client.idlethreshold"),
		IdleTime:           2 * s.Duration("ipc.client.connection.maxidletime"),
		DrainTime:          s.Duration("creel.drain-timeout"),
	}
}

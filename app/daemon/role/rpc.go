// SPDX-License-Identifier: Apache-2.0

package role

import (
	"slices"

	"github.com/creelrm/creel/app/daemon/health"
	"github.com/creelrm/creel/app/daemon/tracing"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/hrpc/telemetry"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/internal/yarnrpc"
)

// RPCLimits are the limits that all Hadoop RPC servers of a daemon share. threads are the keys of Hadoop's handler
// thread counts of those servers.
func RPCLimits(s *settings.Settings, threads ...string) hrpc.Config {
	connections := s.Int("ipc.server.max.connections")
	if connections == 0 {
		connections = s.Int("creel.ipc.server.max-connections")
	}
	c := hrpc.Config{
		MaxFrame:           int(s.Long("ipc.maximum.data.length")),
		MaxConnections:     connections,
		MaxPerAddress:      s.Int("creel.ipc.server.max-connections-per-address"),
		MaxCalls:           maxCalls(s, threads),
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
	c.Names, _ = nameRules(s) // an error prevents the start
	c.Interceptors = tracing.ServerInterceptors(s)
	return c
}

// maxCalls limits the calls in flight on a server. If a queue size or a thread count is configured, it is the
// capacity of Hadoop's call queue. Otherwise it is 0, hrpc's own default: a call in flight needs no thread here, so
// Hadoop's defaults would reject calls that creel can serve.
func maxCalls(s *settings.Settings, threads []string) int {
	const queue = "ipc.server.handler.queue.size"
	most, set := 0, origin(s, queue) != "default"
	for _, key := range threads {
		most = max(most, s.Int(key))
		set = set || origin(s, key) != "default"
	}
	if !set || most == 0 {
		return 0
	}
	return most * s.Int(queue)
}

func origin(s *settings.Settings, key string) string {
	v, ok := s.Lookup(key)
	if !ok {
		return "default"
	}
	return v.Origin.Source
}

// watchedServer makes a server that counts calls for /metrics and audits those that change something. name is the
// metrics' label.
func watchedServer(name string, c hrpc.Config, h *health.Health) (*hrpc.Server, error) {
	m := telemetry.NewMetrics(name, c.Services)
	c.Interceptors = append(slices.Clone(c.Interceptors), m.Interceptor(), telemetry.Audit(c.Logger, yarnrpc.Audited))
	server, err := hrpc.NewServer(c)
	if err != nil {
		return nil, err
	}
	m.Server(server.Stats)
	h.Register(m)
	return server, nil
}

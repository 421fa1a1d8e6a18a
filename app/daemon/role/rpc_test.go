// SPDX-License-Identifier: Apache-2.0

package role

import (
	"reflect"
	"testing"

	"github.com/creelrm/creel/internal/settings"
)

// Every limit of the wire is a setting: setting its key changes exactly that
// field, and no limit of hrpc.Config is without one.
func TestEveryLimitIsASetting(t *testing.T) {
	const threads = "yarn.resourcemanager.client.thread-count"
	fields := func(define ...string) map[string]int64 {
		s, err := settings.Load(settings.Sources{Defines: define})
		if err != nil {
			t.Fatal(err)
		}
		v := reflect.ValueOf(RPCLimits(s, threads))
		out := map[string]int64{}
		for i := range v.NumField() {
			if f := v.Field(i); f.CanInt() {
				out[v.Type().Field(i).Name] = f.Int()
			}
		}
		return out
	}
	standard := fields()
	covered := map[string]bool{}
	for _, c := range []struct {
		define, field string
		want          int64
	}{
		{"ipc.maximum.data.length=1234567", "MaxFrame", 1234567},
		{"ipc.server.max.connections=77", "MaxConnections", 77},
		{"creel.ipc.server.max-connections=78", "MaxConnections", 78},
		{"creel.ipc.server.max-connections-per-address=5", "MaxPerAddress", 5},
		{"ipc.server.handler.queue.size=7", "MaxCalls", 350},
		{threads + "=3", "MaxCalls", 300},
		{"creel.ipc.server.max-calls-per-connection=9", "MaxCallsPerConn", 9},
		{"creel.ipc.server.max-request-memory=5m", "MaxRequestBytes", 5 << 20},
		{"creel.ipc.server.max-reply-bytes=6m", "MaxReplyBytes", 6 << 20},
		{"creel.ipc.server.max-reply-memory=7m", "MaxReplyBytesTotal", 7 << 20},
		{"creel.ipc.server.handshake-timeout=3s", "HandshakeTime", 3e9},
		{"creel.ipc.server.stall-timeout=4s", "StallTime", 4e9},
		{"ipc.client.idlethreshold=40", "IdleThreshold", 40},
		{"ipc.client.connection.maxidletime=5000", "IdleTime", 10e9},
		{"creel.drain-timeout=6s", "DrainTime", 6e9},
	} {
		covered[c.field] = true
		for name, v := range fields(c.define) {
			want := standard[name]
			if name == c.field {
				want = c.want
			}
			if v != want {
				t.Errorf("%s: %s is %d, want %d", c.define, name, v, want)
			}
		}
	}
	for name := range standard {
		if !covered[name] {
			t.Errorf("%s has no setting", name)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/http"
	"testing"

	"github.com/creelrm/creel/internal/settings"
)

func TestProfilesOnLoopbackOnly(t *testing.T) {
	door := func(address string) (*daemon, error) {
		s, err := settings.Load(
			settings.Sources{ConfDir: t.TempDir(), Defines: []string{"creel.debug.address=" + address}},
		)
		if err != nil {
			t.Fatal(err)
		}
		d := &daemon{entries: []readyEntry{{Addresses: map[string]string{}}}}
		return d, d.debugDoor(s)
	}
	if d, err := door(""); err != nil || len(d.parts) != 0 {
		t.Errorf("not asked for: %d doors, %v", len(d.parts), err)
	}
	for _, a := range []string{"0.0.0.0:0", "192.0.2.1:6060"} {
		if _, err := door(a); exitCode(err) != exitUsage {
			t.Errorf("on %s: %v", a, err)
		}
	}
	d, err := door("127.0.0.1:0")
	if err != nil || len(d.parts) != 1 {
		t.Fatalf("on loopback: %d doors, %v", len(d.parts), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.parts[0].run(ctx) }()
	answer, err := http.Get("http://" + d.entries[0].Addresses["debug"] + "/debug/pprof/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("profiles answer %s", answer.Status)
	}
	http.DefaultClient.CloseIdleConnections()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

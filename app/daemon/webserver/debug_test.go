// SPDX-License-Identifier: Apache-2.0

package webserver

import (
	"context"
	"net"
	"net/http"
	"testing"
)

func TestProfilesAreForLoopbackOnly(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:6060": true, "localhost:0": true, "[::1]:6060": true,
		"0.0.0.0:0": false, "192.0.2.1:6060": false, "example.org:80": false, "127.0.0.1": false,
	} {
		if got := Loopback(address); got != want {
			t.Errorf("Loopback(%q) = %v", address, got)
		}
	}
}

func TestAWebPortServesUntilItsContextEnds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Task(l, Profiles(), Config{})(ctx) }()
	answer, err := http.Get("http://" + l.Addr().String() + "/debug/pprof/cmdline")
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

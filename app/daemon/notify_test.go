// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"
)

// systemd is notified when everything serves, and when the service stops.
func TestSystemdIsNotified(t *testing.T) {
	name := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("NOTIFY_SOCKET", name)
	hear := func() string {
		t.Helper()
		b := make([]byte, 64)
		if err := l.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		n, err := l.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, &Service{}, Options{Drain: time.Second}) }()
	if said := hear(); said != "READY=1" {
		t.Errorf("first it said %q", said)
	}
	cancel()
	if said := hear(); said != "STOPPING=1" {
		t.Errorf("then it said %q", said)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

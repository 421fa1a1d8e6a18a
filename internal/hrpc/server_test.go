// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
)

func TestCallsOfEveryKindAreAnswered(t *testing.T) {
	s := start(t, echoConfig())
	p := s.peer(client(t, ClientConfig{}), alice)
	for _, method := range []string{"echo", "apart", "raw", "rawApart"} {
		for _, size := range []int{0, 1, 200, 20_000, 3_000_000} {
			want := strings.Repeat("x", size)
			if got := call(t, p, method, want); got != want {
				t.Errorf("%s of %d bytes came back as %d bytes", method, size, len(got))
			}
		}
	}
	if got := call(t, p, "empty", "anything"); got != "" {
		t.Errorf("empty answered %q", got)
	}
	if got := call(t, p, "whoami", ""); got != "alice||SIMPLE||" {
		t.Errorf("the server sees %q", got)
	}
}

func TestErrorsKeepTheirClassAndTheConnection(t *testing.T) {
	s := start(t, echoConfig())
	c := client(t, ClientConfig{})
	p := s.peer(c, alice)
	for _, want := range []struct {
		method, class string
		detail        Detail
		kind          error
	}{
		{"missing", classMissing, DetailApplication, errMissing},
		{"nonsense", ClassNoSuchMethod, DetailNoSuchMethod, nil},
		{"panics", ClassRuntimeException, DetailApplication, nil},
	} {
		_, err := try(p, want.method, "")
		var e *RemoteError
		if !errors.As(err, &e) || e.Class != want.class || e.Detail != want.detail || e.Fatal {
			t.Errorf("%s: got %v, want %s", want.method, err, want.class)
		}
		if want.kind != nil && !errors.Is(err, want.kind) {
			t.Errorf("%s: %v is not %v", want.method, err, want.kind)
		}
	}
	other := c.Peer(Target{Address: s.address, Protocol: "creel.test.Nothing", Login: alice})
	var e *RemoteError
	if _, err := try(
		other,
		"echo",
		"",
	); !errors.As(err, &e) || e.Class != ClassNoSuchProtocol ||
		e.Detail != DetailNoSuchProtocol {
		t.Errorf("unknown protocol: %v", err)
	}
	newer := c.Peer(Target{Address: s.address, Protocol: echoProtocol, Version: 2, Login: alice})
	if _, err := try(
		newer,
		"echo",
		"",
	); !errors.As(err, &e) || e.Class != ClassVersionMismatch ||
		e.Detail != DetailVersionMismatch {
		t.Errorf("other version: %v", err)
	}
	if got := call(t, p, "echo", "still here"); got != "still here" {
		t.Errorf("echo answered %q", got)
	}
	if n := s.Stats().Accepted; n != 2 {
		t.Errorf("%d connections were made; two protocols need two", n)
	}
}

func TestManyCallersShareOneConnection(t *testing.T) {
	s := start(t, echoConfig())
	p := s.peer(client(t, ClientConfig{}), alice)
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for j := range 50 {
				want := fmt.Sprintf("%d/%d", i, j)
				got, err := try(p, []string{"echo", "apart", "raw", "rawApart"}[j%4], want)
				if err != nil || got != want {
					t.Errorf("sent %q, got %q, %v", want, got, err)
				}
			}
		})
	}
	wg.Wait()
	if n := s.Stats().Accepted; n != 1 {
		t.Errorf("%d connections", n)
	}
}

func TestAnAbandonedCallEndsAndOthersGoOn(t *testing.T) {
	s := start(t, echoConfig())
	p := s.peer(client(t, ClientConfig{}), alice)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- p.Call(ctx, "never", text(""), text("")) }()
	eventually(t, "the call is in flight", func() bool { return s.Stats().CallsInFlight == 1 })
	if got := call(t, p, "echo", "meanwhile"); got != "meanwhile" {
		t.Errorf("echo answered %q", got)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("an abandoned call ended with %v", err)
	}
}

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

func TestMethodsCountTheirAnsweredCalls(t *testing.T) {
	s := start(t, echoConfig())
	p := s.peer(client(t, ClientConfig{}), alice)
	for _, method := range []string{"echo", "echo", "apart", "raw", "missing"} {
		try(p, method, strings.Repeat("x", 100)) // missing answers with an error
	}
	got := map[string]MethodStats{}
	for _, m := range s.Methods() {
		got[m.Method] = m
	}
	for name, want := range map[string][2]uint64{"echo": {2, 0}, "apart": {1, 0}, "raw": {1, 0}, "missing": {1, 1}} {
		if m := got[name]; m.Calls != want[0] || m.Failed != want[1] || m.Time <= 0 || m.Protocol != echoProtocol {
			t.Errorf("%s: %+v", name, m)
		}
	}
	if len(got) != 4 {
		t.Errorf("methods with calls: %v", got)
	}
	if st := s.Stats(); st.Waited <= 0 || st.Waiting != 0 {
		t.Errorf("after a call on a goroutine of its own: %+v", st)
	}
	eventually(t, "the bytes of five answers are counted", func() bool { return s.Stats().BytesOut > 400 })
}

func TestLateAnswersAreCountedAsDeferred(t *testing.T) {
	p := &parked{}
	cfg := echoConfig()
	cfg.Services[0].Methods["later"] = Method{NewRequest: newText, Serve: p.serve, Inline: true}
	s := start(t, cfg)
	done := make(chan error, 1)
	peer := s.peer(client(t, ClientConfig{}), alice)
	go func() {
		_, err := try(peer, "later", "")
		done <- err
	}()
	eventually(t, "the call waits", func() bool { return p.count() == 1 })
	if st := s.Stats(); st.Deferred != 0 || st.CallsInFlight != 1 {
		t.Errorf("before its answer: %+v", st)
	}
	for _, reply := range p.take() {
		reply(text(""), nil)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if st := s.Stats(); st.Deferred != 1 || st.DeferredTime <= 0 {
		t.Errorf("after its answer: %+v", st)
	}
}

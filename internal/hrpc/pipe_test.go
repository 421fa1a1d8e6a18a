// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func openPipe(t *testing.T, ctx context.Context, s *started, login Login) *Pipe {
	t.Helper()
	p, err := client(t, ClientConfig{}).Pipe(ctx, Target{Address: s.address, Protocol: echoProtocol, Login: login})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// A pipe has many calls of every kind in flight, small and larger than any pooled buffer, and returns each call's own
// answer.
func TestPipelineReturnsEachCallsAnswer(t *testing.T) {
	cfg := echoConfig()
	cfg.Tokens = knowsToken
	s := start(t, cfg)
	for name, login := range map[string]Login{"simple": alice, "token": {Credential: knownToken}} {
		t.Run(name, func(t *testing.T) {
			p := openPipe(t, t.Context(), s, login)
			want := map[int32]string{}
			for i := range int32(300) {
				word := fmt.Sprint("word ", i)
				if i%50 == 0 {
					word = strings.Repeat(word, 200_000) // above a megabyte
				}
				request, err := proto.Marshal(text(word))
				if err != nil {
					t.Fatal(err)
				}
				if err := p.Put(i, []string{"echo", "apart", "missing", "nothing"}[i%4], request); err != nil {
					t.Fatal(err)
				}
				want[i] = word
			}
			for len(want) > 0 {
				id, body, refused, err := p.Take()
				if err != nil {
					t.Fatal(err)
				}
				word, ok := want[id]
				if delete(want, id); !ok {
					t.Fatalf("an answer to call %d, which does not wait", id)
				}
				var got wrapperspb.StringValue
				var remote *RemoteError
				switch {
				case id%4 == 2 && !errors.Is(refused, errMissing):
					t.Fatalf("call %d: %v; want that the thing is missing", id, refused)
				case id%4 == 3 && !(errors.As(refused, &remote) && remote.Class == ClassNoSuchMethod):
					t.Fatalf("call %d: %v; want that there is no such method", id, refused)
				case id%4 < 2:
					if err := unmarshal(body, &got); err != nil || refused != nil || got.Value != word {
						t.Fatalf("call %d: %d bytes of %d, %v, %v", id, len(got.Value), len(word), refused, err)
					}
				}
			}
			if p.Buffered() {
				t.Error("there are more answers than calls")
			}
		})
	}
}

func TestPipesThatEnd(t *testing.T) {
	s := start(t, echoConfig())
	ctx, cancel := context.WithCancel(t.Context())
	p := openPipe(t, ctx, s, alice)
	if err := p.Put(1, "never", nil); err != nil {
		t.Fatal(err)
	}
	if err := p.Flush(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the call is served", func() bool { return s.Stats().CallsInFlight == 1 })
	cancel()
	if _, _, _, err := p.Take(); !errors.Is(err, context.Canceled) {
		t.Errorf("its context ended: %v", err)
	}

	p = openPipe(t, t.Context(), s, alice)
	s.stop()
	var broken *TransportError
	if _, _, _, err := p.Take(); !errors.As(err, &broken) {
		t.Errorf("the server stopped: %v", err)
	}
	if _, err := client(
		t,
		ClientConfig{},
	).Pipe(t.Context(), Target{Address: s.address, Protocol: echoProtocol, Login: alice}); !errors.As(err, &broken) ||
		broken.Op != "dial" {
		t.Errorf("nobody listens: %v", err)
	}
}

func TestAPipeHasNoIntegrity(t *testing.T) {
	cfg := echoConfig()
	cfg.Simple, cfg.Tokens, cfg.Protections = false, knowsToken, []Protection{Integrity}
	s := start(t, cfg)
	_, err := client(
		t,
		ClientConfig{},
	).Pipe(t.Context(), Target{Address: s.address, Protocol: echoProtocol, Login: Login{Credential: knownToken}})
	if err == nil || !strings.Contains(err.Error(), "integrity") {
		t.Errorf("%v; want that a pipe has none", err)
	}
}

// One goroutine breaks a pipe off while another takes answers: that one sees an
// error, and reads nothing that was given back. Closing it there did that, and
// a generator of load died of it at its end.
func TestPipelineBreaksWhileAwaitingAnswer(t *testing.T) {
	s := start(t, echoConfig())
	request, err := proto.Marshal(text("word"))
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		p := openPipe(t, t.Context(), s, alice)
		taken, ended := make(chan struct{}, 1), make(chan error)
		go func() {
			for {
				if _, _, _, err := p.Receive(); err != nil {
					ended <- err
					return
				}
				select {
				case taken <- struct{}{}:
				default:
				}
			}
		}()
		for i := range int32(500) {
			if p.Put(i, "echo", request) != nil || p.Flush() != nil {
				break
			}
			if i == 20 {
				<-taken
				p.Break()
			}
		}
		var broken *TransportError
		if err := <-ended; !errors.As(err, &broken) {
			t.Fatalf("a pipe that was broken off: %v", err)
		}
	}
}

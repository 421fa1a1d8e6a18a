// SPDX-License-Identifier: Apache-2.0

package renewal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creelrm/creel/internal/token"
)

// identifier is that of a Hadoop token with an owner and a renewer.
func identifier(renewer string) []byte {
	return token.AppendText(token.AppendText([]byte{0}, "alice"), renewer)
}

// server answers with the next of its results, and notes its calls.
type server struct {
	results []error
	calls   chan string
}

func (s *server) Renew(_ context.Context, t token.Token) (time.Time, error) {
	s.calls <- "renew " + t.Service
	if len(s.results) == 0 {
		return time.Now().Add(100 * time.Second), nil
	}
	err := s.results[0]
	s.results = s.results[1:]
	return time.Now().Add(100 * time.Second), err
}

func (s *server) Cancel(_ context.Context, t token.Token) error {
	s.calls <- "cancel " + t.Service
	return nil
}

func TestRenewerFollowsItsBook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{calls: make(chan string, 10), results: []error{errors.New("connection refused")}}
		r := New(Config{Servers: map[string]Server{KindHDFS: s}, Log: slog.New(slog.DiscardHandler)})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { r.Run(ctx); close(ended) }()

		one := token.Token{Kind: KindHDFS, Service: "nn", Identifier: identifier("yarn")}
		c := token.Credentials{}.With("nn", one).
			With("excluded", token.Token{Kind: KindHDFS, Service: "other", Identifier: identifier("")}).
			With("kms", token.Token{Kind: "kms-dt", Service: "kms", Identifier: identifier("yarn")})
		began := time.Now()
		r.Hold(appOf(1), "alice", c.Append(nil), true)
		for _, want := range []time.Duration{0, 10 * time.Second, 100 * time.Second, 190 * time.Second} {
			if call := <-s.calls; call != "renew nn" || time.Since(began) != want {
				t.Errorf("%s after %v, want the renewal after %v", call, time.Since(began), want)
			}
			synctest.Wait()
		}
		if r.Held() != 1 || r.Renewed() != 3 || r.Failures.Load() != 1 {
			t.Errorf("%d held, %d renewed, %d failed", r.Held(), r.Renewed(), r.Failures.Load())
		}
		r.Release(appOf(1))
		if call := <-s.calls; call != "cancel nn" {
			t.Error(call)
		}
		stop()
		<-ended
	})
}

// issuer is a server that obtains tokens, too.
type issuer struct{ server }

func (s *issuer) Obtain(_ context.Context, like token.Token, user string) (token.Token, error) {
	s.calls <- "obtain " + like.Service + " for " + user
	like.Identifier = token.AppendText(identifier("yarn"), time.Now().String())
	return like, nil
}

func TestNodesGetTokensThatTheyLack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &issuer{server{calls: make(chan string, 10), results: []error{fmt.Errorf("%w: ended", ErrRejected)}}}
		r := New(Config{
			Servers: map[string]Server{KindHDFS: s}, Obtains: true, Keep: 30 * time.Second, Log: slog.New(slog.DiscardHandler),
		})
		ctx, stop := context.WithCancel(t.Context())
		go r.Run(ctx)
		if apps, number := r.System(0); len(apps) != 0 || number != 0 {
			t.Errorf("%v, %d before there is any", apps, number)
		}
		r.Hold(appOf(1), "alice", token.Credentials{Secrets: []token.Secret{{Alias: "secret", Value: []byte("s")}}}.
			With("of hdfs", token.Token{Kind: KindHDFS, Service: "nn", Identifier: identifier("yarn")}).Append(nil), true)
		synctest.Wait()
		<-s.calls // renew
		if call := <-s.calls; call != "obtain nn for alice" || r.Obtained() != 1 {
			t.Errorf("%s, %d obtained", call, r.Obtained())
		}
		apps, number := r.System(0)
		if len(apps) != 1 || number == 0 {
			t.Fatalf("%v, %d", apps, number)
		}
		c, err := token.ParseCredentials(apps[0].GetCredentialsForApp())
		if err != nil || len(c.Tokens) != 1 || c.Tokens[0].Alias != "of hdfs" || len(c.Secrets) != 0 ||
			string(c.Tokens[0].Token.Identifier) == string(identifier("yarn")) {
			t.Errorf("%+v, %v", c, err)
		}
		if again, same := r.System(number); len(again) != 0 || same != number {
			t.Errorf("%v, %d for a node that has them", again, same)
		}
		if again, same := r.System(number - 1); len(again) != 1 || same != number {
			t.Errorf("%v, %d for a node with older ones", again, same)
		}
		r.Release(appOf(1))
		time.Sleep(time.Minute)
		if apps, same := r.System(0); len(apps) != 0 || same != number {
			t.Errorf("%v, %d after the end of the application", apps, same)
		}
		stop()
		synctest.Wait()
	})
}

func TestRejectedTokenIsNotTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{calls: make(chan string, 10), results: []error{fmt.Errorf("%w: unknown", ErrRejected)}}
		r := New(Config{Servers: map[string]Server{KindHDFS: s}, Log: slog.New(slog.DiscardHandler)})
		ctx, stop := context.WithCancel(t.Context())
		go r.Run(ctx)
		r.Hold(appOf(1), "alice", token.Credentials{}.With("nn",
			token.Token{Kind: KindHDFS, Service: "nn", Identifier: identifier("yarn")}).Append(nil), false)
		time.Sleep(time.Minute)
		stop()
		synctest.Wait()
		if n := len(s.calls); n != 1 {
			t.Errorf("%d calls for a token that its server rejects", n)
		}
	})
}

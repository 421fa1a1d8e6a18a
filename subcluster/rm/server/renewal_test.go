// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/audit"
	"github.com/creelrm/creel/internal/groups"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/internal/username"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/renewal"
)

// cancelled counts the tokens that a ResourceManager cancels.
type cancelled struct{ n int }

func (*cancelled) Renew(context.Context, token.Token) (time.Time, error) {
	return time.Now().Add(time.Hour), nil
}

func (c *cancelled) Cancel(context.Context, token.Token) error { c.n++; return nil }

// The tokens of an application that has moved to another subcluster are needed there.
func TestOnlyEndOfApplicationCancelsItsTokens(t *testing.T) {
	id := creel.ApplicationID{ClusterTimestamp: 1, ID: 1}
	left := rm.SaveApp{Record: rm.AppRecord{Submission: rm.Submission{ID: id}}, Deleted: true}
	for _, c := range []struct {
		name  string
		after rm.Action
		want  int
	}{{"moved", left, 0}, {"ended", rm.AppEnded{App: id}, 1}} {
		synctest.Test(t, func(t *testing.T) {
			calls := &cancelled{}
			s := &Server{secrets: newSecrets(time.Now(), Config{Machine: rm.Defaults(), KeyRoll: 24 * time.Hour})}
			s.Renewer = renewal.New(renewal.Config{
				Servers: map[string]renewal.Server{renewal.KindHDFS: calls}, Log: slog.New(slog.DiscardHandler),
			})
			ctx, stop := context.WithCancel(t.Context())
			go s.Renewer.Run(ctx)
			// The identifier has a version, an owner and a renewer.
			of := token.AppendText(token.AppendText([]byte{0}, "alice"), "yarn")
			held := token.Token{Kind: renewal.KindHDFS, Service: "nn:8020", Identifier: of}
			s.Renewer.Hold(id, "alice", token.Credentials{}.With("nn", held).Append(nil), true)
			synctest.Wait()
			if s.Renewer.Renewed() != 1 {
				t.Error("the token was not renewed")
			}
			s.perform(c.after)
			synctest.Wait()
			if calls.n != c.want || s.Renewer.Held() != 0 {
				t.Errorf("%s: %d cancelled, want %d; %d held", c.name, calls.n, c.want, s.Renewer.Held())
			}
			stop()
			synctest.Wait()
		})
	}
}

// elsewhere is the routers' part of the renewals.
type elsewhere struct{ renewed, cancelled int }

func (e *elsewhere) Renew(context.Context, token.Token) (time.Time, error) {
	e.renewed++
	return time.Now().Add(time.Hour), nil
}

func (e *elsewhere) Cancel(context.Context, token.Token) error { e.cancelled++; return nil }

// An application holds a delegation token of its secure ResourceManager, as a workflow engine's does, for several of
// its intervals. It is a login as long as the application runs, and ends with it. A token of the federation's routers
// is left to them.
func TestOwnTokensLiveAsLongAsTheirApplication(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		routers := &elsewhere{}
		const interval = time.Minute
		names, err := username.ParseRules("DEFAULT", "hadoop", "CREEL.TEST")
		if err != nil {
			t.Fatal(err)
		}
		s, err := New(Config{
			ClusterID: "test", Machine: rm.Defaults(), Tokens: token.Lifetimes{Renew: interval, Max: time.Hour},
			Secure: &Secure{Names: names}, Renewals: renewal.Config{Servers: map[string]renewal.Server{token.KindDelegation: routers}},
			Groups: groups.New(func(user string) []string { return []string{user} }, time.Minute),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		<-s.Ready()
		alice := Caller{User: "alice", Auth: audit.Kerberos}
		own, err := Do(ctx, s, alice, s.IssueToken(alice, "yarn/localhost@CREEL.TEST"))
		if err != nil {
			t.Fatal(err)
		}
		foreign := token.Delegation{Owner: "alice", Renewer: "router", Sequence: 77}
		other := token.NewMac(token.Key{ID: 9, Secret: []byte("of the routers")}).Delegation(foreign)
		app := creel.ApplicationID{ClusterTimestamp: 1, ID: 1}
		s.Renewer.Hold(app, "alice", token.Credentials{}.With("rm", own.Token).With("router", other).Append(nil), true)
		for range 5 {
			time.Sleep(interval)
			if who, err := TokenLogin(s, own.Token.URLString()); err != nil || who.User != "alice" {
				t.Fatalf("%+v, %v", who, err)
			}
		}
		s.Renewer.Release(app)
		synctest.Wait()
		if who, err := TokenLogin(s, own.Token.URLString()); err == nil {
			t.Errorf("after the application's end the token is a login of %+v", who)
		}
		if routers.renewed != 1 || routers.cancelled != 1 {
			t.Errorf("at the routers %d renewals, %d cancellations", routers.renewed, routers.cancelled)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

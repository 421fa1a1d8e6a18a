// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/amrmproxy/server"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/pauseclock"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/login"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rm is one ResourceManager of a pair: it counts the calls it gets, and serves them while
// it is active.
type rm struct {
	active, hangs     atomic.Bool
	hanging           func() // is called when it hangs; may be nil
	calls             atomic.Int64
	client, scheduler string
}

func (r *rm) serve(ctx context.Context, _ []byte) ([]byte, error) {
	r.calls.Add(1)
	if r.hangs.Load() {
		if r.hanging != nil {
			r.hanging()
		}
		<-ctx.Done()
	}
	if !r.active.Load() {
		return nil, &hrpc.RemoteError{Class: hrpc.ClassStandby, Message: "not active"}
	}
	return nil, nil
}

// listen serves one method of a protocol.
func listen(
	t *testing.T,
	conf hrpc.Config,
	protocol, method string,
	serve func(context.Context, []byte) ([]byte, error),
) string {
	conf.ErrorOf, conf.DrainTime = yarnrpc.ErrorOf, 10*time.Millisecond
	conf.Impersonate = func(string, string, netip.Addr) error { return nil }
	conf.Services = []hrpc.Service{
		{Protocol: protocol, Version: 1, Methods: map[string]hrpc.Method{method: {Raw: serve}}},
	}
	s, err := hrpc.NewServer(conf)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// byIdentifier has each token be its own password.
func byIdentifier(id []byte) ([]byte, hrpc.Identity, error) {
	return id, hrpc.Identity{User: string(id)}, nil
}

func startRM(t *testing.T) *rm {
	r := &rm{}
	r.client = listen(t, hrpc.Config{Simple: true}, yarnrpc.ApplicationClientProtocolName, "getApplicationReport", r.serve)
	r.scheduler = listen(t, hrpc.Config{Tokens: byIdentifier}, yarnrpc.ApplicationMasterProtocolName, "allocate", r.serve)
	return r
}

// viewOf is a federation of one pair.
func viewOf(pair []*rm) func() *subcluster.View {
	view := subcluster.NewView(time.Time{}, []subcluster.Status{{Member: subcluster.Member{
		ID: "sc-1", Addresses: subcluster.Addresses{
			Client:    pair[0].client + "," + pair[1].client,
			Scheduler: pair[0].scheduler + "," + pair[1].scheduler,
		},
	}}}, nil)
	return func() *subcluster.View { return view }
}

// Once one application, or one report, has found the active one of a pair, all others go
// there at once, at both ports; the AM that has logged in through us finds it too.
func TestAttemptsFollowActiveResourceManager(t *testing.T) {
	pair := []*rm{startRM(t), startRM(t)}
	r := New(viewOf(pair), login.Login{User: "proxy"}, nil, hrpc.ClientConfig{})
	defer r.Close()
	app := creel.ApplicationID{ClusterTimestamp: 1, ID: 1}
	allocate := func(attempt int32) error {
		_, err := r.Allocate(t.Context(), server.To{
			Member:     "sc-1",
			Attempt:    creel.AttemptID{Application: app, Attempt: attempt},
			Credential: &hrpc.Credential{Identifier: []byte("t"), Password: []byte("t"), Kind: "YARN_AM_RM_TOKEN"},
		}, &yarnpb.AllocateRequestProto{})
		return err
	}
	report := func() error {
		_, err := r.Report(t.Context(), "sc-1", "ann", app)
		return err
	}
	if err := errors.Join(report(), allocate(1)); !errors.Is(err, creel.ErrStandby) {
		t.Errorf("with none active: %v", err)
	}
	for _, now := range []int{1, 0} {
		pair[1-now].active.Store(false)
		pair[now].active.Store(true)
		before := pair[1-now].calls.Load()
		for attempt := range int32(5) {
			if err := errors.Join(allocate(attempt), report()); err != nil {
				t.Fatal(err)
			}
		}
		if n := pair[1-now].calls.Load() - before; n > 1 {
			t.Errorf("the standby got %d calls of 10, want the first alone", n)
		}
	}
	login, err := r.Login("sc-1")
	if err != nil {
		t.Fatal(err)
	}
	login.Close()
}

// throughUs is an AM that logs in through us at one of a pair, and calls there, with a second for each call while the
// first of the pair hangs. clock may be nil.
func throughUs(t *testing.T, pair []*rm, clock *pauseclock.Clock) (allocate func() error, logins *atomic.Int64) {
	t.Helper()
	r := New(viewOf(pair), login.Login{User: "proxy"}, clock, hrpc.ClientConfig{})
	var now atomic.Pointer[hrpc.RelayedLogin]
	logins = new(atomic.Int64)
	proxy := listen(t, hrpc.Config{
		Tokens: byIdentifier,
		Relay: func(id []byte) (*hrpc.RelayedLogin, func() hrpc.Identity, error) {
			login, err := r.Login("sc-1")
			now.Store(login)
			logins.Add(1)
			return login, func() hrpc.Identity { return hrpc.Identity{User: string(id)} }, err
		},
	}, yarnrpc.ApplicationMasterProtocolName, "allocate", func(ctx context.Context, _ []byte) ([]byte, error) {
		given := time.Minute
		if pair[0].hangs.Load() {
			given = time.Second
		}
		ctx, enough := context.WithTimeout(ctx, given)
		defer enough()
		_, err := r.Allocate(ctx, server.To{Member: "sc-1", Login: now.Load()}, &yarnpb.AllocateRequestProto{})
		return nil, err
	})
	client := hrpc.NewClient(hrpc.ClientConfig{})
	t.Cleanup(func() { client.Close(); r.Close() })
	token := &hrpc.Credential{Identifier: []byte("t"), Password: []byte("t"), Kind: "YARN_AM_RM_TOKEN"}
	am := yarnrpc.NewApplicationMasterProtocolClient(client, proxy, hrpc.Login{Credential: token})
	return func() error {
		_, err := am.Allocate(t.Context(), &yarnpb.AllocateRequestProto{})
		return err
	}, logins
}

// An AM has logged in through the proxy at one of a pair that hangs without closing its connections. It logs in at
// the successor after one call that timed out.
func TestProxiedAMLeavesSilentHalfOfPair(t *testing.T) {
	pair := []*rm{startRM(t), startRM(t)}
	pair[0].active.Store(true)
	allocate, _ := throughUs(t, pair, nil)
	if err := allocate(); err != nil {
		t.Fatal(err)
	}
	pair[0].hangs.Store(true)
	pair[1].active.Store(true)
	if err := allocate(); err == nil {
		t.Error("an answer of one that hangs")
	}
	silent, err := pair[0].calls.Load(), allocate()
	for err != nil && pair[0].calls.Load() == silent { // until its own connection to us has ended, too
		err = allocate()
	}
	if err != nil || pair[1].calls.Load() != 1 {
		t.Errorf("%v; its successor got %d calls", err, pair[1].calls.Load())
	}
}

// A call that timed out while this process was paused proves nothing about the member: the AM's login stays.
func TestAMLoginSurvivesOwnPause(t *testing.T) {
	pair := []*rm{startRM(t), startRM(t)}
	pair[0].active.Store(true)
	var slept atomic.Int64
	clock := pauseclock.NewClock(func() time.Time { return time.Now().Add(time.Duration(slept.Load())) }, nil)
	allocate, logins := throughUs(t, pair, clock)
	if err := allocate(); err != nil {
		t.Fatal(err)
	}
	pair[0].hanging = func() { slept.Add(int64(time.Minute)) } // while the call is on its way
	pair[0].hangs.Store(true)
	if err := allocate(); err == nil {
		t.Fatal("an answer of one that hangs")
	}
	pair[0].hangs.Store(false)
	if err := allocate(); err != nil || logins.Load() != 1 {
		t.Errorf("%v; the AM logged in %d times", err, logins.Load())
	}
}

// A call that comes late, with a login that has ended, neither puts it in the place of the one that followed nor
// leaves anything behind of an attempt that is over.
func TestEndedLoginIsNotStored(t *testing.T) {
	pair := []*rm{startRM(t), startRM(t)}
	pair[0].active.Store(true)
	r := New(viewOf(pair), login.Login{User: "proxy"}, nil, hrpc.ClientConfig{})
	defer r.Close()
	attempt := creel.AttemptID{Application: creel.ApplicationID{ClusterTimestamp: 1, ID: 1}, Attempt: 1}
	var logins [2]*hrpc.RelayedLogin
	call := func(l *hrpc.RelayedLogin) {
		ctx, enough := context.WithCancel(t.Context())
		enough() // it does not matter which member answers
		r.Allocate(ctx, server.To{Member: "sc-1", Attempt: attempt, Login: l}, &yarnpb.AllocateRequestProto{})
	}
	for i := range logins {
		var err error
		if logins[i], err = r.Login("sc-1"); err != nil {
			t.Fatal(err)
		}
		defer logins[i].Close()
		call(logins[i])
	}
	logins[0].Close()
	<-logins[0].Ended()
	call(logins[0])
	if p := r.peers[attempt]["sc-1"]; p == nil || p.login != logins[1] {
		t.Errorf("after a late call the attempt's login is %v, and was %p", p, logins[1])
	}
	r.Forget(attempt)
	call(logins[0])
	if len(r.peers) != 0 {
		t.Errorf("of an attempt that is over there is %v", r.peers)
	}
}

// SPDX-License-Identifier: Apache-2.0

// Package remote calls the ResourceManagers of the federation for the AM-RM proxy, over Hadoop RPC. It uses
// ApplicationMasterProtocol as an attempt, and ApplicationClientProtocol to launch and kill UAMs.
package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/amrmproxy/server"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/pauseclock"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/failover"
	"github.com/creelrm/creel/subcluster/login"
)

// Remote implements server.Members and amrmproxy.Clients.
type Remote struct {
	client *hrpc.Client
	view   func() *subcluster.View
	login  login.Login // of the calls that submit and kill UAMs
	clock  *pauseclock.Clock

	mu    sync.Mutex
	peers map[creel.AttemptID]map[creel.SubclusterID]*peer
	pairs map[creel.SubclusterID]*failover.Pair // the active host of each member
}

// peer has the clients of one attempt at one member.
type peer struct {
	addresses string
	token     string
	login     *hrpc.RelayedLogin // used instead of the token, at one of the addresses
	pair      *failover.Pair
	hosts     []yarnrpc.ApplicationMasterProtocolClient
	placing   []yarnrpc.DistributedSchedulingAMProtocolClient // none with a login
	at        time.Time
}

// New returns a Remote that calls members at the addresses in the view. as submits and kills UAMs on behalf of their
// owners (hadoop.proxyuser.*). The clock distinguishes pauses of this process from a member's silence; nil: pauses are
// ignored. Close the Remote after use.
func New(view func() *subcluster.View, as login.Login, clock *pauseclock.Clock, cfg hrpc.ClientConfig) *Remote {
	cfg.KindOf = yarnrpc.KindOf
	return &Remote{
		client: hrpc.NewClient(cfg),
		view:   view,
		login:  as,
		clock:  clock,
		peers:  map[creel.AttemptID]map[creel.SubclusterID]*peer{},
		pairs:  map[creel.SubclusterID]*failover.Pair{},
	}
}

// Close ends all connections.
func (r *Remote) Close() error { return r.client.Close() }

func (r *Remote) addresses(member creel.SubclusterID) (subcluster.Addresses, error) {
	m, ok := r.view().Member(member)
	if !ok {
		return subcluster.Addresses{}, &creel.Error{
			Kind: creel.ErrUnavailable,
			What: fmt.Sprintf("subcluster %s is not known", member),
			Why:  "the view has no member of that name",
			Try:  "see `creel subcluster list`",
		}
	}
	return m.Addresses, nil
}

// to returns the clients of an attempt at a member, one for each host of its scheduler. It makes them if needed.
func (r *Remote) to(to server.To) (*peer, error) {
	if to.Login != nil {
		return r.over(to), nil
	}
	a, err := r.addresses(to.Member)
	if err != nil {
		return nil, err
	}
	if to.Credential == nil {
		return nil, &creel.Error{Kind: creel.ErrInvalidToken, What: "no token for " + string(to.Member)}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.peersOf(to.Attempt)
	p := of[to.Member]
	if p == nil || p.addresses != a.Scheduler || p.token != string(to.Credential.Identifier) {
		p = &peer{addresses: a.Scheduler, token: string(to.Credential.Identifier), pair: r.pairOf(to.Member)}
		login := hrpc.Login{User: to.Attempt.String(), Credential: r.protected(to.Credential)}
		for _, host := range failover.Hosts(a.Scheduler) {
			p.hosts = append(p.hosts, yarnrpc.NewApplicationMasterProtocolClient(r.client, host, login))
			p.placing = append(p.placing, yarnrpc.NewDistributedSchedulingAMProtocolClient(r.client, host, login))
		}
		of[to.Member] = p
	}
	p.at = time.Now()
	return p, nil
}

// protected returns a token with the protections of this proxy's connections. Without Kerberos the member decides.
func (r *Remote) protected(token *hrpc.Credential) *hrpc.Credential {
	accepts := r.login.Accepts()
	if accepts == nil {
		return token
	}
	out := *token
	out.Protections = accepts
	return &out
}

// peersOf returns the clients of an attempt. The caller may change them, and must have the lock.
func (r *Remote) peersOf(attempt creel.AttemptID) map[creel.SubclusterID]*peer {
	of := r.peers[attempt]
	if of == nil {
		of = map[creel.SubclusterID]*peer{}
		r.peers[attempt] = of
	}
	return of
}

// pairOf returns the pair of a member's hosts. The caller must have the lock.
func (r *Remote) pairOf(member creel.SubclusterID) *failover.Pair {
	p := r.pairs[member]
	if p == nil {
		p = new(failover.Pair)
		r.pairs[member] = p
	}
	return p
}

// ask makes a call to the active host of a member. repeat, for calls that change nothing, also retries after the
// connection was lost during the call.
func (r *Remote) ask(
	ctx context.Context,
	member creel.SubclusterID,
	hosts string,
	repeat bool,
	call func(host string) error,
) error {
	r.mu.Lock()
	pair := r.pairOf(member)
	r.mu.Unlock()
	return failover.Each(ctx, pair, failover.Hosts(hosts), repeat, call)
}

// over returns the client of an attempt that uses the AM's login at its home. It makes the client if needed. A late
// call may have an ended login; its client is not stored. Otherwise it could replace the successor's client, or would
// never be removed.
func (r *Remote) over(to server.To) *peer {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.peers[to.Attempt][to.Member]
	if p == nil || p.login != to.Login {
		a, _ := r.addresses(to.Member) // if home is not in the view, the login stays in use
		p = &peer{
			addresses: a.Scheduler,
			login:     to.Login,
			pair:      r.pairOf(to.Member),
			hosts:     []yarnrpc.ApplicationMasterProtocolClient{{Caller: to.Login.Peer()}},
		}
		select {
		case <-to.Login.Ended():
		default:
			r.peersOf(to.Attempt)[to.Member] = p
		}
	}
	p.at = time.Now()
	return p
}

// ended processes the outcome of a call. pauses is the clock's count of pauses at the start of the call. An AM's
// login is at one host. If that host is one of a pair and was silent for the whole call, the login is closed. Then
// the AM's client logs in again, at the other host first. If this process paused during the call, the host does not
// count as silent.
func (r *Remote) ended(p *peer, err error, pauses time.Duration) error {
	if p.login == nil || !errors.Is(err, context.DeadlineExceeded) || r.clock.Paused() > pauses {
		return err
	}
	if hosts := failover.Hosts(p.addresses); len(hosts) > 1 {
		p.pair.Leave(hosts, p.login.Address())
		p.login.Close()
	}
	return err
}

// Login starts an AM's login at a member, for a token that only this member can check.
func (r *Remote) Login(member creel.SubclusterID) (l *hrpc.RelayedLogin, err error) {
	a, err := r.addresses(member)
	if err != nil {
		return nil, err
	}
	err = r.ask(context.Background(), member, a.Scheduler, true, func(host string) (err error) {
		l, err = r.client.Relay(host, yarnrpc.ApplicationMasterProtocolName)
		return err
	})
	if err == nil {
		return l, nil
	}
	return nil, &creel.Error{
		Kind: creel.ErrUnavailable,
		What: fmt.Sprintf("the AM cannot log in at its home %s", member),
		Why:  err.Error(),
		Try:  "try again; is its ResourceManager up?",
	}
}

// Forget drops the state of an attempt.
func (r *Remote) Forget(a creel.AttemptID) {
	r.mu.Lock()
	delete(r.peers, a)
	r.mu.Unlock()
}

// Register implements server.Members.
func (r *Remote) Register(
	ctx context.Context,
	to server.To,
	req *yarnpb.RegisterApplicationMasterRequestProto,
) (out *yarnpb.RegisterApplicationMasterResponseProto, err error) {
	pauses := r.clock.Paused()
	p, err := r.to(to)
	if err != nil {
		return nil, err
	}
	err = failover.Each(ctx, p.pair, p.hosts, false, func(c yarnrpc.ApplicationMasterProtocolClient) (e error) {
		out, e = c.RegisterApplicationMaster(ctx, req)
		return e
	})
	return out, r.ended(p, err, pauses)
}

// Allocate implements server.Members.
func (r *Remote) Allocate(
	ctx context.Context,
	to server.To,
	req *yarnpb.AllocateRequestProto,
) (out *yarnpb.AllocateResponseProto, err error) {
	pauses := r.clock.Paused()
	p, err := r.to(to)
	if err != nil {
		return nil, err
	}
	if len(p.hosts) == 1 {
		out, err = p.hosts[0].AllocatePassed(ctx, req)
		return out, r.ended(p, err, pauses)
	}
	err = failover.Each(ctx, p.pair, p.hosts, false, func(c yarnrpc.ApplicationMasterProtocolClient) (e error) {
		out, e = c.AllocatePassed(ctx, req)
		return e
	})
	return out, err
}

// Finish implements server.Members.
func (r *Remote) Finish(
	ctx context.Context,
	to server.To,
	req *yarnpb.FinishApplicationMasterRequestProto,
) (out *yarnpb.FinishApplicationMasterResponseProto, err error) {
	pauses := r.clock.Paused()
	p, err := r.to(to)
	if err != nil {
		return nil, err
	}
	err = failover.Each(ctx, p.pair, p.hosts, false, func(c yarnrpc.ApplicationMasterProtocolClient) (e error) {
		out, e = c.FinishApplicationMaster(ctx, req)
		return e
	})
	return out, r.ended(p, err, pauses)
}

// clients calls do with a client of the member as user.
func (r *Remote) clients(
	ctx context.Context,
	member creel.SubclusterID,
	user string,
	repeat bool,
	do func(yarnrpc.ApplicationClientProtocolClient) error,
) error {
	a, err := r.addresses(member)
	if err != nil {
		return err
	}
	return r.ask(ctx, member, a.Client, repeat, func(host string) error {
		return do(yarnrpc.NewApplicationClientProtocolClient(r.client, host, r.login.RPC(host, user)))
	})
}

// as returns the user of a call, also when the owner is unknown.
func (r *Remote) as(user string) string { return cmp.Or(user, r.login.User, "yarn") }

// NewID implements amrmproxy.Clients.
func (r *Remote) NewID(ctx context.Context, member creel.SubclusterID, user string) (creel.ApplicationID, error) {
	var out *yarnpb.GetNewApplicationResponseProto
	err := r.clients(ctx, member, r.as(user), true, func(c yarnrpc.ApplicationClientProtocolClient) (e error) {
		out, e = c.GetNewApplication(ctx, &yarnpb.GetNewApplicationRequestProto{})
		return e
	})
	return yarnpb.ToApplicationID(out.GetApplicationId()), err
}

// Submit implements amrmproxy.Clients.
func (r *Remote) Submit(
	ctx context.Context,
	member creel.SubclusterID,
	user string,
	app *yarnpb.ApplicationSubmissionContextProto,
) error {
	return r.clients(ctx, member, r.as(user), false, func(c yarnrpc.ApplicationClientProtocolClient) error {
		_, err := c.SubmitApplication(ctx, &yarnpb.SubmitApplicationRequestProto{ApplicationSubmissionContext: app})
		return err
	})
}

// Report implements amrmproxy.Clients.
func (r *Remote) Report(
	ctx context.Context,
	member creel.SubclusterID,
	user string,
	app creel.ApplicationID,
) (*yarnpb.ApplicationReportProto, error) {
	var out *yarnpb.GetApplicationReportResponseProto
	err := r.clients(ctx, member, r.as(user), true, func(c yarnrpc.ApplicationClientProtocolClient) (e error) {
		out, e = c.GetApplicationReport(
			ctx,
			&yarnpb.GetApplicationReportRequestProto{ApplicationId: yarnpb.FromApplicationID(app)},
		)
		return e
	})
	return out.GetApplicationReport(), err
}

// Kill implements amrmproxy.Clients.
func (r *Remote) Kill(
	ctx context.Context,
	member creel.SubclusterID,
	user string,
	app creel.ApplicationID,
	why string,
) (bool, error) {
	var out *yarnpb.KillApplicationResponseProto
	err := r.clients(ctx, member, r.as(user), false, func(c yarnrpc.ApplicationClientProtocolClient) (e error) {
		out, e = c.ForceKillApplication(ctx, &yarnpb.KillApplicationRequestProto{
			ApplicationId: yarnpb.FromApplicationID(app),
			Diagnostics:   proto.String(why),
		})
		return e
	})
	return out.GetIsKillCompleted(), err
}

// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/amrmproxy"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster"
)

// Remote is Masters and Launcher over Hadoop RPC.
type Remote struct {
	client *hrpc.Client
	view   func() *subcluster.View
	proxy  string // who we are when we act for users; "" says to be them

	mu    sync.Mutex
	peers map[creel.AttemptID]map[creel.SubclusterID]*peer
}

// peer is how one attempt speaks to one member.
type peer struct {
	addresses string
	token     string
	hosts     []yarnrpc.ApplicationMasterProtocolClient
	used      int // the host that answered last
	at        time.Time
}

// NewRemote speaks to members at the addresses that the view has for them.
// impersonator, if not "", is the user that submits and kills twins on behalf
// of their owners (hadoop.proxyuser.*); otherwise the owner's name is simply
// said, which ResourceManagers without Kerberos believe. Close it.
func NewRemote(view func() *subcluster.View, impersonator string, cfg hrpc.ClientConfig) *Remote {
	cfg.KindOf = yarnrpc.KindOf
	return &Remote{
		client: hrpc.NewClient(cfg),
		view:   view,
		proxy:  impersonator,
		peers:  map[creel.AttemptID]map[creel.SubclusterID]*peer{},
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

// to finds or makes the clients of an attempt at a member, one for each host of
// its scheduler.
func (r *Remote) to(to To) (*peer, error) {
	a, err := r.addresses(to.Member)
	if err != nil {
		return nil, err
	}
	if to.Credential == nil {
		return nil, &creel.Error{Kind: creel.ErrInvalidToken, What: "no token for " + string(to.Member)}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.peers[to.Attempt]
	if of == nil {
		of = map[creel.SubclusterID]*peer{}
		r.peers[to.Attempt] = of
	}
	p := of[to.Member]
	if p == nil || p.addresses != a.Scheduler || p.token != string(to.Credential.Identifier) {
		p = &peer{addresses: a.Scheduler, token: string(to.Credential.Identifier)}
		for host := range strings.SplitSeq(a.Scheduler, ",") {
			login := hrpc.Login{User: to.Attempt.String(), Credential: to.Credential}
			p.hosts = append(
				p.hosts,
				yarnrpc.NewApplicationMasterProtocolClient(r.client, strings.TrimSpace(host), login),
			)
		}
		of[to.Member] = p
	}
	p.at = time.Now()
	return p, nil
}

// Forget lets go of what is kept for an attempt.
func (r *Remote) Forget(a creel.AttemptID) {
	r.mu.Lock()
	delete(r.peers, a)
	r.mu.Unlock()
}

// each tries the hosts of a member, the one that answered last first, until one
// is neither standby nor out of reach.
func (r *Remote) each(p *peer, call func(yarnrpc.ApplicationMasterProtocolClient) error) error {
	r.mu.Lock()
	first := p.used
	r.mu.Unlock()
	var err error
	for i := range p.hosts {
		at := (first + i) % len(p.hosts)
		if err = call(p.hosts[at]); err == nil || !elsewhere(err) {
			if at != first {
				r.mu.Lock()
				p.used = at
				r.mu.Unlock()
			}
			return err
		}
	}
	return err
}

// elsewhere tells whether another host of an HA pair may do better.
func elsewhere(err error) bool {
	if errors.Is(err, creel.ErrStandby) {
		return true
	}
	var t *hrpc.TransportError
	return errors.As(err, &t) && !t.Sent
}

// Register implements Masters.
func (r *Remote) Register(
	ctx context.Context,
	to To,
	req *yarnpb.RegisterApplicationMasterRequestProto,
) (out *yarnpb.RegisterApplicationMasterResponseProto, err error) {
	p, err := r.to(to)
	if err != nil {
		return nil, err
	}
	err = r.each(p, func(c yarnrpc.ApplicationMasterProtocolClient) (e error) {
		out, e = c.RegisterApplicationMaster(ctx, req)
		return e
	})
	return out, err
}

// Allocate implements Masters.
func (r *Remote) Allocate(
	ctx context.Context,
	to To,
	req *yarnpb.AllocateRequestProto,
) (out *yarnpb.AllocateResponseProto, err error) {
	p, err := r.to(to)
	if err != nil {
		return nil, err
	}
	if len(p.hosts) == 1 {
		return p.hosts[0].Allocate(ctx, req)
	}
	err = r.each(
		p,
		func(c yarnrpc.ApplicationMasterProtocolClient) (e error) { out, e = c.Allocate(ctx, req); return e },
	)
	return out, err
}

// Finish implements Masters.
func (r *Remote) Finish(
	ctx context.Context,
	to To,
	req *yarnpb.FinishApplicationMasterRequestProto,
) (out *yarnpb.FinishApplicationMasterResponseProto, err error) {
	p, err := r.to(to)
	if err != nil {
		return nil, err
	}
	err = r.each(p, func(c yarnrpc.ApplicationMasterProtocolClient) (e error) {
		out, e = c.FinishApplicationMaster(ctx, req)
		return e
	})
	return out, err
}

// clients calls do with a client of the member as user, host after host.
func (r *Remote) clients(
	member creel.SubclusterID,
	user string,
	do func(yarnrpc.ApplicationClientProtocolClient) error,
) error {
	a, err := r.addresses(member)
	if err != nil {
		return err
	}
	login := hrpc.Login{User: user}
	if r.proxy != "" && r.proxy != user {
		login.RealUser = r.proxy
	}
	for host := range strings.SplitSeq(a.Client, ",") {
		if err = do(
			yarnrpc.NewApplicationClientProtocolClient(r.client, strings.TrimSpace(host), login),
		); err == nil ||
			!elsewhere(err) {
			return err
		}
	}
	return err
}

// asker is who asks for reports when the owner is not known.
func (r *Remote) asker() string {
	if r.proxy != "" {
		return r.proxy
	}
	return "yarn"
}

func (r *Remote) report(
	ctx context.Context,
	member creel.SubclusterID,
	user string,
	app creel.ApplicationID,
) (*yarnpb.ApplicationReportProto, error) {
	var out *yarnpb.GetApplicationReportResponseProto
	err := r.clients(member, user, func(c yarnrpc.ApplicationClientProtocolClient) (e error) {
		out, e = c.GetApplicationReport(
			ctx,
			&yarnpb.GetApplicationReportRequestProto{ApplicationId: yarnpb.FromApplicationID(app)},
		)
		return e
	})
	return out.GetApplicationReport(), err
}

// Over implements Launcher.
func (r *Remote) Over(ctx context.Context, home creel.SubclusterID, app creel.ApplicationID) (bool, error) {
	report, err := r.report(ctx, home, r.asker(), app)
	if errors.Is(err, creel.ErrApplicationNotFound) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return creel.ApplicationState(report.GetYarnApplicationState()).Ended(), nil
}

// owner finds who owns the application: the ResourceManager gives the token of
// an unmanaged master to that very user only.
func (r *Remote) owner(
	ctx context.Context,
	home creel.SubclusterID,
	app creel.ApplicationID,
	known string,
) (string, error) {
	if known != "" {
		return known, nil
	}
	report, err := r.report(ctx, home, r.asker(), app)
	if err != nil {
		return "", fmt.Errorf("who owns %s: %w", app, err)
	}
	if report.GetUser() == "" {
		return "", &creel.Error{Kind: creel.ErrUnavailable, What: "the home does not say who owns " + app.String()}
	}
	return report.GetUser(), nil
}

// Launch implements Launcher, by the steps of Hadoop's unmanaged launcher:
// submit, wait until the attempt is launched, read its token from the report.
// It may be repeated: a ResourceManager takes the same id twice without change.
func (r *Remote) Launch(ctx context.Context, l amrmproxy.Launch) (amrmproxy.Launched, error) {
	out := amrmproxy.Launched{Member: l.Member}
	user, err := r.owner(ctx, l.Home, l.Application, l.User)
	if err != nil {
		return out, err
	}
	out.User = user
	err = r.clients(l.Member, user, func(c yarnrpc.ApplicationClientProtocolClient) error {
		_, e := c.SubmitApplication(
			ctx,
			&yarnpb.SubmitApplicationRequestProto{ApplicationSubmissionContext: twinContext(l)},
		)
		return e
	})
	if err != nil {
		return out, fmt.Errorf("submit the twin to %s: %w", l.Member, err)
	}
	pause := 5 * time.Millisecond
	for {
		report, err := r.report(ctx, l.Member, user, l.Application)
		if err != nil {
			return out, fmt.Errorf("report of the twin in %s: %w", l.Member, err)
		}
		if t := report.GetAmRmToken(); len(t.GetPassword()) > 0 {
			out.Token, out.Attempt = t, yarnpb.ToAttemptID(report.GetCurrentApplicationAttemptId())
			return out, nil
		}
		switch state := creel.ApplicationState(report.GetYarnApplicationState()); {
		case state.Ended():
			return out, &creel.Error{
				Kind: creel.ErrConflict,
				What: fmt.Sprintf("the twin in %s is %s", l.Member, state),
				Why:  report.GetDiagnostics(),
				Try:  "a ResourceManager takes an application id once",
			}
		case state == creel.AppRunning:
			return out, &creel.Error{
				Kind: creel.ErrConflict,
				What: fmt.Sprintf("the twin in %s has registered before", l.Member),
				Why:  "its token is told only before that, and is lost",
				Try:  "kill it there",
			}
		}
		select {
		case <-ctx.Done():
			return out, &creel.Error{
				Kind: creel.ErrUnavailable,
				What: fmt.Sprintf("the twin in %s was not launched in time", l.Member),
				Why:  ctx.Err().Error(),
				Try:  "is its queue full?",
			}
		case <-time.After(pause):
		}
		pause = min(2*pause, 200*time.Millisecond)
	}
}

// twinContext is the submission of a twin.
func twinContext(l amrmproxy.Launch) *yarnpb.ApplicationSubmissionContextProto {
	return &yarnpb.ApplicationSubmissionContextProto{
		ApplicationId:                           yarnpb.FromApplicationID(l.Application),
		ApplicationName:                         proto.String(l.Name),
		Queue:                                   proto.String(string(l.Queue)),
		UnmanagedAm:                             proto.Bool(true),
		AmContainerSpec:                         &yarnpb.ContainerLaunchContextProto{},
		Resource:                                yarnpb.FromResource(creel.Resource{MemoryMB: 1024, VCores: 1}),
		Priority:                                yarnpb.FromPriority(0),
		KeepContainersAcrossApplicationAttempts: proto.Bool(true),
		MaxAppAttempts:                          proto.Int32(1),
	}
}

// Drop implements Launcher.
func (r *Remote) Drop(ctx context.Context, d amrmproxy.Drop) error {
	user, err := r.owner(ctx, d.Home, d.Application, d.User)
	if err != nil {
		user = r.asker()
	}
	pause := 10 * time.Millisecond
	for {
		var out *yarnpb.KillApplicationResponseProto
		err = r.clients(d.Member, user, func(c yarnrpc.ApplicationClientProtocolClient) (e error) {
			out, e = c.ForceKillApplication(
				ctx,
				&yarnpb.KillApplicationRequestProto{
					ApplicationId: yarnpb.FromApplicationID(d.Application),
					Diagnostics:   proto.String("its master has ended"),
				},
			)
			return e
		})
		if errors.Is(err, creel.ErrApplicationNotFound) {
			return nil
		}
		if err != nil || out.GetIsKillCompleted() {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		pause = min(2*pause, 200*time.Millisecond)
	}
}

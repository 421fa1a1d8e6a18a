// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/creelrm/creel/app/daemon"
	"github.com/creelrm/creel/app/daemon/health"
	"github.com/creelrm/creel/app/daemon/webserver"
	"github.com/creelrm/creel/internal/servlets"
	pairserver "github.com/creelrm/creel/subcluster/rm/pair/server"
	rmrpc "github.com/creelrm/creel/subcluster/rm/rpc"
	"github.com/creelrm/creel/subcluster/rm/server"
	"github.com/creelrm/creel/subcluster/rm/state"
)

// RMPair is one ResourceManager of an HA pair. Its web port and its admin port are always open. Everything else runs
// while it is active.
type RMPair struct {
	daemon.Service
	Driver *pairserver.Server

	conf     RMConfig
	follower state.Follower
	active   atomic.Pointer[activeRM] // nil at the standby
	figures  *webserver.Figures
	bound    server.Addresses // of the two ports
	started  time.Time
}

// activeRM is an assembled ResourceManager with its running services.
type activeRM struct {
	*RM
	*daemon.Running
	parts *rmParts
	of    *RMPair
}

// Stop implements pairserver.Services.
func (a *activeRM) Stop() error {
	a.of.active.CompareAndSwap(a, nil)
	return a.Running.Stop()
}

// NewRMPair assembles one of an HA pair, as a standby.
func NewRMPair(c RMConfig) (_ *RMPair, err error) {
	p := &RMPair{
		Service: daemon.Service{Health: health.New()}, conf: c, figures: webserver.NewFigures(), started: time.Now(),
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	if p.follower, err = c.Pair.State.follow(); err != nil {
		return nil, err
	}
	p.OnClose(p.follower.Close)
	lease, term, closeLease, err := c.Pair.State.lease(c.Pair.Pair.Lease)
	if err != nil {
		return nil, err
	}
	p.OnClose(closeLease)
	c.Pair.Pair.Lease = term
	p.Driver = pairserver.New(pairserver.Config{
		Pair: c.Pair.Pair, ID: c.Pair.ID, Lease: lease, Follow: p.follower.Follow, Begin: p.begin, Log: c.Log,
	})
	p.Reload = func(ctx context.Context) error {
		if a := p.active.Load(); a != nil {
			return a.Server.RefreshQueues(ctx)
		}
		return nil
	}
	ports, admin, err := rmrpc.ListenAdmin(c.Ports, rmrpc.PairConfig{
		Pair: *p.pair(), Automatic: c.Pair.Pair.Automatic, Active: p.server, Lead: p.Driver.Lead,
		StandBy: p.Driver.StandBy, Gate: server.NewGate(c.RM), Log: c.Log,
	})
	if err != nil {
		return nil, err
	}
	p.AddSelfClosing("admin port", ports.Run, ports.Close)
	c.REST.Pages.Ports = &servlets.Ports{}
	ports.Each(c.REST.Pages.Ports.Add)
	c.WebServer.Figures = p.figures
	p.Health.Register(p.figures)
	web, err := addWeb(&p.Service, c.WebKey, c.Web, p.site(c.REST.Pages), c.WebServer)
	if err != nil {
		return nil, err
	}
	p.bound = server.Addresses{Admin: admin, Web: web}
	p.Entries = []daemon.Entry{daemon.NewEntry("rm", map[string]string{
		"client": c.Ports.Client, "scheduler": c.Ports.Scheduler, "tracker": c.Ports.Tracker,
		"admin": admin, "web": web,
	})}
	p.Add("pair", p.Driver.Run) // last: the services end first, with the streams of their pages
	return p, nil
}

// server returns the active server in this process, or nil.
func (p *RMPair) server() *server.Server {
	if a := p.active.Load(); a != nil {
		return a.Server
	}
	return nil
}

func (p *RMPair) pair() *server.Pair { return &server.Pair{ID: p.conf.Pair.ID, Leads: p.Driver.Leads} }

// begin takes over: it opens the state with the standby's copy, and starts the services.
func (p *RMPair) begin() (pairserver.Services, error) {
	c := p.conf
	if fresh, err := p.conf.Pair.Fresh(); err == nil {
		c = fresh
	} else {
		c.Log.Error("failed to read the settings for the takeover: those of the start apply", "error", err)
	}
	c.RM.Pair, c.RM.State = p.pair(), p.lead
	c.Ports.Pair = c.RM.Pair
	r, parts, err := newRM(c)
	if err != nil {
		return nil, err
	}
	r.Health.Register(p.figures)
	parts.site.Mount(parts.mux)
	r.Add("pages", parts.site.Run)
	r.publish(c, parts.alone, p.bound)
	a := &activeRM{RM: r, parts: parts, of: p}
	a.Running = r.Start()
	p.active.Store(a)
	return a, nil
}

func (p *RMPair) lead() (state.Log, error) {
	ctx, cancel := context.WithTimeout(context.Background(), storePatience)
	defer cancel()
	return p.follower.Lead(ctx)
}

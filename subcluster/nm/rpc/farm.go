// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/yarnrpc"
	"github.com/creelrm/creel/subcluster/nm/server"
)

// Config has a Farm's addresses and its ResourceManager; the embedded server.Config describes the nodes. Zero values
// mean the defaults in brackets. The nodes' HTTPPort is that of one web server for all of them; 0 = any.
type Config struct {
	server.Config

	Tracker string // host:port of the ResourceManager's resource tracker
	Nodes   int    // number of nodes
	First   int    // number of the first node, so that several farms have different nodes [0]
	User    string // user of the calls to the ResourceManager [yarn]
	Port    int    // of ContainerManagementProtocol; 0 = any
	// PortEach assigns each node a port on 127.0.0.1 instead of a separate address. Systems other than Linux always
	// do.
	PortEach    bool
	Connections int // to the tracker [4]
}

// Farm is a set of simulated nodes with their protocols: New listens, Run runs them.
type Farm struct {
	*server.Farm
	cfg       Config
	listeners []net.Listener
	web       net.Listener
}

// New checks a Config and listens. It starts no goroutine; call Run or Close afterwards.
func New(cfg Config) (*Farm, error) {
	if cfg.Nodes <= 0 || cfg.First < 0 || cfg.First+cfg.Nodes > maxNodes {
		return nil, fmt.Errorf(
			"nodes: %d beginning with number %d; give 1 to %d in all",
			cfg.Nodes,
			cfg.First,
			maxNodes,
		)
	}
	if cfg.Tracker == "" {
		return nil, errors.New("nodes: the address of the ResourceManager's tracker is not set")
	}
	cfg.User = cmp.Or(cfg.User, "yarn")
	cfg.Connections = cmp.Or(cfg.Connections, 4)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	ids, listeners, err := listen(cfg)
	if err != nil {
		return nil, fmt.Errorf("nodes: %w", err)
	}
	f := &Farm{cfg: cfg, listeners: listeners}
	if f.web, err = listenWeb(cfg); err != nil {
		return nil, errors.Join(fmt.Errorf("nodes: %w", err), f.Close())
	}
	cfg.HTTPPort = int32(f.web.Addr().(*net.TCPAddr).Port)
	if f.Farm, err = server.New(cfg.Config, ids); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Close releases the sockets of New, for a Farm on which Run was not called.
func (f *Farm) Close() error {
	var errs []error
	for _, l := range f.listeners {
		errs = append(errs, l.Close())
	}
	if f.web != nil {
		errs = append(errs, f.web.Close())
	}
	return errors.Join(errs...)
}

// Run registers the nodes and simulates them until the context ends.
func (f *Farm) Run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	containers := hrpc.Config{
		Services: []hrpc.Service{yarnrpc.ContainerManagementProtocolService(&handler{farm: f.Farm})},
		Tokens:   f.checkNMToken, ErrorOf: yarnrpc.ErrorOf, Logger: f.cfg.Logger, MaxConnections: 100_000,
	}
	var work sync.WaitGroup
	for _, l := range f.listeners {
		s, err := hrpc.NewServer(containers)
		if err != nil {
			return err
		}
		work.Go(func() {
			if err := s.Run(ctx, l); err != nil {
				stop(fmt.Errorf("nodes: %w", err))
			}
		})
	}
	web := f.webServer()
	work.Go(func() {
		if err := web.Serve(f.web); !errors.Is(err, http.ErrServerClosed) {
			stop(fmt.Errorf("nodes: %w", err))
		}
	})
	work.Go(func() {
		<-ctx.Done()
		_ = web.Close()
	})
	var trackers []server.Tracker
	for range f.cfg.Connections {
		c := hrpc.NewClient(hrpc.ClientConfig{KindOf: yarnrpc.KindOf, Logger: f.cfg.Logger})
		work.Go(func() {
			<-ctx.Done()
			_ = c.Close()
		})
		trackers = append(
			trackers,
			yarnrpc.NewResourceTrackerClient(c, f.cfg.Tracker, hrpc.Login{User: f.cfg.User}),
		)
	}
	f.Farm.Run(ctx, trackers)
	work.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

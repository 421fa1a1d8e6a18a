// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/amrmproxy/keys"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/remote"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/rest"
	rmrpc "github.com/creelrm/creel/subcluster/rm/rpc"
	"github.com/go-chi/chi/v5"
	"github.com/spf13/cobra"
)

// membership is a ResourceManager's place in a federation; a plain one has none.
type membership struct {
	id     creel.SubclusterID
	store  statestore.Store
	secret func(context.Context) ([]statestore.Key, error)
	lease  time.Duration
	beat   time.Duration
	proxy  string // address of the AM-RM proxy beside it, told to others
	host   string // told to others for doors that listen on every interface
}

// reachable is the address others call a door by: the one it listens on, with
// the member's host where that is every interface.
func (m *membership) reachable(bound string) string {
	host, port, err := net.SplitHostPort(bound)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsUnspecified() || m.host == "" {
		return bound
	}
	return net.JoinHostPort(m.host, port)
}

// ownHost is the host of a configured address, or this machine's name where
// that names every interface.
func ownHost(configured string) (string, error) {
	host, _, err := net.SplitHostPort(configured)
	if ip := net.ParseIP(host); err == nil && host != "" && (ip == nil || !ip.IsUnspecified()) {
		return host, nil
	}
	return os.Hostname()
}

// rmParts is a ResourceManager assembled.
type rmParts struct {
	entry  readyEntry
	daemon *rmrpc.Daemon
	health *health
	parts  []part
}

// newRM assembles a ResourceManager: its daemon, its web door and, in a
// federation, its membership. All ports are bound when it returns.
func newRM(c rmrpc.Config, web string, door rest.Config, member *membership) (*rmParts, error) {
	d, err := rmrpc.New(c)
	if err != nil {
		return nil, err
	}
	h := newHealth()
	m := d.Metrics()
	h.counter(
		"creel_rm_node_heartbeats_total",
		"Heartbeats of nodes.",
		func() float64 { return float64(m.Beats.Load()) },
	)
	h.counter(
		"creel_rm_allocates_total",
		"Allocate calls of masters.",
		func() float64 { return float64(m.Allocates.Load()) },
	)
	h.counter(
		"creel_rm_submissions_total",
		"Applications submitted.",
		func() float64 { return float64(m.Submissions.Load()) },
	)
	h.counter("creel_rm_launches_total", "Masters started.", func() float64 { return float64(m.Launches.Load()) })
	mux := chi.NewRouter()
	h.mount(mux)
	rest.New(d, door).Mount(mux)
	at, runWeb, err := webServer(web, mux)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	d.SetWeb(at)
	a := d.Addresses()
	r := &rmParts{
		daemon: d,
		health: h,
		entry: readyEntry{
			Role: "rm",
			Addresses: map[string]string{
				"client":    a.Client,
				"scheduler": a.Scheduler,
				"tracker":   a.Tracker,
				"admin":     a.Admin,
				"web":       at,
			},
		},
		parts: []part{{"resource manager", d.Run}, {"resource manager web door", runWeb}},
	}
	if member != nil {
		agent := &remote.Agent{
			Store:  member.store,
			Probe:  probe(d),
			Every:  member.beat,
			Logger: c.Logger,
			Member: subcluster.Member{
				ID:      member.id,
				Epoch:   d.Started().UnixMilli(),
				Lease:   member.lease,
				Version: "creel " + readBuild().Version,
				Addresses: subcluster.Addresses{
					Client:    member.reachable(a.Client),
					Scheduler: member.reachable(a.Scheduler),
					Admin:     member.reachable(a.Admin),
					Tracker: member.reachable(
						a.Tracker,
					),
					Web:   member.reachable(at),
					Proxy: member.reachable(member.proxy),
				},
			},
		}
		r.parts = append(
			r.parts,
			part{"membership", agent.Run},
			part{"token keys", func(ctx context.Context) error { return publishKeys(ctx, d, member, c.Logger) }},
		)
	}
	return r, nil
}

// publishKeys keeps the federation's proxies able to tell our masters.
func publishKeys(ctx context.Context, d *rmrpc.Daemon, member *membership, log *slog.Logger) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	said := ""
	for {
		secret, err := member.secret(ctx)
		if err == nil {
			err = keys.Publish(ctx, member.store, member.id, d.AMRMKeys(), secret)
		}
		now := ""
		if err != nil && ctx.Err() == nil {
			now = err.Error()
		}
		if now != said {
			log.Warn("token keys", "subcluster", member.id, "error", now)
			said = now
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// probe tells how a ResourceManager of this process is.
func probe(d *rmrpc.Daemon) remote.Probe {
	var last int64
	var at time.Time
	return func(ctx context.Context) ([]byte, error) {
		var load subcluster.Load
		err := d.Query(ctx, func(m *rm.Machine, now time.Time) {
			v := m.Cluster()
			load.Metrics = rest.Metrics(&v)
			if s := now.Sub(at).Seconds(); s > 0 && !at.IsZero() {
				load.Metrics.ContainersPerSecond = int64(float64(v.Granted-last) / s)
			}
			last, at = v.Granted, now
			for q := range m.Queues {
				load.Queues = append(
					load.Queues,
					subcluster.QueueLoad{
						Queue:    q.Path,
						Capacity: q.Guaranteed,
						Used:     q.Used,
						Pending:  q.Pending,
						Free: q.Max.Sub(q.Used).
							Min(v.Available).
							Max(creel.Resource{}),
						AppsPending: int64(q.PendingApps),
						AppsRunning: int64(q.ActiveApps),
					},
				)
			}
		})
		if err != nil {
			return nil, err
		}
		return load.JSON()
	}
}

// clusterSecret reads the secret that seals what is shared through the store:
// from a file, or one that the first to ask makes and keeps in the store.
func clusterSecret(store statestore.Keys, file string) (func(context.Context) ([]statestore.Key, error), error) {
	if file != "" {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("creel.cluster.secret-file: %w", err)
		}
		if len(b) < 16 {
			return nil, fmt.Errorf(
				"creel.cluster.secret-file: %s holds %d bytes; give it at least 16 random ones",
				file,
				len(b),
			)
		}
		keys := []statestore.Key{{ID: 1, Secret: b}}
		return func(context.Context) ([]statestore.Key, error) { return keys, nil }, nil
	}
	const ring = "cluster"
	return func(ctx context.Context) ([]statestore.Key, error) {
		for {
			keys, err := store.Keys(ctx, ring)
			if err != nil || len(keys) > 0 {
				return keys, err
			}
			fresh := make([]byte, 32)
			if _, err := rand.Read(fresh); err != nil {
				return nil, err
			}
			if _, err := store.RotateKey(ctx, ring, 0, fresh, 0); err != nil && !errors.Is(err, creel.ErrConflict) {
				return nil, err
			}
		}
	}, nil
}

func rmCommand() *cobra.Command {
	var f daemonFlags
	c := daemonCommand(
		"rm",
		"a ResourceManager, alone or as a member of a federation",
		&f,
		func(ctx context.Context, s *settings.Settings, f *daemonFlags) (*daemon, error) {
			conf, err := rmConfig(s)
			if err != nil {
				return nil, err
			}
			if conf.Dir = f.data; conf.Dir == "" {
				conf.Dir = s.String("creel.rm.data")
			}
			d := &daemon{}
			var member *membership
			id := creel.SubclusterID(f.subcluster)
			if id == "" {
				id = creel.SubclusterID(s.String("creel.subcluster.id"))
			}
			if f.store != "" || s.String("creel.store.url") != "memory" {
				if id == "" {
					id = creel.SubclusterID(s.String("yarn.resourcemanager.cluster-id"))
				}
				if err := subcluster.ValidID(id); err != nil {
					return nil, usage(
						fmt.Errorf("a member needs a name: --subcluster ID or creel.subcluster.id: %w", err),
					)
				}
				store, closeStore, err := openStore(ctx, f.store, s)
				if err != nil {
					return nil, err
				}
				d.close = append(d.close, closeStore)
				secret, err := clusterSecret(store, s.String("creel.cluster.secret-file"))
				if err != nil {
					return nil, usage(err)
				}
				host, err := ownHost(s.Address("yarn.resourcemanager.address"))
				if err != nil {
					return nil, err
				}
				member = &membership{
					id:     id,
					host:   host,
					store:  store,
					secret: secret,
					lease:  s.Duration("creel.membership.lease"),
					beat:   s.Duration("creel.membership.beat-interval"),
					proxy:  s.Address("yarn.nodemanager.amrmproxy.address"),
				}
			}
			if conf.ClusterID == "" {
				conf.ClusterID = string(id)
			}
			door := rest.Config{
				StaticUser:   s.String("hadoop.http.staticuser.user"),
				MaxBody:      s.Bytes("creel.http.max-request-size"),
				MaxContainer: conf.Machine.MaxAllocation,
			}
			door.Properties = func() []rest.Property {
				var out []rest.Property
				for _, e := range s.Effective(true) {
					out = append(out, rest.Property{Name: e.Key, Value: e.Value, Source: e.Origin})
				}
				return out
			}
			for _, t := range conf.Machine.ResourceTypes {
				door.Resources = append(door.Resources, t.Name)
			}
			r, err := newRM(
				conf,
				s.Listen("yarn.resourcemanager.webapp.address", "yarn.resourcemanager.bind-host"),
				door,
				member,
			)
			if err != nil {
				return nil, err
			}
			d.entries, d.parts, d.health = []readyEntry{own(r.entry)}, r.parts, r.health
			return d, nil
		},
	)
	c.AddCommand(repairCommand())
	c.Flags().StringVar(&f.data, "data", "", "keep the journal in `DIR`; without it nothing survives a restart")
	c.Flags().StringVar(&f.subcluster, "subcluster", "", "join the federation as `ID`")
	c.Flags().StringVar(&f.store, "store", "", "state store `URL` of the federation to join")
	return c
}

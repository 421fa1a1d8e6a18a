// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"context"
	"log/slog"
	"net"
	"os"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/rpc"
)

// config is a ResourceManager with the queues and limits of the kit's Hadoop
// one.
func config(t testing.TB, dir string) rpc.Config {
	m := rm.Defaults()
	m.MinAllocation, m.MaxAllocation = creel.NewResource(128, 1), creel.NewResource(4096, 4)
	var props []rm.Property
	for name, value := range hadoop.Queues() {
		props = append(props, rm.Property{Name: name, Value: value})
	}
	queues, err := rm.ReadCapacity(props, rm.ConfigOptions{MaxAllocation: m.MaxAllocation, MaxClusterPriority: 10})
	if err != nil {
		t.Fatal(err)
	}
	m.Queues, m.Placement = queues.Queues, queues.Placement
	user := hadoop.OSUser(t)
	return rpc.Config{
		Client: "127.0.0.1:0", Scheduler: "127.0.0.1:0", Tracker: "127.0.0.1:0", Admin: "127.0.0.1:0", Dir: dir, ClusterID: "creel",
		Machine: m, AdminACL: rm.ACL{All: true}, HeartbeatInterval: time.Second,
		Proxies: map[string]rpc.ProxyRule{user: {Hosts: []string{"*"}, Groups: []string{"*"}}},
		Logger:  slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo})),
	}
}

// serve runs a ResourceManager in this process until the test ends.
func serve(t testing.TB, cfg rpc.Config) (*rpc.Daemon, hadoop.Addresses) {
	t.Helper()
	d, err := rpc.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the ResourceManager ended with %v", err)
		}
	})
	<-d.Ready()
	a := d.Addresses()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	d.SetWeb(l.Addr().String())
	return d, hadoop.Addresses{Client: a.Client, Scheduler: a.Scheduler, Tracker: a.Tracker, Admin: a.Admin, Web: l.Addr().String()}
}

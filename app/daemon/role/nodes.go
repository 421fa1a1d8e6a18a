// SPDX-License-Identifier: Apache-2.0

package role

import (
	"errors"
	"log/slog"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/daemon"
	"github.com/creelrm/creel/app/daemon/health"
	"github.com/creelrm/creel/app/daemon/webserver"
	"github.com/creelrm/creel/app/shell"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/subcluster/nm/overallocate"
	"github.com/creelrm/creel/subcluster/nm/queue"
	nmrpc "github.com/creelrm/creel/subcluster/nm/rpc"
	nmserver "github.com/creelrm/creel/subcluster/nm/server"
)

// NodesConfig is the configuration of the simulated NodeManagers of one process.
type NodesConfig struct {
	Farm nmrpc.Config
	// Scheduler is the address of the scheduler or proxy for the AMs of `creel run`, which simulated nodes simulate.
	Scheduler string
	Web       string // address to listen on
	WebServer webserver.Config
}

// NodesSettings reads the configuration of simulated NodeManagers.
func NodesSettings(s *settings.Settings) (NodesConfig, error) {
	if err := mayStart(s, settings.NM); err != nil {
		return NodesConfig{}, err
	}
	web, err := webSettings(s, settings.NM)
	if err != nil {
		return NodesConfig{}, err
	}
	c := NodesConfig{
		Web:       s.Address("creel.health.address"),
		Scheduler: s.Address("yarn.resourcemanager.scheduler.address"),
		WebServer: web,
		Farm: nmrpc.Config{
			Tracker:     s.Address("yarn.resourcemanager.resource-tracker.address"),
			Nodes:       s.Int("creel.nm.simulate"),
			Connections: s.Int("creel.nm.simulate.connections"),
			Config: nmserver.Config{
				Total:          nodeSize(s),
				RunTime:        s.Duration("creel.nm.simulate.run-time"),
				Queue:          QueueSettings(s),
				Measures:       s.String("creel.nm.simulate.use") == "drawn",
				Overallocation: overallocation(s),
				Seed:           uint64(time.Now().UnixNano()),
				Logger:         slog.Default(),
			},
		},
	}
	if s.Bool("yarn.nodemanager.amrmproxy.enabled") {
		c.Scheduler = s.Address("yarn.nodemanager.amrmproxy.address")
	}
	if c.Farm.Nodes <= 0 {
		return c, s.Problem("creel.nm.simulate", "creel has only simulated NodeManagers",
			"set their number: --simulate N")
	}
	return c, nil
}

// QueueSettings reads how nodes treat opportunistic containers.
func QueueSettings(s *settings.Settings) queue.Config {
	c := queue.Config{
		Length: s.Int("yarn.nodemanager.opportunistic-containers-max-queue-length"),
		Pause:  s.Bool("yarn.nodemanager.opportunistic-containers-use-pause-for-preemption"),

		Adaptive: s.Bool("creel.nm.queue.adaptive"),
		ByWork:   s.String("creel.nm.queue.order") == "work",
		Patience: s.Duration("creel.nm.queue.patience"),

		Estimates: s.Bool("creel.nm.queue.estimate-wait"),
	}
	if s.String("yarn.nodemanager.opportunistic-containers-queue-policy") == "BY_RESOURCES" {
		c.Policy = queue.ByResources
	}
	return c
}

// nodeSize reads the size of each simulated node.
func nodeSize(s *settings.Settings) creel.Resource {
	return creel.NewResource(s.Long("creel.nm.simulate.memory-mb"), s.Long("creel.nm.simulate.vcores"))
}

const overallocationKeys = "yarn.nodemanager.overallocation."

// overallocation reads how much of what their containers do not use nodes lend to opportunistic ones.
func overallocation(s *settings.Settings) overallocate.Config {
	alloc := func(of string) float64 {
		if v := s.Float(overallocationKeys + of + "-utilization-threshold"); v >= 0 {
			return v
		}
		return s.Float(overallocationKeys + "general-utilization-threshold")
	}
	return overallocate.Config{
		Alloc: overallocate.Shares{Memory: alloc("memory"), CPU: alloc("cpu")},
		Preempt: overallocate.Shares{
			Memory: s.Float(overallocationKeys + "preemption-threshold.memory"),
			CPU:    s.Float(overallocationKeys + "preemption-threshold.cpu"),
		},
		Looks:    s.Int(overallocationKeys + "preemption-threshold-count.cpu"),
		Predicts: s.String("creel.nm.overallocation.predictor") == "peak",
	}.Bounded()
}

// lends reports whether thresholds of both types ask for lending.
func lends(c overallocate.Config) bool { return c.Alloc.Memory > 0 && c.Alloc.CPU > 0 }

// Nodes are assembled simulated NodeManagers.
type Nodes struct {
	daemon.Service
	Farm *nmrpc.Farm
}

// NewNodes assembles simulated NodeManagers.
func NewNodes(c NodesConfig) (_ *Nodes, err error) {
	n := &Nodes{Service: daemon.Service{Health: health.New()}}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Close())
		}
	}()
	hook := shell.NewHook(c.Scheduler)
	n.OnClose(hook.Close)
	first := c.Farm.OnStart
	c.Farm.OnStart = func(s nmserver.Started, exit func(int32, string)) func() {
		if first != nil {
			if stop := first(s, exit); stop != nil {
				return stop
			}
		}
		return hook.OnStart(s, exit)
	}
	if n.Farm, err = nmrpc.New(c.Farm); err != nil {
		return nil, err
	}
	n.AddSelfClosing("simulated nodes", n.Farm.Run, n.Farm.Close)
	n.Health.Check("every node is registered", func() error {
		select {
		case <-n.Farm.Ready():
			return nil
		default:
			return errors.New("some are not registered yet")
		}
	})
	m := n.Farm.Metrics()
	n.Health.Counter("creel_nm_heartbeats_total", "Heartbeats sent.", m.Heartbeats.Load)
	n.Health.Counter("creel_nm_heartbeat_errors_total", "Heartbeats that failed.", m.HeartbeatErrors.Load)
	n.Health.Counter("creel_nm_containers_started_total", "Containers started.", m.Started.Load)
	n.Health.Counter("creel_nm_containers_finished_total", "Containers that completed.", m.Finished.Load)
	addresses := map[string]string{}
	n.Entries = []daemon.Entry{daemon.NewEntry("nm", addresses)}
	addresses["web"], err = addHealthWeb(&n.Service, "web port of the nodes", c.Web, c.WebServer)
	return n, err
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/queueconf"
	"github.com/creelrm/creel/subcluster/rm/queues"
	rmrpc "github.com/creelrm/creel/subcluster/rm/rpc"
)

// rmConfig turns settings into what a ResourceManager's daemon takes.
func rmConfig(s *settings.Settings) (rmrpc.Config, error) {
	machine, err := machineConfig(s)
	if err != nil {
		return rmrpc.Config{}, err
	}
	c := rmrpc.Config{
		Client:    s.Listen("yarn.resourcemanager.address", "yarn.resourcemanager.bind-host"),
		Scheduler: s.Listen("yarn.resourcemanager.scheduler.address", "yarn.resourcemanager.bind-host"),
		Tracker:   s.Listen("yarn.resourcemanager.resource-tracker.address", "yarn.resourcemanager.bind-host"),
		Admin:     s.Listen("yarn.resourcemanager.admin.address", "yarn.resourcemanager.bind-host"),
		ClusterID: s.String("yarn.resourcemanager.cluster-id"),
		Epoch:     s.Long("yarn.resourcemanager.epoch"),
		Machine:   machine,
		ACLs:      s.Bool("yarn.acl.enable"),
		AdminACL:  queues.ParseACL(s.String("yarn.admin.acl")),
		Proxies:   proxyRules(s),

		HeartbeatInterval: s.Duration("yarn.resourcemanager.nodemanagers.heartbeat-interval-ms"),
		KeyRoll:           s.Duration("yarn.resourcemanager.am-rm-tokens.master-key-rolling-interval-secs"),
		LaunchThreads:     s.Int("yarn.resourcemanager.amlauncher.thread-count"),
		LaunchTime:        s.Duration("yarn.client.nodemanager-connect.max-wait-ms"),
		TokenRenew:        s.Duration("yarn.resourcemanager.delegation.token.renew-interval"),
		TokenMax:          s.Duration("yarn.resourcemanager.delegation.token.max-lifetime"),
		TokenKeyAge:       s.Duration("yarn.resourcemanager.delegation.key.update-interval"),
		Mailbox:           s.Int("creel.rm.inbox"),
		RPC: rpcLimits(
			s,
			"yarn.resourcemanager.client.thread-count",
			"yarn.resourcemanager.scheduler.client.thread-count",
			"yarn.resourcemanager.resource-tracker.client.thread-count",
		),
		Logger: slog.Default(),
	}
	c.Hosts = func() (rmrpc.Hosts, error) {
		include, err := hostFile(s.String("yarn.resourcemanager.nodes.include-path"))
		if err != nil {
			return rmrpc.Hosts{}, err
		}
		exclude, err := hostFile(s.String("yarn.resourcemanager.nodes.exclude-path"))
		return rmrpc.Hosts{Include: include, Exclude: exclude}, err
	}
	c.Rack, err = rackTable(s.String("net.topology.table.file.name"))
	if err != nil {
		return c, err
	}
	c.ReloadQueues = func() (queues.Spec, error) {
		q, err := queueConfig(s, true)
		return q.Queues, err
	}
	// Who may act for whom, and who administers, is read from the files anew.
	again := func() (*settings.Settings, error) { return settings.Load(settings.Sources{ConfDir: s.Dir()}) }
	c.ReloadAdmin = func() (queues.ACL, error) {
		fresh, err := again()
		if err != nil {
			return queues.ACL{}, err
		}
		return queues.ParseACL(fresh.String("yarn.admin.acl")), nil
	}
	c.ReloadProxies = func() (map[string]rmrpc.ProxyRule, error) {
		fresh, err := again()
		if err != nil {
			return nil, err
		}
		return proxyRules(fresh), nil
	}
	return c, nil
}

// machineConfig is the scheduler's part of the settings.
func machineConfig(s *settings.Settings) (rm.Config, error) {
	m := rm.Defaults()
	for _, name := range s.List("yarn.resource-types") {
		if name == creel.MemoryName || name == creel.VCoresName {
			continue
		}
		t := creel.ResourceType{Name: name}
		if v, ok := s.Lookup("yarn.resource-types." + name + ".units"); ok {
			t.Unit = v.Text
		}
		m.ResourceTypes = append(m.ResourceTypes, t)
	}
	m.MinAllocation = creel.NewResource(
		s.Long("yarn.scheduler.minimum-allocation-mb"),
		s.Long("yarn.scheduler.minimum-allocation-vcores"),
	)
	m.MaxAllocation = creel.NewResource(
		s.Long("yarn.scheduler.maximum-allocation-mb"),
		s.Long("yarn.scheduler.maximum-allocation-vcores"),
	)
	for _, t := range m.ResourceTypes {
		if v, ok := s.Lookup("yarn.resource-types." + t.Name + ".maximum-allocation"); ok {
			n, err := settings.ParseBytes(v.Text)
			if err != nil {
				return m, usage(fmt.Errorf("%s: %s: %w", v.Origin, v.Key, err))
			}
			m.MaxAllocation = m.MaxAllocation.With(t.Name, n)
		} else {
			m.MaxAllocation = m.MaxAllocation.With(t.Name, 1<<62)
		}
	}
	if fairScheduler(s) {
		step, err := increment(s, m.ResourceTypes)
		if err != nil {
			return m, usage(err)
		}
		m.Increment = step
	}
	m.MaxAttempts = s.Int("yarn.resourcemanager.am.max-attempts")
	m.NodeExpiry = s.Duration("yarn.nm.liveness-monitor.expiry-interval-ms")
	m.MasterExpiry = s.Duration("yarn.am.liveness-monitor.expiry-interval-ms")
	m.ContainerExpiry = s.Duration("yarn.resourcemanager.rm.container-allocation.expiry-interval-ms")
	m.DecommissionAfter = s.Duration("yarn.resourcemanager.nodemanager-graceful-decommission-timeout-secs")
	m.MaxCompletedApps = s.Int("yarn.resourcemanager.max-completed-applications")
	m.AutoUpdate = s.Bool("yarn.resourcemanager.auto-update.containers")
	m.SchedulingAsks = s.String("yarn.resourcemanager.placement-constraints.handler") != "disabled"
	m.AdminACL = queues.ParseACL(s.String("yarn.admin.acl"))
	q, err := queueConfig(s, false)
	if err != nil {
		return m, usage(err)
	}
	for _, note := range q.Warnings {
		slog.Info("queues", "note", note.String())
	}
	m.Queues, m.Placement = q.Queues, q.Placement
	return m, nil
}

func fairScheduler(s *settings.Settings) bool {
	return strings.HasSuffix(s.String("yarn.resourcemanager.scheduler.class"), "FairScheduler")
}

// increment is the step in which FairScheduler gives room: 1024 MiB and 1 vcore
// unless it is set, and 1 of any other type. The key of the type wins over the
// older ones of memory and vcores.
func increment(s *settings.Settings, types []creel.ResourceType) (creel.Resource, error) {
	step := creel.NewResource(
		s.Long("yarn.scheduler.increment-allocation-mb"),
		s.Long("yarn.scheduler.increment-allocation-vcores"),
	)
	for _, t := range append([]creel.ResourceType{{Name: creel.MemoryName, Unit: "Mi"}, {Name: creel.VCoresName}}, types...) {
		v, ok := s.Lookup("yarn.resource-types." + t.Name + ".increment-allocation")
		if !ok {
			continue
		}
		n, err := queueconf.ParseAmount(v.Text, t.Unit)
		if err != nil {
			return step, fmt.Errorf(
				"%s: %s: %w; give a whole number, with a unit if not in %q",
				v.Origin,
				v.Key,
				err,
				t.Unit,
			)
		}
		step = step.With(t.Name, n)
	}
	return step, nil
}

// queueConfig reads the queue file of the scheduler that is named.
func queueConfig(s *settings.Settings, reload bool) (queueconf.Config, error) {
	opt := queueconf.Options{
		MaxAllocation: creel.NewResource(
			s.Long("yarn.scheduler.maximum-allocation-mb"),
			s.Long("yarn.scheduler.maximum-allocation-vcores"),
		),
		MaxClusterPriority: int32(s.Int("yarn.cluster.max-application-priority")),
		Fair: queueconf.FairOptions{
			UserAsDefaultQueue: s.Bool(
				"yarn.scheduler.fair.user-as-default-queue",
			),
			AllowUndeclaredPools: s.Bool("yarn.scheduler.fair.allow-undeclared-pools"),
			SizeBasedWeight: s.Bool(
				"yarn.scheduler.fair.sizebasedweight",
			),
			NodeLocalityThreshold: s.Float("yarn.scheduler.fair.locality.threshold.node"),
			RackLocalityThreshold: s.Float("yarn.scheduler.fair.locality.threshold.rack"),
		},
	}
	for _, name := range s.List("yarn.resource-types") {
		if name != creel.MemoryName && name != creel.VCoresName {
			opt.ResourceTypes = append(opt.ResourceTypes, creel.ResourceType{Name: name})
		}
	}
	if fairScheduler(s) {
		path, data, err := s.FairSchedulerFile()
		if err != nil {
			return queueconf.Config{}, err
		}
		return queueconf.ReadFair(path, data, opt)
	}
	read := s.CapacityScheduler
	if reload {
		read = s.ReloadCapacityScheduler
	}
	found, err := read()
	if err != nil {
		return queueconf.Config{}, err
	}
	props := make([]queueconf.Property, len(found))
	for i, p := range found {
		props[i] = queueconf.Property{Name: p.Name, Value: p.Value, File: p.File, Line: p.Line}
		if p.Name == "yarn.scheduler.capacity.mapping-rule-json-file" && p.Value != "" {
			path := p.Value
			if !filepath.IsAbs(path) {
				path = filepath.Join(s.Dir(), path)
			}
			if opt.MappingRules, err = os.ReadFile(path); err != nil {
				return queueconf.Config{}, fmt.Errorf("%s: %s: %w", p.Where(), p.Name, err)
			}
		}
	}
	return queueconf.ReadCapacity(props, opt)
}

// proxyRules reads hadoop.proxyuser.USER.{hosts,users,groups}.
func proxyRules(s *settings.Settings) map[string]rmrpc.ProxyRule {
	rules := map[string]rmrpc.ProxyRule{}
	for _, kind := range []string{"hosts", "users", "groups"} {
		for _, v := range s.Matching("hadoop.proxyuser.*." + kind) {
			name := strings.TrimSuffix(strings.TrimPrefix(v.Key, "hadoop.proxyuser."), "."+kind)
			r := rules[name]
			list := settings.SplitList(v.Text)
			switch kind {
			case "hosts":
				r.Hosts = resolveHosts(list)
			case "users":
				r.Users = list
			case "groups":
				r.Groups = list
			}
			rules[name] = r
		}
	}
	return rules
}

// resolveHosts turns names into addresses; what is none stays as written.
func resolveHosts(list []string) []string {
	var out []string
	for _, h := range list {
		if h == "*" || strings.Contains(h, "/") || net.ParseIP(h) != nil {
			out = append(out, h)
			continue
		}
		found, err := net.LookupHost(h)
		if err != nil {
			slog.Warn("proxy-user host does not resolve", "host", h, "error", err)
			continue
		}
		out = append(out, found...)
	}
	return out
}

// hostFile reads host names, any number on a line, # begins a comment. An
// empty path is an empty list; a file that is not there is an error.
func hostFile(path string) ([]string, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("host list: %w", err)
	}
	defer f.Close()
	var hosts []string
	lines := bufio.NewScanner(io.LimitReader(f, 64<<20))
	for lines.Scan() {
		line, _, _ := strings.Cut(lines.Text(), "#")
		hosts = append(hosts, strings.Fields(line)...)
	}
	slices.Sort(hosts)
	return slices.Compact(hosts), lines.Err()
}

// rackTable reads "host rack" lines; without a file every host is in the
// default rack.
func rackTable(path string) (func(host string) string, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("net.topology.table.file.name: %w", err)
	}
	defer f.Close()
	racks := map[string]string{}
	lines := bufio.NewScanner(io.LimitReader(f, 64<<20))
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		switch words := strings.Fields(line); {
		case len(words) == 2:
			racks[words[0]] = words[1]
		case len(words) != 0:
			return nil, fmt.Errorf("%s:%d: expected a host and its rack", path, n)
		}
	}
	return func(host string) string {
		if r, ok := racks[host]; ok {
			return r
		}
		return "/default-rack"
	}, errors.Join(lines.Err())
}

// startSpread keeps the start times of ResourceManagers in one process apart:
// they stamp application ids, which must be unique over the federation.
func startSpread(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(2 * time.Millisecond):
	}
}

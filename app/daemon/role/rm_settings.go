// SPDX-License-Identifier: Apache-2.0

package role

import (
	"fmt"
	"log/slog"
	"math"
	"strings"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/impersonation"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/opportunistic"
	"github.com/creelrm/creel/subcluster/rm/queues"
	rmrpc "github.com/creelrm/creel/subcluster/rm/rpc"
	"github.com/creelrm/creel/subcluster/rm/server"
)

// rmSettings reads the settings of a ResourceManager's server and its protocols.
func rmSettings(s *settings.Settings) (server.Config, rmrpc.Config, error) {
	machine, err := machineConfig(s)
	if err != nil {
		return server.Config{}, rmrpc.Config{}, err
	}
	known, err := groupsOf(s)
	if err != nil {
		return server.Config{}, rmrpc.Config{}, err
	}
	acls, err := newServiceACLs(s, rmProtocols, known)
	if err != nil {
		return server.Config{}, rmrpc.Config{}, err
	}
	ports := rmrpc.Config{
		Client:      listenAt(s, "yarn.resourcemanager.address"),
		Scheduler:   listenAt(s, "yarn.resourcemanager.scheduler.address"),
		Tracker:     listenAt(s, "yarn.resourcemanager.resource-tracker.address"),
		Admin:       listenAt(s, "yarn.resourcemanager.admin.address"),
		Distributed: s.Bool(distributedScheduling),
		RPC: RPCLimits(s,
			"yarn.resourcemanager.client.thread-count",
			"yarn.resourcemanager.scheduler.client.thread-count",
			"yarn.resourcemanager.resource-tracker.client.thread-count",
		),
	}
	c := server.Config{
		ClusterID: s.String("yarn.resourcemanager.cluster-id"),
		WebProxy:  s.Address("yarn.web-proxy.address"),
		WebTLS:    httpsOnly(s),
		Epoch:     s.Long("yarn.resourcemanager.epoch"),
		Machine:   machine,
		ACLs:      s.Bool("yarn.acl.enable"),
		HideApps:  s.Bool("yarn.webapp.filter-entity-list-by-user"),
		AdminACL:  queues.ParseACL(s.ACL("yarn.admin.acl")),
		Proxies:   proxyRules(s),
		Groups:    known,

		HeartbeatInterval: s.Duration("yarn.resourcemanager.nodemanagers.heartbeat-interval-ms"),
		KeyRoll:           s.Duration("yarn.resourcemanager.am-rm-tokens.master-key-rolling-interval-secs"),
		LaunchThreads:     s.Int("yarn.resourcemanager.amlauncher.thread-count"),
		LaunchTime:        s.Duration("yarn.client.nodemanager-connect.max-wait-ms"),
		Tokens:            tokenLifetimes(s),
		Mailbox:           s.Int("creel.rm.inbox"),
		HeartbeatMax:      s.Duration("creel.rm.heartbeat-interval-max"),
		NodesResolve:      s.Bool("yarn.resourcemanager.resource-tracker.nm.ip-hostname-check"),
		Logger:            slog.Default(),
	}
	if c.Outside, err = outsideAuthorizer(s, known); err != nil {
		return c, ports, s.Problem(authorizerURL, err.Error(), "correct the creel.authorizer keys")
	}
	if c.Scaling, err = heartbeatScaling(s); err != nil {
		return c, ports, err
	}
	if c.Rack, err = racks(s); err != nil {
		return c, ports, err
	}
	c.ReloadQueues = func() (server.Queues, error) {
		q, err := QueueConfig(s, true)
		return server.Queues{Spec: q.Queues, Placement: q.Placement}, err
	}
	c.Mutable = mutableQueues(s)
	// Paths of host lists, proxy users and administrators are read again from the files; -D still overrides them.
	again := s.Reload
	c.UntrackUnlisted = s.Bool("yarn.resourcemanager.enable-node-untracked-without-include-path")
	c.Hosts = func() (server.Hosts, error) {
		fresh, err := again()
		if err != nil {
			return server.Hosts{}, err
		}
		return hostLists(fresh)
	}
	c.ReloadAdmin = func() (queues.ACL, error) {
		fresh, err := again()
		if err != nil {
			return queues.ACL{}, err
		}
		return queues.ParseACL(fresh.ACL("yarn.admin.acl")), nil
	}
	c.ReloadProxies = func() (impersonation.Rules, error) {
		fresh, err := again()
		if err != nil {
			return nil, err
		}
		return proxyRules(fresh), nil
	}
	if acls != nil {
		ports.RPC.Authorize, c.ReloadServiceACLs = acls.authorize, acls.refresh
	}
	if !secure(s) {
		warnOfUnusedPrincipals(s)
		return c, ports, nil
	}
	if err := secureRM(s, &c, &ports); err != nil {
		return c, ports, s.Problem(authentication, err.Error(), "")
	}
	return c, ports, nil
}

// secureRM makes the ports of a ResourceManager accept tickets and tokens alone.
func secureRM(s *settings.Settings, c *server.Config, ports *rmrpc.Config) error {
	k, err := secureSettings(s, settings.RM)
	if err != nil {
		return err
	}
	nodes, err := k.nodes(s)
	if err != nil {
		return err
	}
	ports.RPC.Kerberos, ports.RPC.Protections, ports.RPC.Names = k.kerberos, k.protections, k.names
	ports.Node = nodes.authorize
	c.Secure = &server.Secure{Protections: k.protections, Names: k.names}
	return renewals(s, k, c)
}

// machineConfig reads the scheduler's part of the settings.
func machineConfig(s *settings.Settings) (rm.Config, error) {
	m := rm.Defaults()
	m.ResourceTypes = resourceTypes(s)
	for _, t := range m.ResourceTypes {
		if err := t.CheckUnit(); err != nil {
			return m, s.Problem("yarn.resource-types."+t.Name+".units", err.Error(), "give another unit")
		}
	}
	m.MinAllocation = creel.NewResource(
		s.Long("yarn.scheduler.minimum-allocation-mb"),
		s.Long("yarn.scheduler.minimum-allocation-vcores"),
	)
	m.MaxAllocation = creel.NewResource(
		s.Long("yarn.scheduler.maximum-allocation-mb"),
		s.Long("yarn.scheduler.maximum-allocation-vcores"),
	)
	for _, of := range []string{"mb", "vcores"} {
		least, most := "yarn.scheduler.minimum-allocation-"+of, "yarn.scheduler.maximum-allocation-"+of
		if s.Long(most) < s.Long(least) {
			why := fmt.Sprintf("no container could be granted: it is below %s, %d", least, s.Long(least))
			return m, s.Problem(most, why, "raise it, or lower that one")
		}
	}
	for _, t := range m.ResourceTypes {
		least, most := boundOf(s, t, "minimum-allocation", 0), boundOf(s, t, "maximum-allocation", 1<<62)
		m.MinAllocation, m.MaxAllocation = m.MinAllocation.With(t.Name, least), m.MaxAllocation.With(t.Name, most)
	}
	if fairScheduler(s) {
		step, err := increment(s, m.ResourceTypes)
		if err != nil {
			return m, err
		}
		m.Increment = step
	}
	m.MaxAttempts = s.Int("yarn.resourcemanager.am.max-attempts")
	if v, ok := s.Lookup("yarn.resourcemanager.am.global.max-attempts"); ok && v.Text != "" {
		m.GlobalMaxAttempts = s.Int("yarn.resourcemanager.am.global.max-attempts")
	}
	switch v := s.String("yarn.resourcemanager.nodemanager.minimum.version"); v {
	case "NONE":
	case "EqualToRM":
		m.MinNodeVersion = server.Version
	default:
		m.MinNodeVersion = v
	}
	m.NodeExpiry = s.Duration("yarn.nm.liveness-monitor.expiry-interval-ms")
	m.AMExpiry = s.Duration("yarn.am.liveness-monitor.expiry-interval-ms")
	m.ContainerExpiry = s.Duration("yarn.resourcemanager.rm.container-allocation.expiry-interval-ms")
	m.DecommissionAfter = s.Duration("yarn.resourcemanager.nodemanager-graceful-decommission-timeout-secs")
	const forget = "yarn.resourcemanager.node-removal-untracked.timeout-ms"
	if m.ForgetUntracked = s.Duration(forget); m.ForgetUntracked <= 0 {
		return m, s.Problem(forget, "a node would be forgotten before it is gone", "give a time above 0")
	}
	const said = "yarn.app.attempt.diagnostics.limit.kc"
	if k := s.Int(said); k <= 0 || k > math.MaxInt32>>10 {
		return m, s.Problem(said, "it is not within 1 and 2,097,151", "give how many times 1,024 characters are kept")
	}
	m.DiagnosticsLimit = s.Int(said) << 10
	m.MaxCompletedApps = s.Int("yarn.resourcemanager.max-completed-applications")
	m.RecoveredCompleted = s.Int("yarn.resourcemanager.state-store.max-completed-applications")
	if m.RecoveredCompleted == 0 {
		m.RecoveredCompleted = -1
	}
	m.LogAggregation = s.Bool("yarn.log-aggregation-enable")
	m.LogTimeOut = s.Duration("yarn.log-aggregation-status.time-out.ms")
	m.LogMessages = s.Int("yarn.resourcemanager.max-log-aggregation-diagnostics-in-memory")
	m.PortInNames = s.Bool("yarn.scheduler.include-port-in-node-name")
	m.AutoUpdate = s.Bool("yarn.resourcemanager.auto-update.containers")
	m.Constraints = map[string]rm.ConstraintHandler{
		"scheduler": rm.ConstraintsKept, "placement-processor": rm.ConstraintsTried,
	}[s.String("yarn.resourcemanager.placement-constraints.handler")]
	m.PopularTagsFirst = s.String("yarn.resourcemanager.placement-constraints.algorithm.iterator") == "POPULAR_TAGS"
	m.PlacementTries = s.Int("yarn.resourcemanager.placement-constraints.retry-attempts")
	var err error
	if m.Opportunistic, err = opportunisticConfig(s); err != nil {
		return m, err
	}
	m.AdminACL = queues.ParseACL(s.ACL("yarn.admin.acl"))
	m.Labels, m.AMLabel = labelSource(s), s.String("yarn.resourcemanager.node-labels.am.default-node-label-expression")
	q, err := QueueConfig(s, false)
	if err != nil {
		return m, settings.Invalid(err)
	}
	for _, warning := range q.Warnings {
		slog.Info("queues", "note", warning.String())
	}
	m.Queues, m.Placement = q.Queues, q.Placement
	return m, nil
}

const oversubscription = "yarn.resourcemanager.scheduler.oversubscription.enabled"

// opportunisticConfig returns the configuration of opportunistic containers, nil if they are not allocated.
func opportunisticConfig(s *settings.Settings) (*opportunistic.Config, error) {
	const queuing = "yarn.resourcemanager.nm-container-queuing."
	between := func(least, most string) (opportunistic.Range, error) {
		r := opportunistic.Range{Min: int32(s.Int(queuing + least)), Max: int32(s.Int(queuing + most))}
		if r.Max < r.Min {
			why := fmt.Sprintf("it is below %s, %d", queuing+least, r.Min)
			return r, s.Problem(queuing+most, why, "raise it, or lower that one")
		}
		return r, nil
	}
	c, err := opportunistic.Defaults(), error(nil)
	if c.Lengths, err = between("min-queue-length", "max-queue-length"); err != nil {
		return nil, err
	}
	if c.Waits, err = between("min-queue-wait-time-ms", "max-queue-wait-time-ms"); err != nil {
		return nil, err
	}
	c.Comparator = opportunistic.ParseComparator(s.String(queuing + "load-comparator"))
	c.Placing = opportunistic.ParsePlacing(s.String("creel.rm.opportunistic.placement"))
	c.Period = s.Duration(queuing + "sorting-nodes-interval-ms")
	c.NodesUsed = s.Int("yarn.resourcemanager.opportunistic-container-allocation.nodes-used")
	c.PerCall = s.Int("yarn.resourcemanager.opportunistic.max.container-allocation.per.am.heartbeat")
	c.Sigma = s.Float(queuing + "queue-limit-stdev")
	c.Moves = s.String("creel.rm.opportunistic.shed") == "move"
	ratio := s.Float("yarn.resourcemanager.overallocation.per-node-max-ratio")
	if s.Bool(oversubscription) {
		c.MostLent = ratio
	}
	if !s.Bool("yarn.resourcemanager.opportunistic-container-allocation.enabled") {
		return nil, nil
	}
	return &c, nil
}

// resourceTypes are the resource types beyond memory and vcores.
func resourceTypes(s *settings.Settings) (types []creel.ResourceType) {
	for _, name := range s.List("yarn.resource-types") {
		if name == creel.MemoryName || name == creel.VCoresName {
			continue
		}
		t := creel.ResourceType{Name: name}
		if v, ok := s.Lookup("yarn.resource-types." + name + ".units"); ok {
			t.Unit = strings.TrimSpace(v.Text)
		}
		types = append(types, t)
	}
	return types
}

// boundOf reads a bound of a type's allocations, which is in the type's unit.
func boundOf(s *settings.Settings, t creel.ResourceType, bound string, unset int64) int64 {
	key := "yarn.resource-types." + t.Name + "." + bound
	if _, ok := s.Lookup(key); !ok {
		return unset
	}
	return min(t.Plain(s.Long(key)), 1<<62)
}

// heartbeatScaling reads the dependence of heartbeat intervals on nodes' CPU use; nil if scaling is off. It rejects
// values with which Hadoop's ResourceManager would not start.
func heartbeatScaling(s *settings.Settings) (*server.Scaling, error) {
	const nodes = "yarn.resourcemanager.nodemanagers.heartbeat-interval-"
	interval := s.Duration(nodes + "ms")
	c := &server.Scaling{
		Min: s.Duration(nodes + "min-ms"), Max: s.Duration(nodes + "max-ms"),
		SpeedUp: s.Float(nodes + "speedup-factor"), SlowDown: s.Float(nodes + "slowdown-factor"),
	}
	switch {
	case !s.Bool(nodes + "scaling-enable"):
		return nil, nil
	case c.Min <= 0 || c.Min > interval:
		return nil, s.Problem(nodes+"min-ms", "the shortest time between heartbeats is not within 0 and "+
			interval.String(), "give one of at most "+nodes+"ms")
	case c.Max < interval:
		return nil, s.Problem(nodes+"max-ms", "the longest time between heartbeats is below "+interval.String(),
			"give one of at least "+nodes+"ms")
	case c.SpeedUp < 0:
		return nil, s.Problem(nodes+"speedup-factor", "a factor below 0 would slow idle nodes", "give 0 or more")
	case c.SlowDown < 0:
		return nil, s.Problem(nodes+"slowdown-factor", "a factor below 0 would speed up busy nodes", "give 0 or more")
	}
	return c, nil
}

// labelSource returns the source of nodes' labels; a label provider prevents the start.
func labelSource(s *settings.Settings) rm.LabelSource {
	distributed := s.String("yarn.node-labels.configuration-type") == "distributed"
	switch {
	case !s.Bool("yarn.node-labels.enabled"):
		return rm.LabelsOff
	case fairScheduler(s):
		slog.Warn("FairScheduler does not support node labels, as in Hadoop: they are stored and displayed, every "+
			"node serves every queue, and asks with a label are rejected", "setting", "yarn.node-labels.enabled")
	}
	if distributed {
		return rm.LabelsByNode
	}
	return rm.LabelsByCall
}

// tokenLifetimes reads the lifetimes of delegation tokens.
func tokenLifetimes(s *settings.Settings) token.Lifetimes {
	return token.Lifetimes{
		Renew:     s.Duration("yarn.resourcemanager.delegation.token.renew-interval"),
		Max:       s.Duration("yarn.resourcemanager.delegation.token.max-lifetime"),
		KeyUpdate: s.Duration("yarn.resourcemanager.delegation.key.update-interval"),
	}
}

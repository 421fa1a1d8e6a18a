// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/creelrm/creel/internal/groups"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// Config is all a Server needs to know. A zero duration or count takes the
// default; the Hadoop key is named where one exists.
type Config struct {
	// Dir holds the journal; empty keeps nothing beyond the process.
	Dir string

	// MaxSubmission bounds a submission's message, in bytes; 0 is 32 MB. It is
	// yarn.router.asc-interceptor-max-size, as at routers.
	MaxSubmission int64

	Tags codec.TagLimits // of applications; zero: Hadoop's

	// NodesResolve rejects a node whose name does not resolve,
	// yarn.resourcemanager.resource-tracker.nm.ip-hostname-check.
	NodesResolve bool

	// Traces receives the spans of applications whose submission was sampled; nil: no spans.
	Traces trace.TracerProvider

	ClusterID string    // yarn.resourcemanager.cluster-id, shown in reports
	WebProxy  string    // yarn.web-proxy.address, named by tracking URLs; "": the web address
	Machine   rm.Config // ClusterTimestamp and Epoch are set by the server
	Epoch     int64     // yarn.resourcemanager.epoch: of the first start; each restart adds one
	// FirstEpoch, if set, returns the epoch of the first start in place of Epoch. Its arguments are the epoch in the
	// journal, 0 if there is none, and whether there was an earlier start.
	FirstEpoch func(kept int64, before bool) (int64, error)

	// Access control.
	ACLs bool // yarn.acl.enable
	// HideApps hides applications from the lists of users without view access,
	// yarn.webapp.filter-entity-list-by-user.
	HideApps bool
	AdminACL queues.ACL           // yarn.admin.acl
	Proxies  map[string]ProxyRule // hadoop.proxyuser.*
	Groups   *groups.Groups       // nil: this machine's groups, cached for five minutes

	// The Reload functions are called by the administrator's refresh calls. A nil function reloads nothing.
	ReloadQueues  func() (Queues, error)
	ReloadAdmin   func() (queues.ACL, error)
	ReloadProxies func() (map[string]ProxyRule, error)
	// ReloadServiceACLs reads the service ACLs of the protocols; nil: never called, hadoop.security.authorization is
	// off.
	ReloadServiceACLs func() error
	// Mutable lets calls change the queues; nil: the queues come from files.
	Mutable *MutableQueues
	// Hosts reads the files of yarn.resourcemanager.nodes.include-path and
	// .exclude-path; nil admits every host. An empty Include admits all.
	Hosts func() (Hosts, error)
	// Rack finds a host's rack (net.topology.*); nil: /default-rack.
	Rack func(host string) string

	HeartbeatInterval time.Duration // yarn.resourcemanager.nodemanagers.heartbeat-interval-ms, 1 s
	// HeartbeatsPerSecond is the load above which nodes receive a longer heartbeat interval, up to HeartbeatMax. 0:
	// 100,000; negative: never.
	HeartbeatsPerSecond int
	HeartbeatMax        time.Duration // creel.rm.heartbeat-interval-max, 10 s
	// Scaling has the interval follow the use of nodes' processors; nil: it does not.
	Scaling *Scaling

	KeyRoll       time.Duration // the three ...master-key-rolling-interval-secs, 24 h
	LaunchThreads int           // yarn.resourcemanager.amlauncher.thread-count, 50
	LaunchTime    time.Duration // how long an AM's start is tried, yarn.client.nodemanager-connect.max-wait-ms, 3 min

	TokenRenew  time.Duration // yarn.resourcemanager.delegation.token.renew-interval, 24 h
	TokenMax    time.Duration // yarn.resourcemanager.delegation.token.max-lifetime, 7 d
	TokenKeyAge time.Duration // yarn.resourcemanager.delegation.key.update-interval, 24 h

	Mailbox int // events waiting for the machine before callers get "busy", 65,536

	Logger *slog.Logger
}

// Hosts are the hosts that may and that may not serve.
type Hosts struct {
	Include, Exclude []string
	// Timeouts are the timeouts of graceful decommissioning by host, from an exclude file in XML form: 0 is at once,
	// negative is no limit. Timeout applies to the other hosts; 0: Machine.DecommissionAfter.
	Timeouts map[string]time.Duration
	Timeout  time.Duration
}

func (c Config) withDefaults() Config {
	def := func(v *time.Duration, d time.Duration) { *v = cmp.Or(*v, d) }
	def(&c.HeartbeatInterval, time.Second)
	def(&c.HeartbeatMax, 10*time.Second)
	def(&c.KeyRoll, 24*time.Hour)
	def(&c.LaunchTime, 3*time.Minute)
	def(&c.TokenRenew, 24*time.Hour)
	def(&c.TokenMax, 7*24*time.Hour)
	def(&c.TokenKeyAge, 24*time.Hour)
	c.HeartbeatsPerSecond = cmp.Or(c.HeartbeatsPerSecond, 100_000)
	c.LaunchThreads = cmp.Or(c.LaunchThreads, 50)
	c.Mailbox = cmp.Or(c.Mailbox, 65_536)
	if c.Groups == nil {
		c.Groups = groups.New(groups.OfMachine, 5*time.Minute)
	}
	if c.Rack == nil {
		c.Rack = func(string) string { return "/default-rack" }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Validate reports the settings of a Config that cannot work.
func (c Config) Validate() error {
	if c.Epoch < 0 || c.Epoch > 1<<23 {
		return fmt.Errorf("resource manager: epoch %d is not within 0 and %d", c.Epoch, 1<<23)
	}
	for _, d := range []time.Duration{
		c.HeartbeatInterval,
		c.KeyRoll,
		c.LaunchTime,
		c.TokenRenew,
		c.TokenMax,
		c.TokenKeyAge,
	} {
		if d < 0 {
			return fmt.Errorf("resource manager: a duration is negative: %v", d)
		}
	}
	if c.LaunchThreads < 0 || c.Mailbox < 0 {
		return errors.New("resource manager: LaunchThreads and Mailbox must not be negative")
	}
	return nil
}

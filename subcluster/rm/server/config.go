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
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/impersonation"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/internal/username"
	"github.com/creelrm/creel/subcluster/rm"
	"github.com/creelrm/creel/subcluster/rm/codec"
	"github.com/creelrm/creel/subcluster/rm/queues"
	"github.com/creelrm/creel/subcluster/rm/renewal"
	"github.com/creelrm/creel/subcluster/rm/state"
)

// Config is the configuration of a Server. A zero duration or count means the default; comments name Hadoop's key if
// there is one.
type Config struct {
	// Dir is the directory of the journal; if it is empty, nothing survives the process.
	Dir string
	// State, if set, opens a shared state instead of the journal, and makes this process its holder.
	State func() (state.Log, error)

	// Pair, if set, makes the server the active one of an HA pair.
	Pair *Pair

	// MaxSubmission limits a submission's message, in bytes; 0 is 32 MB. It is yarn.router.asc-interceptor-max-size,
	// as at routers.
	MaxSubmission int64

	Tags codec.TagLimits // of applications; zero: Hadoop's defaults

	// NodesResolve rejects a node whose name does not resolve,
	// yarn.resourcemanager.resource-tracker.nm.ip-hostname-check.
	NodesResolve bool

	// Traces receives the spans of applications whose submission was sampled; nil: no spans.
	Traces trace.TracerProvider

	ClusterID string    // yarn.resourcemanager.cluster-id, used in reports
	WebTLS    bool      // yarn.http.policy=HTTPS_ONLY: web addresses are of TLS
	WebProxy  string    // yarn.web-proxy.address, used in tracking URLs; "": the web address
	Machine   rm.Config // the server sets ClusterTimestamp and Epoch
	Epoch     int64     // yarn.resourcemanager.epoch: of the first start; each restart adds one
	// FirstEpoch, if set, returns the epoch of the first start instead of Epoch. Its arguments are the epoch in the
	// journal, 0 if there is none, and whether there was an earlier start.
	FirstEpoch func(kept int64, before bool) (int64, error)

	// Access control.
	ACLs bool // yarn.acl.enable
	// HideApps omits applications from the lists of users without view access,
	// yarn.webapp.filter-entity-list-by-user.
	HideApps bool
	Outside  *Outside            // decides about rights at queues while ACLs are on; nil: their access lists do
	AdminACL queues.ACL          // yarn.admin.acl
	Proxies  impersonation.Rules // hadoop.proxyuser.*
	Groups   *groups.Groups      // nil: this machine's groups, cached for five minutes

	// Administrators' refresh calls call the Reload functions. A nil function reloads nothing.
	ReloadQueues  func() (Queues, error)
	ReloadAdmin   func() (queues.ACL, error)
	ReloadProxies func() (impersonation.Rules, error)
	// ReloadServiceACLs reads the service ACLs of the protocols; nil if hadoop.security.authorization is off.
	ReloadServiceACLs func() error
	// Mutable lets calls change the queues; nil: the queues come from files.
	Mutable *MutableQueues
	// Hosts reads the files of yarn.resourcemanager.nodes.include-path and .exclude-path; nil admits every host. An
	// empty Include admits every host.
	Hosts func() (Hosts, error)
	// UntrackUnlisted: without hosts to include, nodes that are not excluded are untracked
	// (yarn.resourcemanager.enable-node-untracked-without-include-path).
	UntrackUnlisted bool
	// Rack finds a host's rack (net.topology.*); nil: /default-rack.
	Rack func(host string) string

	HeartbeatInterval time.Duration // yarn.resourcemanager.nodemanagers.heartbeat-interval-ms, 1 s
	// HeartbeatsPerSecond is the load above which nodes get a longer heartbeat interval, up to HeartbeatMax. 0:
	// 100,000; negative: never.
	HeartbeatsPerSecond int
	HeartbeatMax        time.Duration // creel.rm.heartbeat-interval-max, 10 s
	// Scaling makes the interval depend on the use of nodes' processors; nil: it does not.
	Scaling *Scaling

	KeyRoll       time.Duration // the three ...master-key-rolling-interval-secs, 24 h
	LaunchThreads int           // yarn.resourcemanager.amlauncher.thread-count, 50
	LaunchTime    time.Duration // time limit for the start of an AM, yarn.client.nodemanager-connect.max-wait-ms, 3 min

	Tokens token.Lifetimes // of delegation tokens

	// Secure, if set, means that all callers log in by Kerberos or a token.
	Secure *Secure
	// Renewals configures the renewal of applications' tokens. A secure server renews its own delegation tokens itself;
	// those of that kind that it does not know it leaves to the server here.
	Renewals renewal.Config

	Mailbox int // limit of events that wait for the machine; above it callers get "busy"; 65,536

	Logger *slog.Logger
}

// Pair is the HA pair of an active ResourceManager.
type Pair struct {
	ID string // of this ResourceManager: yarn.resourcemanager.ha.id
	// Leads reports whether this process may answer. While it is false, no answer leaves the server, and the server
	// ends.
	Leads func() bool
}

// Secure is the configuration of a server whose callers log in.
type Secure struct {
	Protections []hrpc.Protection // of calls to NodeManagers, the preferred one first: hadoop.rpc.protection
	Names       *username.Rules   // from principals to users
}

// Hosts are the admitted and the excluded hosts.
type Hosts struct {
	Include, Exclude []string
	// Timeouts are the timeouts of graceful decommissioning by host, from an exclude file in XML: 0 is at once,
	// negative is no limit. Timeout applies to other hosts; 0: Machine.DecommissionAfter.
	Timeouts map[string]time.Duration
	Timeout  time.Duration
}

func (c Config) withDefaults() Config {
	def := func(v *time.Duration, d time.Duration) { *v = cmp.Or(*v, d) }
	def(&c.HeartbeatInterval, time.Second)
	def(&c.HeartbeatMax, 10*time.Second)
	def(&c.KeyRoll, 24*time.Hour)
	def(&c.LaunchTime, 3*time.Minute)
	def(&c.Tokens.Renew, 24*time.Hour)
	def(&c.Tokens.Max, 7*24*time.Hour)
	def(&c.Tokens.KeyUpdate, 24*time.Hour)
	c.HeartbeatsPerSecond = cmp.Or(c.HeartbeatsPerSecond, 100_000)
	c.LaunchThreads = cmp.Or(c.LaunchThreads, 50)
	c.Mailbox = cmp.Or(c.Mailbox, 65_536)
	if c.Groups == nil {
		c.Groups = groups.Open(groups.Config{
			Mapping: groups.OfMachine, Keep: 5 * time.Minute, KeepNone: 30 * time.Second, Logger: c.Logger,
		})
	}
	if c.Rack == nil {
		c.Rack = func(string) string { return "/default-rack" }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Validate returns an error for settings that cannot work.
func (c Config) Validate() error {
	if c.Epoch < 0 || c.Epoch > 1<<23 {
		return fmt.Errorf("resource manager: epoch %d is not within 0 and %d", c.Epoch, 1<<23)
	}
	for _, d := range []time.Duration{
		c.HeartbeatInterval,
		c.KeyRoll,
		c.LaunchTime,
		c.Tokens.Renew,
		c.Tokens.Max,
		c.Tokens.KeyUpdate,
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

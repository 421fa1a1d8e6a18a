// SPDX-License-Identifier: Apache-2.0

package creel_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/creelrm/creel"

// A rule lists what the package in one folder may import. Unlisted imports are refused, and so is a rule without a
// package: a new package, and a new arrow, is a recorded decision.
type rule struct {
	pure    bool     // no clock, socket, logger, goroutine, file system, third party
	imports []string // packages of this module it may import, besides itself; "*" is any
	others  []string // third parties that a pure package may use all the same, with the reason beside it
}

// data is the only wire package that a pure package may import: messages, never sockets.
const data = "internal/yarnpb"

// protobuf is allowed in pure packages that point at messages: its runtime holds
// no clock and no socket.
var protobuf = []string{"google.golang.org/protobuf/", "github.com/planetscale/vtprotobuf/"}

var rules = map[string]rule{
	".":                       {pure: true},
	"subcluster":              {pure: true, imports: []string{".", "internal/units"}},
	"subcluster/rm/queues":    {pure: true, imports: []string{"."}},
	"subcluster/rm/queueconf": {pure: true, imports: []string{".", "subcluster/rm/queues", "subcluster/rm/placement"}},
	"subcluster/rm/placement": {pure: true, imports: []string{".", "subcluster/rm/queues", "internal/strictjson"}},
	"subcluster/rm": {
		pure: true,
		imports: []string{
			"internal/units",
			".",
			"subcluster/rm/queues",
			"subcluster/rm/sched",
			"subcluster/rm/sched/amounts",
			"subcluster/rm/sched/constraints",
			"subcluster/rm/sched/explain",
			"subcluster/rm/sched/leases",
			"subcluster/rm/logaggregation",
			"subcluster/rm/nodecommands",
			"subcluster/rm/nodeset",
			"subcluster/rm/opportunistic",
			"subcluster/levels",
			"internal/intrusive",
			"internal/pagemap",
			"internal/slab",
			"internal/waitstats",
			data,
		},
		others: protobuf,
	},
	"subcluster/rm/sched": {
		pure: true,
		imports: []string{
			".",
			"subcluster/rm/queues",
			"subcluster/rm/sched/amounts",
			"subcluster/rm/sched/audit",
			"subcluster/rm/sched/constraints",
			"subcluster/rm/sched/explain",
			"subcluster/rm/sched/ideal",
			"subcluster/rm/sched/leases",
			"subcluster/rm/sched/nodeindex",
			"subcluster/rm/sched/places",
			"subcluster/rm/sched/preempt",
			"subcluster/rm/sched/runtimes",
			"subcluster/rm/sched/shares",
			"subcluster/rm/sched/topology",
			"internal/intrusive",
			"internal/waitstats",
		},
	},
	"subcluster/rm/durability": {pure: true},
	// The turn of a ResourceManager's owner, for the daemon and the simulator.
	"subcluster/rm/turn": {
		pure:    true,
		imports: []string{"internal/pauseclock", ".", "subcluster/rm", "subcluster/rm/codec", "subcluster/rm/durability", data},
	},
	"subcluster/rm/codec": {
		pure: true,
		imports: []string{
			".", "subcluster", "subcluster/rm", "subcluster/rm/queues", "subcluster/rm/sched/constraints",
			"subcluster/rm/sched/explain", "internal/token", data,
		},
		others: protobuf,
	},
	"subcluster/rm/sched/amounts":     {pure: true, imports: []string{"."}},
	"subcluster/rm/sched/constraints": {pure: true, imports: []string{"."}},
	"subcluster/levels":               {pure: true},
	"subcluster/rm/opportunistic": {
		pure: true, imports: []string{"subcluster/levels", "subcluster/rm/sched/amounts"},
	},
	"subcluster/rm/sched/audit": {
		pure: true, imports: []string{"subcluster/rm/sched/amounts", "subcluster/rm/sched/places"},
	},
	"subcluster/rm/sched/explain": {
		pure:    true,
		imports: []string{".", "subcluster/rm/queues", "subcluster/rm/sched/amounts", "subcluster/rm/sched/constraints"},
	},
	"subcluster/rm/sched/shares": {pure: true, imports: []string{"subcluster/rm/queues"}},
	"subcluster/rm/sched/ideal":  {pure: true, imports: []string{"subcluster/rm/sched/amounts"}},
	"subcluster/rm/sched/preempt": {
		pure: true,
		imports: []string{
			"subcluster/rm/sched/amounts", "subcluster/rm/sched/leases", "subcluster/rm/sched/runtimes",
		},
	},
	"subcluster/rm/sched/runtimes":  {pure: true},
	"subcluster/rm/sched/nodeindex": {pure: true, imports: []string{".", "subcluster/rm/sched/amounts"}},
	"subcluster/rm/sched/leases":    {pure: true, imports: []string{".", "subcluster/rm/sched/amounts"}},
	"subcluster/rm/sched/places":    {pure: true, imports: []string{"subcluster/rm/sched/topology"}},
	"subcluster/rm/sched/topology": {
		pure: true, imports: []string{"subcluster/rm/sched/amounts", "subcluster/rm/sched/nodeindex"},
	},
	"subcluster/rm/logaggregation": {pure: true, imports: []string{"."}},
	"subcluster/rm/nodecommands":   {pure: true, imports: []string{"."}},
	"subcluster/rm/nodeset":        {pure: true},
	"internal/intrusive":           {pure: true},
	"internal/pagemap":             {pure: true},
	"internal/slab":                {pure: true},
	"subcluster/nm": {
		pure:    true,
		imports: []string{".", "subcluster/nm/overallocate", "subcluster/nm/queue", "internal/token", data},
		others:  protobuf,
	},
	"subcluster/nm/overallocate": {pure: true, imports: []string{"."}},
	"subcluster/nm/queue":        {pure: true, imports: []string{".", "subcluster/nm/overallocate"}},
	"policies":                   {pure: true, imports: []string{".", "subcluster", "internal/strictjson"}},
	"statestore":                 {pure: true, imports: []string{".", "internal/units", "subcluster"}},
	"statestore/memory":          {pure: true, imports: []string{".", "subcluster", "statestore"}},
	"router": {
		pure: true,
		imports: []string{
			".", "subcluster", "statestore", "policies", "internal/units", "internal/waitstats", "router/history",
		},
		others: []string{"github.com/hashicorp/golang-lru/v2/simplelru"}, // lists and maps without a lock or a clock
	},
	"router/history": {pure: true},
	"amrmproxy": {
		pure:    true,
		imports: []string{".", "subcluster", "subcluster/levels", "policies", "internal/waitstats", data},
		others:  protobuf,
	},
	"internal/waitstats":        {pure: true},
	"internal/token":            {pure: true, imports: []string{".", data}, others: protobuf},
	"internal/workload":         {pure: true, imports: []string{".", "policies"}},
	"internal/yarnpb":           {imports: []string{"."}},
	"internal/workerpool":       {},
	"internal/pauseclock":       {},
	"internal/hugepages":        {},
	"internal/query":            {},
	"internal/shape":            {}, // figures of this tree's packages
	"internal/webdoc":           {imports: []string{".", data}},
	"internal/httpguard":        {imports: []string{"internal/audit"}},
	"internal/groups":           {imports: []string{"internal/ratelog"}},
	"internal/authorizer":       {imports: []string{"internal/ratelog"}},
	"internal/groups/directory": {},
	"internal/amcookies":        {imports: []string{"."}},
	"internal/servlets":         {imports: []string{"internal/hrpc", "internal/httpguard", "internal/query"}},
	"internal/programs":         {}, // programs that tests run beside creel
	"internal/propertytest":     {}, // draws of property tests and fuzz targets
	"internal/sockwait":         {},
	"internal/network":          {},
	"internal/nodelogs":         {imports: []string{".", "internal/network", "internal/webdoc"}},
	"internal/jceks":            {pure: true},
	"internal/ratelog":          {},
	"internal/rawjson":          {pure: true},
	"internal/nearest":          {pure: true},
	"internal/strictjson":       {pure: true, imports: []string{"internal/nearest"}},
	"internal/strictyaml":       {pure: true, imports: []string{"internal/strictjson"}, others: []string{"go.yaml.in/yaml/"}},
	"internal/hrpc": {
		imports: []string{"internal/sockwait", "internal/ratelog", "internal/username", "internal/workerpool"},
	},
	"internal/username":         {pure: true},
	"internal/impersonation":    {imports: []string{".", "internal/httpguard"}},
	"internal/kerberos":         {imports: []string{"internal/gssapi"}},
	"internal/kerberos/webauth": {imports: []string{"internal/gssapi", "internal/kerberos", "internal/spnego"}},
	"internal/kerberos/rpcauth": {imports: []string{"internal/gssapi", "internal/hrpc", "internal/kerberos"}},
	"internal/certs":            {},
	"internal/spnego":           {imports: []string{"internal/gssapi", "internal/httpguard", "internal/query"}},
	// Kerberos tokens; of the library, messages and the derivation of keys.
	"internal/gssapi": {
		pure: true, others: []string{"github.com/jcmturner/gokrb5/v8/", "github.com/jcmturner/gofork/encoding/asn1"},
	},
	"internal/hrpc/telemetry": {imports: []string{"internal/audit", "internal/hrpc"}},
	"internal/audit":          {},
	"internal/yarnrpc":        {imports: []string{".", "internal/audit", "internal/hrpc", data}},
	"internal/settings":       {imports: []string{"internal/nearest", "policies"}}, // whose names are choices
	// The federation's queues: escrow of their maxima, the plan, and the server of both.
	"policies/rebalancer": {
		pure:    true,
		imports: []string{".", "subcluster", "policies/rebalancer/escrow", "internal/strictjson"},
	},
	// Invariants of queues, for the demo, the simulator and the leading rebalancer.
	"policies/rebalancer/invariants": {
		pure:    true,
		imports: []string{".", "subcluster", "policies/rebalancer", "policies/rebalancer/escrow"},
	},
	"policies/rebalancer/server": {
		imports: []string{
			".", "subcluster", "statestore", "policies/rebalancer", "policies/rebalancer/escrow",
			"policies/rebalancer/invariants",
		},
	},
	"subcluster/member": {
		imports: []string{
			".", "subcluster", "subcluster/rm", "statestore", "policies/rebalancer", "policies/rebalancer/escrow",
			"internal/pauseclock",
			"subcluster/remote", // the queues of a Hadoop ResourceManager
		},
	},
	"subcluster/member/membertest": {
		imports: []string{
			".", "subcluster", "subcluster/rm", "subcluster/rm/codec", "subcluster/rm/opportunistic",
			"subcluster/rm/queues", "statestore", "statestore/memory",
			"subcluster/member", "policies/rebalancer", "policies/rebalancer/escrow",
		},
	},
	"policies/rebalancer/escrow": {
		pure:    true,
		imports: []string{"."},
	},
	// The map from hosts to subclusters: the table, its publisher and its followers.
	"subcluster/resolver": {pure: true, imports: []string{".", "subcluster", "statestore"}},
	"subcluster/resolver/server": {
		imports: []string{".", "subcluster", "statestore", "subcluster/resolver"},
	},
	"subcluster/remote": {
		imports: []string{
			".", "subcluster", "subcluster/failover", "internal/pauseclock", "internal/hrpc", data, "internal/yarnrpc",
			"internal/token", "internal/network", "internal/query", "internal/webdoc", "subcluster/login",
		},
	},
	// The login of routers and proxies at members.
	"subcluster/login": {
		imports: []string{
			"internal/gssapi", "internal/hrpc", "internal/httpguard", "internal/kerberos", "internal/kerberos/rpcauth",
			"internal/kerberos/webauth", "internal/query",
		},
	},
	"subcluster/failover":   {pure: true, imports: []string{"."}},
	"subcluster/rm/journal": {imports: []string{".", "subcluster/rm", "subcluster/rm/state"}},
	// The contract of a ResourceManager's state, and the contract as tests.
	"subcluster/rm/state": {pure: true},
	"subcluster/rm/redisstate": {
		imports: []string{"statestore", "statestore/redis", "subcluster/rm/state"},
	},
	// The renewal of applications' tokens of other services.
	"subcluster/rm/renewal": {
		imports: []string{
			".", "internal/hrpc", "internal/network", "internal/token", "internal/yarnpb", "internal/yarnrpc",
			"subcluster/failover", "subcluster/remote",
		},
	},
	"subcluster/rm/zkstate": {imports: []string{"subcluster/rm/state", "internal/zkclient"}},
	"internal/zkclient":     {imports: []string{"internal/certs", "internal/network"}},
	"subcluster/rm/transfer": {
		imports: []string{".", "subcluster/rm/state", "subcluster/rm/turn"},
	},
	// Hadoop's layout of a state, with creel's records.
	"subcluster/rm/hadoopstate": {
		imports: []string{
			".", "internal/token", "subcluster/rm", "subcluster/rm/codec", "subcluster/rm/server", "subcluster/rm/zkstate", data,
		},
	},
	"subcluster/rm/pair":            {pure: true},
	"subcluster/rm/pair/server":     {imports: []string{".", "internal/pauseclock", "subcluster/rm/pair"}},
	"subcluster/rm/state/statetest": {imports: []string{"internal/propertytest", "subcluster/rm/state"}},
	"subcluster/rm/server": {
		imports: []string{
			"internal/username",
			"internal/httpguard",
			"internal/impersonation",
			"internal/pauseclock",
			"internal/groups", "internal/authorizer",
			".",
			"subcluster/rm",
			"subcluster/rm/queues", "subcluster/rm/renewal",
			"subcluster/rm/queueconf",
			"subcluster/rm/codec",
			"subcluster/rm/turn",
			"subcluster/rm/journal",
			"subcluster/rm/state",
			"subcluster/rm/transfer", // its mark
			"internal/audit",
			"internal/hrpc",
			"internal/hrpc/telemetry",
			data,
			"internal/yarnrpc",
			"internal/token",
		},
	},
	"subcluster/rm/rpc": {
		imports: []string{
			".",
			"subcluster/rm",
			"subcluster/rm/codec",
			"subcluster/rm/server",
			"internal/hrpc",
			"internal/hrpc/telemetry",
			data,
			"internal/yarnrpc",
			"internal/token",
		},
	},
	"subcluster/rm/rest": {
		imports: []string{
			".",
			"internal/audit",
			"subcluster",
			"subcluster/rm",
			"subcluster/rm/queues",
			"subcluster/rm/queueconf",
			"subcluster/rm/sched/explain",
			"subcluster/rm/codec",
			"subcluster/rm/server",
			data,
			"internal/strictjson",
			"internal/token",
			"internal/query",
			"internal/httpguard",
			"internal/amcookies",
			"internal/servlets",
			"internal/webdoc",
		},
	},
	"subcluster/nm/server": {
		imports: []string{
			".", "internal/units", "subcluster/nm", "subcluster/nm/overallocate", "subcluster/nm/queue", data, "internal/token",
		},
	},
	"subcluster/nm/rpc": {
		imports: []string{
			".", "subcluster/nm", "subcluster/nm/server", "internal/hrpc", data, "internal/yarnrpc", "internal/token",
		},
	},
	// Decisions are the in-memory store's, on the records of a few nodes.
	"statestore/nodes":     {imports: []string{".", "subcluster", "statestore", "statestore/memory", data}},
	"statestore/zookeeper": {imports: []string{".", "statestore", "statestore/nodes", "internal/zkclient"}},
	"statestore/mariadb":   {imports: []string{".", "statestore", "statestore/nodes", data}},
	"statestore/redis": {imports: []string{
		".", "subcluster", "statestore", "internal/certs", "internal/network", "internal/workerpool",
	}},
	"amrmproxy/server": {
		imports: []string{
			".", "subcluster", "policies", "amrmproxy", "internal/pauseclock", "internal/hrpc", "internal/hrpc/telemetry",
			data, "internal/waitstats", "internal/workerpool", "internal/yarnrpc",
		},
	},
	"amrmproxy/remote": {
		imports: []string{
			".", "subcluster", "subcluster/failover", "subcluster/login", "amrmproxy/server", "internal/pauseclock",
			"internal/hrpc", data, "internal/yarnrpc",
		},
	},
	"amrmproxy/stored": {pure: true, imports: []string{".", "statestore", "amrmproxy"}},
	"amrmproxy/keys": {
		imports: []string{".", "subcluster", "statestore", "amrmproxy", "internal/token", data},
	},
	"amrmproxy/rpc": {
		imports: []string{
			".",
			"amrmproxy",
			"amrmproxy/server",
			"internal/hrpc",
			data,
			"internal/yarnrpc",
			"internal/token",
		},
	},
	// The calls that a router makes to members for itself.
	"router/client": {
		imports: []string{
			".", "statestore", "statestore/intents", "subcluster", "subcluster/remote", "policies", "router", data,
			"internal/yarnrpc", "internal/hrpc",
		},
	},
	"router/rpc": {
		imports: []string{
			".", "statestore/intents", "statestore/events",
			"router/client",
			"subcluster",
			"subcluster/remote",
			"policies",
			"router",
			"router/server",
			"router/operator",
			"router/tokens",
			"statestore",
			"internal/audit",
			"internal/hrpc",
			data,
			"internal/yarnrpc",
			"internal/token",
		},
	},
	"router/operator": {
		imports: []string{
			"internal/units",
			".", "subcluster", "policies", "policies/rebalancer", "policies/rebalancer/escrow", "statestore", "statestore/epochs",
			"statestore/tidy", "statestore/events", "router", "router/moves", "internal/strictyaml",
		},
	},
	// The list of all members' applications, and lists that viewers share. Their callers ask the members.
	"router/snapshot": {imports: []string{".", "router", "subcluster/remote"}},
	"router/apps": {
		imports: []string{".", "internal/rawjson", "router", "router/snapshot", "subcluster", "subcluster/remote"},
	},
	"router/rest": {
		imports: []string{
			"internal/units", "router/apps", "router/snapshot",
			".", "statestore/intents", "statestore/events", "internal/httpguard", "internal/amcookies", "internal/audit", "internal/servlets",
			"internal/query", "internal/rawjson", "internal/nodelogs", "subcluster", "internal/strictjson", "subcluster/remote", "policies", "router", "router/server",
			"router/history", "router/operator", "router/tokens", "statestore", "policies/rebalancer", "internal/token", "internal/webdoc",
			"internal/kerberos/webauth", // its error
		},
	},
	// Pages are clients of the API within their process: they know the API's documents, and asks them by path.
	"internal/units": {pure: true},
	"internal/pages": {imports: []string{"internal/units", "internal/webdoc"}},
	"subcluster/rm/dash": {
		imports: []string{".", "internal/units", "internal/pages", "subcluster", "subcluster/rm/rest"},
	},
	"router/dash": {
		imports: []string{
			"internal/units",
			".", "internal/pages", "subcluster", "policies", "policies/rebalancer", "router", "router/apps", "router/operator",
			"router/rest", "statestore",
		},
	},
	"app/sim": {
		pure: true,
		imports: []string{
			".",
			"subcluster",
			"subcluster/resolver",
			"subcluster/rm/turn",
			"subcluster/rm",
			"subcluster/rm/codec",
			"subcluster/rm/journal", // its bytes, in memory
			"subcluster/rm/state",   // its transactions
			"subcluster/rm/queues",
			"subcluster/nm",
			"policies",
			"policies/rebalancer",
			"policies/rebalancer/escrow",
			"policies/rebalancer/invariants",
			"policies/rebalancer/server",
			"subcluster/member", // keeps queues within federation-wide maxima
			"statestore",
			"statestore/memory",
			"statestore/watch", // reactions to observed changes
			"router",
			"router/moves", "statestore/intents",
			"amrmproxy",
			"amrmproxy/stored",
			"app/sim/opportune",
			"app/sim/overcommit",
			"internal/token",
			"internal/workload",
			data,
		},
		others: protobuf,
	},
	"app/sim/opportune": {
		pure: true,
		imports: []string{
			".", "amrmproxy", "app/sim/overcommit", "internal/token", "subcluster/nm", "subcluster/nm/queue", "subcluster/rm/opportunistic", data,
		},
	},
	"app/sim/pairs": {}, // tests only
	"app/sim/overcommit": {
		pure:    true,
		imports: []string{".", "subcluster/nm", "subcluster/nm/overallocate", "subcluster/rm/opportunistic"},
	},
	// Ways to give containers to tasks, side by side: the machines of the daemons, and models.
	"app/sim/ways": {
		pure: true,
		imports: []string{
			".", "internal/workload", "subcluster/nm", "subcluster/nm/queue", "subcluster/rm", "subcluster/rm/codec",
			"subcluster/rm/opportunistic", "subcluster/rm/queues", data,
		},
	},
	// Figures of runs side by side, as tables' values and a page.
	"app/sim/compare": {imports: []string{".", "app/sim"}},
	"app/load": {
		imports: []string{".", "internal/hrpc", data, "internal/yarnrpc", "internal/token", "internal/workload"},
	},
	// The distributed shell of `creel run`: its AM, on simulated nodes and on real ones.
	"app/shell": {
		imports: []string{
			".", "app/load", "internal/hrpc", data, "internal/yarnrpc", "internal/token", "internal/workload",
			"subcluster/nm/server",
		},
	},
	"app/daemon":        {imports: []string{"app/daemon/health"}},
	"app/daemon/build":  {},
	"app/daemon/health": {imports: []string{"app/daemon/build", "internal/httpguard"}},
	"app/daemon/webserver": {
		imports: []string{
			"internal/certs", "internal/httpguard", "internal/query", "internal/ratelog", "internal/sockwait", "internal/spnego",
			"internal/username",
		},
	},
	"app/daemon/logs": {imports: []string{"internal/audit", "internal/settings"}},
	"app/daemon/tracing": {
		imports: []string{"app/daemon/build", "internal/hrpc", "internal/hrpc/telemetry", "internal/settings"},
	},
	"app/daemon/role":       {imports: []string{"*"}},
	"app/daemon/federation": {imports: []string{"*"}},
	"app/demo":              {imports: []string{"*"}},
	"statestore/storetest":  {imports: []string{".", "internal/propertytest", "subcluster", "statestore", "statestore/memory"}},
	"statestore/watch":      {imports: []string{".", "subcluster", "statestore", "internal/pauseclock"}},
	"statestore/signed":     {imports: []string{".", "subcluster", "statestore"}},
	"statestore/epochs":     {imports: []string{".", "statestore"}},
	"statestore/rebuild":    {imports: []string{".", "internal/audit", "subcluster", "statestore", "internal/pauseclock"}},
	"statestore/reconcile":  {imports: []string{".", "subcluster", "statestore"}},
	"statestore/intents":    {imports: []string{".", "subcluster", "statestore"}},
	"statestore/events":     {imports: []string{".", "statestore"}},
	"statestore/tidy":       {imports: []string{".", "subcluster", "statestore"}},

	"statestore/redis/redistest": {imports: []string{"internal/programs"}},
	"internal/workload/traces":   {},
	"router/server": {
		imports: []string{
			"internal/units",
			".", "statestore", "statestore/intents", "subcluster", "policies", "router", "router/history", "subcluster/remote",
			"internal/hrpc", "internal/pauseclock", data,
		},
	},
	"router/tokens":     {imports: []string{".", "statestore", "internal/token"}},
	"router/moves":      {imports: []string{".", "internal/audit", "subcluster", "statestore", "router"}},
	"router/routertest": {imports: []string{"*"}},
	"cmd/creel":         {imports: []string{"*"}},
}

// Prefixes of folders whose every package follows one rule.
var trees = map[string]rule{
	"cmd": {imports: []string{"*"}},
	"e2e": {imports: []string{"*"}},
}

// Packages of the standard library that a pure package may not have.
var impure = []string{
	"net",
	"os",
	"log",
	"syscall",
	"unsafe",
	"runtime",
	"testing",
	"plugin",
	"database/sql",
	"math/rand",
	"embed",
	"io/ioutil",
	"crypto/rand",
}

// math/rand/v2 is allowed for its type: *rand.Rand is an argument. Its global functions, and functions of package
// time that read the clock, are refused by name.
var forbiddenNames = map[string][]string{
	"time": {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
	"math/rand/v2": {
		"Int",
		"IntN",
		"Int64",
		"Int64N",
		"Int32",
		"Int32N",
		"Uint32",
		"Uint64",
		"Uint32N",
		"Uint64N",
		"UintN",
		"N",
		"Float64",
		"Float32",
		"Perm",
		"Shuffle",
		"NormFloat64",
		"ExpFloat64",
	},
	"context": {"Background", "TODO", "WithTimeout", "WithDeadline"},
}

func TestPackagesImportOnlyDeclared(t *testing.T) {
	seen := map[string]bool{}
	files := 0
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if file != "." &&
				(strings.HasPrefix(name, ".") || name == "testdata" || name == "docs" || name == "deploy") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		folder := filepath.ToSlash(filepath.Dir(file))
		r, ok := rules[folder]
		if !ok {
			r, ok = trees[strings.SplitN(folder, "/", 2)[0]]
		}
		if !ok {
			t.Errorf("%s: package %s is not declared in imports_test.go; say there what it may import", file, folder)
			return nil
		}
		seen[folder] = true
		files++
		for _, breach := range breaches(t, file, folder, r) {
			t.Error(breach)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for folder := range rules {
		if !seen[folder] {
			t.Errorf("imports_test.go declares %s, where there is no Go file", folder)
		}
	}
	if files < 7 || !seen["."] {
		t.Fatalf("only %d files were seen: run the test in the root of the module", files)
	}
}

// breaches lists a file's imports and names that break the rule of its package.
func breaches(t *testing.T, file, folder string, r rule) (out []string) {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range tree.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		local := path.Base(p)
		if p == "math/rand/v2" {
			local = "rand"
		}
		if spec.Name != nil {
			local = spec.Name.Name
		}
		switch rest, ours := strings.CutPrefix(p, module); {
		case ours:
			target := strings.TrimPrefix(rest, "/")
			if target == "" {
				target = "."
			}
			if target != folder && !slices.Contains(r.imports, target) && !slices.Contains(r.imports, "*") {
				out = append(out, file+": "+folder+" may not import "+target)
			}
		case !r.pure:
		case strings.Contains(strings.SplitN(p, "/", 2)[0], "."):
			if !slices.ContainsFunc(r.others, func(prefix string) bool { return strings.HasPrefix(p, prefix) }) {
				out = append(out, file+": pure package "+folder+" may not import third party "+p)
			}
		case p != "math/rand/v2" && slices.ContainsFunc(impure, func(bad string) bool { return p == bad || strings.HasPrefix(p, bad+"/") }):
			out = append(out, file+": pure package "+folder+" may not import "+p)
		}
		if r.pure {
			for _, bad := range forbiddenNames[p] {
				if usesName(tree, local, bad) {
					out = append(
						out,
						file+": pure package "+folder+" may not use "+p+"."+bad+"; take it as an argument",
					)
				}
			}
		}
	}
	if r.pure && startsGoroutine(tree) {
		out = append(out, file+": pure package "+folder+" may not start a goroutine")
	}
	return out
}

// The check itself is tested: one that cannot fail guards nothing.
func TestBreachesAreSeen(t *testing.T) {
	pure := rule{pure: true, imports: []string{"."}}
	for file, want := range map[string]int{
		"testdata/imports/clock.go":  1,
		"testdata/imports/socket.go": 3,
		"testdata/imports/good.go":   0,
	} {
		if got := breaches(t, file, "policies", pure); len(got) != want {
			t.Errorf("%s: %d breaches seen, want %d: %q", file, len(got), want, got)
		}
	}
}

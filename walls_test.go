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

// A room is one folder. What it may import of ours is listed here and nowhere
// else; a folder that is not listed is refused, so that a new room is a
// decision someone wrote down.
type room struct {
	pure bool     // no clock, socket, logger, goroutine helper, file system, third party
	own  []string // rooms it may import, besides itself; "*" is any
	pkgs []string // third parties a pure room may use all the same, with the reason beside it
}

// data is what a pure room may read of the wire: messages, never sockets.
const data = "internal/yarnpb"

// protobuf is allowed in pure rooms that point at messages: its runtime holds
// no clock and no socket.
var protobuf = []string{"google.golang.org/protobuf/", "github.com/planetscale/vtprotobuf/"}

var rooms = map[string]room{
	".":                       {pure: true},
	"subcluster":              {pure: true, own: []string{"."}},
	"subcluster/rm/queues":    {pure: true, own: []string{"."}},
	"subcluster/rm/queueconf": {pure: true, own: []string{".", "subcluster/rm/queues", "subcluster/rm/placement"}},
	"subcluster/rm/placement": {pure: true, own: []string{".", "subcluster/rm/queues"}},
	"subcluster/rm": {
		pure: true,
		own: []string{
			".",
			"subcluster/rm/queues",
			"subcluster/rm/sched",
			"subcluster/rm/sched/amounts",
			"subcluster/rm/nodecommands",
			"subcluster/rm/nodeset",
			"internal/intrusive",
			"internal/pagemap",
			"internal/slab",
			data,
		},
		pkgs: protobuf,
	},
	"subcluster/rm/sched": {
		pure: true,
		own: []string{
			".",
			"subcluster/rm/queues",
			"subcluster/rm/sched/amounts",
			"subcluster/rm/sched/nodeindex",
			"internal/intrusive",
		},
	},
	"subcluster/rm/sched/amounts":   {pure: true, own: []string{"."}},
	"subcluster/rm/sched/nodeindex": {pure: true, own: []string{".", "subcluster/rm/sched/amounts"}},
	"subcluster/rm/nodecommands":    {pure: true, own: []string{"."}},
	"subcluster/rm/nodeset":         {pure: true},
	"internal/intrusive":            {pure: true},
	"internal/pagemap":              {pure: true},
	"internal/slab":                 {pure: true},
	"subcluster/nm":                 {pure: true, own: []string{".", data}, pkgs: protobuf},
	"policies":                      {pure: true, own: []string{".", "subcluster"}},
	"statestore":                    {pure: true, own: []string{".", "subcluster"}},
	"router":                        {pure: true, own: []string{".", "subcluster", "policies"}},
	"amrmproxy":                     {pure: true, own: []string{".", "subcluster", "policies", data}, pkgs: protobuf},
	"internal/token":                {pure: true, own: []string{".", data}, pkgs: protobuf},
	"internal/workload":             {pure: true, own: []string{".", "policies"}},
	"internal/yarnpb":               {own: []string{"."}},
	"internal/workers":              {},
	"internal/awake":                {pure: true},
	"internal/hugepages":            {},
	"internal/query":                {},
	"internal/programs":             {}, // what tests run beside creel
	"internal/hrpc":                 {own: []string{"internal/workers"}},
	"internal/hrpc/telemetry":       {own: []string{"internal/hrpc"}},
	"internal/yarnrpc":              {own: []string{".", "internal/hrpc", data}},
	"internal/settings":             {own: []string{"policies"}}, // whose names are choices
	// The federation's queues: escrow of their maxima, the plan, and who runs both.
	"policies/rebalancer/escrow": {
		pure: true,
		own:  []string{"."},
	},
	"subcluster/remote": {
		own: []string{".", "subcluster", "internal/hrpc", data, "internal/yarnrpc", "internal/token"},
	},
	"subcluster/rm/journal": {own: []string{".", "subcluster/rm"}},
	"subcluster/rm/rpc": {
		own: []string{
			".",
			"subcluster/rm",
			"subcluster/rm/queues",
			"subcluster/rm/sched/amounts",
			"subcluster/rm/journal",
			"internal/hrpc",
			data,
			"internal/yarnrpc",
			"internal/token",
		},
	},
	"subcluster/rm/rest": {
		own: []string{
			".",
			"subcluster",
			"subcluster/rm",
			"subcluster/rm/queues",
			"subcluster/rm/sched",
			"subcluster/rm/rpc",
			data,
			"internal/token",
			"internal/query",
		},
	},
	"subcluster/nm/rpc": {
		own: []string{".", "subcluster/nm", "internal/hrpc", data, "internal/yarnrpc", "internal/token"},
	},
	"statestore/redis": {own: []string{".", "subcluster", "statestore", "internal/workers"}},
	"amrmproxy/server": {
		own: []string{".", "subcluster", "policies", "amrmproxy", "internal/hrpc", data, "internal/workers"},
	},
	"amrmproxy/remote": {
		own: []string{".", "subcluster", "amrmproxy/server", "internal/hrpc", data, "internal/yarnrpc"},
	},
	"amrmproxy/stored": {pure: true, own: []string{".", "statestore", "amrmproxy"}},
	"amrmproxy/keys":   {own: []string{".", "subcluster", "statestore", "internal/token"}},
	"amrmproxy/rpc": {
		own: []string{".", "amrmproxy", "amrmproxy/server", "internal/hrpc", data, "internal/yarnrpc", "internal/token"},
	},
	"router/rpc": {
		own: []string{
			".",
			"subcluster",
			"subcluster/remote",
			"policies",
			"router",
			"router/server",
			"internal/hrpc",
			data,
			"internal/yarnrpc",
			"internal/token",
		},
	},
	"router/rest": {
		own: []string{".", "subcluster", "subcluster/remote", "policies", "router", "router/server"},
	},
	"router/dash": {own: []string{".", "subcluster", "router", "router/server"}},
	"internal/app/sim": {
		pure: true,
		own: []string{
			".",
			"subcluster",
			"subcluster/rm",
			"subcluster/rm/queues",
			"subcluster/rm/sched/amounts",
			"subcluster/nm",
			"policies",
			"statestore",
			"router",
			"amrmproxy",
			"amrmproxy/stored",
			"internal/workload",
			data,
		},
		pkgs: protobuf,
	},
	"internal/app/load": {
		own: []string{".", "internal/hrpc", data, "internal/yarnrpc", "internal/token", "internal/workload"},
	},
	"internal/app/daemon":           {own: []string{"internal/app/daemon/health"}},
	"internal/app/daemon/build":     {},
	"internal/app/daemon/health":    {own: []string{"internal/app/daemon/build"}},
	"internal/app/daemon/webserver": {own: []string{"internal/query"}},
	"internal/app/daemon/logs":      {own: []string{"internal/settings"}},
	"internal/app/daemon/tracing": {
		own: []string{"internal/app/daemon/build", "internal/hrpc", "internal/hrpc/telemetry", "internal/settings"},
	},
	"internal/app/daemon/role":       {own: []string{"*"}},
	"internal/app/daemon/federation": {own: []string{"*"}},
	"internal/app/demo":              {own: []string{"*"}},
	"statestore/storetest":           {own: []string{".", "subcluster", "statestore"}},
	"statestore/watch":               {own: []string{".", "subcluster", "statestore"}},
	"statestore/cache":               {own: []string{".", "statestore"}},
	"statestore/rebuild":             {own: []string{".", "subcluster", "statestore"}},
	"statestore/reconcile":           {own: []string{".", "subcluster", "statestore"}},
	"statestore/tidy":                {own: []string{".", "subcluster", "statestore"}},

	"statestore/redis/redistest": {own: []string{"internal/programs"}},
	"internal/workload/traces":   {},
	"router/server": {
		own: []string{".", "subcluster", "policies", "router", "subcluster/remote", "internal/hrpc"},
	},
	"router/routertest": {own: []string{"*"}},
	"cmd/creel":         {own: []string{"*"}},
}

// Prefixes of folders whose every package follows one rule.
var trees = map[string]room{
	"cmd": {own: []string{"*"}},
	"e2e": {own: []string{"*"}},
}

// Packages of the standard library that a pure room may not have.
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

// math/rand/v2 is allowed for its type: *rand.Rand is an argument. Its global
// functions, and what reads the clock in package time, are refused by name.
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

func TestRoomsImportOnlyWhatTheHouseAllows(t *testing.T) {
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
		r, ok := rooms[folder]
		if !ok {
			r, ok = trees[strings.SplitN(folder, "/", 2)[0]]
		}
		if !ok {
			t.Errorf("%s: room %s is not declared in walls_test.go; say there what it may import", file, folder)
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
	if files < 7 || !seen["."] {
		t.Fatalf("only %d files were seen: run the test in the root of the module", files)
	}
}

// breaches lists what file imports or names against the rules of its room.
func breaches(t *testing.T, file, folder string, r room) (out []string) {
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
		switch own, isOwn := strings.CutPrefix(p, module); {
		case isOwn:
			target := strings.TrimPrefix(own, "/")
			if target == "" {
				target = "."
			}
			if target != folder && !slices.Contains(r.own, target) && !slices.Contains(r.own, "*") {
				out = append(out, file+": room "+folder+" may not import room "+target)
			}
		case !r.pure:
		case strings.Contains(strings.SplitN(p, "/", 2)[0], "."):
			if !slices.ContainsFunc(r.pkgs, func(prefix string) bool { return strings.HasPrefix(p, prefix) }) {
				out = append(out, file+": pure room "+folder+" may not import third party "+p)
			}
		case p != "math/rand/v2" && slices.ContainsFunc(impure, func(bad string) bool { return p == bad || strings.HasPrefix(p, bad+"/") }):
			out = append(out, file+": pure room "+folder+" may not import "+p)
		}
		if r.pure {
			for _, bad := range forbiddenNames[p] {
				if usesName(tree, local, bad) {
					out = append(out, file+": pure room "+folder+" may not use "+p+"."+bad+"; take it as an argument")
				}
			}
		}
	}
	if r.pure && startsGoroutine(tree) {
		out = append(out, file+": pure room "+folder+" may not start a goroutine")
	}
	return out
}

// The wall itself is tested: a check that cannot fail guards nothing.
func TestBreachesAreSeen(t *testing.T) {
	pure := room{pure: true, own: []string{"."}}
	for file, want := range map[string]int{
		"testdata/walls/clock.go":  1,
		"testdata/walls/socket.go": 3,
		"testdata/walls/good.go":   0,
	} {
		if got := breaches(t, file, "policies", pure); len(got) != want {
			t.Errorf("%s: %d breaches seen, want %d: %q", file, len(got), want, got)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/daemon"
	"github.com/creelrm/creel/app/daemon/federation"
	"github.com/creelrm/creel/app/daemon/role"
	"github.com/creelrm/creel/statestore/memory"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv("CREEL_TEST_AS_CREEL") != "" {
		main() // a test started us as the program itself
		return
	}
	goleak.VerifyTestMain(m)
}

// cliClient runs commands as a user types them.
type cliClient struct {
	t      *testing.T
	server string
}

// run returns a command's output and fails the test if the exit code is not the wanted one.
func (s cliClient) run(want int, args ...string) string {
	s.t.Helper()
	var out bytes.Buffer
	root := rootCommand()
	root.SetOut(&out)
	root.SetErr(&out)
	at := slices.Index(args, "--")
	if at < 0 {
		at = len(args)
	}
	root.SetArgs(slices.Insert(slices.Clone(args), at, "--server", s.server))
	err := root.ExecuteContext(s.t.Context())
	if err != nil {
		out.WriteString(err.Error())
	}
	if got := exitCode(err); got != want {
		s.t.Fatalf("creel %s exits with %d, want %d:\n%s", strings.Join(args, " "), got, want, out.String())
	}
	return out.String()
}

func (s cliClient) shows(want int, command string, texts ...string) string {
	s.t.Helper()
	out := s.run(want, strings.Fields(command)...)
	for _, text := range texts {
		if !strings.Contains(out, text) {
			s.t.Errorf("creel %s does not show %q:\n%s", command, text, out)
		}
	}
	return out
}

// small is a federation with three nodes in each of two subclusters, and so many rebalancers.
func small(t *testing.T, rebalancers ...int) *federation.Federation {
	return smallWith(t, nil, rebalancers...)
}

// smallWith is small with settings, each KEY=VALUE.
func smallWith(t *testing.T, defines []string, rebalancers ...int) *federation.Federation {
	dir := t.TempDir()
	conf, err := federation.Settings(dir, "", defines)
	if err != nil {
		t.Fatal(err)
	}
	fed, err := federation.New(t.Context(), federation.Config{
		Subclusters:   2,
		Nodes:         3,
		Routers:       2,
		Rebalancers:   append(rebalancers, 0)[0],
		PlanEvery:     200 * time.Millisecond,
		NodeSize:      creel.NewResource(4096, 4),
		NodeHeartbeat: 100 * time.Millisecond,
		Eager:         10 * time.Millisecond,
		Dir:           dir,
		Store:         memory.New(memory.NewState("test", role.ValidPolicy), time.Now),
		Settings:      conf,
		Lease:         10 * time.Second,
		Log:           slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := fed.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return fed
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not within 3 minutes: ", what)
		}
	}
}

func TestEverydayCommands(t *testing.T) {
	fed := small(t)
	s := cliClient{t, "http://" + fed.Routers[0].Address("web")}
	other := cliClient{t, "http://" + fed.Routers[1].Address("web")}

	s.shows(exitOK, "subcluster list", "sc-1", "sc-2", "active")
	if out := s.shows(exitOK, "node list -o name"); len(strings.Fields(out)) != 6 {
		t.Errorf("six nodes, by name:\n%s", out)
	}
	s.shows(exitOK, "queue list", "prod", "research", "default")

	id := strings.TrimSpace(
		s.run(
			exitOK,
			"app",
			"submit",
			"--queue",
			"prod",
			"--name",
			"mine",
			"--env",
			"CREEL_SIM_MS=600000",
			"-o",
			"name",
			"--",
			"sleep",
			"600",
		),
	)
	if _, err := creel.ParseApplicationID(id); err != nil {
		t.Fatalf("submit -o name prints %q: %v", id, err)
	}
	other.shows(exitOK, "app status "+id, id, "mine", "prod")
	s.shows(exitOK, "app list", id, "mine")

	// A member is drained, shown, given back; one that lives keeps its place.
	s.shows(exitUsage, "subcluster drain sc-2 --mode away", "stop, finish or move")
	s.shows(exitUsage, "subcluster drain sc-2 --dry-run", "--mode move")
	s.shows(exitOK, "subcluster drain sc-2 --mode move --dry-run", "")
	s.shows(exitOK, "subcluster drain sc-2 --reason disks", "gets no new work")
	eventually(t, "the drain is seen", func() bool {
		return strings.Contains(s.run(exitOK, "subcluster", "show", "sc-2"), "draining (drained: stop, by ")
	})
	eventually(t, "its nodes are told", func() bool {
		return strings.Contains(s.run(exitOK, "subcluster", "show", "sc-2"), "3 active")
	})
	s.shows(exitOK, "subcluster show sc-2", "(disks): 0 applications run")
	s.shows(exitNotFound, "subcluster show sc-9", "there are sc-1, sc-2")
	s.shows(exitOK, "subcluster undrain sc-2", "new work again")
	s.shows(exitConflict, "subcluster deregister sc-2", "last heartbeat")
	s.shows(exitConflict, "subcluster remove sc-2")
	s.shows(exitOK, "policy set root.prod {}", "is at version")
	s.shows(exitOK, "policy view", `"sc-2"`, "totalMB")
	s.shows(exitOK, "app list --queue research", "ID")

	// Attempts and containers of an application, and changes to it.
	eventually(t, "its attempt is there", func() bool {
		return strings.Contains(s.run(exitOK, "app", "attempts", id), "appattempt_")
	})
	eventually(t, "its AM runs", func() bool {
		return strings.Contains(s.run(exitOK, "app", "containers", id, "-o", "wide"), "container_")
	})
	s.shows(exitOK, "app lifetime "+id+" 2h", "lives until")
	s.shows(exitUsage, "app lifetime "+id+" soon", "90m or 2h")
	s.shows(exitOK, "app priority "+id+" 0", "priority 0")
	s.shows(exitUsage, "app priority "+id+" high", "no number")
	s.shows(exitOK, "app move "+id+" root.research", "is in root.research")
	s.shows(exitOK, "app status "+id, "research")
	container := strings.Fields(s.run(exitOK, "app", "containers", id, "-o", "name"))[0]
	s.shows(exitOK, "app signal "+container+" output_thread_dump", "is sent OUTPUT_THREAD_DUMP")
	eventually(t, "the signal is an event", func() bool {
		return strings.Contains(s.run(exitOK, "events", "--kind", "signal"), container)
	})
	s.shows(exitUsage, "app signal "+container+" HUP", "GRACEFUL_SHUTDOWN")
	s.shows(exitOK, "queue show research", "root.research")
	s.shows(exitNotFound, "queue show nowhere", "queue list")
	node := strings.Fields(s.run(exitOK, "node", "list", "-o", "name"))[0]
	s.shows(exitOK, "node show "+node, node, "RUNNING")
	s.shows(exitNotFound, "node show nowhere:1", "nowhere")

	// Shell completion proposes existing objects.
	complete := func(want string, words ...string) {
		t.Helper()
		var out bytes.Buffer
		root := rootCommand()
		root.SetOut(&out)
		root.SetArgs(append([]string{"__complete"}, words...))
		if err := root.ExecuteContext(t.Context()); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%v completes to %q, %v; want %q", words, &out, err, want)
		}
	}
	complete(id+"\tmine", "app", "kill", "--server", s.server, "")
	complete("sc-2\tactive", "subcluster", "drain", "--server", s.server, "sc-")
	complete("root.research\n", "policy", "get", "--server", s.server, "root.r")
	complete(":4", "app", "why", "--server", "127.0.0.1:1", "") // nothing, and no error in a shell
	root := rootCommand()
	root.SetArgs([]string{"app", "lst"})
	if err := root.ExecuteContext(
		t.Context(),
	); exitCode(err) != exitUsage ||
		!strings.Contains(err.Error(), "did you mean list?") {
		t.Errorf("a misspelt command: %v", err)
	}
	s.shows(exitOK, "app why "+id, "sc-")
	var doc map[string]any
	if out := s.run(
		exitOK,
		"app",
		"status",
		id,
		"-o",
		"json",
	); json.Unmarshal([]byte(out), &doc) != nil ||
		len(doc) == 0 {
		t.Errorf("-o json prints no JSON:\n%s", out)
	}
	s.shows(exitOK, "app status "+id+" -o yaml", "mine")

	// An AM that runs nothing never registers: the wait ends by its timeout.
	out := s.run(exitWaitFailed, "app", "wait", "--for", "state=RUNNING", "--timeout", "1s", id)
	if !strings.Contains(out, "it was ACCEPTED when last seen") {
		t.Errorf("a wait that ends by its timeout says\n%s", out)
	}
	other.shows(exitOK, "app kill "+id, id)
	s.run(exitOK, "app", "wait", "--for", "state=KILLED", "--timeout", "1m", id)
	s.run(exitWaitFailed, "app", "wait", "--for", "state=FINISHED", "--timeout", "1m", id)
	s.shows(exitOK, "app list --state KILLED", id)
}

// A change that a router queues because the home is away is not reported as done; a kill in progress is not reported
// as queued.
func TestQueuedChangeIsReported(t *testing.T) {
	fed := small(t)
	s := cliClient{t, "http://" + fed.Routers[0].Address("web")}
	id := strings.TrimSpace(s.run(exitOK, "app", "submit", "--queue", "prod", "--env", "CREEL_SIM_MS=600000",
		"-o", "name", "--", "sleep", "600"))
	var container string
	eventually(t, "its AM runs", func() bool {
		container = strings.TrimSpace(s.run(exitOK, "app", "containers", id, "-o", "name"))
		return strings.HasPrefix(container, "container_")
	})
	home := fetchWhy(t, s, id).Home
	rm := fed.RMs[0]
	if home == "sc-2" {
		rm = fed.RMs[1]
	}
	if err := rm.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{ // of the two signals the last is kept
		{"app move " + id + " root.research", "the move to root.research"},
		{"app priority " + id + " 7", "the change to priority 7"},
		{"app lifetime " + id + " 2h", "the end of its life at "},
		{"app kill " + id, "the kill"},
		{"app signal " + container + " graceful_shutdown", "the signal GRACEFUL_SHUTDOWN"},
		{"app signal " + container + " output_thread_dump -o wide", "the signal OUTPUT_THREAD_DUMP"},
	} {
		verb, change := c[0], c[1]
		what := strings.Fields(verb)[2]
		out := s.shows(exitOK, verb, what+": "+string(home)+" does not answer; "+change,
			" is kept for it, and carried out when it is back; see `creel app why "+id+"`")
		if strings.Contains(out, "is sent") || strings.Contains(out, "KILLING") || strings.Contains(out, "lives until") {
			t.Errorf("creel %s says that it is done:\n%s", verb, out)
		}
		var doc changedDoc
		if out := s.run(exitOK, append(strings.Fields(verb), "-o", "json")...); json.Unmarshal([]byte(out), &doc) != nil ||
			doc.ID != what || !doc.Kept || !slices.Equal(doc.KeptFor, []string{string(home)}) || doc.State != "" ||
			!strings.HasPrefix(doc.Change, change) {
			t.Errorf("creel %s -o json: %s", verb, out)
		}
	}
	s.shows(exitPartial, "app why "+id, "to kill", "to move to queue root.research",
		"to signal "+container+" to OUTPUT_THREAD_DUMP", string(home)+" did not respond; the change is queued")
	if err := rm.Start(); err != nil {
		t.Fatal(err)
	}
	s.run(exitOK, "app", "wait", "--for", "state=KILLED", "--timeout", "1m", id)
	// The router may have sent the kill over another connection than the one it uses now, which it treats as broken
	// for some seconds.
	eventually(t, "a kill has nothing to wait for", func() bool {
		var doc changedDoc
		out := s.run(exitOK, "app", "kill", id, "-o", "json")
		return json.Unmarshal([]byte(out), &doc) == nil && !doc.Kept && doc.State == "KILLED"
	})
}

func TestExitCodesAndErrorsThatHelp(t *testing.T) {
	fed := small(t)
	s := cliClient{t, "http://" + fed.Routers[0].Address("web")}
	s.shows(exitNotFound, "app status application_1_0001", "application_1_0001")
	s.shows(exitNotFound, "app kill application_1_0001", "application_1_0001")
	s.shows(exitUsage, "app status nonsense", "nonsense")
	s.shows(exitUsage, "app list --state NOSUCH", "NOSUCH")
	s.shows(exitUsage, "app list -o papyrus", "papyrus")
	s.shows(exitUsage, "app submit")
	// As on YARN, a queue that is not there fails the application, with the reason.
	id := strings.TrimSpace(s.run(exitOK, "app", "submit", "--queue", "nowhere", "-o", "name", "--", "true"))
	s.run(exitOK, "app", "wait", "--for", "state=FAILED", id)
	s.shows(exitOK, "app status "+id, "nowhere")
	nobody := cliClient{t, "http://127.0.0.1:1"}
	nobody.shows(exitUnreachable, "app list", "127.0.0.1:1")
	s.run(exitUsage, "ready")
}

// A script starts `creel up`, waits for its file, uses it, and stops it. Its log has changes only if requested.
func TestUpForScripts(t *testing.T) {
	t.Run("quiet", func(t *testing.T) { upForScripts(t, false) })
	t.Run("with its audit log", func(t *testing.T) { upForScripts(t, true, "-D", "creel.log.level=info") })
}

func upForScripts(t *testing.T, audited bool, more ...string) {
	dir := t.TempDir()
	ready := filepath.Join(dir, "ready.json")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	up := exec.Command(program, append([]string{"up", "--any-port", "--nodes", "2", "--subclusters", "2",
		"--data", filepath.Join(dir, "data"), "--ready-file", ready}, more...)...)
	up.Env = append(os.Environ(), "CREEL_TEST_AS_CREEL=1", "HADOOP_CONF_DIR=")
	var out bytes.Buffer
	up.Stdout, up.Stderr = &out, &out
	if err := os.Mkdir(filepath.Join(dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- up.Wait() }()
	var entries []daemon.Entry
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if b, err := os.ReadFile(ready); err == nil {
			if err := json.Unmarshal(b, &entries); err != nil {
				t.Fatalf("the ready file is no array of entries: %v\n%s", err, b)
			}
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("up ended: %v\n%s", err, out.String())
		default:
		}
		if time.Now().After(deadline) {
			up.Process.Kill()
			t.Fatalf("up is not ready: %s", out.String())
		}
	}
	roles := map[string]int{}
	web := ""
	for _, e := range entries {
		roles[e.Role]++
		if e.PID != up.Process.Pid {
			t.Errorf("%s has pid %d, the process is %d", e.Role, e.PID, up.Process.Pid)
		}
		if e.Role == "router" && web == "" {
			web = "http://" + e.Addresses["web"]
		}
	}
	if roles["router"] != 2 || roles["rm"] != 2 || roles["proxy"] != 2 {
		t.Errorf("the entries are %v; want two routers, two ResourceManagers, two proxies", roles)
	}
	cliClient{t, web}.shows(exitOK, "subcluster list", "sc-1", "sc-2")
	for _, file := range []string{"client-conf/yarn-site.xml", "nodes-of-sc-1/yarn-site.xml", "nodes-of-sc-2/core-site.xml"} {
		if _, err := os.Stat(filepath.Join(dir, "data", file)); err != nil {
			t.Errorf("a configuration directory is missing: %v", err)
		}
	}
	if err := up.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("after Ctrl-C up exits with %v\n%s", err, out.String())
	}
	if strings.Contains(out.String(), "registerNodeManager") != audited {
		t.Errorf("lines of audit: not %v\n%s", audited, out.String())
	}
	http.DefaultClient.CloseIdleConnections()
	for _, text := range []string{"client-conf", "curl -s " + web, "spark-submit"} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("up does not print %q:\n%s", text, out.String())
		}
	}
}

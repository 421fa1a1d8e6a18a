// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"
)

func TestWatchIntoPipePrintsChanges(t *testing.T) {
	var out strings.Builder
	last := []string{"ID  STATE", "a   RUNNING", "b   RUNNING"}
	printChanges(&out, nil, last, true)
	now := []string{"ID     STATE", "a      RUNNING", "longer RUNNING", "b      FINISHED"}
	printChanges(&out, last, now, false)
	want := "ID  STATE\na   RUNNING\nb   RUNNING\n- b   RUNNING\nlonger RUNNING\nb      FINISHED\n"
	if out.String() != want {
		t.Errorf("printed\n%swant\n%s", out.String(), want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c := &cobra.Command{}
	c.SetContext(ctx)
	c.SetOut(&out)
	lists := 0
	err := repeat(c, true, func(w io.Writer) error {
		if lists++; lists == 2 {
			cancel()
		}
		_, err := fmt.Fprintln(w, "line")
		return err
	})
	if err != nil || lists != 2 || strings.Count(out.String(), "line\n") != 1 {
		t.Errorf("after %d lists: %v\n%s", lists, err, out.String())
	}
}

func TestContextHasServerAndUser(t *testing.T) {
	t.Setenv("CREEL_CONTEXTS", filepath.Join(t.TempDir(), "c", "contexts.yaml"))
	t.Setenv("CREEL_SERVER", "")
	t.Setenv("HADOOP_USER_NAME", "")
	creel := func(want int, args ...string) string {
		t.Helper()
		var out bytes.Buffer
		root := rootCommand()
		root.SetOut(&out)
		root.SetArgs(args)
		if err := root.Execute(); exitCode(err) != want {
			t.Fatalf("creel %v: %v, want exit code %d", args, err, want)
		}
		return out.String()
	}
	expect := func(f clientFlags, server, user string) {
		t.Helper()
		if err := f.resolve(); err != nil || f.server != server || f.user != user {
			t.Errorf("server %q as %q, want %q as %q, %v", f.server, f.user, server, user, err)
		}
	}
	creel(0, "context", "set", "east", "--server", "http://east:8089", "--user", "ann")
	creel(0, "context", "set", "west", "--server", "http://west:8089")
	expect(clientFlags{}, "http://east:8089", "ann") // the first is the current one
	expect(clientFlags{user: "bob"}, "http://east:8089", "bob")
	t.Setenv("HADOOP_USER_NAME", "eve")
	expect(clientFlags{}, "http://east:8089", "eve")
	expect(clientFlags{context: "east"}, "http://east:8089", "ann")
	creel(0, "context", "use", "west")
	expect(clientFlags{}, "http://west:8089", "eve")
	t.Setenv("CREEL_SERVER", "http://env:1")
	expect(clientFlags{}, "http://env:1", "eve")
	expect(clientFlags{context: "west"}, "http://west:8089", "eve")
	expect(clientFlags{server: "http://flag:1"}, "http://flag:1", "eve")
	if out := creel(0, "context", "list", "-o", "json"); !strings.Contains(out, `"http://east:8089"`) {
		t.Error(out)
	}
	creel(exitNotFound, "context", "use", "north")
	creel(exitUsage, "context", "set", "north")
	creel(0, "context", "remove", "west")
	if _, err := currentContext("west"); exitCode(err) != exitNotFound {
		t.Errorf("a context that was removed: %v", err)
	}
}

func TestErrorIsJSONOnRequest(t *testing.T) {
	root := rootCommand()
	root.SetArgs([]string{"app", "status", "nonsense", "-o", "json"})
	ran, err := root.ExecuteC()
	var out bytes.Buffer
	printError(&out, ran, err)
	var doc struct {
		Error struct {
			Message string `json:"message"`
			Code    int    `json:"exit_code"`
		} `json:"error"`
	}
	if json.Unmarshal(out.Bytes(), &doc) != nil || doc.Error.Code != exitUsage || !strings.Contains(doc.Error.Message, "nonsense") {
		t.Error(out.String())
	}
}

// An error of the native API shows its code and its request id in JSON, and as text only on request.
func TestErrorShowsCodeAndRequest(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusConflict)
		fmt.Fprint(w, `{"type":"https://docs/#conflict","title":"conflict","status":409,"detail":"version 3 is newer",`+
			`"code":"conflict","request_id":"r7"}`)
	}))
	t.Cleanup(web.Close)
	for flags, want := range map[string]string{
		"":           "creel: conflict: version 3 is newer (HTTP 409)\n",
		"-v":         "creel: conflict: version 3 is newer (HTTP 409)\ncreel: code conflict, request r7, see https://docs/#conflict\n",
		"-o json -v": `{"error":{"message":"conflict: version 3 is newer (HTTP 409)","exit_code":6,"code":"conflict","request_id":"r7"}}` + "\n",
	} {
		root := rootCommand()
		root.SetArgs(append(strings.Fields("policy list --server "+web.URL), strings.Fields(flags)...))
		ran, err := root.ExecuteC()
		var out bytes.Buffer
		printError(&out, ran, err)
		if out.String() != want || exitCode(err) != exitConflict {
			t.Errorf("%q: %s, exit code %d, want %s", flags, out.String(), exitCode(err), want)
		}
	}
}

func TestQueuesAndListsByTheirFlags(t *testing.T) {
	fed := small(t)
	s := cliClient{t, "http://" + fed.Routers[0].Address("web")}
	for _, name := range []string{"one", "two", "three"} {
		s.run(0, "app", "submit", "--name", name, "--tag", "night,"+name, "--env", "CREEL_SIM_MS=60000", "--", "sleep", "60")
	}
	s.shows(0, "app list --tag night --sort name -o wide", "night,one", "night,three", "night,two")
	if out := s.run(0, "app", "list", "--name", "tw"); strings.Count(out, "\n") != 2 || !strings.Contains(out, "two") {
		t.Errorf("by name:\n%s", out)
	}
	if out := s.run(0, "app", "list", "--limit", "1"); !strings.Contains(out, "three") {
		t.Errorf("the newest first:\n%s", out)
	}
	s.run(exitUsage, "app", "list", "--sort", "colour")
	s.shows(0, "queue tree", "\n  default ", "root ")
	s.shows(0, "queue acl root.default --of bob", "SUBMIT_APPLICATIONS", "bob", "yes")
	s.run(exitNotFound, "app", "logs", "application_1_0001")

	admin := fed.Routers[0].Address("admin")
	for _, verb := range []string{"refresh-queues", "refresh-nodes", "refresh-acls"} {
		var out bytes.Buffer
		root := rootCommand()
		root.SetOut(&out)
		root.SetArgs([]string{"admin", verb, "--admin", admin})
		if err := root.Execute(); err != nil || !strings.Contains(out.String(), "done at all members") {
			t.Errorf("%s: %v, %s", verb, err, out.String())
		}
	}
	root := rootCommand()
	root.SetArgs([]string{"admin", "refresh-queues", "--admin", admin, "--subcluster", "nowhere"})
	if err := root.Execute(); err == nil || strings.Contains(err.Error(), "org.apache") || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("an unknown member: %v", err)
	}
}

func TestHostAndQueueFilesChangeInPlace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "exclude")
	for _, step := range []struct {
		add   bool
		hosts []string
		n     int
		text  string
	}{
		{true, []string{"a", "b"}, 2, "a\nb\n"}, {true, []string{"b", "c"}, 1, "a\nb\nc\n"},
		{false, []string{"a", "x"}, 1, "b\nc\n"}, {false, []string{"b", "c"}, 2, ""},
	} {
		n, err := editHosts(file, step.hosts, step.add)
		b, readErr := os.ReadFile(file)
		if err != nil || readErr != nil || n != step.n || strings.TrimSpace(string(b)) != strings.TrimSpace(step.text) {
			t.Errorf("%+v: %d, %q, %v, %v", step, n, b, err, readErr)
		}
	}
	listed := filepath.Join(t.TempDir(), "exclude.XML")
	if _, err := editHosts(listed, []string{"a"}, true); err == nil || !strings.Contains(err.Error(), listed) {
		t.Errorf("a file of XML was edited: %v", err)
	}
	conf := filepath.Join(t.TempDir(), "capacity-scheduler.xml")
	const key = "yarn.scheduler.capacity.root.a.state"
	if err := os.WriteFile(conf, []byte("<configuration><!-- kept -->\n</configuration>\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"STOPPED", "RUNNING"} {
		if err := setProperty(conf, key, value); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(conf)
		want := "<name>" + key + "</name><value>" + value + "</value>"
		if err != nil || strings.Count(string(b), want) != 1 || strings.Count(string(b), key) != 1 || !strings.Contains(string(b), "kept") {
			t.Errorf("%s, %v", b, err)
		}
	}
}

// Followed logs are printed from where the last read ended, of each container and file, until the application has ended.
func TestFollowedLogsArePrintedOnce(t *testing.T) {
	const id, container = "application_1_0001", "container_1_0001_01_000001"
	var mu sync.Mutex
	round, log := 0, ""
	var web *httptest.Server
	web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch r.URL.Path {
		case "/ws/v1/cluster/apps/" + id:
			round++
			log += fmt.Sprintln("line", round)
			state := map[bool]string{false: "RUNNING", true: "FINISHED"}[round == 3]
			fmt.Fprintf(w, `{"app":{"id":%q,"state":%q}}`, id, state)
		case "/ws/v1/cluster/apps/" + id + "/appattempts":
			if round > 1 { // the first round has no container
				fmt.Fprintf(w, `{"appAttempts":{"appAttempt":[{"id":1,"appAttemptId":"appattempt_1_0001_000001",`+
					`"containerId":%q,"logsLink":"%s/node/containerlogs"}]}}`, container, web.URL)
				return
			}
			fmt.Fprint(w, `{"appAttempts":{}}`)
		case "/ws/v1/node/containers/" + container + "/logs":
			fmt.Fprint(w, `{"containerLogsInfo":{"containerLogInfo":[{"fileName":"stdout"}]}}`)
		case "/ws/v1/node/containerlogs/" + container + "/stdout":
			fmt.Fprint(w, log)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(web.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	out := cliClient{t, web.URL}.run(exitOK, "app", "logs", id, "--follow")
	at := strings.TrimPrefix(web.URL, "http://")
	if want := "==> " + container + " stdout on " + at + " <==\nline 1\nline 2\nline 3\n"; out != want {
		t.Errorf("%s\nwant\n%s", out, want)
	}
}

func TestAsActsForAnotherUser(t *testing.T) {
	fed := small(t)
	s := cliClient{t, "http://" + fed.Routers[0].Address("web")}
	out := s.run(exitNotPermitted, "app", "submit", "--user", "gate", "--as", "bob", "--", "true")
	if !strings.Contains(out, "gate is not allowed to impersonate bob") {
		t.Errorf("submitted for bob without a rule:\n%s", out)
	}
	var asked []string
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Query().Get("user.name")+" for "+r.URL.Query().Get("doAs"))
		fmt.Fprint(w, "{}")
	}))
	t.Cleanup(web.Close)
	cliClient{t, web.URL}.run(exitOK, "policy", "list", "--user", "gate", "--as", "ann")
	if slices.Sort(asked); !slices.Equal(slices.Compact(asked), []string{"gate for ann"}) {
		t.Errorf("requests of %q", asked)
	}
	admin := fed.Routers[0].Address("admin")
	if code, out := ends(t, "admin refresh-nodes --user root --admin "+admin); code != exitOK {
		t.Errorf("as the administrator: %d\n%s", code, out)
	}
	code, out := ends(t, "admin refresh-nodes --user gate --as root --admin "+admin)
	if code != exitNotPermitted || !strings.Contains(out, "gate is not allowed to impersonate root") {
		t.Errorf("for the administrator without a rule: %d\n%s", code, out)
	}
	for name, verb := range verbs(rootCommand(), map[string]*cobra.Command{}) {
		if verb.Flags().Lookup("request-timeout") != nil && verb.Flags().Lookup("as") == nil {
			t.Errorf("creel %s calls a server and lacks --as", name)
		}
	}
}

// The log files that a NodeManager serves for a container are printed one by one.
func TestLogsComeFromTheNode(t *testing.T) {
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/ws/v1/node/containers/container_1/logs":
			fmt.Fprint(w, `{"containerLogsInfo":{"containerLogInfo":[{"fileName":"stdout"},{"fileName":"stderr"}]}}`)
		case "/ws/v1/node/containerlogs/container_1/stdout":
			fmt.Fprint(w, "hello")
		case "/ws/v1/node/containerlogs/container_1/stderr":
			fmt.Fprint(w, "trouble\n")
		default:
			http.NotFound(w, r)
		}
	}))
	defer node.Close()
	defer http.DefaultClient.CloseIdleConnections()
	web := strings.TrimPrefix(node.URL, "http://")
	f := clientFlags{user: "ann", timeout: 5e9}
	var out bytes.Buffer
	err := f.containerLogs(t.Context(), &out, logAt{ID: "container_1", Web: web}, "")
	want := "==> container_1 stderr on " + web + " <==\ntrouble\n==> container_1 stdout on " + web + " <==\nhello\n"
	if err != nil || out.String() != want {
		t.Errorf("%v:\n%s", err, out.String())
	}
	if err := f.containerLogs(t.Context(), &out, logAt{ID: "container_1", Web: web}, "syslog"); err == nil ||
		!strings.Contains(err.Error(), "it has stderr, stdout") {
		t.Errorf("a log that is not there: %v", err)
	}
	if err := f.containerLogs(t.Context(), &out, logAt{ID: "container_2", Web: web}, ""); err == nil ||
		!strings.Contains(err.Error(), "has no logs of the container") {
		t.Errorf("a container that is not there: %v", err)
	}
	if web := webOf("http://host:8042/node/containerlogs/c/ann"); web != "host:8042" {
		t.Errorf("the node of a link is %q", web)
	}
}

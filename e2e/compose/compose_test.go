// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
)

// The federation of docker-compose.yml from its image to its end. The Dockerfile builds the image, which knows its
// version; every service becomes healthy; Prometheus finds every target; the README's tour works. After a subcluster
// is paused, one is cut off the network, and a router and the state store are killed, the next command succeeds and
// earlier state is still there.
func TestComposeIsUp(t *testing.T) {
	e := startEngine(t)
	e.builder()
	e.runtime()
	e.packed("redis:8", nil, "redis-server", "redis-cli", "sh")
	e.packed("prom/prometheus:v3.5.0", nil, "prometheus")
	const version = "v0.0.0-compose"
	began := time.Now()
	e.run(e.docker, "build", "--network", "host", "--build-arg", "VERSION="+version, "-t", "creel", ".")
	t.Logf("the image was built in %v", time.Since(began).Round(time.Second))
	if out := e.run(e.docker, "run", "--rm", "--network", "none", "creel", "version"); !strings.Contains(out, version) {
		t.Errorf("the image says it is %q, not %s", out, version)
	}

	e.files = []string{"docker-compose.yml", "e2e/compose/override.yml"}
	t.Cleanup(func() { e.up("down", "--volumes", "--timeout", "5") })
	began = time.Now()
	if out, err := e.try(
		e.compose,
		e.composeArgs("up", "-d", "--no-build", "--wait", "--wait-timeout", "1200")...); err != nil {
		logs, _ := e.try(e.compose, e.composeArgs("logs", "--tail", "20")...)
		t.Fatalf("up: %v\n%s\n%s", err, out, logs)
	}
	t.Logf("all services were healthy after %v", time.Since(began).Round(time.Second))

	f := &federation{engine: e, dir: t.TempDir()}
	id := strings.TrimSpace(e.run(e.docker, "create", "creel"))
	e.run(e.docker, "cp", id+":/usr/local/bin/creel", filepath.Join(f.dir, "creel"))
	e.run(e.docker, "rm", id)

	f.awaitNodes("router-1", 600)
	f.targetsAreUp()
	f.tour()
	f.dashboardsHaveData()
	f.failures()
	f.hadoop()
	f.load()
}

// federation is the Compose project as its users see it.
type federation struct {
	*engine
	dir string // with the program creel, from the image
}

func (f *federation) address(service, port string) string {
	f.t.Helper()
	return "http://" + strings.TrimSpace(f.up("port", service, port))
}

// sh runs commands with creel on PATH, which calls a router, and returns their output.
func (f *federation) sh(router, script string) string {
	f.t.Helper()
	_, out, code := process.Run(f.t.Context(), f.t, process.Command{
		Name: "sh", Dir: f.t.TempDir(), Args: []string{"bash", "-euo", "pipefail", "-c", script},
		Env: []string{"PATH=" + f.dir + ":" + os.Getenv("PATH"), "CREEL_SERVER=" + f.address(router, "8089"),
			"HADOOP_USER_NAME=creel"}, // the administrator of deploy/conf
	})
	if code != 0 {
		f.t.Fatalf("exit code %d of:\n%s\n%s", code, script, out)
	}
	return out
}

func (f *federation) get(url string, into any) string {
	resp, err := http.Get(url)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// until polls until so returns true; seen is the last observation.
func (f *federation) until(what string, so func() (ok bool, seen string)) {
	f.t.Helper()
	var seen string
	err := process.Poll(f.t.Context().Done(), func() (ok bool) {
		ok, seen = so()
		return ok
	})
	if err != nil {
		f.t.Fatalf("%s: %v\n%s", what, err, seen)
	}
}

func (f *federation) awaitNodes(router string, n int) {
	f.t.Helper()
	web := f.address(router, "8089")
	f.until(fmt.Sprintf("%d nodes", n), func() (bool, string) {
		var doc struct {
			ClusterMetrics struct {
				ActiveNodes int `json:"activeNodes"`
			} `json:"clusterMetrics"`
		}
		seen := f.get(web+"/ws/v1/cluster/metrics", &doc)
		return doc.ClusterMetrics.ActiveNodes == n, seen
	})
}

// targetsAreUp asks Prometheus whether it reads every target of its file, and its rules.
func (f *federation) targetsAreUp() {
	f.t.Helper()
	web := f.address("prometheus", "9090")
	f.until("Prometheus reads all", func() (bool, string) {
		var doc struct {
			Data struct {
				Active []struct{ Health, ScrapeURL string } `json:"activeTargets"`
			}
		}
		seen := f.get(web+"/api/v1/targets", &doc)
		down := slices.ContainsFunc(
			doc.Data.Active,
			func(a struct{ Health, ScrapeURL string }) bool { return a.Health != "up" },
		)
		return len(doc.Data.Active) == 10 && !down, seen
	})
	f.until("the alert rules are in force and still", func() (bool, string) {
		var doc struct {
			Data struct {
				Groups []struct {
					Rules []struct{ Name, State, Health string }
				}
			}
		}
		seen := f.get(web+"/api/v1/rules", &doc)
		rules := 0
		for _, g := range doc.Data.Groups {
			for _, r := range g.Rules {
				if rules++; r.State != "inactive" || r.Health != "ok" {
					return false, seen
				}
			}
		}
		return rules > 10, seen
	})
}

// dashboardsHaveData queries Prometheus for every dashboard panel and every alert rule.
func (f *federation) dashboardsHaveData() {
	f.t.Helper()
	web := f.address("prometheus", "9090")
	b, err := os.ReadFile(filepath.Join(root, "deploy/grafana/dashboards/creel.json"))
	if err != nil {
		f.t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(b, &board); err != nil {
		f.t.Fatal(err)
	}
	asked := 0
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			var doc struct {
				Status string
				Data   struct{ Result []any }
			}
			expr := regexp.MustCompile(`"\$(federation|member|queue)"`).ReplaceAllString(target.Expr, `".*"`) // all of each
			seen := f.get(web+"/api/v1/query?query="+url.QueryEscape(expr), &doc)
			if asked++; doc.Status != "success" || len(doc.Data.Result) == 0 {
				f.t.Errorf("the panel %q draws nothing of %s: %s", p.Title, target.Expr, seen)
			}
		}
	}
	rules, err := os.ReadFile(filepath.Join(root, "deploy/prometheus/alerts.yml"))
	if err != nil {
		f.t.Fatal(err)
	}
	var names struct{ Data []string }
	f.get(web+"/api/v1/label/__name__/values", &names)
	for _, name := range regexp.MustCompile(`\bcreel_[a-z_]+`).FindAllString(string(rules), -1) {
		if asked++; !slices.Contains(names.Data, name) {
			f.t.Errorf("alerts.yml asks for %s, which no target has", name)
		}
	}
	if asked < 35 {
		f.t.Errorf("only %d questions were asked", asked)
	}
}

// tour runs the commands of docs/guide/tour.md.
func (f *federation) tour() {
	f.t.Helper()
	b, err := os.ReadFile(filepath.Join(root, "docs/guide/tour.md"))
	if err != nil {
		f.t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(b), "<!-- tour -->")
	_, rest, fence := strings.Cut(rest, "```sh\n")
	tour, _, end := strings.Cut(rest, "```")
	if !ok || !fence || !end {
		f.t.Fatal("docs/guide/tour.md has no tour")
	}
	out := f.sh("router-1", tour)
	for _, want := range []string{"sc-1", "sc-2", "sc-3", "KILLED"} {
		if !strings.Contains(out, want) {
			f.t.Errorf("the tour does not show %s:\n%s", want, out)
		}
	}
}

const work = "creel run --containers 4 --memory 1g -- sleep 1\n"

// awaitState waits until a router sees a subcluster in a state.
func (f *federation) awaitState(router, id, state string) {
	f.t.Helper()
	web := f.address(router, "8089")
	f.until(id+" is "+state, func() (bool, string) {
		var doc struct {
			Subclusters []struct{ ID, State string }
		}
		seen := f.get(web+"/api/v1/subclusters", &doc)
		for _, s := range doc.Subclusters {
			if s.ID == id {
				return s.State == state, seen
			}
		}
		return false, seen
	})
}

// awaitApplication waits until a router reaches the home of an application. After a fault the breaker of its calls opens
// for some seconds more.
func (f *federation) awaitApplication(router, id string) {
	f.t.Helper()
	web := f.address(router, "8089")
	f.until(router+" reaches the home of "+id, func() (bool, string) {
		var doc struct{ App struct{ ID string } }
		seen := f.get(web+"/ws/v1/cluster/apps/"+id, &doc)
		return doc.App.ID == id, seen
	})
}

// failures makes parts fail, one after the other, and works all the while.
func (f *federation) failures() {
	f.t.Helper()
	id := strings.TrimSpace(
		f.sh("router-1", "creel app submit --queue prod --env CREEL_SIM_MS=600000 -o name -- sleep 600"),
	)

	f.up("pause", "sc-2")
	f.awaitState("router-1", "sc-2", "lost")
	f.sh("router-1", work)
	f.up("unpause", "sc-2")
	f.awaitState("router-1", "sc-2", "active")

	container := strings.TrimSpace(f.up("ps", "-q", "sc-3"))
	f.run(f.docker, "network", "disconnect", "creel_default", container)
	f.awaitState("router-2", "sc-3", "lost")
	f.sh("router-2", work)
	f.run(f.docker, "network", "connect", "--alias", "sc-3", "creel_default", container)
	f.awaitState("router-2", "sc-3", "active")
	f.awaitApplication("router-2", id)

	f.up("kill", "router-1")
	f.sh("router-2", work+"creel app status "+id)
	f.up("start", "router-1")

	f.up("kill", "redis")
	f.sh("router-2", "creel app status "+id) // earlier knowledge is still reported
	f.up("up", "-d", "--no-build", "--wait", "--wait-timeout", "1200")
	for _, router := range []string{"router-1", "router-2"} {
		f.awaitNodes(router, 600)
		out := f.sh(router, work+"creel app kill "+id+"\ncreel app wait --for state=KILLED "+id)
		f.t.Logf("after the store was killed, through %s:\n%s", router, out)
	}
}

// hadoop adds docker-compose.hadoop.yml: Hadoop's ResourceManager, which knows nothing of creel, becomes a member by
// its agent. Its nodes are counted, and it runs the AM and containers that a policy sends there.
func (f *federation) hadoop() {
	f.t.Helper()
	java, err := filepath.EvalSymlinks(program(f.t, "java"))
	if err != nil {
		f.t.Fatal(err)
	}
	jvm := filepath.Dir(filepath.Dir(java))
	etc, err := filepath.EvalSymlinks(filepath.Join(jvm, "lib", "jvm.cfg")) // on Debian, a link into /etc
	if err != nil {
		f.t.Fatal(err)
	}
	f.env = append(f.env, "JAVA="+java, "JVM="+jvm, "JVM_ETC="+filepath.Dir(etc),
		"JARS="+hadoop.Jars(f.t, hadoop.V342))
	f.files = append(f.files, "docker-compose.hadoop.yml", "e2e/compose/hadoop.yml")
	began := time.Now()
	if out, err := f.try(f.engine.compose, f.composeArgs("up", "-d", "--no-build", "--wait", "--wait-timeout", "1200",
		"agent-hadoop", "nodes-hadoop")...); err != nil {
		logs, _ := f.try(f.engine.compose, f.composeArgs("logs", "--tail", "30", "hadoop-rm", "agent-hadoop", "nodes-hadoop")...)
		f.t.Fatalf("up with Hadoop: %v\n%s\n%s", err, out, logs)
	}
	f.awaitState("router-1", "sc-hadoop", "active")
	f.awaitNodes("router-1", 650)
	f.t.Logf("Hadoop's ResourceManager was a member after %v", time.Since(began).Round(time.Second))
	out := f.sh("router-1", `creel policy set root.research '{"home":{"policy":"priority","weights":{"sc-hadoop":1}},"split":{"policy":"home"}}'
creel run --queue research --containers 4 --memory 1g -- sleep 1
creel app list --state FINISHED --queue research`)
	if !strings.Contains(out, "sc-hadoop") {
		f.t.Errorf("what the policy sends to Hadoop's ResourceManager is elsewhere:\n%s", out)
	}
	f.t.Logf("at Hadoop's ResourceManager:\n%s", out)
}

// load adds the profile of that name: jobs of the recorded day arrive, of several users.
func (f *federation) load() {
	f.t.Helper()
	f.up("--profile", "load", "up", "-d", "--no-build", "load")
	web := f.address("router-2", "8089")
	f.until("jobs of the recorded day", func() (bool, string) {
		var doc struct{ Apps []struct{ Name, User string } }
		seen := f.get(web+"/api/v1/apps?limit=1000", &doc)
		users := map[string]bool{}
		for _, a := range doc.Apps {
			if strings.HasPrefix(a.Name, "job") {
				users[a.User] = true
			}
		}
		return len(users) >= 3, seen
	})
	f.up("--profile", "load", "stop", "load")
}

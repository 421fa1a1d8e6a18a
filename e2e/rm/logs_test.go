// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
)

// logCluster is a ResourceManager, creel's or Hadoop's, whose real NodeManagers aggregate logs.
type logCluster struct {
	t      *testing.T
	at     hadoop.Addresses
	client hadoop.Client
	logs   string // where they are gathered
	nodes  []*hadoop.NodeManager
}

// withLogs are the settings of such a ResourceManager.
var withLogs = hadoop.Conf{
	"yarn.log-aggregation-enable":             "true",
	"yarn.log-aggregation-status.time-out.ms": "15000",
}

func newGathering(t *testing.T, at hadoop.Addresses, conf hadoop.Conf) *logCluster {
	g := &logCluster{t: t, at: at, logs: t.TempDir()}
	g.client = hadoop.Client{Conf: conf.With(withLogs, hadoop.Conf{"yarn.nodemanager.remote-app-log-dir": g.logs})}.Setup(t)
	g.node("nm1", g.logs)
	g.node("nm2", g.logs)
	return g
}

func (g *logCluster) node(name, logs string) {
	g.nodes = append(g.nodes, hadoop.StartNM(g.t, hadoop.NM{Name: name, RM: g.at, Conf: hadoop.Conf{
		"yarn.nodemanager.remote-app-log-dir": logs,
	}}))
}

// logReport is an application as its ResourceManager shows it.
type logReport struct {
	ID         string `json:"id"`
	State      string `json:"state"`
	Logs       string `json:"logAggregationStatus"`
	Containers int    `json:"runningContainers"`
}

// newest is the application that was submitted last, by the list.
func (g *logCluster) newest() (a logReport) {
	r, err := http.Get("http://" + g.at.Web + "/ws/v1/cluster/apps")
	if err != nil {
		return a // it starts
	}
	defer func() { _ = r.Body.Close() }()
	var doc struct {
		Apps struct {
			App []logReport `json:"app"`
		} `json:"apps"`
	}
	if err := json.NewDecoder(r.Body).Decode(&doc); err != nil || len(doc.Apps.App) == 0 {
		return a
	}
	return slices.MaxFunc(doc.Apps.App, func(a, b logReport) int { return strings.Compare(a.ID, b.ID) })
}

// shell starts a distributed shell of this many containers, and returns it when it has been submitted.
func (g *logCluster) shell(containers, command string) *process.Process {
	g.t.Helper()
	before := g.newest().ID
	jar := filepath.Join(hadoop.Jars(g.t, hadoop.V342), "hadoop-yarn-applications-distributedshell-3.4.2.jar")
	shell := g.client.Start(g.t, hadoop.DistributedShell, "-jar", jar, "-num_containers", containers,
		"-master_memory", "256", "-container_memory", "128", "-timeout", "170000", "-shell_command", command)
	shell.Await(g.t, "its application", func() bool { return g.newest().ID != before })
	return shell
}

// running starts a distributed shell whose containers run until the file done exists, and returns it with the log
// status once all of them run.
func (g *logCluster) running(done string) (*process.Process, string) {
	g.t.Helper()
	shell := g.shell("2", "echo needle; while [ ! -e "+done+" ]; do sleep 0.3; done")
	var a logReport
	shell.Await(g.t, "its containers", func() bool {
		a = g.newest()
		return a.State == "RUNNING" && a.Containers == 3
	})
	return shell, a.Logs
}

// end waits until nothing more comes of the logs of the application that was submitted last, and returns how
// that went, by the list and by Hadoop's command line.
func (g *logCluster) end() string {
	g.t.Helper()
	var a logReport
	err := process.Poll(nil, func() bool {
		a = g.newest()
		return slices.Contains([]string{"SUCCEEDED", "FAILED", "TIME_OUT"}, a.Logs)
	})
	if err != nil {
		g.t.Fatalf("the logs of %+v: %v", a, err)
	}
	out := g.client.Run(g.t, hadoop.ApplicationCLI, "application", "-status", a.ID).OK(g.t).Stdout
	if m := regexp.MustCompile(`Log Aggregation Status : (\S+)`).FindStringSubmatch(out); m == nil || m[1] != a.Logs {
		g.t.Errorf("the list says %s, and the command line\n%s", a.Logs, out)
	}
	return a.Logs
}

// story returns the ResourceManager's log reports: while containers run, when all nodes have aggregated them, and
// when the nodes are dead.
func (g *logCluster) story() (said []string) {
	done := filepath.Join(g.t.TempDir(), "done")
	shell, running := g.running(done)
	if err := os.WriteFile(done, nil, 0o600); err != nil {
		g.t.Fatal(err)
	}
	if err := shell.Exit(); err != nil {
		g.t.Fatalf("the shell: %v\n%s", err, shell.Tail(40))
	}
	said = append(said, "while it runs: "+running, "at its end: "+g.end())

	g.running(filepath.Join(g.t.TempDir(), "never"))
	for _, n := range g.nodes {
		n.Kill()
	}
	g.client.Run(g.t, hadoop.ApplicationCLI, "application", "-kill", g.newest().ID).OK(g.t)
	return append(said, "with dead nodes: "+g.end())
}

// With Hadoop's NodeManagers creel's ResourceManager reports the same log status as Hadoop's, by REST and to Hadoop's
// command line. After a restart nodes report it again.
func TestLogAggregationMatchesHadoop(t *testing.T) {
	var ours, theirs []string
	t.Run("creel", func(t *testing.T) {
		rm := Start(t, Options{Conf: withLogs})
		g := newGathering(t, rm.Addresses, rm.Addresses.Conf())
		if err := g.shell("1", "true").Exit(); err != nil {
			t.Fatal(err)
		}
		if s := g.end(); s != "SUCCEEDED" {
			t.Errorf("before the restart: %s", s)
		}
		rm.Kill9()
		rm.Restart(t)
		if s := g.end(); s != "SUCCEEDED" {
			t.Errorf("after the restart: %s", s)
		}
		ours = g.story()
	})
	t.Run("hadoop", func(t *testing.T) {
		rm := hadoop.StartRM(t, hadoop.RM{Conf: withLogs})
		theirs = newGathering(t, rm.Addresses, rm.ClientConf()).story()
	})
	t.Logf("creel %q, Hadoop %q", ours, theirs)
	if len(ours) == 0 || !slices.Equal(ours, theirs) {
		t.Errorf("our ResourceManager says\n%s\nHadoop's\n%s", strings.Join(ours, "\n"), strings.Join(theirs, "\n"))
	}
}

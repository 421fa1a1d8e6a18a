// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/internal/nodelogs"
	"github.com/creelrm/creel/router/rest"
)

// pairFederation is a federation of one of creel's members and one with two ResourceManagers.
type pairFederation struct {
	*Federation
	theirs *Subcluster
	web    string // of the router
	client hadoop.Client
}

// newPaired returns a federation without members. Applications in queue other have their home in the pair.
func newPaired(t *testing.T) *Federation {
	t.Helper()
	f := &Federation{Logs: tempDir(t, "logs")}
	_, f.Store = StartRedis(t)
	for queue, home := range map[string]string{"root.default": "sc-1", "root.other": "sc-pair"} {
		f.Creel(t, "policy", "set", queue, `{"home":{"policy":"weighted","weights":{"`+home+
			`":1}},"split":{"policy":"locality","weights":{"sc-1":1,"sc-pair":1},"headroomAlpha":0}}`, "--store", f.Store)
	}
	f.proxyPort = commonPort(t, []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"})
	return f
}

// join starts the other member, the pair's node and proxy, and a router.
func (f *Federation) join(t *testing.T, pair *Subcluster, nodes hadoop.Conf) *pairFederation {
	t.Helper()
	ours := f.StartSubcluster(t, 1, nil)
	ours.Node = f.StartNode(t, "nm-ours", ours.address, ours.Addresses)
	pair.Node = hadoop.StartNM(t, hadoop.NM{
		Name: "nm-pair", Host: pair.address,
		Conf: nodes.With(hadoop.Conf{"yarn.nodemanager.remote-app-log-dir": f.Logs}),
	})
	pair.Proxy = f.StartProxy(t, "proxy-pair", pair.address, nil)
	f.Subclusters = []*Subcluster{ours, pair}
	f.StartRouter(t, 1, nil)
	f.Await(t, 2)
	web := f.RouterAddresses[0].Web
	AwaitActive(t, web, 2)
	return &pairFederation{f, pair, web, hadoop.Client{Conf: f.ClientConf(0)}.Setup(t)}
}

// startPaired starts a federation with Hadoop's HA pair. The pair's state is in files, or in a ZooKeeper, where the pair
// elects the active one.
func startPaired(t *testing.T, zookeeper string) (*pairFederation, *hadoop.Pair) {
	t.Helper()
	f := newPaired(t)
	pair := hadoop.StartPair(t, hadoop.RM{Name: "pair", Conf: hadoop.Conf{
		"yarn.resourcemanager.epoch":                  "2000",
		"yarn.am.liveness-monitor.expiry-interval-ms": "900000",
	}}, zookeeper)
	theirs := &Subcluster{ID: "sc-pair", Addresses: pair.RMs[0].Addresses, address: "127.0.0.3"}
	// The agent is given the pair's own configuration, as it stands in Hadoop's files.
	start(t, "agent", "agent", f.common(t, pair.Conf()), "--subcluster", theirs.ID)
	return f.join(t, theirs, pair.Conf()), pair
}

// verbs makes one call of each kind through the router.
func (f *pairFederation) verbs(t *testing.T, running string) {
	t.Helper()
	f.Await(t, 2)
	AwaitState(t, f.web, running, "RUNNING") // after a change it waits until its AM has registered again
	if out := f.client.Run(t, hadoop.ApplicationCLI, "application", "-status", running).OK(t).Stdout; !strings.Contains(
		out, "State : RUNNING") || !strings.Contains(out, "Queue : root.other") {
		t.Errorf("status:\n%s", out)
	}
	if out := f.client.Run(t, hadoop.ApplicationCLI, "application", "-list").OK(t).Stdout; !strings.Contains(
		out, running) {
		t.Errorf("list:\n%s", out)
	}
	if out := f.client.Run(t, hadoop.NodeCLI, "-list").OK(t).Stdout; !strings.Contains(out, f.theirs.Node.ID) {
		t.Errorf("nodes:\n%s", out)
	}
	for _, verb := range []string{"-refreshQueues", "-refreshAdminAcls"} {
		f.client.Run(t, hadoop.RMAdminCLI, verb).OK(t)
	}
	for _, path := range []string{"apps", "nodes", "scheduler", "metrics", "apps/" + running, "apps/" + running + "/appattempts"} {
		var doc map[string]any
		if code, err := Call(t, http.MethodGet, f.web, "/ws/v1/cluster/"+path, nil, &doc); err != nil ||
			code != http.StatusOK || len(doc) == 0 {
			t.Errorf("%s answers %d, %v: %v", path, code, doc, err)
		}
	}
	id, err := NewApplication(t, f.web) // a change by REST, at the pair
	if err != nil {
		t.Fatal(err)
	}
	if err := Submit(t, f.web, id, "other"); err != nil {
		t.Fatal(err)
	}
	if at := f.Home(t, id); at != f.theirs {
		t.Errorf("%s lives at %s", id, at.ID)
	}
	KillApp(t, f.web, id)
	f.logs(t, running)
	// The page of the AM, by the web proxy of the active one.
	if code, err := Call(t, http.MethodGet, f.web, "/proxy/"+running+"/ws/v1/mapreduce/info", nil, nil); code != http.StatusOK {
		t.Errorf("the AM's page answers %d, %v", code, err)
	}
}

// logs reads the AM's log on Hadoop's NodeManager through the router.
func (f *pairFederation) logs(t *testing.T, running string) {
	t.Helper()
	var doc struct {
		AppAttempts struct {
			AppAttempt []struct{ ContainerID, NodeID string }
		}
	}
	if _, err := Call(t, http.MethodGet, f.web, "/ws/v1/cluster/apps/"+running+"/appattempts", nil, &doc); err != nil {
		t.Fatal(err)
	}
	last := doc.AppAttempts.AppAttempt[len(doc.AppAttempts.AppAttempt)-1]
	var logs rest.NodeLogsDoc
	at := "/api/v1/nodes/" + last.NodeID + "/containers/" + last.ContainerID + "/logs"
	if code, err := Call(t, http.MethodGet, f.web, at, nil, &logs); err != nil || code != http.StatusOK ||
		!slices.ContainsFunc(logs.Files, func(l nodelogs.File) bool { return l.Name == "syslog" && l.Size > 0 }) {
		t.Errorf("%s answers %d, %+v: %v", at, code, logs, err)
	}
	out := f.Creel(t, "app", "logs", running, "--container", last.ContainerID, "--file", "syslog", "--server", "http://"+f.web)
	if !strings.Contains(out, "MRAppMaster") {
		t.Errorf("the log of the AM is\n%s", out)
	}
}

// job starts a MapReduce job at home in the pair, with maps of ms milliseconds.
func (f *pairFederation) job(t *testing.T, maps, ms int) (string, *process.Process) {
	t.Helper()
	p := f.client.Start(t, hadoop.SleepJob, "-Dmapreduce.job.queuename=other", "-m", strconv.Itoa(maps),
		"-mt", strconv.Itoa(ms), "-r", "1", "-rt", "1000")
	p.WaitLine(t, "Submitted application application_")
	id := regexp.MustCompile(`application_\d+_\d+`).FindString(p.Output())
	if at := f.Home(t, id); at != f.theirs {
		t.Fatalf("%s lives at %s", id, at.ID)
	}
	return id, p
}

// runs waits until the job's maps run.
func (f *pairFederation) runs(t *testing.T, id string, p *process.Process) {
	t.Helper()
	p.Await(t, "running maps", func() bool {
		app, _, err := Report(t, f.web, id)
		return err == nil && app.State == "RUNNING" && app.Containers >= 3
	})
}

// succeeded waits for the job's end, and fails unless it succeeded.
func (f *pairFederation) succeeded(t *testing.T, id string, p *process.Process) {
	t.Helper()
	if err := p.Exit(); err != nil {
		t.Fatalf("the job: %v\n%s", err, p.Tail(60))
	}
	AwaitState(t, f.web, id, "FINISHED")
	app, _, err := Report(t, f.web, id)
	if err != nil || app.FinalStatus != "SUCCEEDED" {
		t.Errorf("%+v, %v", app, err)
	}
	// Its AM was not restarted: it registered again with the active one.
	var attempts struct{ AppAttempts json.RawMessage }
	if _, err := Call(t, http.MethodGet, f.web, "/ws/v1/cluster/apps/"+id+"/appattempts", nil, &attempts); err != nil ||
		strings.Count(string(attempts.AppAttempts), `"appAttemptId"`) != 1 {
		t.Errorf("its attempts: %s, %v", attempts.AppAttempts, err)
	}
}

// The active one becomes standby while applications run, then its successor is killed. Users, administrators, REST
// clients and AMs that use the member through creel continue.
func TestPairOfHadoop(t *testing.T) {
	f, pair := startPaired(t, "")
	t.Run("the_active_one_steps_down", func(t *testing.T) {
		dir := t.TempDir()
		_, shell := f.shell(t, 4, 128, "touch "+dir+"/$NM_HOST.$CONTAINER_ID; sleep 60")
		id, p := f.job(t, 8, 80000) // long enough for all verbs, twice
		f.runs(t, id, p)
		shell.Await(t, "its containers", func() bool {
			ran, err := os.ReadDir(dir)
			return err == nil && len(ran) == 4
		})
		f.verbs(t, id)
		pair.Retire(t, 0)
		pair.Activate(t, 1)
		f.verbs(t, id)
		f.succeeded(t, id, p)
		if err := shell.Exit(); err != nil {
			t.Errorf("the shell that is at home with us: %v\n%s", err, shell.Tail(60))
		}
		if there, err := filepath.Glob(dir + "/" + f.theirs.address + ".*"); err != nil || len(there) != 2 {
			t.Errorf("%d of its 4 containers ran in the pair's cluster, want 2", len(there))
		}
	})

	t.Run("the_active_one_is_killed", func(t *testing.T) {
		id, p := f.job(t, 8, 40000)
		f.runs(t, id, p)
		pair.RMs[1].Kill()
		pair.Activate(t, 0)
		f.verbs(t, id)
		f.succeeded(t, id, p)
		pair.RMs[1].Restart(t)
	})

	// The first one is active again, the second one standby.
	t.Run("new_work", func(t *testing.T) {
		AwaitActive(t, f.web, 2)
		id, p := f.job(t, 3, 1000)
		f.succeeded(t, id, p)
	})
}

// The same with a pair that elects by ZooKeeper, without any notice to creel.
func TestPairThatElects(t *testing.T) {
	_, zookeeper := hadoop.StartZooKeeper(t)
	f, pair := startPaired(t, zookeeper)
	id, p := f.job(t, 8, 60000)
	f.runs(t, id, p)
	pair.RMs[pair.Active(t)].Kill()
	pair.Active(t)
	f.verbs(t, id)
	f.succeeded(t, id, p)
}

// The pair is creel's. Its active ResourceManager is killed under a job that uses both members. The router and the
// proxies find the other one, and list one member.
func TestPairOfCreelIsOneMember(t *testing.T) {
	f := newPaired(t)
	pair := f.StartPair(t, "sc-pair", 2, nil)
	p := f.join(t, pair.Subcluster, pair.Conf)
	id, job := p.job(t, 8, 40000)
	p.runs(t, id, job)
	pair.RMs[0].Kill()
	pair.AwaitLead(t, 1)
	p.verbs(t, id)
	pair.RMs[0].Restart(t)
	p.succeeded(t, id, job)
	if list := f.Creel(t, "subcluster", "list", "--server", "http://"+p.web); strings.Count(list, "sc-pair") != 1 {
		t.Errorf("the members are\n%s", list)
	}
}

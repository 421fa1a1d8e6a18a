// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	pb "github.com/creelrm/creel/internal/yarnpb"
)

// shellRun is a job of Hadoop's distributed shell, whose containers write a line when they begin.
type shellRun struct {
	*process.Process
	began, end string // files: a line for each container; the containers end when this one exists
}

// runShell starts a job with two containers, which run until release.
func runShell(t *testing.T, client hadoop.Client) *shellRun {
	t.Helper()
	dir := t.TempDir()
	r := &shellRun{began: filepath.Join(dir, "began"), end: filepath.Join(dir, "go")}
	jar := filepath.Join(hadoop.Jars(t, hadoop.V342), "hadoop-yarn-applications-distributedshell-3.4.2.jar")
	r.Process = client.Start(t, hadoop.DistributedShell, "-jar", jar, "-num_containers", "2", "-master_memory", "512",
		"-container_memory", "256", "-timeout", "3600000", "-shell_command",
		"echo x >> "+r.began+"; while [ ! -e "+r.end+" ]; do sleep 0.2; done")
	r.Await(t, "two containers", func() bool { return lines(r.began) == 2 })
	return r
}

// id is the application's.
func (r *shellRun) id() string { return application.FindString(r.Output()) }

func (r *shellRun) release(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(r.end, nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

// succeeds releases the containers, and checks that the job ends well in its first attempt, without other containers.
func (r *shellRun) succeeds(t *testing.T, client hadoop.Client) {
	t.Helper()
	r.release(t)
	if err := r.Exit(); err != nil {
		t.Fatalf("the shell: %v\n%s", err, r.Tail(60))
	}
	says(t, r.Output(), "Application completed successfully")
	if n := lines(r.began); n != 2 {
		t.Errorf("%d containers began, not 2", n)
	}
	says(t, client.Run(t, hadoop.ApplicationCLI, "application", "-status", r.id()).OK(t).Stdout, "Final-State : SUCCEEDED")
	says(t, client.Run(t, hadoop.ApplicationCLI, "applicationattempt", "-list", r.id()).OK(t).Stdout,
		"Total number of application attempts :1")
}

// mover moves the state of a ResourceManager by the commands of the guide.
type mover struct {
	t         *testing.T
	zooKeeper string
	conf      string // Hadoop's directory
}

// guide returns a command of the guide, for this test's servers and files.
func (m *mover) guide(words string) []string {
	m.t.Helper()
	return Guide(m.t, words, m.zooKeeper, m.conf)
}

// run runs a line of the guide with one word replaced, and returns its output.
func (m *mover) run(want int, words, old, with string) string {
	m.t.Helper()
	args := []string{Binary(m.t)}
	for _, word := range m.guide(words) {
		args = append(args, strings.Replace(word, old, with, 1))
	}
	_, out, code := process.Run(context.Background(), m.t, process.Command{Name: words, Dir: m.t.TempDir(), Args: args})
	if code != want {
		m.t.Fatalf("%v: exit code %d, want %d\n%s", args[1:], code, want, out)
	}
	return out
}

// start starts creel's ResourceManager at the addresses of Hadoop's, as the guide does.
func (m *mover) start(conf hadoop.Conf, at hadoop.Addresses) *Creel {
	m.t.Helper()
	words := m.guide("creel rm --conf")
	return Start(m.t, Options{Volatile: true, Addresses: at, Conf: conf, Args: words[3:]}) // without rm --conf DIR
}

// has checks an application's state in the reports of the ResourceManager that serves now.
func has(t *testing.T, client hadoop.Client, id, state, final string) {
	t.Helper()
	says(t, client.Run(t, hadoop.ApplicationCLI, "application", "-status", id).OK(t).Stdout,
		"State : "+state, "Final-State : "+final)
}

// recovers waits until the ResourceManager knows the AM and both containers of a job.
func (r *shellRun) recovers(t *testing.T, p *process.Process, client hadoop.Client) {
	t.Helper()
	attempt := strings.Replace(r.id(), "application", "appattempt", 1) + "_000001"
	p.Await(t, "three containers of "+attempt, func() bool {
		return strings.Contains(client.Run(t, hadoop.ApplicationCLI, "container", "-list", attempt).Stdout,
			"Total number of containers :3")
	})
}

// runPi starts a MapReduce job of six maps, and returns when the first ones have ended. The reduce begins after the last
// map: MapReduce ends a reduce while maps wait and a ResourceManager, which has just started, reports no free memory.
func runPi(t *testing.T, conf hadoop.Conf) *process.Process {
	t.Helper()
	client := hadoop.Client{Conf: conf.With(hadoop.Conf{
		"mapreduce.job.running.map.limit":              "2",
		"mapreduce.job.reduce.slowstart.completedmaps": "1.0",
	})}.Setup(t)
	job := client.Start(t, hadoop.Examples, "pi", "6", "100")
	job.Await(t, "the first maps", func() bool { return someMaps.MatchString(job.Output()) })
	return job
}

// endsWithoutLoss checks that a job of runPi ends well, and that each of its tasks ran once.
func endsWithoutLoss(t *testing.T, job *process.Process) {
	t.Helper()
	if err := job.Exit(); err != nil {
		t.Fatalf("pi: %v\n%s", err, job.Tail(60))
	}
	says(t, job.Output(), "Estimated value of Pi is 3.", "Launched map tasks=6", "Launched reduce tasks=1", "Shuffled Maps =6")
	for _, lost := range []string{"Failed map tasks", "Killed map tasks", "Failed reduce tasks", "Killed reduce tasks"} {
		if strings.Contains(job.Output(), lost) {
			t.Errorf("pi has %s\n%s", lost, job.Tail(60))
		}
	}
}

// A ResourceManager of Hadoop 3.3 has a running job, one that succeeded and one that was killed. It is stopped, its
// state is imported, and creel's ResourceManager continues at the same addresses: nodes and AM find it, and no container
// ends. A delegation token of Hadoop's is renewed. Then the state is exported, and a ResourceManager of Hadoop 3.4
// continues: the job succeeds in its first attempt, and the jobs of both are listed with their states. A MapReduce job
// is in its middle each time, and loses no task.
func TestJobsMoveFromHadoopToCreelAndBack(t *testing.T) {
	_, zk := hadoop.StartZooKeeper(t)
	conf := overZooKeeper(zk).With(hadoop.Conf{"yarn.resourcemanager.cluster-id": "c1"})
	his := hadoop.StartRM(t, hadoop.RM{Version: hadoop.V336, Conf: conf.With(hadoop.Conf{
		"yarn.resourcemanager.zk-appid-node.split-index":            "2",
		"yarn.resourcemanager.zk-delegation-token-node.split-index": "1",
	})})
	hadoop.StartNM(t, hadoop.NM{RM: his.Addresses})
	client := hadoop.Client{Conf: his.Addresses.Conf()}.Setup(t)
	done := runShell(t, client)
	done.succeeds(t, client)
	killed := runShell(t, client)
	client.Run(t, hadoop.ApplicationCLI, "application", "-kill", killed.id()).OK(t)
	killed.release(t)
	_ = killed.Exit() // it reports that its application was killed
	running := runShell(t, client)
	user := hadoop.OSUser(t)
	before := newStage(t, his.Process, his.Addresses)
	issued := ok(before.user().GetDelegationToken(t.Context(), &pb.GetDelegationTokenRequestProto{Renewer: &user}))(before)
	renew := func(p *process.Process) {
		t.Helper()
		at := newStage(t, p, his.Addresses)
		r := ok(at.user().RenewDelegationToken(t.Context(), &pb.RenewDelegationTokenRequestProto{Token: issued.GetToken()}))(at)
		if r.GetNewExpiryTime() == 0 {
			t.Error("the token has no new expiry time")
		}
	}

	m := &mover{t: t, zooKeeper: zk, conf: his.ConfDir}
	if out := m.run(1, "creel rm import", "/rmstore", "/elsewhere"); !strings.Contains(out, "no state of a Hadoop") {
		t.Errorf("an empty path: %s", out)
	}
	pi := runPi(t, his.Addresses.Conf())
	his.Stop()
	says(t, m.run(0, "creel rm import", "", ""),
		"has 4 applications, of which 2 have not ended, and 1 delegation tokens; the next epoch is 1")
	ours := m.start(conf, his.Addresses)
	renew(ours.Process)
	running.recovers(t, ours.Process, client)
	has(t, client, killed.id(), "KILLED", "KILLED")
	has(t, client, done.id(), "FINISHED", "SUCCEEDED")
	next := runShell(t, client)
	next.succeeds(t, client)
	endsWithoutLoss(t, pi)

	pi = runPi(t, his.Addresses.Conf())
	ours.Stop()
	if out := m.run(1, "creel rm export", "/rmback", "/rmstore"); !strings.Contains(out, "there is a state already") {
		t.Errorf("an export over a state: %s", out)
	}
	says(t, m.run(0, "creel rm export", "", ""),
		"has 6 applications, of which 2 have not ended, and 1 delegation tokens; the next epoch is 2")
	his.Daemon.Conf["yarn.resourcemanager.zk-state-store.parent-path"] = "/rmback"
	his.Daemon.Conf.Write(t, his.ConfDir)
	his.Upgrade(t, hadoop.V342)
	renew(his.Process)
	running.recovers(t, his.Process, client)
	endsWithoutLoss(t, pi)
	running.succeeds(t, client)
	has(t, client, killed.id(), "KILLED", "KILLED")
	for _, r := range []*shellRun{done, next} {
		has(t, client, r.id(), "FINISHED", "SUCCEEDED")
	}
	last := runShell(t, client)
	last.succeeds(t, client)
}

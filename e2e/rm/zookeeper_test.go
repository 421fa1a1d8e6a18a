// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"context"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	pb "github.com/creelrm/creel/internal/yarnpb"
)

// overZooKeeper are the settings of a state in ZooKeeper.
func overZooKeeper(address string) hadoop.Conf {
	return hadoop.Conf{
		"yarn.resourcemanager.store.class":      "org.apache.hadoop.yarn.server.resourcemanager.recovery.ZKRMStateStore",
		"yarn.resourcemanager.recovery.enabled": "true",
		"hadoop.zk.address":                     address,
		"hadoop.zk.timeout-ms":                  "5000",
	}
}

// The pair elects by ZooKeeper and has its state there. Hadoop's shell survives a kill -9 of the active one.
func TestShellOutlivesTheActiveOverZooKeeper(t *testing.T) {
	_, zk := hadoop.StartZooKeeper(t)
	shellOutlives(t, startPairOver(t, true, overZooKeeper(zk)))
}

// A pause of 30 s is longer than the session of the active one.
func TestPausedActiveIsFencedOverZooKeeper(t *testing.T) {
	_, zk := hadoop.StartZooKeeper(t)
	pausedActiveResumes(t, startPairOver(t, true, overZooKeeper(zk)), 30*time.Second)
}

// A ResourceManager of Hadoop and one of creel elect by the same nodes: each is standby while the other leads, and
// takes the lock after it. They share no state.
func TestElectsAgainstHadoopsResourceManager(t *testing.T) {
	_, zk := hadoop.StartZooKeeper(t)
	conf, at := pairConf(t, true)
	own := conf.With(overZooKeeper(zk), hadoop.Conf{"yarn.resourcemanager.ha.id": "rm1"})
	creel := Start(t, Options{Name: "rm1", Volatile: true, Addresses: at[0], Conf: own})
	p := &creelPair{rms: [2]*Creel{creel}, conf: conf}
	p.await(t, 0)
	other := hadoop.StartRM(t, hadoop.RM{Name: "rm2", NoWait: true, Conf: conf.With(hadoop.Conf{
		"yarn.resourcemanager.ha.id": "rm2",
		"hadoop.zk.address":          zk,
		"hadoop.zk.timeout-ms":       "5000",
	})})
	client := hadoop.Client{Conf: conf}.Setup(t)
	await := func(state string) {
		t.Helper()
		other.Await(t, "Hadoop's "+state, func() bool {
			return strings.HasPrefix(client.Run(t, hadoop.RMAdminCLI, "-getServiceState", "rm2").Stdout, state)
		})
	}
	await("standby")
	creel.Kill9()
	await("active")
	creel.Restart(t)
	creel.Await(t, "a redirect to Hadoop's", func() bool {
		_, header, _ := p.get(t, 0, "/ws/v1/cluster/metrics")
		return header.Get("Location") == "http://"+at[1].Web+"/ws/v1/cluster/metrics"
	})
	other.Stop()
	p.await(t, 0)
}

// ZooKeeper is killed while clients submit, and starts again. The submissions wait, and each acknowledged one is in the
// state. The sessions last longer than the restart, so the active one remains active.
func TestKilledZooKeeperLosesNoSubmission(t *testing.T) {
	server, zk := hadoop.StartZooKeeper(t)
	p := startPairOver(t, true, overZooKeeper(zk).With(hadoop.Conf{"hadoop.zk.timeout-ms": "40000"}))
	active := p.stage(t, 0)
	known := []*pb.ApplicationIdProto{active.submit("before", nil)}
	server.KillAlone()
	submitted := make(chan *pb.ApplicationIdProto)
	go func() {
		defer close(submitted) // also if it fails
		submitted <- active.submit("during", nil)
	}()
	select {
	case <-submitted:
		t.Error("a submission was acknowledged while there was no ZooKeeper")
	case <-time.After(time.Second):
	}
	server.Restart(t)
	restarted := time.Now()
	known = append(known, <-submitted)
	t.Logf("the submission is acknowledged %v after the restart", time.Since(restarted).Round(time.Millisecond))
	stopped := time.Now()
	p.rms[0].Stop() // it releases the lock, which would else last as long as the session
	p.await(t, 1)
	t.Logf("the other one is active %v after the order to stop", time.Since(stopped).Round(time.Millisecond))
	next := p.stage(t, 1)
	for i, name := range []string{"before", "during"} {
		if got := next.report(known[i]).GetName(); got != name {
			t.Errorf("%v is %q, want %q", known[i], got, name)
		}
	}
}

// A single ResourceManager with its state in ZooKeeper is stopped, as on a host that hangs. Another continues, and the
// first is fenced when it resumes. The state then moves to a journal by commands.
func TestAnotherHostContinuesFromZooKeeper(t *testing.T) {
	_, zk := hadoop.StartZooKeeper(t)
	conf := overZooKeeper(zk).With(hadoop.Conf{"yarn.resourcemanager.cluster-id": "shared"})
	start := func(name string) (*Creel, *stage) {
		rm := Start(t, Options{Name: name, Volatile: true, Conf: conf})
		return rm, newStage(t, rm.Process, rm.Addresses)
	}
	first, at1 := start("first")
	one := at1.submit("one", nil)
	first.Signal(syscall.SIGSTOP)
	second, at2 := start("second")
	two := at2.submit("two", nil)
	time.Sleep(2 * time.Second) // longer than the pause that a ResourceManager detects
	first.Signal(syscall.SIGCONT)
	if err := first.Exit(); err == nil {
		t.Error("the first ended without an error")
	}
	first.WaitLine(t, "another process holds the state")

	dir := t.TempDir()
	creel := func(in []string, words ...string) (out string, code int) {
		_, out, code = process.Run(context.Background(), t, process.Command{
			Name: "creel rm " + words[0], Dir: dir, Args: append(append([]string{Binary(t), "rm"}, words...), in...),
		})
		return out, code
	}
	var inZooKeeper []string
	for key, value := range conf {
		inZooKeeper = append(inZooKeeper, "-D", key+"="+value)
	}
	inJournal := []string{"--data", filepath.Join(dir, "journal")}
	if out, code := creel(inZooKeeper, "export", "busy"); code == 0 || !strings.Contains(out, "in use by process ") {
		t.Errorf("a state in use was exported: exit code %d\n%s", code, out)
	}
	second.Kill9()
	for _, step := range []struct {
		in    []string
		words []string
	}{
		{inZooKeeper, []string{"forget", pb.ToApplicationID(one).String()}},
		{inZooKeeper, []string{"export", "state"}},
		{inZooKeeper, []string{"format", "--yes"}},
		{inZooKeeper, []string{"import", "state"}},
		{inZooKeeper, []string{"export", "again"}},
		{inJournal, []string{"import", "again"}},
	} {
		if out, code := creel(step.in, step.words...); code != 0 {
			t.Fatalf("creel rm %v: exit code %d\n%s", step.words, code, out)
		}
	}
	_, at3 := start("third")
	if got := at3.report(two).GetName(); got != "two" {
		t.Errorf("%v is %q", two, got)
	}
}

// Hadoop's ResourceManager and creel's do not start on each other's state.
func TestForeignStateInZooKeeperIsRefused(t *testing.T) {
	_, zk := hadoop.StartZooKeeper(t)
	conf := overZooKeeper(zk).With(hadoop.Conf{"yarn.resourcemanager.cluster-id": "shared"})
	creel := Start(t, Options{Name: "creel", Volatile: true, Conf: conf})
	at := newStage(t, creel.Process, creel.Addresses)
	app := at.submit("one", nil)
	creel.Stop()
	his := hadoop.StartRM(t, hadoop.RM{Name: "hadoop", NoWait: true, Conf: conf})
	_ = his.Exit() // its code depends on the release
	if !strings.Contains(his.Output(), "RMStateVersionIncompatibleException") {
		t.Errorf("Hadoop's ResourceManager ended for another reason:\n%s", his.Tail(20))
	}
	creel = Start(t, Options{Name: "creel-again", Volatile: true, Conf: conf})
	if got := newStage(t, creel.Process, creel.Addresses).report(app).GetName(); got != "one" {
		t.Errorf("after Hadoop's attempt the application is %q", got)
	}
	creel.Stop()

	conf["yarn.resourcemanager.zk-state-store.parent-path"] = "/hadoop"
	hadoop.StartRM(t, hadoop.RM{Name: "hadoop-alone", Conf: conf}).Stop()
	dir := t.TempDir()
	args := []string{Binary(t), "rm", "export", "state"}
	for key, value := range conf {
		args = append(args, "-D", key+"="+value)
	}
	_, out, code := process.Run(context.Background(), t, process.Command{Name: "creel rm export", Dir: dir, Args: args})
	if code == 0 || !strings.Contains(out, "the state of a Hadoop ResourceManager") {
		t.Errorf("Hadoop's state was exported: exit code %d\n%s", code, out)
	}
}

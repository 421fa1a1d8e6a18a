// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"context"
	"path"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/statestore/redis/redistest"
	"github.com/creelrm/creel/subcluster/rm/zkstate"
)

// mixedPair is an HA pair of creel's ResourceManager, rm1, and Hadoop's, rm2, over one state.
type mixedPair struct {
	*creelPair
	t      *testing.T
	creel  *Creel
	hadoop *hadoop.ResourceManager
	at     [2]hadoop.Addresses
	client hadoop.Client
}

// manyRetries is the guide's setting for Hadoop's ResourceManager. By default its elector stops for ever after three
// attempts to connect, twice.
var manyRetries = hadoop.Conf{
	"yarn.resourcemanager.ha.failover-controller.active-standby-elector.zk.retries": "1000",
}

// startMixedPair starts the pair with Hadoop's active.
func startMixedPair(t *testing.T) *mixedPair {
	t.Helper()
	_, zk := hadoop.StartZooKeeper(t)
	conf, at := pairConf(t, true)
	shared := conf.With(overZooKeeper(zk), hadoop.Conf{
		// Nodes register again within a second after a takeover.
		"yarn.resourcemanager.work-preserving-recovery.scheduling-wait-ms": "1000",
	})
	p := &mixedPair{t: t, at: at, client: hadoop.Client{Conf: conf}.Setup(t)}
	p.hadoop = hadoop.StartRM(t, hadoop.RM{Name: "rm2", NoWait: true, Conf: shared.With(manyRetries, hadoop.Conf{
		"yarn.resourcemanager.ha.id":                                "rm2",
		"yarn.resourcemanager.zk-appid-node.split-index":            "2",
		"yarn.resourcemanager.zk-delegation-token-node.split-index": "1",
	})})
	t.Cleanup(func() { p.dump(zk) }) // before it ends
	p.isHadoops("ACTIVE")
	setting := (&mover{t: t}).guide("creel rm -D")[1:3]
	p.creel = Start(t, Options{
		Name: "rm1", Volatile: true, Addresses: at[0], Args: setting,
		Conf: shared.With(hadoop.Conf{"yarn.resourcemanager.ha.id": "rm1"}),
	})
	p.creelPair = &creelPair{rms: [2]*Creel{p.creel}, conf: conf}
	hadoop.StartNM(t, hadoop.NM{RM: at[1], Conf: conf})
	return p
}

// dump logs both sides of a pair that failed: the nodes of the election, each ResourceManager's output since its last
// start, and the stacks of Hadoop's threads.
func (p *mixedPair) dump(zk string) {
	if !p.t.Failed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	lock := zkstate.LockPath("/yarn-leader-election", "pair")
	if s, err := zkstate.Connect(ctx, zkstate.Servers{Addresses: []string{zk}}); err != nil {
		p.t.Logf("ZooKeeper: %v", err)
	} else {
		defer s.Close()
		for _, node := range []string{lock, path.Dir(lock) + "/ActiveBreadCrumb"} {
			data, changed, err := s.Get(ctx, node)
			p.t.Logf("%s has %q, children of transaction %d: %v", node, data, changed, err)
		}
	}
	p.hadoop.Signal(syscall.SIGQUIT)
	_ = process.Poll(ctx.Done(), func() bool { return strings.Contains(p.hadoop.Output(), "JNI global refs") })
	p.t.Logf("--- Hadoop's ResourceManager ---\n%s", p.hadoop.Output())
	if p.creel != nil {
		p.t.Logf("--- creel's ResourceManager ---\n%s", p.creel.Output())
	}
}

// isHadoops waits for a state of Hadoop's. Its page has it; each call of rmadmin would start a JVM.
func (p *mixedPair) isHadoops(state string) {
	p.t.Helper()
	p.hadoop.Await(p.t, "Hadoop's state "+state, func() bool { return haState(p.at[1].Web) == state })
}

// toCreel ends Hadoop's ResourceManager, waits until creel's is active, and starts Hadoop's again as the standby.
func (p *mixedPair) toCreel(end func()) {
	p.t.Helper()
	began := time.Now()
	end()
	p.await(p.t, 0)
	p.t.Logf("creel's is active %v later", time.Since(began).Round(10*time.Millisecond))
	p.hadoop.Restart(p.t)
	p.isHadoops("STANDBY")
}

// toHadoop ends creel's, waits until Hadoop's is active, and starts creel's again as the standby.
func (p *mixedPair) toHadoop(end func()) {
	p.t.Helper()
	began := time.Now()
	end()
	p.isHadoops("ACTIVE")
	p.t.Logf("Hadoop's is active %v later", time.Since(began).Round(10*time.Millisecond))
	p.creel.Restart(p.t)
}

// renews renews a delegation token at the active one.
func (p *mixedPair) renews(active *process.Process, at hadoop.Addresses, issued *pb.GetDelegationTokenResponseProto) {
	p.t.Helper()
	s := newStage(p.t, active, at)
	ask := &pb.RenewDelegationTokenRequestProto{Token: issued.GetToken()}
	r := ok(s.user().RenewDelegationToken(p.t.Context(), ask))(s)
	if r.GetNewExpiryTime() == 0 {
		p.t.Error("the token has no new expiry time")
	}
}

func (p *mixedPair) issue(active *process.Process, at hadoop.Addresses) *pb.GetDelegationTokenResponseProto {
	p.t.Helper()
	s, user := newStage(p.t, active, at), hadoop.OSUser(p.t)
	return ok(s.user().GetDelegationToken(p.t.Context(), &pb.GetDelegationTokenRequestProto{Renewer: &user}))(s)
}

// A job of Hadoop's distributed shell runs while the ResourceManager changes four times between Hadoop's and creel's, by
// kills and by orderly stops. Each recovers the AM and the containers, knows the ends of jobs that ended at the other,
// and renews the tokens of both. Jobs begin at each and end at the other, in their first attempts.
func TestMixedPairTakesOverBothWays(t *testing.T) {
	p := startMixedPair(t)
	his := p.at[1]
	done := runShell(t, p.client)
	done.succeeds(t, p.client)
	running := runShell(t, p.client)
	hisToken := p.issue(p.hadoop.Process, his)

	p.toCreel(func() { p.hadoop.KillAlone() })
	p.renews(p.creel.Process, p.at[0], hisToken)
	running.recovers(t, p.creel.Process, p.client)
	has(t, p.client, done.id(), "FINISHED", "SUCCEEDED")
	begunHere := runShell(t, p.client)
	creelsToken := p.issue(p.creel.Process, p.at[0])

	p.toHadoop(p.creel.Kill9)
	p.renews(p.hadoop.Process, his, creelsToken)
	p.renews(p.hadoop.Process, his, hisToken)
	for _, r := range []*shellRun{running, begunHere} {
		r.recovers(t, p.hadoop.Process, p.client)
	}
	has(t, p.client, done.id(), "FINISHED", "SUCCEEDED")
	begunHere.succeeds(t, p.client)

	p.toCreel(p.hadoop.Stop)
	p.renews(p.creel.Process, p.at[0], creelsToken)
	running.recovers(t, p.creel.Process, p.client)
	has(t, p.client, begunHere.id(), "FINISHED", "SUCCEEDED")

	p.toHadoop(p.creel.Stop)
	running.recovers(t, p.hadoop.Process, p.client)
	running.succeeds(t, p.client)
	for _, r := range []*shellRun{done, begunHere} {
		has(t, p.client, r.id(), "FINISHED", "SUCCEEDED")
	}
}

// Five times the lead goes from Hadoop's to creel's and back. A Spark job runs through both takeovers and a MapReduce job
// through each one: no task is lost, and none runs again.
func TestMixedPairLosesNoTask(t *testing.T) {
	p := startMixedPair(t)
	hadoop.StartNM(t, hadoop.NM{Name: "nm2", RM: p.at[1], Conf: p.conf})
	ends := []struct {
		name          string
		hadoop, creel func()
	}{
		// A restart replaces the processes, so the methods are chosen at the call.
		{"kill", func() { p.hadoop.KillAlone() }, func() { p.creel.Kill9() }},
		{"stop", func() { p.hadoop.Stop() }, func() { p.creel.Stop() }},
	}
	for round := range 5 {
		end := ends[round%len(ends)]
		t.Logf("round %d: %s", round+1, end.name)
		spark := startWaves(t, p.client, []string{"client", "cluster"}[round%2])
		job := runPi(t, p.conf)
		p.toCreel(end.hadoop)
		endsWithoutLoss(t, job)
		inFirstAttempt(t, p.client, job)

		job = runPi(t, p.conf)
		p.toHadoop(end.creel)
		endsWithoutLoss(t, job)
		spark.endsWithoutLoss(t)
		inFirstAttempt(t, p.client, job)
		inFirstAttempt(t, p.client, spark.Process)
	}
}

// The standby of Hadoop's loses its session with ZooKeeper, connects again, and is cut off while it opens another
// session, for longer than its elector by default tries. It takes over when it is connected again.
func TestHadoopsStandbyOutlivesACutOfZooKeeper(t *testing.T) {
	_, zk := hadoop.StartZooKeeper(t)
	path := redistest.NewProxy(t, zk)
	conf, at := pairConf(t, true)
	conf = conf.With(overZooKeeper(zk))
	p := &mixedPair{t: t, at: at, client: hadoop.Client{Conf: conf}.Setup(t)}
	p.creel = Start(t, Options{
		Name: "rm1", Volatile: true, Addresses: at[0], Args: (&mover{t: t}).guide("creel rm -D")[1:3],
		Conf: conf.With(hadoop.Conf{"yarn.resourcemanager.ha.id": "rm1"}),
	})
	p.creelPair = &creelPair{rms: [2]*Creel{p.creel}, conf: conf}
	p.await(t, 0)
	p.hadoop = hadoop.StartRM(t, hadoop.RM{Name: "rm2", NoWait: true, Conf: conf.With(manyRetries, hadoop.Conf{
		"yarn.resourcemanager.ha.id": "rm2",
		"hadoop.zk.address":          path.Addr,
	})})
	t.Cleanup(func() { p.dump(zk) })
	p.isHadoops("STANDBY")

	path.Silence()
	time.Sleep(10 * time.Second) // its session of 5 s ends
	path.Cut()
	path.Heal()
	p.hadoop.WaitLine(t, "Trying to re-establish ZK session")
	path.Cut()
	time.Sleep(80 * time.Second) // twice three attempts of 10 s, and more
	path.Heal()
	time.Sleep(15 * time.Second) // an attempt each 10 s
	p.creel.Kill9()
	p.isHadoops("ACTIVE")
}

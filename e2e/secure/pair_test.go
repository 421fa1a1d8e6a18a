// SPDX-License-Identifier: Apache-2.0

package secure

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/e2e/rm"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/statestore/redis/redistest"
)

// startPair starts two ResourceManagers with principals of their own hosts, over one state in Redis. The first is active.
func startPair(t *testing.T, k *KDC) (pair [2]*cluster) {
	t.Helper()
	redis := redistest.Start(t, "--appendonly", "yes")
	both := newCluster(t, k, "privacy")
	both.conf = both.conf.With(hadoop.Conf{
		"yarn.resourcemanager.ha.enabled": "true", "yarn.resourcemanager.ha.rm-ids": "rm1,rm2",
		"yarn.resourcemanager.ha.automatic-failover.enabled": "true", "yarn.resourcemanager.cluster-id": "pair",
	})
	hosts, at := [2]string{"localhost", "127.0.0.2"}, [2]hadoop.Addresses{}
	for i, host := range hosts {
		for _, a := range []*string{&at[i].Client, &at[i].Scheduler, &at[i].Tracker, &at[i].Admin, &at[i].Web} {
			*a = net.JoinHostPort(host, strconv.Itoa(process.FreePort(t, host)))
		}
		for key, address := range at[i].Conf() {
			both.conf[key+".rm"+strconv.Itoa(i+1)] = address
		}
	}
	for i, host := range hosts {
		id, one := "rm"+strconv.Itoa(i+1), *both
		one.startRM(t, host, rm.Options{Name: id, Volatile: true, Addresses: at[i], Conf: k.webLogin(t, host).With(hadoop.Conf{
			// _HOST would need host names.
			"yarn.resourcemanager.principal":               "yarn/" + host + "@" + k.Realm,
			"yarn.resourcemanager.webapp.spnego-principal": "HTTP/" + host + "@" + k.Realm,
			"yarn.resourcemanager.ha.id":                   id, "yarn.resourcemanager.recovery.enabled": "true",
			"creel.rm.state.url": redis.URL(), "creel.rm.ha.lease": "3s",
			"yarn.scheduler.configuration.store.class": "file", // of one ResourceManager alone
		})})
		pair[i] = &one
		if i == 0 {
			one.awaitState(t, "ACTIVE")
		}
	}
	return pair
}

// awaitState waits until a ResourceManager reports a haState.
func (c *cluster) awaitState(t *testing.T, want string) {
	t.Helper()
	b := browser{c, c.Login(t, c.user, c.userKeytab), ""}
	c.Await(t, want, func() bool {
		return strings.Contains(b.call(t, "GET", "/ws/v1/cluster/info").body, `"haState":"`+want+`"`)
	})
}

// Hadoop's distributed shell runs on Hadoop's NodeManager while the active one of a secure pair is killed. Client, AM and
// node log in at the other, which has another principal. Tokens and rights continue.
func TestSecurePairTakesOver(t *testing.T) {
	k := StartKDC(t, Realm{})
	pair := startPair(t, k)
	first, second := pair[0], pair[1]
	first.startNode(t)
	me := first.client(t, first.user, first.userKeytab, nil)
	if out := me.Run(t, hadoop.RMAdminCLI, "-getAllServiceState").OK(t).Stdout; !strings.Contains(out, "active") ||
		!strings.Contains(out, "standby") {
		t.Errorf("the states are %q", out)
	}
	alice, bob := first.browser(t, "alice"), first.browser(t, "bob")
	id := alice.submit(t, "")
	there := browser{second, alice.cache, filepath.Join(t.TempDir(), "cookies")}
	there.call(t, "GET", allApps).is(t, "a standby's list", "307", "http://"+first.Web+allApps)

	calls := hrpc.NewClient(hrpc.ClientConfig{})
	t.Cleanup(func() { calls.Close() })
	held := first.fetch(t, first.byTicket(t, calls, "carol", k.AddPrincipal(t, "carol")))
	held.Service += "," + second.Client // as Hadoop's clients name a pair
	client := first.byToken(t, held)
	client.Run(t, hadoop.ApplicationCLI, "application", "-list").OK(t)

	dir := t.TempDir()
	began, end := filepath.Join(dir, "began"), filepath.Join(dir, "go")
	jar := filepath.Join(hadoop.Jars(t, hadoop.V342), "hadoop-yarn-applications-distributedshell-3.4.2.jar")
	job := me.Start(t, hadoop.DistributedShell, "-jar", jar, "-num_containers", "2", "-master_memory", "256",
		"-container_memory", "128", "-timeout", "170000", "-shell_command",
		"echo x >> "+began+"; while [ ! -e "+end+" ]; do sleep 0.2; done")
	containers := func() int {
		b, _ := os.ReadFile(began) // it is absent at first
		return strings.Count(string(b), "\n")
	}
	job.Await(t, "two containers", func() bool { return containers() == 2 })
	first.Kill9()
	second.awaitState(t, "ACTIVE")
	if err := os.WriteFile(end, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := job.Exit(); err != nil || !strings.Contains(job.Output(), "Application completed successfully") {
		t.Fatalf("the shell: %v\n%s", err, job.Tail(60))
	}
	if n := containers(); n != 2 {
		t.Errorf("%d containers began, not 2", n)
	}

	there.call(t, "GET", allApps+"/"+id).is(t, "the application at the other", "200", `"state":"ACCEPTED"`)
	browser{second, bob.cache, ""}.kill(t, id, "").is(t, "the kill of a stranger", "403", "bob")
	there.kill(t, id, "").is(t, "the owner's kill", "202", "")
	client.Run(t, hadoop.ApplicationCLI, "application", "-list").OK(t)
	if out := me.Run(t, hadoop.RMAdminCLI, "-getServiceState", "rm2").OK(t).Stdout; !strings.Contains(out, "active") {
		t.Errorf("the state is %q", out)
	}
	first.Restart(t)
	first.awaitState(t, "STANDBY")
}

// A member of a federation is a pair. Its active ResourceManager is killed under a job that has containers at both
// members. Router, proxies and node log in at the other one, and so do clients with a token.
func TestSecureMemberIsAPair(t *testing.T) {
	f := startMembers(t, "privacy", 1)
	pair := f.StartPair(t, "sc-2", 2, f.daemons)
	pair.Proxy = f.StartProxy(t, pair.ID, "127.0.0.3", f.daemons)
	f.Subclusters = append(f.Subclusters, pair.Subcluster)
	f.startNode(t, 0)
	f.startNode(t, 1, pair.Conf)
	client := f.client(t, f.cache)
	f.awaitNodes(t, client)
	job, at := f.startWaiting(t, client), f.RouterAddresses[0].Client
	alice := f.tokenOf(t, "alice")
	pair.RMs[0].Kill()
	pair.AwaitLead(t, 1)
	f.Routers[0].Await(t, "the list with the other ResourceManager", func() bool {
		n, err := listByToken(t.Context(), at, alice)
		return err == nil && n == 1
	})
	job.finish(t, f)
	f.shell(t, client, "default")
}

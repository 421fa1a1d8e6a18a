// SPDX-License-Identifier: Apache-2.0

package secure

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/federation"
	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/e2e/rm"
)

// `creel doctor` logs in as each daemon of a federation with Kerberos, and calls the peers of each: creel's
// ResourceManager and Hadoop's. What is broken is named in its line.
func TestDoctorTriesLoginsAndCalls(t *testing.T) {
	f := startMembers(t, "privacy", 1)
	theirs := f.StartHadoopOf(t, hadoop.V342, 2, f.daemons.With(hadoop.Conf{
		"hadoop.http.filter.initializers": "org.apache.hadoop.security.AuthenticationFilterInitializer",
	}))
	theirs.Proxy = f.StartProxy(t, theirs.ID, "127.0.0.3", f.daemons)
	router, proxy, agent := f.Routers[0], f.Subclusters[0].Proxy, theirs.Agent
	examine := func(d *federation.Daemon, role string, args ...string) (all string, code int) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), process.Guard)
		defer cancel()
		args = append([]string{rm.Binary(t), "doctor", "--role", role, "--conf", d.Conf(), "--store", f.Store}, args...)
		_, all, code = process.Run(ctx, t, process.Command{
			Name: "doctor", Args: args, Dir: t.TempDir(), Env: f.Environment(),
		})
		return all, code
	}
	passes := func(d *federation.Daemon, role string, args []string, lines ...string) {
		t.Helper()
		all, code := examine(d, role, args...)
		for range 20 { // the members may not have joined yet
			if code == 0 {
				break
			}
			time.Sleep(500 * time.Millisecond)
			all, code = examine(d, role, args...)
		}
		if code != 0 {
			t.Errorf("%s: exit code %d\n%s", role, code, all)
		}
		for _, line := range lines {
			if !strings.Contains(all, "ok       "+line) {
				t.Errorf("%s: no %q in\n%s", role, line, all)
			}
		}
	}
	fails := func(role string, args []string, line string) {
		t.Helper()
		if all, code := examine(router, role, args...); code != 1 || !strings.Contains(all, "FAILED   "+line) {
			t.Errorf("%s: exit code %d, no %q in\n%s", role, code, line, all)
		}
	}
	passes(router, "router", nil, "settings", "ticket: router/localhost@"+f.Realm, "store", "member sc-1", "member sc-2")
	passes(proxy, "proxy", nil, "ticket: nm/localhost@"+f.Realm, "store", "member sc-1", "member sc-2")
	passes(agent, "agent", []string{"--subcluster", "sc-2"}, "ticket: yarn/localhost@"+f.Realm, "store", "member sc-2")
	passes(f.Subclusters[0].RM, "rm", []string{"--subcluster", "sc-1"}, "ticket: yarn/localhost@"+f.Realm, "store")

	fails("router", []string{"-D", "yarn.router.keytab.file=" + f.keytab}, "settings: ")
	fails("router", []string{"--store", "redis://127.0.0.1:1"}, "store: ")
	theirs.Agent.Signal(19) // it renews the membership of a ResourceManager that is gone
	theirs.Hadoop.KillAlone()
	fails("router", nil, "member sc-2: ")
	if all, _ := examine(router, "router"); !strings.Contains(all, "ok       member sc-1") {
		t.Errorf("the other member fails too\n%s", all)
	}
	f.run(t, "kadmin.local", "-r", f.Realm, "cpw", "-randkey", "router/localhost") // the keytab has the former key
	fails("router", nil, "ticket: ")
	f.process.Stop()
	fails("proxy", []string{"--conf", proxy.Conf()}, "ticket: ")
	fails("agent", []string{"--conf", agent.Conf(), "--subcluster", "sc-2"}, "ticket: ")
}

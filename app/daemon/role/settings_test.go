// SPDX-License-Identifier: Apache-2.0

package role

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/app/daemon"
	"github.com/creelrm/creel/app/daemon/logs"
	"github.com/creelrm/creel/app/daemon/tracing"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/statestore/redis/redistest"
)

// readBy starts every daemon once with settings that record reads, and returns the registry rows that were read.
func readBy(t *testing.T) map[string]bool {
	t.Helper()
	read := map[string]bool{}
	store := "redis://" + redistest.Start(t).Addr
	load := func(defines ...string) *settings.Settings {
		s, err := settings.Load(settings.Sources{
			ConfDir: t.TempDir(),
			Read:    func(row string) { read[row] = true },
			Defines: append([]string{
				"creel.store.url=" + store,
				"creel.subcluster.id=sc-1",
				"creel.nm.simulate=1",
				"creel.debug.address=127.0.0.1:0",
				"creel.trace.endpoint=http://127.0.0.1:1/v1/traces",
				"creel.rm.data=" + filepath.Join(t.TempDir(), "journal"),
				"yarn.resource-types=gpu",
			}, defines...),
		})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	const any = "127.0.0.1:0"
	run := func(d *daemon.Service, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Start().Stop(); err != nil {
			t.Error(err)
		}
	}
	s := load()
	flush, err := tracing.SetUp(t.Context(), s, "test")
	if err != nil {
		t.Fatal(err)
	}
	defer flush()
	if logs.Settings(s, "rm").Level != "info" {
		t.Error("the log's level is not the default")
	}
	db, closeStore, err := OpenStore(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore()

	router, err := RouterSettings(s)
	if err != nil {
		t.Fatal(err)
	}
	router.Client, router.Admin, router.Web = any, any, any
	r, err := NewRouter(router, db)
	if err == nil {
		err = AddProfiles(&r.Service, s)
	}
	run(&r.Service, err)

	proxy, err := ProxySettings(s)
	if err != nil {
		t.Fatal(err)
	}
	proxy.Address = any
	p, err := NewProxy(proxy, db)
	run(&p.Service, err)

	for _, class := range []string{"capacity.CapacityScheduler", "fair.FairScheduler"} {
		s := load(
			"yarn.resourcemanager.scheduler.class=org.apache.hadoop.yarn.server.resourcemanager.scheduler." + class,
		)
		conf, err := RMSettings(s, db)
		if err != nil {
			t.Fatal(err)
		}
		p := &conf.Ports
		p.Client, p.Scheduler, p.Tracker, p.Admin, conf.Web = any, any, any, any, any
		rm, err := NewRM(conf)
		run(&rm.Service, err)
	}

	if c, err := RMSettings(load(append(pairDefines, "creel.rm.data=")...), nil); err != nil || c.Pair == nil {
		t.Fatal(err)
	}

	if _, err := RMSettings(load(append(inZooKeeperDefines, "creel.rm.data=")...), nil); err != nil {
		t.Fatal(err)
	}

	inSQL := "creel.store.url=mysql://db/fed"
	for _, defines := range [][]string{{"creel.store.url=zk://z1"}, {inSQL, sqlUser + "=ann"}} {
		if err := checkStore(load(defines...)); err != nil {
			t.Fatal(err)
		}
	}
	unusedStoreClass(load(inSQL, federationClass+"="+sqlClass))
	sharesHadoops := load("creel.store.url=memory", federationClass+"=a.ZookeeperFederationStateStore")
	if err := mayStart(sharesHadoops, settings.Router); err != nil {
		t.Fatal(err)
	}

	secure := append(append(kerberosDefines(t), webDefines(t)...), "creel.store.url=memory")
	if _, err := RMSettings(load(secure...), nil); err != nil {
		t.Fatal(err)
	}

	if _, err := RouterSettings(load(routerDefines(t)...)); err != nil {
		t.Fatal(err)
	}

	cert, _, keystore := certificate(t, time.Now().Add(time.Hour))
	if _, err := groupsOf(load(ldapDefines(cert, keystore)...)); err != nil {
		t.Fatal(err)
	}
	outside := []string{"yarn.acl.enable=true", authorizerURL + "=https://localhost/v1/data/yarn/allow",
		"creel.authorizer.ca-file=" + cert, "creel.authorizer.token-file=" + cert}
	if _, err := outsideAuthorizer(load(outside...), nil); err != nil {
		t.Fatal(err)
	}
	for _, defines := range [][]string{
		{
			"creel.store.url=zk://z1", zkTLS + "=true", zkKeystore + "=" + keystore, zkKeystoreWord + "=changeit",
			zkPrincipal + "=rm/rm1.test@REALM", zkKeytab + "=" + writeKeytab(t, "rm", "rm1.test", 18, 32),
		},
		{
			"creel.store.url=rediss://r:6379", redisTruststore + "=" + cert, redisKeystore + "=" + keystore,
			redisKeystoreWord + "=changeit",
		},
	} {
		if err := checkStore(load(defines...)); err != nil {
			t.Fatal(err)
		}
	}
	tls := []string{httpPolicy + "=HTTPS_ONLY", webKeystore + "=" + keystore, webKeystoreWord + "=changeit"}
	if _, err := RMSettings(load(append(tls, "creel.store.url=memory")...), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := RMSettings(load(append(append(tls, pairDefines...), "creel.rm.data=")...), nil); err != nil {
		t.Fatal(err)
	}
	tls = append(tls, needCertificate+"=true", clientSigners+"="+cert, ownKeystore+"="+keystore, ownKeystoreWord+"=changeit")
	if _, err := RouterSettings(load(tls...)); err != nil {
		t.Fatal(err)
	}

	nodes, err := NodesSettings(s)
	if err != nil {
		t.Fatal(err)
	}
	n, err := NewNodes(nodes)
	run(&n.Service, err)

	plans, err := RebalancerSettings(s)
	if err != nil {
		t.Fatal(err)
	}
	plans.Web = any
	b, err := NewRebalancer(plans, db)
	run(&b.Service, err)

	agent, err := AgentSettings(s)
	if err != nil {
		t.Fatal(err)
	}
	run(NewAgent(agent, db), nil)
	if _, err := AgentSettings(load(
		"yarn.resourcemanager.ha.enabled=true", "yarn.resourcemanager.ha.rm-ids=rm1,rm2",
		"yarn.resourcemanager.hostname.rm1=one", "yarn.resourcemanager.hostname.rm2=two",
	)); err != nil {
		t.Fatal(err)
	}
	return read
}

// Each row marked as in force is read by some daemon, and each row that is read is marked so. So the reference page
// cannot drift from the code.
func TestSettingsInForceAreThoseRead(t *testing.T) {
	read := readBy(t)
	for _, row := range settings.All() {
		switch {
		case row.Status == settings.InForce && !read[row.Key]:
			t.Errorf("%s is marked in force, and no daemon reads it: say in internal/settings/status.go what it is",
				row.Key)
		case row.Status != settings.InForce && read[row.Key]:
			t.Errorf("%s is marked %q, and a daemon reads it: take it out of internal/settings/status.go",
				row.Key, row.Status)
		case row.Status != settings.InForce && row.Note == "":
			t.Errorf("%s is marked %q without a reason", row.Key, row.Status)
		}
	}
}

func TestAddressOfGrafanaIsAWebPage(t *testing.T) {
	for text, ok := range map[string]bool{
		"": true, "https://grafana.example/d/creel?orgId=2": true, "http://g:3000/d/creel": true,
		"grafana.example/d/creel": false, "javascript:alert(1)": false, "https://": false, "://": false,
	} {
		s, err := settings.Load(settings.Sources{Defines: []string{"creel.router.grafana-url=" + text}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := RouterSettings(s); (err == nil) != ok || err != nil && !errors.Is(err, creel.ErrInvalidRequest) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/creelrm/creel/internal/gssapi"
	"github.com/creelrm/creel/subcluster/rm/zkstate"
)

// inZooKeeperDefines are the settings of a state in ZooKeeper.
var inZooKeeperDefines = []string{
	"yarn.resourcemanager.recovery.enabled=true", storeClass + "=" + recoveryPackage + "ZKRMStateStore",
	"yarn.resourcemanager.cluster-id=c1", "creel.store.url=memory", zkAddress + "=127.0.0.1:2181,z2",
}

func TestStateInZooKeeperReadsHadoopsKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "auth")
	if err := os.WriteFile(file, []byte("digest:rm:word\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := minimal(t, append(slices.Clone(inZooKeeperDefines), "yarn.resourcemanager.zk-timeout-ms=9000",
		"yarn.resourcemanager.zk-acl=world:anyone:r,digest:rm:aGFzaA==:rwcda", "hadoop.zk.auth=@"+file,
		"yarn.resourcemanager.zk-state-store.parent-path=/a", "yarn.resourcemanager.zk-max-znode-size.bytes=1000",
		"yarn.resourcemanager.ha.automatic-failover.zk-base-path=/b")...)
	shared, err := sharedStateOf(s, "c1", nil)
	if err != nil {
		t.Fatal(err)
	}
	got := shared.ofPair("rm1").(stateInZooKeeper)
	servers := zkstate.Servers{
		Addresses: []string{"127.0.0.1:2181", "z2:2181"}, Timeout: 9 * time.Second,
		Auth: []zkstate.Auth{{Scheme: "digest", Secret: "rm:word"}},
		ACL: []zk.ACL{
			{Perms: zk.PermRead, Scheme: "world", ID: "anyone"}, {Perms: zk.PermAll, Scheme: "digest", ID: "rm:aGFzaA=="},
		},
	}
	want := stateInZooKeeper{
		zkstate.Config{Servers: servers, Parent: "/a", Name: "c1", Holder: "rm1", NodeBytes: 1000},
		zkstate.ElectorConfig{Servers: servers, Base: "/b", Cluster: "c1", ID: "rm1"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the state is\n%+v, want\n%+v", got, want)
	}
}

func TestRedisPrecedesZooKeeper(t *testing.T) {
	s := minimal(t, append(slices.Clone(inZooKeeperDefines), "creel.rm.state.url=redis://127.0.0.1:1")...)
	if shared, err := sharedStateOf(s, "c1", nil); err != nil || shared.place() != "Redis" {
		t.Errorf("the state is in %v (%v)", shared, err)
	}
	s = minimal(t, append(slices.Clone(inZooKeeperDefines), "yarn.resourcemanager.recovery.enabled=false")...)
	if shared, err := sharedStateOf(s, "c1", nil); err != nil || shared != nil {
		t.Errorf("without recovery the state is in %v (%v)", shared, err)
	}
}

func TestInvalidSettingsOfZooKeeperAreNamed(t *testing.T) {
	for change, reason := range map[string]string{
		zkAddress + "=":                                           "no ZooKeeper server",
		zkAddress + "=a:2181/chroot":                              "not host:port",
		zkAddress + "=:2181":                                      "not host:port",
		"hadoop.zk.auth=sasl:rm:word":                             "a login by Kerberos is hadoop.zk.kerberos.principal",
		"hadoop.zk.auth=digest:rm":                                "digest:USER:PASSWORD",
		"hadoop.zk.auth=@/nowhere":                                "hadoop.zk.auth",
		"hadoop.zk.acl=world:rwcda":                               "not scheme:id:rights",
		"hadoop.zk.acl=world:anyone:x":                            "not a right",
		"hadoop.zk.acl=digest:rm:!:r":                             "digest:USER:HASH",
		"creel.rm.data=/var/lib/creel":                            "names a journal too",
		zkPrincipal + "=rm/h@EXAMPLE.ORG":                         "hadoop.zk.kerberos.keytab: it is not set",
		zkKeytab + "=/nowhere/rm.keytab":                          "hadoop.zk.kerberos.principal is not set",
		"hadoop.zk.timeout-ms=5s":                                 "",
		"yarn.resourcemanager.zk-state-store.parent-path=rmstore": "not a path",
	} {
		wrong, why := misplacedState(minimal(t, append(slices.Clone(inZooKeeperDefines), change)...))
		if wrong != (reason != "") || !strings.Contains(why, reason) {
			t.Errorf("%s: %t %q, want %q", change, wrong, why, reason)
		}
	}
}

// Either of Hadoop's switches turns TLS on. Files that cannot be used stop the start.
func TestTLSToZooKeeperIsRead(t *testing.T) {
	signers, _, keystore := certificate(t, time.Now().Add(time.Hour))
	for _, c := range []struct {
		defines []string
		tls     bool
		want    string
	}{
		{nil, false, ""},
		{[]string{zkTruststore + "=/nowhere/signers", zkKeystore + "=/nowhere/key"}, false, ""},
		{[]string{zkTLS + "=true"}, true, ""},
		{[]string{zkTLSOfRM + "=true", zkTruststore + "=" + signers}, true, ""},
		{[]string{zkTLS + "=true", zkKeystore + "=" + keystore, zkKeystoreWord + "=changeit"}, true, ""},
		{[]string{zkTLS + "=true", zkKeystore + "=" + keystore, zkKeystoreWord + "=guess"}, true, "the password is wrong"},
		{[]string{zkTLS + "=true", zkTruststore + "=/nowhere/signers"}, true, zkTruststore + ": /nowhere/signers cannot be read"},
		{[]string{zkTLS + "=true", zkKeystore + "=" + signers}, true, zkKeystore + ": " + signers},
	} {
		s := minimal(t, append([]string{"creel.store.url=zk://z1:2281"}, c.defines...)...)
		conf, err := zooKeeperStore(s)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.defines, err, c.want)
		}
		if err == nil && (conf.Servers.TLS != nil) != c.tls {
			t.Errorf("%v: TLS is %v", c.defines, conf.Servers.TLS)
		}
	}
}

// The principal of a server has its host name, or is that of the settings.
func TestServersOfZooKeeperHavePrincipals(t *testing.T) {
	for _, c := range []struct{ pattern, host, want string }{
		{"zookeeper", "z1.example.org", "zookeeper/z1.example.org@CREEL.TEST"},
		{"zk/_HOST@OTHER.TEST", "Z1", "zk/z1@OTHER.TEST"},
		{"zookeeper/z1", "127.0.0.1", "zookeeper/z1@CREEL.TEST"},
		{"zookeeper", "127.0.0.1", "needs the server's host name, not 127.0.0.1"},
		{"a/b/c", "z1", "does not have the form"},
	} {
		pattern, err := gssapi.ParsePrincipal(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		p, err := serverOf(pattern, "CREEL.TEST", c.host)
		if got := p.String(); err == nil && got != c.want || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s at %s is %s (%v)", c.pattern, c.host, got, err)
		}
	}
}

// The lease of a pair over ZooKeeper ends before the session does, whatever the lease in Redis is. A holder whose session
// may end at any time is not asked without a pause.
func TestLeaseInZooKeeperFollowsTheSession(t *testing.T) {
	s := minimal(t, append(slices.Clone(inZooKeeperDefines), "hadoop.zk.timeout-ms=9000", zkAddress+"=127.0.0.1:1")...)
	shared, err := sharedStateOf(s, "c1", nil)
	if err != nil {
		t.Fatal(err)
	}
	lease, term, done, err := shared.ofPair("rm1").lease(time.Second)
	if err != nil || term != 6*time.Second {
		t.Fatalf("the term is %v (%v)", term, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if a := lease.Ask(ctx, true); a.Err == nil || a.Won {
		t.Errorf("a claim without ZooKeeper is answered %+v", a)
	}
	if err := done(); err != nil {
		t.Error(err)
	}
}

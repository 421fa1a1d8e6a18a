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
		"hadoop.zk.auth=sasl:rm:word":                             "the only scheme",
		"hadoop.zk.auth=digest:rm":                                "digest:USER:PASSWORD",
		"hadoop.zk.auth=@/nowhere":                                "hadoop.zk.auth",
		"hadoop.zk.acl=world:rwcda":                               "not scheme:id:rights",
		"hadoop.zk.acl=world:anyone:x":                            "not a right",
		"hadoop.zk.acl=digest:rm:!:r":                             "digest:USER:HASH",
		"creel.rm.data=/var/lib/creel":                            "names a journal too",
		"hadoop.zk.timeout-ms=5s":                                 "",
		"yarn.resourcemanager.zk-state-store.parent-path=rmstore": "not a path",
	} {
		wrong, why := misplacedState(minimal(t, append(slices.Clone(inZooKeeperDefines), change)...))
		if wrong != (reason != "") || !strings.Contains(why, reason) {
			t.Errorf("%s: %t %q, want %q", change, wrong, why, reason)
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

// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/settings"
)

func TestSettingsOfAStoreInZooKeeper(t *testing.T) {
	load := func(defines ...string) *settings.Settings {
		t.Helper()
		s, err := settings.Load(settings.Sources{ConfDir: t.TempDir(), Defines: defines})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	c, err := zooKeeperStore(load("creel.store.url=zk://z1,z2:2182/own/path/", "hadoop.zk.auth=digest:u:p",
		"hadoop.zk.timeout-ms=7000", "yarn.federation.state-store.heartbeat-interval-secs=10"))
	if err != nil || !slices.Equal(c.Servers.Addresses, []string{"z1:2181", "z2:2182"}) || c.Parent != "/own/path" ||
		len(c.Servers.Auth) != 1 || c.Servers.Timeout != 7*time.Second || c.HadoopLease != 30*time.Second || !c.Confirm {
		t.Errorf("the settings are read as %+v, %v", c, err)
	}
	c, err = zooKeeperStore(load("creel.store.url=zk://z1"))
	if err != nil || c.Parent != "/federationstore" || c.HadoopLease != 15*time.Minute {
		t.Errorf("the defaults are read as %+v, %v", c, err)
	}
	for want, defines := range map[string][]string{
		"no ZooKeeper server is named":    {"creel.store.url=zk:///path"},
		"it has a login or parameters":    {"creel.store.url=zk://bob:word@z1:2181"},
		"digest:USER:PASSWORD":            {"creel.store.url=zk://z1", "hadoop.zk.auth=sasl:u:p"},
		"is not scheme:id:rights":         {"creel.store.url=zk://z1", "hadoop.zk.acl=world"},
		"does not find homes that Hadoop": {"creel.store.url=zk://z1", "yarn.resourcemanager.zk-appid-node.split-index=2"},
	} {
		if err := checkStore(load(defines...)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", defines, err, want)
		}
	}
}

func TestUnusableStoreInZooKeeperIsNamed(t *testing.T) {
	s, err := settings.Load(settings.Sources{
		ConfDir: t.TempDir(), Defines: []string{"creel.store.url=zk://127.0.0.1:1/federationstore"},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, _, err = OpenStore(ctx, s)
	if !errors.Is(err, creel.ErrUnavailable) || !strings.Contains(err.Error(), "zk://127.0.0.1:1/federationstore") {
		t.Errorf("a store that does not answer: %v", err)
	}
}

func TestHadoopsStoreClassWithoutEffectIsReported(t *testing.T) {
	for _, c := range []struct {
		warned  bool
		defines []string
	}{
		{true, []string{federationClass + "=" + sqlClass, "creel.store.url=redis://one"}},
		{true, []string{federationClass + "=" + sqlClass, "creel.store.url=mysql://u@one/fed", sqlURL + "=jdbc:mysql://two/fed"}},
		{false, []string{federationClass + "=" + sqlClass, "creel.store.url=mysql://u@one/fed", sqlURL + "=jdbc:mysql://one/fed"}},
		{true, []string{federationClass + "=a.ZookeeperFederationStateStore", "creel.store.url=redis://one"}},
		{false, []string{federationClass + "=a.ZookeeperFederationStateStore", "creel.store.url=zk://one"}},
		{false, []string{"creel.store.url=redis://one"}},
	} {
		s, err := settings.Load(settings.Sources{ConfDir: t.TempDir(), Defines: c.defines})
		if err != nil {
			t.Fatal(err)
		}
		warned := slices.ContainsFunc(Warnings(s, settings.Router), func(w string) bool { return strings.Contains(w, federationClass) })
		if warned != c.warned {
			t.Errorf("%v: warned is %v", c.defines, warned)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package hadoop

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/process"
)

// Pair is an HA pair: two ResourceManagers, of which one is active. They share a store, so the second continues the
// first one's work.
type Pair struct {
	RMs  [2]*ResourceManager
	conf Conf
}

// ids are the values of yarn.resourcemanager.ha.rm-ids.
var ids = [2]string{"rm1", "rm2"}

const recovery = "org.apache.hadoop.yarn.server.resourcemanager.recovery."

// StartPair starts an HA pair and waits until one is active. With the address of a ZooKeeper they elect the active one
// and keep their state there. Without it their state is in files and the first becomes active. Activate and Retire then
// change that.
func StartPair(t testing.TB, o RM, zookeeper string) *Pair {
	t.Helper()
	shared := tempDir(t, o.Name+"-state")
	p := &Pair{conf: Conf{
		"yarn.resourcemanager.ha.enabled":                    "true",
		"yarn.resourcemanager.ha.rm-ids":                     strings.Join(ids[:], ","),
		"yarn.resourcemanager.ha.automatic-failover.enabled": strconv.FormatBool(zookeeper != ""),
		"yarn.resourcemanager.cluster-id":                    o.Name,
	}}
	store := Conf{
		"yarn.resourcemanager.store.class":        recovery + "FileSystemRMStateStore",
		"yarn.resourcemanager.fs.state-store.uri": "file://" + filepath.Join(shared, "applications"),
	}
	if zookeeper != "" {
		store = Conf{
			"yarn.resourcemanager.store.class": recovery + "ZKRMStateStore",
			"hadoop.zk.address":                zookeeper,
			"hadoop.zk.timeout-ms":             "5000",
		}
	}
	var addresses [2]Addresses
	for i, id := range ids {
		a := freeAddresses(t)
		addresses[i] = a
		for key, address := range a.Conf() {
			p.conf[key+"."+id] = address
		}
	}
	for i, id := range ids {
		dir := tempDir(t, o.Name+"-"+id)
		conf := rmConf(t, dir).With(p.conf, store, Conf{
			"yarn.resourcemanager.ha.id":            id,
			"yarn.resourcemanager.recovery.enabled": "true",
			"yarn.node-labels.fs-store.root-dir":    "file://" + filepath.Join(shared, "labels"),
			"yarn.node-attribute.fs-store.root-dir": "file://" + filepath.Join(shared, "attributes"),
		}, o.Conf)
		conf["yarn.resourcemanager.work-preserving-recovery.scheduling-wait-ms"] = "1000"
		d := launch(t, o.Name+"-"+id, dir, conf, []string{heap(o.HeapMB, 384), AddOpens},
			resourceManager, "IPC Server Responder: starting")
		p.RMs[i] = &ResourceManager{Daemon: d, Addresses: addresses[i]}
	}
	if zookeeper == "" {
		p.Activate(t, 0)
	}
	p.Active(t)
	return p
}

// Active waits until one of the running ones is active, and returns its index.
func (p *Pair) Active(t testing.TB) (which int) {
	t.Helper()
	if process.Poll(nil, func() bool {
		for i, id := range ids {
			if !p.RMs[i].Ended() {
				state := Client{Conf: p.conf}.Run(t, RMAdminCLI, "-getServiceState", id)
				if strings.HasPrefix(state.Stdout, "active") {
					which = i
					return true
				}
			}
		}
		return false
	}) != nil {
		t.Fatal("none of the pair becomes active")
	}
	return which
}

// Conf returns the pair's addresses for clients, nodes and agents.
func (p *Pair) Conf() Conf { return p.conf.With() }

// Activate makes one of them active. The other must be standby or dead.
func (p *Pair) Activate(t testing.TB, which int) {
	t.Helper()
	args := []string{"-transitionToActive"}
	if p.RMs[1-which].Ended() {
		args = append(args, "--forceactive")
	}
	p.admin(t, append(args, ids[which])...)
}

// Retire makes one of them standby. It then closes its ports, except those for administrators and the web.
func (p *Pair) Retire(t testing.TB, which int) {
	t.Helper()
	p.admin(t, "-transitionToStandby", ids[which])
}

// admin runs yarn rmadmin on the pair's own configuration.
func (p *Pair) admin(t testing.TB, args ...string) {
	t.Helper()
	Client{Conf: p.conf}.Run(t, RMAdminCLI, args...).OK(t)
}

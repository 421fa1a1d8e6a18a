// SPDX-License-Identifier: Apache-2.0

package hadoop

import (
	"path/filepath"
	"strings"
	"testing"
)

// Pair is two ResourceManagers, of which one is active: an HA pair without automatic
// failover. They share a store of files, so that the other one goes on where one ended.
type Pair struct {
	RMs  [2]*ResourceManager
	conf Conf
}

// ids are those of yarn.resourcemanager.ha.rm-ids.
var ids = [2]string{"rm1", "rm2"}

const fileStore = "org.apache.hadoop.yarn.server.resourcemanager.recovery.FileSystemRMStateStore"

// StartPair starts an HA pair and makes the first one active.
func StartPair(t testing.TB, o RM) *Pair {
	t.Helper()
	shared := tempDir(t, o.Name+"-state")
	p := &Pair{conf: Conf{
		"yarn.resourcemanager.ha.enabled":                    "true",
		"yarn.resourcemanager.ha.rm-ids":                     strings.Join(ids[:], ","),
		"yarn.resourcemanager.ha.automatic-failover.enabled": "false",
		"yarn.resourcemanager.cluster-id":                    o.Name,
	}}
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
		conf := rmConf(t, dir).With(p.conf, Conf{
			"yarn.resourcemanager.ha.id":              id,
			"yarn.resourcemanager.recovery.enabled":   "true",
			"yarn.resourcemanager.store.class":        fileStore,
			"yarn.resourcemanager.fs.state-store.uri": "file://" + filepath.Join(shared, "applications"),
			"yarn.node-labels.fs-store.root-dir":      "file://" + filepath.Join(shared, "labels"),
			"yarn.node-attribute.fs-store.root-dir":   "file://" + filepath.Join(shared, "attributes"),
		}, o.Conf)
		conf["yarn.resourcemanager.work-preserving-recovery.scheduling-wait-ms"] = "1000"
		d := launch(t, o.Name+"-"+id, dir, conf, []string{heap(o.HeapMB, 384), AddOpens},
			resourceManager, "IPC Server Responder: starting")
		p.RMs[i] = &ResourceManager{Daemon: d, Addresses: addresses[i]}
	}
	p.Activate(t, 0)
	return p
}

// Conf is where the pair is, as clients, nodes and agents read it.
func (p *Pair) Conf() Conf { return p.conf.With() }

// Activate makes one of them active; the other must be standby, or dead.
func (p *Pair) Activate(t testing.TB, which int) {
	t.Helper()
	args := []string{"-transitionToActive"}
	if p.RMs[1-which].Ended() {
		args = append(args, "--forceactive")
	}
	p.admin(t, append(args, ids[which])...)
}

// Retire makes one of them standby: it closes its ports, but for the administrators' and
// the web server's.
func (p *Pair) Retire(t testing.TB, which int) {
	t.Helper()
	p.admin(t, "-transitionToStandby", ids[which])
}

// admin is yarn rmadmin of the pair itself.
func (p *Pair) admin(t testing.TB, args ...string) {
	t.Helper()
	Client{Conf: p.conf}.Run(t, RMAdminCLI, args...).OK(t)
}

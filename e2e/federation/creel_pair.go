// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/statestore/redis/redistest"
)

// Pair is a member with two of creel's ResourceManagers.
type Pair struct {
	*Subcluster
	RMs  [2]*Daemon
	Conf hadoop.Conf // of its nodes
}

// StartPair starts a pair over a state in Redis as a member. The first is active. The caller starts proxy and node.
func (f *Federation) StartPair(t testing.TB, id string, number int, more hadoop.Conf) *Pair {
	t.Helper()
	const host = "127.0.0.1"
	p := &Pair{Subcluster: &Subcluster{ID: id, address: fmt.Sprintf("127.0.0.%d", number+1)}}
	p.Conf = hadoop.Conf{
		"yarn.resourcemanager.ha.enabled": "true", "yarn.resourcemanager.ha.rm-ids": "rm1,rm2",
		"yarn.resourcemanager.ha.automatic-failover.enabled": "true", "yarn.resourcemanager.cluster-id": id,
	}
	for i := range p.RMs {
		var at hadoop.Addresses
		for _, a := range []*string{&at.Client, &at.Scheduler, &at.Tracker, &at.Admin, &at.Web} {
			*a = net.JoinHostPort(host, strconv.Itoa(process.FreePort(t, host)))
		}
		for key, address := range at.Conf() {
			p.Conf[key+".rm"+strconv.Itoa(i+1)] = address
		}
		if i == 0 {
			p.Addresses = at
		}
	}
	redis := redistest.Start(t, "--appendonly", "yes")
	for i := range p.RMs {
		name := "rm" + strconv.Itoa(i+1)
		p.RMs[i] = start(t, name+"-"+id, "rm", f.common(t, more).With(p.Conf, hadoop.Conf{
			"yarn.resourcemanager.ha.id":            name,
			"yarn.resourcemanager.recovery.enabled": "true",
			"yarn.resourcemanager.epoch":            strconv.Itoa(number * 1000),
			"creel.rm.state.url":                    redis.URL(),
			"creel.rm.ha.lease":                     "3s",
			"creel.rm.proxy.hosts":                  "*",
		}), "--subcluster", id)
		if i == 0 {
			p.AwaitLead(t, i)
		}
	}
	return p
}

// AwaitLead waits until one of the pair leads.
func (p *Pair) AwaitLead(t testing.TB, i int) {
	t.Helper()
	p.RMs[i].Await(t, "the lead", func() bool {
		return strings.Contains(p.RMs[i].Output(), `"role":"active"`)
	})
}

// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/clients"
	"github.com/creelrm/creel/e2e/hadoop"
)

// A disturbance is a fault or change in a federation while users work with it.
type disturbance struct {
	name string
	// beside disturbs one member, again and again, until all cases are over.
	beside func(*testing.T, *Federation, *Subcluster)
}

var disturbances = []disturbance{
	{"clean", nil},
	{"killed", killed},
	{"drained", drained},
}

// disturbed runs the cases while one member after the other is disturbed. Cases that read the state of the whole
// cluster run afterwards: during an absence the answers name the absent member, which e2e/faults tests.
func (f *Federation) disturbed(t *testing.T, c *clients.Cluster, d disturbance) {
	if d.beside == nil {
		clients.Run(t, c)
		return
	}
	f.Creel(t, "policy", "set", "root", halves, "--store", f.Store)
	c.Restarts = d.name == "killed"
	c.Forgets = c.Restarts && slices.ContainsFunc(f.Subclusters, func(s *Subcluster) bool { return s.Hadoop != nil })
	// An AM whose home is away tries for as long as Hadoop's default; the kit's 20 s are for tests of errors.
	c.Conf = c.Conf.With(hadoop.Conf{"yarn.resourcemanager.connect.max-wait.ms": "900000"})
	over := make(chan struct{})
	go func() {
		defer close(over)
		work := *c
		work.Only = clients.Work(c.Only)
		clients.Run(t, &work)
	}()
	defer func() { <-over }()
	for i := 0; ; i++ {
		s := f.Subclusters[i%len(f.Subclusters)]
		apps := f.await(t, s, over)
		if len(apps) == 0 {
			if i == 0 {
				t.Errorf("no member was %s: no case was in the middle for long enough", d.name)
			}
			break
		}
		t.Logf("%s %s while %s ran there", s.ID, d.name, strings.Join(apps, ", "))
		d.beside(t, f, s)
	}
	<-over
	reads := *c
	if reads.Only = clients.Reads(c.Only); len(reads.Only) > 0 {
		t.Run("afterwards", func(t *testing.T) { clients.Run(t, &reads) })
	}
}

// await waits at least 4 s, and until applications run in the member, so that they are in the middle. It returns them,
// or none if the cases end first.
func (f *Federation) await(t *testing.T, s *Subcluster, over <-chan struct{}) (ids []string) {
	t.Helper()
	calm := time.After(4 * time.Second)
	for {
		select {
		case <-over:
			return nil
		case <-calm:
			calm = nil
		case <-time.After(100 * time.Millisecond):
		}
		if calm != nil {
			continue
		}
		var list struct{ Apps struct{ App []App } }
		if _, err := Call(t, http.MethodGet, s.Addresses.Web, "/ws/v1/cluster/apps", nil, &list); err != nil {
			continue
		}
		for _, a := range list.Apps.App {
			if a.State == "RUNNING" && a.Containers > 1 {
				ids = append(ids, a.ID)
			}
		}
		if len(ids) > 0 {
			return ids
		}
	}
}

// killed kills and restarts the member's ResourceManager.
func killed(t *testing.T, f *Federation, s *Subcluster) {
	began := time.Now()
	s.Restarted(t)
	f.Await(t, len(f.Nodes()))
	AwaitActive(t, f.RouterAddresses[0].Web, len(f.Subclusters))
	t.Logf("%s and its node are back after %.1f s", s.ID, time.Since(began).Seconds())
}

// drained drains the member until it is empty, and activates it again. Applications submitted once the drain is known
// have their home elsewhere and no container here.
func drained(t *testing.T, f *Federation, s *Subcluster) {
	began := time.Now()
	web := f.RouterAddresses[0].Web
	f.operate(t, "subcluster", "drain", s.ID, "--reason", "the table")
	AwaitActive(t, web, len(f.Subclusters)-1)
	time.Sleep(time.Second) // proxies look as often as routers do
	known := map[string]bool{}
	for _, id := range f.apps(t) {
		known[id] = true
	}
	before := f.ran()
	f.operate(t, "subcluster", "drain", s.ID, "--mode", "finish", "--timeout", "150s") // fails when something is left then
	fresh := 0
	for id, where := range f.ran() {
		if known[id] {
			continue
		}
		if _, old := before[id]; old {
			continue
		}
		fresh++
		if where[s.ID] > 0 {
			t.Errorf("%s was submitted while %s drained, and has %d containers there", id, s.ID, where[s.ID])
		}
	}
	t.Logf("%s is empty after %.1f s; %d applications began elsewhere meanwhile", s.ID, time.Since(began).Seconds(), fresh)
	f.operate(t, "subcluster", "undrain", s.ID)
	AwaitActive(t, web, len(f.Subclusters))
}

// apps returns the applications that the router lists.
func (f *Federation) apps(t *testing.T) (ids []string) {
	t.Helper()
	var list struct{ Apps struct{ App []App } }
	if _, err := Call(t, http.MethodGet, f.RouterAddresses[0].Web, "/ws/v1/cluster/apps", nil, &list); err != nil {
		t.Fatal(err)
	}
	for _, a := range list.Apps.App {
		ids = append(ids, a.ID)
	}
	return ids
}

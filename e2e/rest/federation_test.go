// SPDX-License-Identifier: Apache-2.0

package rest

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/e2e/federation"
	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/rm"
)

//go:embed testdata/federation-known.txt
var federationKnownLines string

// Three ResourceManagers behind a router answer as one that has all their nodes and
// applications: every document and every change, in the same state. What differs
// stands in testdata/federation-known.txt, each line with its reason.
func TestAFederationAnswersAsOneResourceManager(t *testing.T) {
	conf := patient.With(hadoop.Conf{
		"yarn.scheduler.maximum-allocation-mb":                            "4096",
		"yarn.resourcemanager.opportunistic-container-allocation.enabled": "true",
	})
	single := rm.Start(t, rm.Options{Volatile: true, Conf: conf})
	one := newSystem(t, "one ResourceManager", single.Process, single.Addresses)
	one.same = func(text string) string { return one.withoutIDs(strings.ReplaceAll(text, one.Web, "WEB")) }
	one.play()

	many := newFederation(t, conf)
	many.play()
	compareAll(t, one, many, requests(t, requestLines), "testdata/federation-known.txt", rules(t, federationKnownLines))
}

// newFederation starts three members with a node of the played state each. The
// applications of a queue live where the nodes are that they ask for.
func newFederation(t *testing.T, conf hadoop.Conf) *system {
	t.Helper()
	f := federation.Start(t, federation.Options{Subclusters: 3, Routers: 1, NoNodes: true, Conf: conf})
	for queue, home := range map[string]string{"root.default": "sc-1", "root.other": "sc-2"} {
		document := fmt.Sprintf(`{"home":{"policy":"weighted","weights":{%q:1}}}`, home)
		f.Creel(t, "policy", "set", queue, document, "--store", f.Store)
	}
	s := newSystem(t, "creel", f.Routers[0].Process, f.RouterAddresses[0])
	members := map[string]*federation.Subcluster{
		"127.0.0.2": f.Subclusters[0], "127.0.0.3": f.Subclusters[1], "127.0.0.4": f.Subclusters[2],
	}
	s.trackerOf = func(host string) string { return members[host].Addresses.Tracker }
	s.epochs = map[creel.ApplicationID]string{}
	s.schedulerOf = func(id creel.ApplicationID) string {
		home := f.Home(t, id.String())
		s.epochs[id] = strings.Replace(home.ID, "sc-", "_e", 1) + "000" // as StartSubcluster sets it
		return home.Addresses.Scheduler
	}
	s.same = func(text string) string {
		text = strings.ReplaceAll(text, s.Web, "WEB")
		for _, m := range f.Subclusters {
			text = strings.ReplaceAll(text, m.Addresses.Web, "WEB")
		}
		return s.withoutIDs(text)
	}
	return s
}

// epoch is what keeps container ids of different ResourceManagers apart.
var epoch = regexp.MustCompile(`container_e\d+_`)

// withoutIDs puts an application's name where its number stands in ids.
func (s *system) withoutIDs(text string) string {
	pairs := []string{}
	for name, id := range s.apps {
		number := strings.TrimPrefix(id.String(), "application_")
		pairs = append(pairs, number, "1111111111111_"+name)
	}
	return epoch.ReplaceAllString(strings.NewReplacer(pairs...).Replace(text), "container_")
}

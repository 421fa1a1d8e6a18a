// SPDX-License-Identifier: Apache-2.0

package rest

import (
	_ "embed"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/e2e/federation"
	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/rm"
	pb "github.com/creelrm/creel/internal/yarnpb"
)

//go:embed testdata/federation-known.txt
var federationKnownLines string

// Three ResourceManagers behind a router answer as one that has all their nodes and applications: every document and
// every change, in the same state. testdata/federation-known.txt lists the differences, each line with its reason.
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

// The same under node labels: queues with parts of two labels, labelled nodes in different members, and an
// application in one of them. Only reads are compared; changes are the same without labels.
func TestFederationWithLabelsAnswersAsOneResourceManager(t *testing.T) {
	conf := patient.With(hadoop.Conf{
		"yarn.node-labels.enabled":                                                 "true",
		"yarn.scheduler.capacity.root.accessible-node-labels":                      "*",
		"yarn.scheduler.capacity.root.accessible-node-labels.gpu.capacity":         "100",
		"yarn.scheduler.capacity.root.accessible-node-labels.ssd.capacity":         "100",
		"yarn.scheduler.capacity.root.default.accessible-node-labels":              "gpu,ssd",
		"yarn.scheduler.capacity.root.default.accessible-node-labels.gpu.capacity": "100",
		"yarn.scheduler.capacity.root.default.accessible-node-labels.ssd.capacity": "25",
		"yarn.scheduler.capacity.root.other.accessible-node-labels":                "ssd",
		"yarn.scheduler.capacity.root.other.accessible-node-labels.ssd.capacity":   "75",
	})
	single := rm.Start(t, rm.Options{Volatile: true, Conf: conf})
	one := newSystem(t, "one ResourceManager", single.Process, single.Addresses)
	one.same = func(text string) string { return one.withoutIDs(strings.ReplaceAll(text, one.Web, "WEB")) }
	many := newFederation(t, conf)
	for _, s := range []*system{one, many} {
		s.play()
		s.label()
	}
	// The members' labels reach the router with their next heartbeats.
	many.until("the router knows the three nodes with labels", func() bool {
		view := many.answer(t, request{"view", http.MethodGet, "/api/v1/view", ""}, "application/json")
		nodes := 0
		for path, memory := range view {
			if strings.Contains(path, "partitions") && strings.Contains(path, "total") && memory == "8192" {
				nodes++
			}
		}
		return nodes == 3
	})
	known, fields := rules(t, federationKnownLines), 0
	for _, q := range append(requests(t, requestLines), requests(t, labelRequestLines)...) {
		if q.method != http.MethodGet || !strings.HasPrefix(q.path, "/ws/") {
			continue
		}
		for _, accept := range []string{"application/json", "application/xml"} {
			where := q.name
			if strings.HasSuffix(accept, "xml") {
				where += ":xml"
			}
			a := one.answer(t, q, accept)
			compare(t, where, "testdata/federation-known.txt", known, one.name, a, many.answer(t, q, accept))
			fields += len(a)
		}
	}
	t.Logf("%d fields compared, %d rules", fields, len(known))
}

// label adds two labels to a played state, their nodes, and an application that runs on one of these.
func (s *system) label() {
	post := func(path, body string) {
		q := request{"label", http.MethodPost, "/ws/v1/cluster/" + path, body}
		if got := s.answer(s.t, q, "application/json"); got["STATUS"] != "200" {
			s.t.Fatalf("%s: %s: %v", s.name, path, got)
		}
	}
	post("add-node-labels", `{"nodeLabelInfo":[{"name":"gpu","exclusivity":true},{"name":"ssd","exclusivity":false}]}`)
	for _, n := range []struct{ host, label string }{{"127.0.0.5", "gpu"}, {"127.0.0.6", "ssd"}, {"127.0.0.7", "ssd"}} {
		s.nodes = append(s.nodes, s.addNode(n.host))
		s.heartbeats()
		post("nodes/"+n.host+":1/replace-labels?labels="+n.label, "{}")
	}
	id := s.submit("erin", "labelled", nil)
	am := s.amClient("erin", id, "amhost", "http://127.0.0.1:9/ui")
	asks := []*pb.ResourceRequestProto{ask(1, "*", 1024, 2, true)}
	asks[0].NodeLabelExpression = proto.String("gpu")
	containers, response := 0, int32(0)
	s.until("erin has two containers with the label", func() bool {
		r := must(am.Allocate(s.t.Context(), &pb.AllocateRequestProto{ResponseId: &response, Ask: asks}))(s.t)
		response, asks = r.GetResponseId(), nil
		containers += len(r.GetAllocatedContainers())
		return containers >= 2
	})
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
		"127.0.0.5": f.Subclusters[0], "127.0.0.6": f.Subclusters[1], "127.0.0.7": f.Subclusters[2],
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

// epoch matches the part that distinguishes container ids of different ResourceManagers.
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

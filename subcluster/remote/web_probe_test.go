// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster"
	"github.com/creelrm/creel/subcluster/login"
)

// Output of Hadoop 3.4.2, shortened to the fields read here and a few others.
const capacityDocument = `{"scheduler":{"schedulerInfo":{"type":"capacityScheduler","capacity":100.0,"queueName":"root","queuePath":"root",
"capacities":{"queueCapacitiesByPartition":[{"partitionName":"",
  "effectiveMinResource":{"memory":8192,"vCores":8},"effectiveMaxResource":{"memory":8192,"vCores":8}}]},
"queues":{"queue":[
 {"type":"capacitySchedulerLeafQueueInfo","queueName":"default","queuePath":"root.default","numActiveApplications":2,"numPendingApplications":3,
  "capacities":{"queueCapacitiesByPartition":[
   {"partitionName":"gpu","effectiveMinResource":{"memory":1,"vCores":1}},
   {"partitionName":"","effectiveMinResource":{"memory":4096,"vCores":4,"resourceInformations":{"resourceInformation":[
     {"name":"memory-mb","value":4096},{"name":"vcores","value":4},{"name":"yarn.io/gpu","value":2}]}},
    "effectiveMaxResource":{"memory":8192,"vCores":8}}]},
  "resourcesUsed":{"memory":1024,"vCores":1},
  "resources":{"resourceUsagesByPartition":[{"partitionName":"","used":{"memory":2048,"vCores":2},"pending":{"memory":512,"vCores":1}}]}},
 {"queueName":"teams","queues":{"queue":{"type":"capacitySchedulerLeafQueueInfo","queueName":"a","numActiveApplications":1}}}
]}}}}`

const fairDocument = `{"scheduler":{"schedulerInfo":{"type":"fairScheduler","rootQueue":{"queueName":"root",
"maxResources":{"memory":8192,"vCores":8},"usedResources":{"memory":3072,"vCores":3},"demandResources":{"memory":4096,"vCores":4},
"steadyFairResources":{"memory":8192,"vCores":8},
"childQueues":{"queue":[{"type":"fairSchedulerLeafQueueInfo","queueName":"root.b","maxResources":{"memory":4096,"vCores":4},
 "usedResources":{"memory":3072,"vCores":3},"demandResources":{"memory":4096,"vCores":4},"numActiveApps":1,"numPendingApps":4}]}}}}}`

func TestQueuesOfHadoopsSchedulersAreRead(t *testing.T) {
	show := func(queues []subcluster.QueueLoad) string {
		var b strings.Builder
		for _, q := range queues {
			fmt.Fprintf(&b, "%s guaranteed %v, used %v, pending %v, free %v, %d running, %d waiting\n",
				q.Queue, q.Capacity, q.Used, q.Pending, q.Free, q.AppsRunning, q.AppsPending)
		}
		return b.String()
	}
	r := creel.NewResource
	for name, c := range map[string]struct {
		document string
		want     []subcluster.QueueLoad
	}{
		"capacity": {capacityDocument, []subcluster.QueueLoad{
			{Queue: "root", Capacity: r(8192, 8), Pending: r(512, 1), Free: r(8192, 8), AppsRunning: 3, AppsPending: 3},
			{Queue: "root.default", Capacity: r(4096, 4).With("yarn.io/gpu", 2), Used: r(2048, 2), Pending: r(512, 1),
				Free: r(6144, 6), AppsRunning: 2, AppsPending: 3},
			{Queue: "root.teams", AppsRunning: 1},
			{Queue: "root.teams.a", AppsRunning: 1},
		}},
		"fair": {fairDocument, []subcluster.QueueLoad{
			{Queue: "root", Capacity: r(8192, 8), Used: r(3072, 3), Pending: r(1024, 1), Free: r(5120, 5), AppsRunning: 1, AppsPending: 4},
			{Queue: "root.b", Used: r(3072, 3), Pending: r(1024, 1), Free: r(1024, 1), AppsRunning: 1, AppsPending: 4},
		}},
		"fifo": {`{"scheduler":{"schedulerInfo":{"type":"fifoScheduler","capacity":1.0}}}`, nil},
	} {
		got, err := ParseScheduler([]byte(c.document))
		if err != nil || show(got) != show(c.want) {
			t.Errorf("%s: %v\n%swant\n%s", name, err, show(got), show(c.want))
		}
	}
	deep := strings.Repeat(`{"queueName":"q","queues":{"queue":`, 100) + `{"queueName":"q"}` + strings.Repeat(`}}`, 100)
	for name, document := range map[string]string{
		"no JSON":           `<html>`,
		"nothing":           `{}`,
		"another":           `{"scheduler":{"schedulerInfo":{"type":"mine"}}}`,
		"levels":            `{"scheduler":{"schedulerInfo":{"type":"capacityScheduler","queueName":"root","queues":{"queue":` + deep + `}}}}`,
		"the same twice":    `{"scheduler":{"schedulerInfo":{"type":"capacityScheduler","queueName":"root","queues":{"queue":[{"queueName":"a"},{"queueName":"a"}]}}}}`,
		"a name as none is": `{"scheduler":{"schedulerInfo":{"type":"capacityScheduler","queueName":""}}}`,
	} {
		if got, err := ParseScheduler([]byte(document)); err == nil {
			t.Errorf("%s: read as %v", name, got)
		}
	}
}

func TestWhereHadoopMakesQueuesIsRead(t *testing.T) {
	capacity := func(teams string) string {
		return `{"scheduler":{"schedulerInfo":{"type":"capacityScheduler","queueName":"root","autoCreationEligibility":"off",
			"queues":{"queue":[{"queueName":"default"},{"queueName":"teams",` + teams + `"queues":{"queue":[{"queueName":"a"}]}}]}}}}`
	}
	for document, want := range map[string]string{
		capacity(``): "[]",
		capacity(`"autoCreationEligibility":"off",`):      "[]",
		capacity(`"autoCreationEligibility":"flexible",`): "[root.teams]",
		capacity(`"autoCreationEligibility":"legacy",`):   "[root.teams]",
		capacity(`"autoCreateChildQueueEnabled":true,`):   "[root.teams]",
		`{"scheduler":{"schedulerInfo":{"type":"mine"}}}`: "[]",
		`<html>`:     "[]",
		fairDocument: "[root]",
	} {
		if got := fmt.Sprint(ParseMakes([]byte(document))); got != want {
			t.Errorf("%s: %s, want %s", document, got, want)
		}
	}
}

func FuzzParseScheduler(t *testing.F) {
	f := propertytest.Fuzz(t)
	f.Add([]byte(capacityDocument))
	f.Add([]byte(fairDocument))
	f.Fuzz(func(t *testing.T, data []byte) {
		ParseMakes(data)
		queues, err := ParseScheduler(data)
		if err != nil {
			return
		}
		load := subcluster.Load{Queues: queues}
		text, err := load.JSON()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := subcluster.ParseLoad(text); err != nil && len(text) < 4<<20 {
			t.Fatalf("what was read of %q cannot be reported: %v", data, err)
		}
	})
}

func TestHadoopResourceManagerIsReadByREST(t *testing.T) {
	var code atomic.Int64
	code.Store(http.StatusOK)
	answers := map[string]string{
		"/ws/v1/cluster/metrics":         `{"clusterMetrics":{"activeNodes":3,"availableMB":1000,"availableVirtualCores":2}}`,
		"/ws/v1/cluster/scheduler":       capacityDocument,
		"/ws/v1/cluster/get-node-labels": `{"nodeLabelInfo":[{"name":"gpu","exclusivity":true}]}`,
		"/ws/v1/cluster/nodes": `{"nodes":{"node":[{"rack":"/r1","state":"RUNNING","nodeHostName":"n1"},
			{"rack":"/r2","state":"UNHEALTHY","nodeHostName":"n2"},{"rack":"/r1","state":"LOST","nodeHostName":"n3"}]}}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept") != "application/json" {
			t.Errorf("asked for %s as %s", r.URL.Path, r.Header.Get("Accept"))
		}
		w.WriteHeader(int(code.Load()))
		fmt.Fprint(w, answers[r.URL.Path])
	}))
	w := &WebMember{Web: NewWebPort(subcluster.Addresses{Web: server.Listener.Addr().String()}, login.Login{}, nil), Nodes: func() string { return "d1" }}
	text, err := w.Probe(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	load, err := subcluster.ParseLoad(text)
	if err != nil || load.Metrics.ActiveNodes != 3 || load.Nodes != "d1" || len(load.Queues) != 4 ||
		load.Labels.Find("gpu") == nil {
		t.Errorf("%s, %v", text, err)
	}
	if q, ok := load.Queue("root.default"); !ok || !q.Free.Equal(creel.NewResource(1000, 2)) {
		t.Errorf("free in root.default is %v: more than the cluster has", q.Free)
	}
	racks, err := w.Racks(context.Background())
	if err != nil || !maps.Equal(racks, map[string]string{"n1": "/r1", "n2": "/r2"}) {
		t.Errorf("%v, %v", racks, err)
	}
	answers["/ws/v1/cluster/nodes"] = `{"nodes":null}`
	if racks, err := w.Racks(context.Background()); err != nil || len(racks) != 0 {
		t.Errorf("without nodes: %v, %v", racks, err)
	}
	answers["/ws/v1/cluster/nodes"] = `{"nodes":{"node":{"rack":"/r1","state":"RUNNING","nodeHostName":"n1"}}}`
	if racks, err := w.Racks(context.Background()); err != nil || racks["n1"] != "/r1" {
		t.Errorf("with one node: %v, %v", racks, err)
	}
	code.Store(http.StatusServiceUnavailable)
	if _, err := w.Probe(context.Background()); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("a standby: %v", err)
	}
	server.Close()
	if _, err := w.Probe(context.Background()); err == nil {
		t.Error("an answer from nobody")
	}
}

// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
)

// Hadoop's distributed shell sends placement specifications of every form, and its containers are placed accordingly.
func TestPlacementSpecificationsOfTheDistributedShell(t *testing.T) {
	rm, c := cluster(t, hadoop.Conf{
		"yarn.resourcemanager.placement-constraints.handler": "scheduler", // of more containers than there are vcores
		"yarn.scheduler.capacity.resource-calculator":        "org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator",
	})
	client := hadoop.Client{Conf: c.Conf.With(hadoop.Conf{
		"yarn.log-aggregation-enable": "true", "yarn.nodemanager.remote-app-log-dir": c.Logs,
	})}.Setup(t)
	client.Run(t, hadoop.NodeAttributesCLI, "-add", "localhost:zone=a").OK(t)
	jar := filepath.Join(hadoop.Jars(t, hadoop.V342), "hadoop-yarn-applications-distributedshell-3.4.2.jar")
	done := filepath.Join(t.TempDir(), "done") // containers run until it is there
	shell := func(spec string) hadoop.Result {
		return client.Run(t, hadoop.DistributedShell, "-jar", jar, "-master_memory", "256", "-container_memory", "128",
			"-timeout", "170000", "-placement_spec", spec,
			"-shell_command", "while [ ! -e "+done+" ]; do sleep 0.3; done")
	}
	counts := func() (out [2]map[string]int) {
		r, err := http.Get("http://" + rm.Web + "/ws/v1/cluster/nodes")
		if err != nil {
			return out // it starts
		}
		defer func() { _ = r.Body.Close() }()
		var doc struct {
			Nodes struct {
				Node []struct {
					Tags struct {
						Info []struct {
							Tag   string `json:"allocationTag"`
							Count int    `json:"allocationsCount"`
						} `json:"allocationTagInfo"`
					} `json:"allocationTags"`
				} `json:"node"`
			} `json:"nodes"`
		}
		if err := json.NewDecoder(r.Body).Decode(&doc); err != nil || len(doc.Nodes.Node) != 2 {
			return out
		}
		for i, n := range doc.Nodes.Node {
			out[i] = map[string]int{}
			for _, k := range n.Tags.Info {
				out[i][k.Tag] = k.Count
			}
		}
		return out
	}
	// Each form with the expected containers: on each node, or in total.
	forms := []struct {
		spec, tag string
		each, all int
	}{
		{"anti(2),NOTIN,NODE,anti", "anti", 1, 2},
		{"one(1),NOTIN,NODE,one", "one", -1, 1},
		{"kin(2),IN,NODE,one", "kin", -1, 2},
		{"card(4),CARDINALITY,NODE,card,0,1", "card", 2, 4},
		{"rack(1),IN,RACK,one", "rack", -1, 1},
		{"attr(1),rm.yarn.io/zone=a", "attr", -1, 1},
		{"both(2),AND(NOTIN,NODE,both:nm.yarn.io/runtime=java-17)", "both", 1, 2},
		{"any(1),OR(IN,NODE,nobody:rm.yarn.io/zone=a)", "any", -1, 1},
		{"all(2),NOTIN,NODE,all/all", "all", 1, 2},
		{"alone(2),NOTIN,NODE,not-self/anti", "alone", -1, 2},
	}
	var specs []string
	for _, f := range forms {
		specs = append(specs, f.spec)
	}
	ended := make(chan hadoop.Result, 1)
	go func() { ended <- shell(strings.Join(specs, ":")) }()
	var on [2]map[string]int
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the tags on the nodes: %v", on)
		}
	})
	placed := func() bool {
		on = counts()
		for _, f := range forms {
			if on[0][f.tag]+on[1][f.tag] != f.all {
				return false
			}
		}
		return true
	}
	rm.Await(t, "all containers of every form", placed)
	for _, f := range forms {
		if f.each >= 0 && (on[0][f.tag] != f.each || on[1][f.tag] != f.each) {
			t.Errorf("%s: %d and %d on the nodes, want %d on each", f.spec, on[0][f.tag], on[1][f.tag], f.each)
		}
	}
	for _, n := range on {
		if n["kin"] > 0 && n["one"] == 0 {
			t.Errorf("kin is where one is not: %v", on)
		}
	}
	if err := os.WriteFile(done, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if r := <-ended; !strings.Contains(r.All, "Application completed successfully") {
		t.Errorf("%s", r.All)
	}
}

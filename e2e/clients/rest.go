// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	_ "embed"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/internal/programs"
)

//go:embed rest_client.py
var restClient string

var rest = []Case{
	{"rest_get", func(t *testing.T, c *Cluster) {
		info := at(t, c.get(t, "/ws/v1/cluster/info"), "clusterInfo")
		if at(t, info, "state") != "STARTED" || at(t, info, "haState") != "ACTIVE" {
			t.Errorf("info: %v", info)
		}
		metrics := at(t, c.get(t, "/ws/v1/cluster/metrics"), "clusterMetrics")
		if n := at(t, metrics, "activeNodes"); n != float64(len(c.Nodes)) {
			t.Errorf("%v active nodes", n)
		}
		scheduler := at(t, c.get(t, "/ws/v1/cluster/scheduler"), "scheduler", "schedulerInfo")
		if at(t, scheduler, "type") != "capacityScheduler" || at(t, scheduler, "queueName") != "root" {
			t.Errorf("scheduler: %v", short(scheduler))
		}
		nodes, _ := at(t, c.get(t, "/ws/v1/cluster/nodes"), "nodes", "node").([]any)
		var ids []string
		for _, n := range nodes {
			id, _ := at(t, n, "id").(string)
			ids = append(ids, id)
		}
		says(t, strings.Join(ids, " "), c.Nodes...)
		if node := at(t, c.get(t, "/ws/v1/cluster/nodes/"+c.Nodes[0]), "node"); at(t, node, "state") != "RUNNING" {
			t.Errorf("node: %v", node)
		}
		if _, ok := c.get(t, "/ws/v1/cluster/apps")["apps"]; !ok {
			t.Error("no apps in the list of applications")
		}
	}},
	{"rest_client", func(t *testing.T, c *Cluster) {
		python, err := programs.Path("python3")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), process.Guard)
		defer cancel()
		args := []string{python, "-c", restClient, "http://" + c.Web, hadoop.OSUser(t)}
		if c.Login != nil {
			args = append(args, c.cookie(t)) // its library sends no tickets
		}
		_, all, code := process.Run(ctx, t, process.Command{
			Name: "rest_client", Dir: t.TempDir(),
			Args: args, Env: []string{"PYTHONPATH=" + hadoop.PythonPath(t)},
		})
		if code != 0 {
			t.Fatalf("exit code %d\n%s", code, all)
		}
		says(t, all, "read 8 documents", "killed application_")
	}},
}

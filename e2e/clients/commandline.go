// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"io"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
)

// commandLine is the yarn command's own classes.
var commandLine = []Case{
	{"node_list", func(t *testing.T, c *Cluster) {
		out := c.client(t).Run(t, hadoop.NodeCLI, "-list", "-all").OK(t).Stdout
		says(t, out, c.Nodes...)
		if n := strings.Count(out, "RUNNING"); n != len(c.Nodes) {
			t.Errorf("%d nodes are running:\n%s", n, out)
		}
	}},
	{"node_status", func(t *testing.T, c *Cluster) {
		out := c.client(t).Run(t, hadoop.NodeCLI, "-status", c.Nodes[0]).OK(t).Stdout
		says(
			t,
			out,
			"Node-Id : "+c.Nodes[0],
			"Rack : /default-rack",
			"Node-State : RUNNING",
			"Memory-Capacity : 4096MB",
			"CPU-Capacity : 8 vcores",
		)
	}},
	{"node_details", func(t *testing.T, c *Cluster) {
		out := c.client(t).Run(t, hadoop.NodeCLI, "-list", "-showDetails").OK(t).Stdout
		says(
			t,
			out,
			append([]string{"Configured Resources : <memory:4096, vCores:8>", "Allocated Resources : "}, c.Nodes...)...)
	}},
	{"queue_status", func(t *testing.T, c *Cluster) {
		client := c.client(t)
		out := client.Run(t, hadoop.QueueCLI, "-status", "default").OK(t).Stdout
		says(t, out, "Queue Name : default", "State : RUNNING", "Capacity : 70.00%", "Maximum Capacity : 100.00%")
		if r := client.Run(t, hadoop.QueueCLI, "-status", "nowhere"); r.Code == 0 {
			t.Errorf("a queue that is not there: exit code 0\n%s", r.All)
		} else {
			says(t, r.All, "Cannot get queue from RM by queueName = nowhere")
		}
	}},
	{"queue_list", func(t *testing.T, c *Cluster) {
		out := c.client(t).Run(t, hadoop.QueueCLI, "-list", "all").OK(t).Stdout
		says(t, out, "root.default", "root.other")
	}},
	{"app_list", func(t *testing.T, c *Cluster) {
		out := c.client(t).Run(t, hadoop.ApplicationCLI, "application", "-list", "-appStates", "ALL").OK(t).Stdout
		says(
			t,
			out,
			"Total number of applications (application-types: [], states: [NEW, NEW_SAVING, SUBMITTED, ACCEPTED, RUNNING, FINISHED, FAILED, KILLED]",
		)
		client := c.client(t)
		r := client.Run(t, hadoop.ApplicationCLI, "application", "-status", "application_1_0001")
		if r.Code == 0 {
			t.Errorf("status of an unknown application: exit code 0")
		}
		says(t, r.All, "doesn't exist")
	}},
	{"cluster_labels", func(t *testing.T, c *Cluster) {
		says(t, c.client(t).Run(t, hadoop.ClusterCLI, "-lnl").OK(t).Stdout, "Node Labels:")
	}},
	{"cluster_attrs", func(t *testing.T, c *Cluster) {
		// It prints nothing if there are none.
		if r := c.client(t).Run(t, hadoop.ClusterCLI, "-lna").OK(t); strings.Contains(r.All, "Exception") {
			t.Error(r.All)
		}
	}},
	{"nodeattributes", func(t *testing.T, c *Cluster) {
		says(t, c.client(t).Run(t, hadoop.NodeAttributesCLI, "-list").OK(t).Stdout, "Attribute", "Type")
	}},
	{"rmadmin_refresh", func(t *testing.T, c *Cluster) {
		client := c.client(t)
		client.Run(t, hadoop.RMAdminCLI, "-refreshQueues").OK(t)
		client.Run(t, hadoop.RMAdminCLI, "-refreshNodes").OK(t)
	}},
	{"rmadmin_groups", func(t *testing.T, c *Cluster) {
		user := hadoop.OSUser(t)
		says(t, c.client(t).Run(t, hadoop.RMAdminCLI, "-getGroups", user).OK(t).Stdout, user+" : ")
	}},
	{"top", func(t *testing.T, c *Cluster) {
		client := c.client(t)
		in, keys := io.Pipe()
		defer keys.Close()
		client.Stdin = in
		// It runs tput and stty itself, and they require a terminal's name.
		client.Env = append(client.Env, "TERM=dumb", "HADOOP_COMMON_HOME="+client.Dir())
		top := client.Start(t, hadoop.TopCLI, "-cols", "120", "-rows", "40", "-delay", "1")
		top.WaitLine(t, "YARN top")
		top.WaitLine(t, "Queue(s) Applications")
		says(t, top.Output(), "NodeManager(s)")
		if _, err := io.WriteString(keys, "q\n"); err != nil {
			t.Fatal(err)
		}
		if err := top.Exit(); err != nil {
			t.Errorf("top: %v\n%s", err, top.Tail(40))
		}
	}},
}

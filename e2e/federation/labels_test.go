// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
)

// Only one member has nodes with a label. Hadoop's distributed shell and MapReduce name it through a router. Their
// homes and containers are in that member, and work without the label avoids its nodes. An unknown label is rejected.
// Hadoop's tools show the labels and attributes of all members.
func TestLabelsAndConstraintsOverMembers(t *testing.T) {
	conf := hadoop.Conf{
		"yarn.node-labels.enabled":                                                 "true",
		"yarn.scheduler.capacity.root.default.accessible-node-labels":              "gpu",
		"yarn.scheduler.capacity.root.default.accessible-node-labels.gpu.capacity": "100",
		"yarn.scheduler.capacity.root.other.accessible-node-labels":                "",
		"yarn.resourcemanager.placement-constraints.handler":                       "scheduler",
		"yarn.scheduler.capacity.resource-calculator":                              "org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator",
	}
	f := Start(t, Options{Routers: 1, Conf: conf})
	plain, gpu := f.Subclusters[0], f.Subclusters[1]
	at := func(s *Subcluster) hadoop.Client {
		return hadoop.Client{Conf: s.Addresses.Conf().With(hadoop.Conf{"yarn.node-labels.enabled": "true"})}.Setup(t)
	}
	admin := at(gpu)
	admin.Run(t, hadoop.RMAdminCLI, "-addToClusterNodeLabels", "gpu(exclusive=true)").OK(t)
	admin.Run(t, hadoop.RMAdminCLI, "-replaceLabelsOnNode", gpu.Node.ID+"=gpu").OK(t)
	at(plain).Run(t, hadoop.NodeAttributesCLI, "-add", hostOf(plain.Node.ID)+":zone=a", "-failOnUnknownNodes").OK(t)
	router := "http://" + f.RouterAddresses[0].Web
	f.Routers[0].Await(t, "the label in the view", func() bool {
		return strings.Contains(f.Creel(t, "policy", "view", "--server", router), "gpu")
	})
	client := hadoop.Client{Conf: f.ClientConf(0).With(hadoop.Conf{"yarn.node-labels.enabled": "true"})}.Setup(t)

	t.Run("hadoop_tools", func(t *testing.T) {
		for _, c := range []struct {
			says, class string
			args        []string
		}{
			{"<gpu:exclusivity=true>", hadoop.ClusterCLI, []string{"--list-node-labels"}},
			{"rm.yarn.io/zone", hadoop.NodeAttributesCLI, []string{"-list"}},
			{"rm.yarn.io/zone", hadoop.NodeAttributesCLI, []string{"-nodestoattributes"}},
			{hostOf(plain.Node.ID), hadoop.NodeAttributesCLI, []string{"-attributestonodes", "-attributes", "rm.yarn.io/zone"}},
			{"Node-Labels : gpu", hadoop.NodeCLI, []string{"-status", gpu.Node.ID}},
		} {
			if out := client.Run(t, c.class, c.args...).OK(t).Stdout; !strings.Contains(out, c.says) {
				t.Errorf("%s %v says nothing of %s:\n%s", c.class, c.args, c.says, out)
			}
		}
	})

	jar := filepath.Join(hadoop.Jars(t, hadoop.V342), "hadoop-yarn-applications-distributedshell-3.4.2.jar")
	shell := func(more ...string) hadoop.Result {
		return client.Run(t, hadoop.DistributedShell, append([]string{
			"-jar", jar, "-master_memory", "256", "-container_memory", "128", "-timeout", "170000", "-shell_command", "sleep 1",
		}, more...)...)
	}
	ran := func(t *testing.T, r hadoop.Result, home *Subcluster, containers int) {
		t.Helper()
		id := applicationID.FindString(r.All)
		if !strings.Contains(r.All, "Application completed successfully") {
			t.Fatalf("%s", r.All)
		}
		if where := f.ran()[id]; f.Home(t, id) != home || where[home.ID] != containers || len(where) != 1 {
			t.Errorf("%s lives at %s and ran in %v, want all %d at %s", id, f.Home(t, id).ID, where, containers, home.ID)
		}
	}
	t.Run("shell_with_label", func(t *testing.T) {
		ran(t, shell("-num_containers", "3", "-node_label_expression", "gpu"), gpu, 4)
	})
	t.Run("shell_without", func(t *testing.T) { ran(t, shell("-num_containers", "3"), plain, 4) })
	t.Run("label_of_nobody", func(t *testing.T) {
		r := shell("-num_containers", "1", "-node_label_expression", "tpu")
		if r.Code == 0 || !strings.Contains(r.All, "InvalidLabelResourceRequestException") ||
			!strings.Contains(r.All, "no subcluster contains label= tpu: sc-2 has gpu") {
			t.Errorf("%d %s", r.Code, r.All)
		}
	})
	// The AM has no label and its maps have one: their asks go to the other member.
	t.Run("maps_with_label", func(t *testing.T) {
		job := client.Start(t, hadoop.SleepJob, "-Dmapreduce.map.node-label-expression=gpu",
			"-m", "3", "-r", "1", "-mt", "500", "-rt", "200")
		job.WaitLine(t, "Submitted application")
		id := application(t, job)
		f.finished(t, client, job)
		if where := f.ran()[id]; f.Home(t, id) != plain || where[gpu.ID] != 3 || where[plain.ID] != 2 {
			t.Errorf("%s lives at %s and ran in %v, want the AM and the reduce at sc-1, 3 maps at sc-2",
				id, f.Home(t, id).ID, where)
		}
	})
	// Constraints hold within one ResourceManager: home places all of them.
	t.Run("shell_with_constraints", func(t *testing.T) {
		ran(t, shell("-placement_spec",
			"one(1),NOTIN,NODE,one:kin(2),IN,NODE,one:card(2),CARDINALITY,NODE,card,0,1:attr(1),rm.yarn.io/zone=a"), plain, 7)
	})
}

var applicationID = regexp.MustCompile(`application_\d+_\d+`)

func hostOf(node string) string {
	host, _, _ := strings.Cut(node, ":")
	return host
}

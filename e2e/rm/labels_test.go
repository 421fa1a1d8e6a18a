// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
)

// An administrator labels a real NodeManager with Hadoop's rmadmin. Users see it with Hadoop's commands. A
// distributed shell that names the label runs only there, one without a label keeps off, and a crash of creel's
// ResourceManager loses nothing.
func TestNodeLabelsByHadoopsTools(t *testing.T) {
	rm, c := cluster(t, hadoop.Conf{
		"yarn.node-labels.enabled":                                                 "true",
		"yarn.scheduler.capacity.root.default.accessible-node-labels":              "gpu",
		"yarn.scheduler.capacity.root.default.accessible-node-labels.gpu.capacity": "100",
		"yarn.scheduler.capacity.root.other.accessible-node-labels":                "",
	})
	client := hadoop.Client{Conf: c.Conf.With(hadoop.Conf{"yarn.node-labels.enabled": "true"})}.Setup(t)
	admin := func(code int, says string, args ...string) {
		t.Helper()
		if r := client.Run(t, hadoop.RMAdminCLI, args...); (r.Code == 0) != (code == 0) || !strings.Contains(r.All, says) {
			t.Fatalf("rmadmin %s: %d, want %d and %q\n%s", strings.Join(args, " "), r.Code, code, says, r.All)
		}
	}
	admin(0, "", "-addToClusterNodeLabels", "gpu(exclusive=true),ssd(exclusive=false)")
	admin(1, "Cannot remove label=gpu, because queue=root.default is using this label",
		"-removeFromClusterNodeLabels", "gpu")
	admin(1, "Unknown Nodes", "-replaceLabelsOnNode", "nowhere:1=gpu", "-failOnUnknownNodes")
	admin(0, "", "-replaceLabelsOnNode", c.Nodes[0]+"=gpu")
	labels := func(when string) {
		t.Helper()
		out := client.Run(t, hadoop.ClusterCLI, "-lnl").OK(t).Stdout
		if !strings.Contains(out, "<gpu:exclusivity=true>") || !strings.Contains(out, "<ssd:exclusivity=false>") {
			t.Errorf("%s: %s", when, out)
		}
	}
	labels("labels of the cluster")
	if out := client.Run(t, hadoop.NodeCLI, "-status", c.Nodes[0]).OK(t).Stdout; !strings.Contains(out, "Node-Labels : gpu") {
		t.Errorf("the node's status: %s", out)
	}

	// Attributes: the nodes report one of their host, the administrator sets another.
	attributes := func(when string) {
		t.Helper()
		out := client.Run(t, hadoop.NodeAttributesCLI, "-nodestoattributes").OK(t).Stdout
		if !strings.Contains(out, "nm.yarn.io/runtime") || !strings.Contains(out, "java-17") ||
			!strings.Contains(out, "rm.yarn.io/zone") {
			t.Errorf("%s: %s", when, out)
		}
	}
	client.Run(t, hadoop.NodeAttributesCLI, "-add", "localhost:zone=a", "-failOnUnknownNodes").OK(t)
	attributes("attributes of the host")

	jar := filepath.Join(hadoop.Jars(t, hadoop.V342), "hadoop-yarn-applications-distributedshell-3.4.2.jar")
	ports := func(more ...string) map[string]int {
		t.Helper()
		dir := t.TempDir()
		r := client.Run(t, hadoop.DistributedShell, append([]string{
			"-jar", jar, "-num_containers", "3", "-master_memory", "256", "-container_memory", "128",
			"-timeout", "170000", "-shell_command", "touch " + dir + "/$NM_PORT-$CONTAINER_ID",
		}, more...)...)
		if !strings.Contains(r.All, "Application completed successfully") {
			t.Fatalf("%v: %s", more, r.All)
		}
		ran, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]int{}
		for _, f := range ran {
			port, _, _ := strings.Cut(f.Name(), "-")
			out[port]++
		}
		return out
	}
	port := func(node string) string { return node[strings.LastIndex(node, ":")+1:] }
	if got := ports("-node_label_expression", "gpu"); got[port(c.Nodes[0])] != 3 || len(got) != 1 {
		t.Errorf("containers with the label ran on %v, the node is %s", got, c.Nodes[0])
	}
	if got := ports(); got[port(c.Nodes[1])] != 3 || len(got) != 1 {
		t.Errorf("containers without a label ran on %v, the node is %s", got, c.Nodes[1])
	}

	rm.Kill9()
	rm.Restart(t)
	labels("labels after a crash")
	rm.Await(t, "the nodes", func() bool {
		return strings.Contains(client.Run(t, hadoop.NodeCLI, "-list").OK(t).Stdout, "Total Nodes:2")
	})
	attributes("attributes after a crash")
}

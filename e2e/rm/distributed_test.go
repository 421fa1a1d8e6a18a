// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/e2e/clients"
	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
)

// A real NodeManager with distributed scheduling places the opportunistic containers of its AM itself, on itself and on
// another node. creel's ResourceManager gave it the list of nodes, and knows the containers.
func TestHadoopNodePlacesOpportunisticContainers(t *testing.T) {
	const distributed = "yarn.nodemanager.distributed-scheduling.enabled"
	rm := Start(t, Options{Conf: hadoop.Conf{
		"yarn.resourcemanager.opportunistic-container-allocation.enabled": "true", distributed: "true",
		"yarn.scheduler.minimum-allocation-mb": "32",
	}})
	proxy := process.FreeAddress(t, "127.0.0.1")
	first := hadoop.StartNM(t, hadoop.NM{Name: "nm1", RM: rm.Addresses, Conf: hadoop.Conf{
		distributed: "true", "yarn.nodemanager.amrmproxy.enabled": "true", "yarn.nodemanager.amrmproxy.address": proxy,
	}})
	// It has too little memory for the AM, whose calls go to the first node.
	// A NodeManager knows the least loaded nodes by host, so the two need different ones.
	second := hadoop.StartNM(t, hadoop.NM{Name: "nm2", RM: rm.Addresses, Host: "127.0.0.2", MemoryMB: 128})
	front := rm.Addresses
	front.Scheduler = proxy
	c := &clients.Cluster{Conf: front.Conf(), Web: rm.Web, Logs: t.TempDir(), Nodes: []string{first.ID, second.ID}}

	dir := t.TempDir()
	const n = 6
	id := clients.RunShell(t, c, n, "-container_type", "OPPORTUNISTIC", "-enforce_execution_type", "-shell_command",
		fmt.Sprintf("exec 3<>/dev/tcp/$NM_HOST/$NM_HTTP_PORT; "+
			"(echo GET /ws/v1/node/containers/$CONTAINER_ID HTTP/1.0; echo) >&3; "+
			"cat <&3 >%s/$NM_PORT.$CONTAINER_ID; true", dir))
	files, err := filepath.Glob(dir + "/*.container_*" + strings.TrimPrefix(id, "application_") + "_*")
	if err != nil || len(files) != n {
		t.Fatalf("%d containers ran, want %d (%v)", len(files), n, err)
	}
	ports := map[string]int{}
	for _, file := range files {
		port, name, _ := strings.Cut(filepath.Base(file), ".")
		ports[port]++
		container, err := creel.ParseContainerID(name)
		if err != nil {
			t.Fatal(err)
		}
		if container.Sequence() < 1<<39 {
			t.Errorf("%s has a number of the ResourceManager", container)
		}
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), `"executionType":"OPPORTUNISTIC"`) {
			t.Errorf("%s: %s (%v)", container, text, err)
		}
	}
	if len(ports) != 2 {
		t.Errorf("containers ran on the nodes with ports %v, want two nodes", ports)
	}
	for _, text := range clients.PromotesShell(t, c) {
		if id, err := creel.ParseContainerID(text); err != nil || id.Sequence() < 1<<39 {
			t.Errorf("%s has a number of the ResourceManager (%v)", id, err)
		}
	}
	survive(t, rm, c)
}

// survive kills the ResourceManager while containers run that a NodeManager placed. The next one gets them from the
// node, the AM registers again, and all end well. Each node has room for all three containers: one in a queue would
// wait for the end of those that run.
func survive(t *testing.T, rm *Creel, c *clients.Cluster) {
	t.Helper()
	client, dir := hadoop.Client{Conf: c.Conf}.Setup(t), t.TempDir()
	jar := filepath.Join(hadoop.Jars(t, hadoop.V342), "hadoop-yarn-applications-distributedshell-3.4.2.jar")
	shell := client.Start(t, hadoop.DistributedShell,
		"-jar", jar, "-num_containers", "3", "-master_memory", "256", "-container_memory", "32", "-timeout", "170000",
		"-container_type", "OPPORTUNISTIC", "-shell_command",
		fmt.Sprintf("touch %[1]s/$CONTAINER_ID; while ! [ -e %[1]s/go ]; do sleep 0.2; done", dir))
	shell.Await(t, "the containers", func() bool {
		files, err := filepath.Glob(dir + "/container_*")
		return err == nil && len(files) == 3
	})
	rm.Kill9()
	rm.Restart(t)
	app := regexp.MustCompile(`application_\d+_\d+`).FindString(shell.Output())
	attempt := strings.Replace(app, "application", "appattempt", 1) + "_000001"
	shell.Await(t, "the containers at the new ResourceManager", func() bool {
		out := client.Run(t, hadoop.ApplicationCLI, "container", "-list", attempt).Stdout
		return strings.Contains(out, "Total number of containers :4") && strings.Contains(out, "_10995116277")
	})
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	shell.Await(t, "the end", func() bool { return strings.Contains(shell.Output(), "Application completed successfully") })
}

// SPDX-License-Identifier: Apache-2.0

package federation

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
)

// The proxy beside the AM of Hadoop's distributed shell places its opportunistic containers on Hadoop's NodeManagers of
// both members. They accept its tokens, each ResourceManager counts its own, and the AM hears of each end. A proxy that
// is killed while the containers run has a successor that knows them.
func TestProxyPlacesContainersOfHadoopsShell(t *testing.T) {
	f := Start(t, Options{Routers: 1, Policy: halves, Conf: hadoop.Conf{
		"yarn.nodemanager.distributed-scheduling.enabled": "true",
	}})
	c := &clients.Cluster{Conf: f.ClientConf(0), Web: f.RouterAddresses[0].Web, Nodes: f.Nodes(), Logs: f.Logs}
	dir := t.TempDir()
	const n = 8
	id := clients.RunShell(t, c, n, "-container_type", "OPPORTUNISTIC", "-enforce_execution_type", "-shell_command",
		fmt.Sprintf("exec 3<>/dev/tcp/$NM_HOST/$NM_HTTP_PORT; "+
			"(echo GET /ws/v1/node/containers/$CONTAINER_ID HTTP/1.0; echo) >&3; cat <&3 >%s/$CONTAINER_ID; true", dir))
	f.placedByProxy(t, dir, n)
	t.Logf("%s ran at %v", id, f.ran()[id])

	dir = t.TempDir()
	client := hadoop.Client{Conf: f.ClientConf(0)}.Setup(t)
	jar := filepath.Join(hadoop.Jars(t, hadoop.V342), "hadoop-yarn-applications-distributedshell-3.4.2.jar")
	shell := client.Start(t, hadoop.DistributedShell,
		"-jar", jar, "-num_containers", "4", "-master_memory", "256", "-container_memory", "128", "-timeout", "170000",
		"-container_type", "OPPORTUNISTIC", "-shell_command",
		fmt.Sprintf("touch %[1]s/$CONTAINER_ID; while ! [ -e %[1]s/go ]; do sleep 0.2; done", dir))
	shell.Await(t, "the containers", func() bool { return len(containerFiles(t, dir)) == 4 })
	home := f.Home(t, regexp.MustCompile(`application_\d+_\d+`).FindString(shell.Output()))
	home.Proxy.Restart(t)
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	shell.Await(t, "the end", func() bool { return strings.Contains(shell.Output(), "Application completed successfully") })
	if left := len(containerFiles(t, dir)); left != 4 {
		t.Errorf("%d containers ran, want 4", left)
	}

	for _, text := range clients.PromotesShell(t, c) {
		placed(t, text)
	}
	members := map[int64]int{}
	for _, text := range clients.OpportunisticMaps(t, c) {
		members[placed(t, text).Epoch()/1000]++
	}
	if len(members) != len(f.Subclusters) {
		t.Errorf("opportunistic maps ran in the members %v, want both", members)
	}
}

// placed returns the id of a container that a proxy must have placed.
func placed(t *testing.T, text string) creel.ContainerID {
	t.Helper()
	id, err := creel.ParseContainerID(text)
	if err != nil {
		t.Fatal(err)
	}
	if id.Sequence() < 1<<39 {
		t.Errorf("%s has a number of the ResourceManager", id)
	}
	return id
}

func containerFiles(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(dir + "/container_*")
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// placedByProxy checks that n opportunistic containers ran, each with an id of a proxy, in both members. Each left its
// node's report in dir.
func (f *Federation) placedByProxy(t *testing.T, dir string, n int) {
	t.Helper()
	files := containerFiles(t, dir)
	if len(files) != n {
		t.Errorf("%d containers ran, want %d", len(files), n)
	}
	members := map[int64]int{}
	for _, file := range files {
		id := placed(t, filepath.Base(file))
		members[id.Epoch()/1000]++
		if b, err := os.ReadFile(file); err != nil || !strings.Contains(string(b), `"executionType":"OPPORTUNISTIC"`) {
			t.Errorf("%s: %s (%v)", id, b, err)
		}
	}
	if len(members) != len(f.Subclusters) {
		t.Errorf("the containers ran in the members %v, want both", members)
	}
}

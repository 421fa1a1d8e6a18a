// SPDX-License-Identifier: Apache-2.0

package rm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
)

// creel's simulated nodes under Hadoop's ResourceManager register, send heartbeats, and run the containers of
// distributed shell. Its AM is a real program, so it needs a real node, which has capacity for the AM only.
func TestSimulatedNodesUnderHadoop(t *testing.T) {
	rm := hadoop.StartRM(t, hadoop.RM{})
	real := hadoop.StartNM(t, hadoop.NM{RM: rm.Addresses, MemoryMB: 1024})
	dir := t.TempDir()
	ready := filepath.Join(dir, "ready")
	conf := rm.Addresses.Conf().With(hadoop.Conf{
		"fs.defaultFS":                "file:///",
		"creel.nm.simulate.memory-mb": "512",
		"creel.nm.simulate.vcores":    "4",
		"creel.nm.simulate.run-time":  "2s",
	})
	conf.Write(t, filepath.Join(dir, "conf"))
	nm := process.Start(t, process.Command{
		Name: "creel-nm",
		Dir:  dir,
		Args: []string{
			Binary(t),
			"nm",
			"--conf",
			filepath.Join(dir, "conf"),
			"--simulate",
			"2",
			"--ready-file",
			ready,
		},
	})
	nm.Await(t, "its ready file", func() bool { _, err := os.Stat(ready); return err == nil })

	client := hadoop.Client{Conf: rm.ClientConf()}.Setup(t)
	var nodes string
	nm.Await(t, "three nodes", func() bool {
		nodes = client.Run(t, hadoop.NodeCLI, "-list").OK(t).Stdout
		return strings.Contains(nodes, "Total Nodes:3")
	})
	touched := t.TempDir()
	jar := filepath.Join(hadoop.Jars(t, hadoop.V342), "hadoop-yarn-applications-distributedshell-3.4.2.jar")
	r := client.Run(t, hadoop.DistributedShell, "-jar", jar, "-num_containers", "6", "-master_memory", "1024", "-container_memory", "128",
		"-timeout", "170000", "-shell_command", "touch "+touched+"/real").
		OK(t)
	says(t, r.All, "Application completed successfully")
	if _, err := os.Stat(filepath.Join(touched, "real")); err == nil {
		t.Errorf("a container ran on %s, which is full", real.ID)
	}
	id := application.FindString(r.All)
	says(
		t,
		client.Run(t, hadoop.ApplicationCLI, "application", "-status", id).OK(t).Stdout,
		"State : FINISHED",
		"Final-State : SUCCEEDED",
	)
	// Both nodes' room is free again.
	nm.Await(t, "the end of all containers", func() bool {
		out := client.Run(t, hadoop.NodeCLI, "-list", "-showDetails").OK(t).Stdout
		return strings.Count(out, "Allocated Resources : <memory:0, vCores:0>") == 3
	})
}

// SPDX-License-Identifier: Apache-2.0

package hadoop

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/process"
)

// nameNode is HDFS's server of names.
const nameNode = "org.apache.hadoop.hdfs.server.namenode.NameNode"

// NameNode is a real NameNode without DataNodes: it issues tokens, and its log says which calls it permitted.
type NameNode struct {
	*Daemon
	Address string // host:port of its RPC
}

// StartNameNode formats and starts a NameNode at a port of a host. Its name decides its Kerberos principal.
func StartNameNode(t testing.TB, host string, conf Conf) *NameNode {
	t.Helper()
	dir := tempDir(t, "namenode")
	_, port, _ := strings.Cut(process.FreeAddress(t, "127.0.0.1"), ":")
	n := &NameNode{Address: host + ":" + port}
	conf = common(t, dir).With(Conf{
		"fs.defaultFS":                                         "hdfs://" + n.Address,
		"dfs.namenode.rpc-address":                             n.Address,
		"dfs.namenode.http-address":                            process.FreeAddress(t, "127.0.0.1"),
		"dfs.namenode.name.dir":                                "file://" + filepath.Join(dir, "name"),
		"dfs.namenode.safemode.extension":                      "0",
		"dfs.namenode.safemode.min.datanodes":                  "0",
		"dfs.namenode.datanode.registration.ip-hostname-check": "false",
	}, conf)
	confDir := filepath.Join(dir, "conf")
	conf.Write(t, confDir)
	for _, app := range []string{"hdfs", "static"} { // its pages are not in the jars
		if err := os.MkdirAll(filepath.Join(confDir, "webapps", app), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	format := process.Spawn(t, process.Command{
		Name: "namenode-format", Dir: dir, Env: []string{"HADOOP_HOME=" + dir, "HADOOP_CONF_DIR=" + confDir},
		Args: jvm(t, ClassPath(t, V342, confDir), append(strings.Fields(Quick), heap(0, 256)), nameNode,
			"-format", "-force", "-nonInteractive"),
	})
	if err := format.Exit(); err != nil {
		t.Fatalf("formatting the NameNode: %v\n%s", err, format.Tail(40))
	}
	n.Daemon = launch(t, "namenode", dir, conf, []string{heap(0, 256), AddOpens}, nameNode, "NameNode RPC up at")
	return n
}

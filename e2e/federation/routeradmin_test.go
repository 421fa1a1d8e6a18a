// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creelrm/creel/e2e/hadoop"
)

const policiesXML = `<?xml version="1.0"?>
<federationWeights><weight>
  <queue><name>root.other</name>
    <amrmPolicyWeights>
      <subClusterIdInfo><id>sc-1</id><weight>0.4</weight></subClusterIdInfo>
      <subClusterIdInfo><id>sc-2</id><weight>0.6</weight></subClusterIdInfo>
    </amrmPolicyWeights>
    <routerPolicyWeights>
      <subClusterIdInfo><id>sc-2</id><weight>1</weight></subClusterIdInfo>
    </routerPolicyWeights>
    <headroomAlpha>1.0</headroomAlpha>
  </queue>
</weight></federationWeights>`

// routerAdmin runs all seven calls of Hadoop's yarn routeradmin, and creel's commands for the same.
func routerAdmin(t *testing.T, f *Federation) {
	client := hadoop.Client{Conf: f.ClientConf(0).With(hadoop.Conf{
		"yarn.federation.enabled":          "true",
		"yarn.federation.non-ha.enabled":   "true",
		"yarn.federation.failover.enabled": "false",
		// Without it the client names a manager that takes no weights.
		"yarn.federation.policy-manager": "org.apache.hadoop.yarn.server.federation.policies.manager.WeightedLocalityPolicyManager",
	})}
	run := func(wanted string, args ...string) {
		t.Helper()
		out := client.Run(t, hadoop.RouterCLI, args...)
		if !strings.Contains(out.All, wanted) {
			t.Errorf("routeradmin %s says nothing of %q:\n%s", strings.Join(args, " "), wanted, out.All)
		}
	}
	run("SC_RUNNING", "-subCluster", "-getSubClusters")
	run("it would register again", "-subCluster", "-deregisterSubCluster", "-sc", "sc-1")
	run("SubCluster Id", "-subCluster", "-deregisterSubCluster")
	run("SC_RUNNING", "-subCluster", "-getSubClusters") // no member was silent, so none is lost
	run("saved: root.default is at version", "-policy", "-s", "root.default;sc-1:0.7,sc-2:0.3;sc-1:0.6,sc-2:0.4;1.0")
	file := filepath.Join(t.TempDir(), "policies.xml")
	if err := os.WriteFile(file, []byte(policiesXML), 0o644); err != nil {
		t.Fatal(err)
	}
	run("saved: root.other is at version", "-policy", "-bs", "--format", "xml", "-f", file)
	run("sc-1:0.6,sc-2:0.4", "-policy", "-l", "--pageSize", "20", "--currentPage", "1", "--queue", "root.default")
	out := f.Creel(t, "policy", "list", "--server", f.RouterAddresses[0].Web, "-o", "name")
	if strings.Join(strings.Fields(out), " ") != "root.default root.other" {
		t.Errorf("creel policy list: %s", out)
	}
	run("removed: root.default", "-policy", "-d", "--queue", "root.default")
	run("removed: root.other", "-policy", "-d", "--queue", "root.other")
	id, err := NewApplication(t, f.RouterAddresses[0].Web)
	if err != nil {
		t.Fatal(err)
	}
	if err := Submit(t, f.RouterAddresses[0].Web, id, "default"); err != nil {
		t.Fatal(err)
	}
	run("run it twice", "-application", "--delete", id)
	KillApp(t, f.RouterAddresses[0].Web, id)
}

// SPDX-License-Identifier: Apache-2.0

package subcluster

import (
	"strings"
	"testing"
)

// A reader that knows older agents, which published no release, understands the versions of current ones.
func TestVersionsOfHadoop(t *testing.T) {
	for release, version := range map[string]string{
		"3.3.6": "hadoop-3.3.6", "3.5.0-SNAPSHOT": "hadoop-3.5.0-SNAPSHOT", "3.1.1.7.1.7.0-551": "hadoop-3.1.1.7.1.7.0-551",
		"": "hadoop", "N/A": "hadoop", "3 3": "hadoop", "3.3.6\nx": "hadoop", "9" + strings.Repeat("1", 64): "hadoop",
	} {
		m := Member{Version: VersionOfHadoop(release)}
		want := ""
		if version != "hadoop" {
			want = release
		}
		if m.Version != version || !m.ByAgent() || m.HadoopRelease() != want {
			t.Errorf("%q is published as %q, and read as %q, by an agent: %t", release, m.Version, m.HadoopRelease(), m.ByAgent())
		}
	}
	for _, version := range []string{"", "creel 1.0", "1.0"} {
		if m := (Member{Version: version}); m.ByAgent() || m.HadoopRelease() != "" {
			t.Errorf("%q is taken for Hadoop's", version)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package subcluster

import (
	"regexp"
	"strings"
)

// HadoopVersion is the prefix of the Version of a member that runs Hadoop's ResourceManager: an agent acts for it.
// The release follows after a dash if the ResourceManager reports it ("hadoop-3.3.6"). Older agents published no
// release.
const HadoopVersion = "hadoop"

// release matches a release, including vendors' ("3.3.6-amzn-3").
var release = regexp.MustCompile(`^[0-9][0-9A-Za-z.+_-]{0,63}$`)

// VersionOfHadoop returns the Version of a member whose ResourceManager has this Hadoop release. An invalid release
// is left out.
func VersionOfHadoop(of string) string {
	if !release.MatchString(of) {
		return HadoopVersion
	}
	return HadoopVersion + "-" + of
}

// ByAgent reports whether an agent acts for the member: its ResourceManager is Hadoop's.
func (m *Member) ByAgent() bool { return strings.HasPrefix(m.Version, HadoopVersion) }

// HadoopRelease is the release of the member's Hadoop ResourceManager, "" if it is unknown or the ResourceManager is
// creel's.
func (m *Member) HadoopRelease() string {
	of, ok := strings.CutPrefix(m.Version, HadoopVersion+"-")
	if !ok {
		return ""
	}
	return of
}

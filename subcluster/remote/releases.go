// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/creelrm/creel"
)

// ErrNotInRelease is the kind of the error for a call that the release of a member's ResourceManager lacks.
var ErrNotInRelease = fmt.Errorf("not in the member's release: %w", creel.ErrNotEnabled)

// ReleaseCall is a call with the first Hadoop release whose ResourceManager has it. Protocol and Name are those of
// router.Documents: a REST path is below /ws/v1/cluster.
type ReleaseCall struct{ Protocol, Name, Release string }

// Releases are the calls that Hadoop's ResourceManager may lack, by the classes of its releases 3.1.4, 3.2.0, 3.2.4,
// 3.3.0, 3.3.6, 3.4.0 and 3.4.2. Other calls are sent to every member: all these releases have them, or they were
// backported later (the version, format and validation of scheduler-conf).
var Releases = []ReleaseCall{
	{"REST", "GET /get-rm-node-labels", "3.4.0"},
	{"REST", "GET /scheduler-overview", "3.4.0"},
	{"REST", "GET /scheduler/bulk-activities", "3.4.0"},
	{"REST", "GET /scheduler/app-activities/{appid}", "3.3.0"},
	{"REST", "POST /nodes/{nodeId}/resource", "3.3.0"},
	{"REST", "POST /containers/{containerid}/signal/{command}", "3.3.0"},
	{"RPC", "getClusterNodeAttributes", "3.2.0"},
	{"RPC", "getAttributesToNodes", "3.2.0"},
	{"RPC", "getNodesToAttributes", "3.2.0"},
	{"RPC admin", "mapAttributesToNodes", "3.2.0"},
}

// Apache's oldest release whose calls are known, and the first major release whose calls are not.
const (
	oldestKnown  = "3.1.4"
	firstUnknown = "4.0.0"
)

// UnknownRelease returns the reason why a release of Apache's Hadoop may not answer as creel expects; "" for known
// ones, and for those of vendors.
func UnknownRelease(release string) string {
	switch {
	case !apaches.MatchString(release):
		return ""
	case slices.Compare(numbers(release), numbers(oldestKnown)) < 0:
		return "older than " + oldestKnown + ", the oldest release whose calls are known"
	case slices.Compare(numbers(release), numbers(firstUnknown)) >= 0:
		return "newer than all releases whose calls are known"
	}
	return ""
}

// apaches matches releases of Apache. Vendors' numbers are longer. Vendors add Apache's later features, so the calls
// that their releases lack are unknown.
var apaches = regexp.MustCompile(`^[0-9]{1,6}\.[0-9]{1,6}\.[0-9]{1,6}$`)

// lackedBy returns the calls that a release lacks; none if it is not Apache's.
func lackedBy(release string) (lacks []ReleaseCall) {
	if !apaches.MatchString(release) {
		return nil
	}
	for _, s := range Releases {
		if slices.Compare(numbers(release), numbers(s.Release)) < 0 {
			lacks = append(lacks, s)
		}
	}
	return lacks
}

func numbers(release string) (all []int) {
	for part := range strings.SplitSeq(release, ".") {
		n, _ := strconv.Atoi(part) // Apache's release numbers have only digits
		all = append(all, n)
	}
	return all
}

// lacking returns an error if the member's release lacks a call by RPC.
func (m *Member) lacking(protocol, method string) error {
	for i := range m.lacks {
		if s := &m.lacks[i]; s.Protocol == protocol && s.Name == method {
			return m.notInRelease(s)
		}
	}
	return nil
}

// webBase is the base of the paths of REST calls.
const webBase = "/ws/v1/cluster"

// lackingPath returns an error if the member's release lacks a call by REST.
func (m *Member) lackingPath(method, path string) error {
	if len(m.lacks) == 0 {
		return nil
	}
	path, _, _ = strings.Cut(path, "?")
	path, ok := strings.CutPrefix(path, webBase)
	for i := range m.lacks {
		if s := &m.lacks[i]; ok && s.Protocol == "REST" && isCall(s.Name, method+" "+path) {
			return m.notInRelease(s)
		}
	}
	return nil
}

// isCall reports whether a call matches a name in which {x} is any segment.
func isCall(name, call string) bool {
	segments := strings.Split(call, "/")
	for part := range strings.SplitSeq(name, "/") {
		if len(segments) == 0 || part != segments[0] && !strings.HasPrefix(part, "{") {
			return false
		}
		segments = segments[1:]
	}
	return len(segments) == 0
}

func (m *Member) notInRelease(s *ReleaseCall) error {
	return &creel.Error{
		Kind: ErrNotInRelease,
		What: s.Name + " is not in Hadoop " + m.release,
		Why:  fmt.Sprintf("subcluster %s runs that release; it needs %s or later", m.ID, s.Release),
		Try:  "ask another subcluster, or upgrade that one's ResourceManager",
	}
}

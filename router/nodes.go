// SPDX-License-Identifier: Apache-2.0

package router

import (
	"errors"
	"time"

	"github.com/creelrm/creel"
)

// ForNode selects the members that get a call about a node: the members that have it. A host may have NodeManagers in
// several. If no member has the node, all get the call: a ResourceManager accepts labels for a future node, and
// returns its own error for other calls. If a member that does not answer may have the node, no member gets the call,
// and such members are returned as silent.
func ForNode(node creel.NodeID, has []Part[bool]) (members []creel.SubclusterID, silent []MissingMember) {
	all := make([]creel.SubclusterID, len(has))
	for i, p := range has {
		all[i] = p.Member
		switch {
		case p.Err == nil && p.Value:
			members = append(members, p.Member)
		case errors.Is(p.Err, creel.ErrUnavailable):
			silent = append(silent, MissingMember{p.Member, p.Err.Error()})
		}
	}
	switch {
	case len(silent) > 0 && (len(members) == 0 || node.Port == 0): // a host may also have nodes in silent members
		return nil, silent
	case len(members) == 0:
		return all, nil
	}
	return members, nil
}

// NodeUnknown returns the error for a node that silent members may have.
func NodeUnknown(node string, silent []MissingMember) error {
	return &creel.Error{
		Kind: creel.ErrUnavailable, What: "nodeId, " + node + ", cannot be found now",
		Why: "not every subcluster answered: " + MissingText(silent),
		Try: "try again in a moment", RetryAfter: time.Second,
	}
}

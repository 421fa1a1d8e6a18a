// SPDX-License-Identifier: Apache-2.0

package router

import (
	"errors"
	"time"

	"github.com/creelrm/creel"
)

// ForNode selects the members that get a call about a node, by whether each has the node: those that have it, of
// which there are several if a host has NodeManagers in several. If none has it, all of them: a ResourceManager
// accepts labels for a future node, and rejects other calls in its own words. No member gets the call if one that
// does not answer may have the node: those are returned as silent.
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
	case len(silent) > 0 && (len(members) == 0 || node.Port == 0): // a host may have nodes there, too
		return nil, silent
	case len(members) == 0:
		return all, nil
	}
	return members, nil
}

// NodeUnknown returns the error for a node that cannot be found while members are silent that may have it.
func NodeUnknown(node string, silent []MissingMember) error {
	return &creel.Error{
		Kind: creel.ErrUnavailable, What: "nodeId, " + node + ", cannot be found now",
		Why: "not every subcluster answered: " + MissingText(silent),
		Try: "try again in a moment", RetryAfter: time.Second,
	}
}

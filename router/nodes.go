// SPDX-License-Identifier: Apache-2.0

package router

import (
	"errors"
	"time"

	"github.com/creelrm/creel"
)

// ForNode decides which members an order about a node is for, by whether each has the node: those that have it, of
// which there are several where a host has NodeManagers in several. Where none has it, all of them: a
// ResourceManager takes labels for a node that is yet to come, and refuses in its own words what it does not take.
// The order is for nobody where one that does not answer may have the node: those are returned as silent.
func ForNode(node creel.NodeID, has []Part[bool]) (members []creel.SubclusterID, silent []Missing) {
	all := make([]creel.SubclusterID, len(has))
	for i, p := range has {
		all[i] = p.Member
		switch {
		case p.Err == nil && p.Value:
			members = append(members, p.Member)
		case errors.Is(p.Err, creel.ErrUnavailable):
			silent = append(silent, Missing{p.Member, p.Err.Error()})
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

// NodeUnknown says that a node cannot be found while members are silent that may have it.
func NodeUnknown(node string, silent []Missing) error {
	return &creel.Error{
		Kind: creel.ErrUnavailable, What: "nodeId, " + node + ", cannot be found now",
		Why: "not every subcluster answered: " + MissingText(silent),
		Try: "try again in a moment", RetryAfter: time.Second,
	}
}

// SPDX-License-Identifier: Apache-2.0

package rm

import "github.com/creelrm/creel"

// Racks calls yield with the host and rack of each node that runs or may return by itself, until yield returns false.
// Unlike Nodes it takes only some ns per node.
func (r Reader) Racks(yield func(host, rack string) bool) {
	for _, n := range r.m.nodes.list {
		switch creel.NodeState(n.state) {
		case creel.NodeDecommissioned, creel.NodeShutdown, creel.NodeLost:
			continue
		}
		if !yield(n.ID().Host, n.Rack()) {
			return
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package opportunistic

import "github.com/creelrm/creel/subcluster/rm/sched/amounts"

// NodeUse is the use of a node that lends what its containers were allocated and do not use. Other types than memory
// and vcores are not lent.
type NodeUse struct {
	Total amounts.Vec
	Free  amounts.Vec // not allocated to guaranteed containers
	// MemoryMB and VCores are the measured use of the containers, or its predicted peak if that is higher.
	MemoryMB, VCores float64
	// Memory and CPU are the parts of the node up to whose use it lends.
	Memory, CPU   float64
	Pending       amounts.Vec // granted containers that use nothing yet
	Opportunistic amounts.Vec // opportunistic containers of the node, in all states
	MostLent      float64     // of Total, for opportunistic containers
}

// Room returns the size of further opportunistic containers that the node admits; no part is negative.
func Room(u *NodeUse) amounts.Vec {
	room := u.Free
	room.Sub(&u.Opportunistic)
	part := func(share, used float64, total, pending, opportunistic int64) int64 {
		lend := int64(share*float64(total)-used) - pending
		return min(lend, int64(u.MostLent*float64(total))-opportunistic)
	}
	room.Memory = part(u.Memory, u.MemoryMB, u.Total.Memory, u.Pending.Memory, u.Opportunistic.Memory)
	room.VCores = part(u.CPU, u.VCores, u.Total.VCores, u.Pending.VCores, u.Opportunistic.VCores)
	room.Max(&amounts.Vec{})
	return room
}

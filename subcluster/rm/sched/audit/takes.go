// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"slices"

	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
	"github.com/creelrm/creel/subcluster/rm/sched/places"
)

// Ask is an outstanding ask that every limit permits.
type Ask struct {
	Size         *amounts.Vec
	Avoids       func(name string) bool // a host or rack of the blacklist
	Hosts, Racks []Place                // that it names
	Strict       bool                   // it takes no others
	Level        places.Distance        // how far from them it may go now
}

// Place is a host or rack that an ask names.
type Place struct {
	Name   string
	Strict bool // of a rack: only on its named hosts
}

// Node is a node that accepts containers and is reserved for none.
type Node struct {
	Host, Rack string
	Free       amounts.Vec
}

// Takes returns the reason why the ask should have got a container on the node: "local", "rack" or "any"; "" if it
// should not.
func (k *Ask) Takes(sizes *amounts.Sizes, n *Node) string {
	if !sizes.Fits(k.Size, &n.Free) || k.Avoids(n.Host) || k.Avoids(n.Rack) {
		return ""
	}
	find := func(list []Place, name string) *Place {
		if i := slices.IndexFunc(list, func(p Place) bool { return p.Name == name }); i >= 0 {
			return &list[i]
		}
		return nil
	}
	host, rack := find(k.Hosts, n.Host), find(k.Racks, n.Rack)
	switch {
	case host != nil && (len(k.Racks) == 0 || rack != nil):
		return "local"
	case rack != nil && !rack.Strict && (len(k.Hosts) == 0 || k.Level >= places.AtRack):
		return "rack"
	case !k.Strict && (len(k.Hosts)+len(k.Racks) == 0 || k.Level >= places.AtAny):
		return "any"
	}
	return ""
}

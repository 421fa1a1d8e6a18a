// SPDX-License-Identifier: Apache-2.0

package subcluster

import (
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel"
)

// Policy is one version of the policy document of one queue. The document is opaque here; package policies parses it.
type Policy struct {
	Queue creel.QueuePath `json:"queue"`
	// Version rises with each write of any queue and never falls, even if a store lost its last writes. It is the
	// larger of the last version plus one and the store's clock in ms.
	Version  int64     `json:"version"`
	Document []byte    `json:"document,omitempty"` // empty: removed, the parent's policy applies
	Author   string    `json:"author,omitempty"`
	Comment  string    `json:"comment,omitempty"`
	Time     time.Time `json:"time"` // store's clock
}

// Policies is an immutable set of the policies in force, at most one per queue.
type Policies struct {
	Version int64 // of the newest write, 0 for none
	list    []Policy
	index   map[creel.QueuePath]int
}

// NewPolicies makes a set of the latest versions. A policy with an empty document counts for the version, but is not
// in force.
func NewPolicies(latest []Policy) Policies {
	p := Policies{index: make(map[creel.QueuePath]int, len(latest))}
	for _, l := range latest {
		p.Version = max(p.Version, l.Version)
		if len(l.Document) > 0 {
			p.list = append(p.list, l)
		}
	}
	slices.SortFunc(p.list, func(a, b Policy) int { return strings.Compare(string(a.Queue), string(b.Queue)) })
	for i, l := range p.list {
		p.index[l.Queue] = i
	}
	return p
}

// All returns the policies in force, sorted by queue. It must not be changed.
func (p *Policies) All() []Policy { return p.list }

// At returns the policy set at exactly this queue.
func (p *Policies) At(q creel.QueuePath) (Policy, bool) {
	i, ok := p.index[q]
	if !ok {
		return Policy{}, false
	}
	return p.list[i], true
}

// For returns the policy that applies to a queue: its own, else the nearest ancestor's, else that of "root", else
// that of "*".
func (p *Policies) For(q creel.QueuePath) (Policy, bool) {
	for at := q; at != ""; at = at.Parent() {
		if i, ok := p.index[at]; ok {
			return p.list[i], true
		}
	}
	for _, last := range []creel.QueuePath{creel.RootQueue, "*"} {
		if i, ok := p.index[last]; ok {
			return p.list[i], true
		}
	}
	return Policy{}, false
}

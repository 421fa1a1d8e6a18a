// SPDX-License-Identifier: Apache-2.0

package subcluster

import (
	"bytes"

	"github.com/creelrm/creel"
)

// LooksBetween is the number of checks between two heartbeats. A check decides whether the load has changed so much
// that the next heartbeat must be sent early. A member sends at most ReportsBetween early ones in that time, so that
// a change after a quiet period is sent at the next check.
const (
	LooksBetween   = 20
	ReportsBetween = 4
)

// Reporter makes the heartbeats of one epoch of a member; it leaves out data that the store already has. It has one
// owner at a time.
type Reporter struct {
	ID     creel.SubclusterID
	Epoch  int64
	Signer *Signer // of loads and their parts; nil: they are not signed

	sequence int64             // of loads sent
	load     []byte            // last load sent to the store, nil if unknown
	rows     map[string]string // its parts
	unsent   int               // heartbeats without the load since
}

// repeatLoad is the number of heartbeats after which an unchanged load is sent again, because a store that failed
// over may have lost it.
const repeatLoad = 10

// Next returns the heartbeat that reports a load. After a failure, call Lost.
func (r *Reporter) Next(load []byte) Heartbeat {
	b := Heartbeat{ID: r.ID, Epoch: r.Epoch}
	if r.unsent++; r.load != nil && r.unsent < repeatLoad && bytes.Equal(load, r.load) {
		return b
	}
	cut, err := Cut(load)
	if err != nil {
		cut = nil // it is read whole, by readers that can report the error
	}
	rows := make(map[string]string, len(cut))
	for _, p := range cut {
		rows[p.Leaf] = string(p.Text)
	}
	b.AllParts = r.load == nil || r.unsent >= repeatLoad || !sameKeys(rows, r.rows)
	for _, p := range cut {
		if b.AllParts || p.Leaf == "" || r.rows[p.Leaf] != rows[p.Leaf] {
			b.Parts = append(b.Parts, p)
		}
	}
	b.Load = load
	if r.Signer != nil {
		r.sequence++
		b.Load = r.Signer.Load(r.ID, r.Epoch, r.sequence, load)
		for i := range b.Parts {
			b.Parts[i].Text = r.Signer.Part(r.ID, r.Epoch, r.sequence, b.Parts[i].Text)
		}
	}
	r.load, r.rows, r.unsent = bytes.Clone(load), rows, 0
	return b
}

// Lost records that the store may lack the last heartbeat, so that the next one repeats the whole load.
func (r *Reporter) Lost() { r.load = nil }

func sameKeys(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k := range a {
		if _, ok := b[k]; !ok {
			return false
		}
	}
	return true
}

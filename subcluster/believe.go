// SPDX-License-Identifier: Apache-2.0

package subcluster

import (
	"slices"

	"github.com/creelrm/creel"
)

// Believer believes what was signed under the cluster's secret alone, from one read of the
// store to the next: a member that it believed before stays as it was, one that it never
// did is not there. It has one owner at a time.
type Believer struct {
	signer *Signer
	good   map[creel.SubclusterID]*good
}

// good is what was last believed of a member.
type good struct {
	member   Member
	load     string
	parsed   *Load
	sequence int64
}

// NewBeliever makes a Believer that has believed nobody.
func NewBeliever(signer *Signer) *Believer {
	return &Believer{signer: signer, good: map[creel.SubclusterID]*good{}}
}

// Believe leaves out of records what was not signed, and returns the members of which
// something was refused. What has not changed since the last call is not checked again.
func (b *Believer) Believe(records Records) (Records, []creel.SubclusterID) {
	var refused []creel.SubclusterID
	believed := make([]Record, 0, len(records.Members))
	for i := range records.Members {
		record := records.Members[i]
		member, load := b.believe(&record)
		if !member || !load {
			refused = append(refused, record.ID)
		}
		if b.good[record.ID] != nil {
			believed = append(believed, record)
		}
	}
	for id := range b.good {
		if !slices.ContainsFunc(believed, func(m Record) bool { return m.ID == id }) {
			delete(b.good, id) // it was removed
		}
	}
	records.Members = believed
	return records, refused
}

// believe replaces in a record what was not signed by what was before, and
// reports what it found of its two parts.
func (b *Believer) believe(record *Record) (member, load bool) {
	known := b.good[record.ID]
	if known == nil || record.Member != known.member {
		member = b.signer.GoodMember(&record.Member) && (known == nil || record.Epoch >= known.member.Epoch)
		switch {
		case !member && known == nil:
			return false, true
		case !member:
			record.Member = known.member
		case known == nil || record.Epoch != known.member.Epoch:
			known = &good{member: record.Member}
			b.good[record.ID] = known
		default:
			known.member = record.Member
		}
	} else {
		member = true
	}
	if record.Load == "" || record.Load == known.load {
		return member, true
	}
	sequence, load := b.signer.GoodLoad(record.ID, record.Epoch, record.Load)
	if load = load && sequence > known.sequence; load {
		known.load, known.parsed, known.sequence = record.Load, record.Parsed, sequence
	} else {
		record.Load, record.Parsed = known.load, known.parsed
	}
	return member, load
}

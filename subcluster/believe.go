// SPDX-License-Identifier: Apache-2.0

package subcluster

import (
	"maps"
	"slices"

	"github.com/creelrm/creel"
)

// Believer filters member records from one read of the store to the next. It accepts only records signed with the
// cluster's secret, of the latest epoch that it or the store has seen. If it accepted a member before, the old record
// stays; otherwise the member is left out. It has one owner at a time.
type Believer struct {
	signer   *Signer
	accepted map[creel.SubclusterID]*acceptedRecord
}

// acceptedRecord is a member's last accepted record.
type acceptedRecord struct {
	member    Member
	load      string
	parsed    *Load
	sequence  int64            // of the heartbeat that had the load, or its head
	sequences map[string]int64 // of the heartbeats that had its rows, by leaf name
}

// NewBeliever makes a Believer that has accepted no member.
func NewBeliever(signer *Signer) *Believer {
	return &Believer{signer: signer, accepted: map[creel.SubclusterID]*acceptedRecord{}}
}

// Believe removes unsigned and superseded data from records. It returns the members with rejected data. Records
// unchanged since the last call are not checked again.
func (b *Believer) Believe(records Records) (Records, []creel.SubclusterID) {
	var refused []creel.SubclusterID
	believed := make([]Record, 0, len(records.Members))
	for i := range records.Members {
		record := records.Members[i]
		member, load := b.believe(&record)
		if !member || !load {
			refused = append(refused, record.ID)
		}
		if b.accepted[record.ID] != nil {
			believed = append(believed, record)
		}
	}
	for id := range b.accepted {
		if !slices.ContainsFunc(believed, func(m Record) bool { return m.ID == id }) {
			delete(b.accepted, id) // the member was removed
		}
	}
	records.Members = believed
	return records, refused
}

// believe replaces rejected parts of a record by earlier ones, and reports which of the two parts was rejected.
func (b *Believer) believe(record *Record) (member, load bool) {
	known := b.accepted[record.ID]
	if known == nil || record.Superseded || record.Member != known.member {
		member = b.signer.GoodMember(&record.Member) &&
			!record.Superseded && (known == nil || record.Epoch >= known.member.Epoch)
		switch {
		case !member && known == nil:
			return false, true
		case !member:
			record.Member = known.member
		case known == nil || record.Epoch != known.member.Epoch:
			known = &acceptedRecord{member: record.Member}
			b.accepted[record.ID] = known
		default:
			known.member = record.Member
		}
	} else {
		member = true
	}
	if record.Load == "" || record.Load == known.load {
		return member, true
	}
	if load = b.signed(record, known); load {
		known.load, known.parsed = record.Load, record.Parsed
	} else {
		record.Load, record.Parsed = known.load, known.parsed
	}
	return member, load
}

// signed reports whether a load, or each part of it, was signed and is not older than the last accepted one.
func (b *Believer) signed(record *Record, known *acceptedRecord) bool {
	if !inParts(record.Load) {
		sequence, ok := b.signer.GoodLoad(record.ID, record.Epoch, record.Load)
		if ok = ok && sequence >= known.sequence; ok {
			known.sequence = sequence
		}
		return ok
	}
	sequences, ok := b.signer.GoodParts(record.ID, record.Epoch, record.Load)
	if !ok || sequences[""] < known.sequence {
		return false
	}
	for leaf, sequence := range sequences {
		if sequence < known.sequences[leaf] {
			return false
		}
	}
	known.sequence = sequences[""]
	if known.sequences == nil {
		known.sequences = map[string]int64{}
	}
	maps.Copy(known.sequences, sequences)
	return true
}

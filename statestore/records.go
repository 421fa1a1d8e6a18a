// SPDX-License-Identifier: Apache-2.0

package statestore

import (
	"encoding/json"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// Records that are stored as one text are JSON, so that redis-cli shows them; values that a script compares are stored
// beside the text. Each parser rejects the same values as the matching check, so that a damaged record leads to an
// error, not to a wrong decision.

// Unreadable returns the error for stored text that cannot be read.
func Unreadable(what string, err error) error {
	return failf(
		creel.ErrInvalidRequest,
		"another program wrote the store; restore it or remove the record",
		what+" in the state store cannot be read",
		"%v",
		err,
	)
}

// EncodeMember writes the argument of Register.
func EncodeMember(m subcluster.Member) ([]byte, error) { return json.Marshal(m) }

// ParseMember reads the output of EncodeMember.
func ParseMember(data []byte) (subcluster.Member, error) {
	var m subcluster.Member
	if err := json.Unmarshal(data, &m); err != nil {
		return m, Unreadable("a member", err)
	}
	if err := m.Validate(); err != nil {
		return m, Unreadable("a member", err)
	}
	return m, nil
}

// EncodeUAMRecord writes a UAM record. Its revision is stored beside it.
func EncodeUAMRecord(s UAMRecord) ([]byte, error) {
	s.Revision = 0
	return json.Marshal(s)
}

// ParseUAMRecord reads the output of EncodeUAMRecord.
func ParseUAMRecord(data []byte) (UAMRecord, error) {
	var s UAMRecord
	if err := json.Unmarshal(data, &s); err != nil {
		return s, Unreadable("a UAM record", err)
	}
	if err := CheckUAMRecord(&s); err != nil {
		return s, Unreadable("a UAM record", err)
	}
	return s, nil
}

// EncodePolicy writes the fields of a policy that its writer sets.
func EncodePolicy(w PolicyWrite) ([]byte, error) {
	return json.Marshal(subcluster.Policy{Queue: w.Queue, Document: w.Document, Author: w.Author, Comment: w.Comment})
}

// ParsePolicy reads the output of EncodePolicy; version and time are stored beside it.
func ParsePolicy(data []byte) (subcluster.Policy, error) {
	var p subcluster.Policy
	if err := json.Unmarshal(data, &p); err != nil {
		return p, Unreadable("a policy", err)
	}
	w := PolicyWrite{Queue: p.Queue, Document: p.Document, Author: p.Author, Comment: p.Comment}
	if err := CheckPolicy(&w, nil); err != nil {
		return p, Unreadable("a policy", err)
	}
	return p, nil
}

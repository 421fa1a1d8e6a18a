// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/subcluster"
)

// Table has the parsed documents of a view. It is immutable.
type Table struct {
	set    subcluster.Policies
	parsed map[creel.QueuePath]entry
	bad    []string
	last   Policy // for queues that no document covers
}

type entry struct {
	version int64
	policy  Policy
}

// EmptyTable returns a table without documents: last applies to every queue. In tables that NewTable makes from it,
// last applies to every queue that no document covers.
func EmptyTable(last Policy) *Table { return &Table{last: last} }

// NewTable parses the documents of a view. It reuses documents that previous has parsed. If a document is invalid,
// the queue's last valid one stays in force, or else the parent queue's, and Bad reports the document. previous may
// be nil. If nothing has changed, NewTable returns previous.
func NewTable(previous *Table, set subcluster.Policies) *Table {
	if previous != nil && previous.set.Version == set.Version {
		return previous
	}
	b := &Table{set: set, parsed: make(map[creel.QueuePath]entry, len(set.All())), last: Default()}
	if previous != nil {
		b.last = previous.last
	}
	for _, doc := range set.All() {
		var before entry
		ok := false
		if previous != nil {
			before, ok = previous.parsed[doc.Queue]
		}
		if ok && before.version == doc.Version {
			b.parsed[doc.Queue] = before
			continue
		}
		p, err := Parse(doc.Document)
		switch {
		case err == nil:
			p.version, p.of = doc.Version, doc.Queue
			b.parsed[doc.Queue] = entry{doc.Version, p}
		case ok:
			b.parsed[doc.Queue] = before
			b.bad = append(
				b.bad,
				fmt.Sprintf(
					"queue %s, version %d: %v; version %d stays in force",
					doc.Queue,
					doc.Version,
					err,
					before.version,
				),
			)
		default:
			b.bad = append(
				b.bad,
				fmt.Sprintf("queue %s, version %d: %v; the one above applies", doc.Queue, doc.Version, err),
			)
		}
	}
	return b
}

// For returns the policy that applies to a queue, and the queue of its document. The document is the queue's own,
// else the nearest ancestor's, else that of "root", else that of "*". Without a document it returns the table's last
// resort and "". A bare name is also looked up below root, since clients may send "default" for "root.default".
func (b *Table) For(q creel.QueuePath) (Policy, creel.QueuePath) {
	if b == nil {
		return Default(), ""
	}
	if q != "" && !q.IsFull() {
		if e, ok := b.parsed[q]; ok {
			return e.policy, q
		}
		q = creel.RootQueue.Child(string(q))
	}
	for at := q; at != ""; at = at.Parent() {
		if e, ok := b.parsed[at]; ok {
			return e.policy, at
		}
	}
	for _, last := range []creel.QueuePath{creel.RootQueue, "*"} {
		if e, ok := b.parsed[last]; ok {
			return e.policy, last
		}
	}
	return b.last, ""
}

// Bad returns a text for each invalid document, with the reason, sorted by queue.
func (b *Table) Bad() []string {
	if b == nil {
		return nil
	}
	return b.bad
}

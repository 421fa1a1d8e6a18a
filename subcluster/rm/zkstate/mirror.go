// SPDX-License-Identifier: Apache-2.0

package zkstate

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/creelrm/creel/subcluster/rm/state"
)

// limits keep the log short.
type limits struct {
	nodeBytes    int // of a node, at most
	requestBytes int // of a node and the changes of records in one request, about, at most
	slackBytes   int // outdated bytes that are never worth a repetition
	manyNodes    int // more than these are joined, if they are small
	smallNode    int // bytes
	repeatBytes  int // live bytes that a group repeats, about
	repeatGroups int // groups that a group replaces, at most
}

// standard leaves room in a request, which ZooKeeper limits to 1 MiB.
var standard = limits{
	nodeBytes: 512 << 10, requestBytes: 768 << 10, slackBytes: 1 << 20, manyNodes: 1000, smallNode: 64 << 10,
	repeatBytes: 128 << 10, repeatGroups: 200,
}

// The first byte of a node of the log.
const (
	lastOfGroup = 0
	moreFollow  = 1
)

// mirror is a copy of the entries after a node of the log.
type mirror struct {
	made    int64 // the transaction that created CreelState
	next    int64 // number of the next node to read
	partial []byte
	since   int64 // number of the first node in partial
	entries map[string]entry
	groups  []group // from the oldest
	bytes   int     // of all groups
	live    int     // bytes of the entries, if each were one operation
}

type entry struct {
	value string
	group int64 // first node of the group that wrote it
}

// group is a group in the log.
type group struct {
	first, last int64
	bytes       int
	keys        []string // that it set
}

// newMirror makes a copy that has read nothing.
func newMirror(made int64, h head) *mirror {
	return &mirror{made: made, next: h.First, entries: map[string]entry{}}
}

// continues reports whether the copy can be brought up to a head by the nodes that are left.
func (m *mirror) continues(made int64, h head) bool {
	return m != nil && m.made == made && h.First <= m.next && m.next <= h.Last+1
}

// opBytes is the size of an operation in the log, about.
func opBytes(key, value string) int { return len(key) + len(value) + 6 }

// get implements Entries.
func (m *mirror) get(key string) (value string, found bool) {
	e, found := m.entries[key]
	return e.value, found
}

// add reads the next node.
func (m *mirror) add(node []byte) error {
	if len(node) == 0 || node[0] > moreFollow {
		return fmt.Errorf("node %d of the log is damaged", m.next)
	}
	if len(m.partial) == 0 {
		m.since = m.next
	}
	m.partial = append(m.partial, node[1:]...)
	m.next++
	if node[0] == moreFollow {
		return nil
	}
	ops := m.partial
	m.partial = nil
	return m.apply(group{first: m.since, last: m.next - 1, bytes: len(ops)}, ops)
}

// apply adds a group with its operations.
func (m *mirror) apply(g group, ops []byte) error {
	err := state.EachOp(ops, func(o state.Op) {
		key := string(o.Key)
		if old, ok := m.entries[key]; ok {
			m.live -= opBytes(key, old.value)
			delete(m.entries, key)
		}
		if !o.Delete {
			value := string(o.Value)
			m.entries[key] = entry{value, g.first}
			m.live += opBytes(key, value)
			g.keys = append(g.keys, key)
		}
	})
	m.groups = append(m.groups, g)
	m.bytes += g.bytes
	return err
}

// trim forgets the groups before a node. Later groups have repeated their live entries.
func (m *mirror) trim(first int64) {
	for len(m.groups) > 0 && m.groups[0].first < first {
		m.bytes -= m.groups[0].bytes
		m.groups = m.groups[1:]
	}
}

// outdated returns the operations that repeat the live entries of the oldest groups, if the log is too long, and the
// first node that stays.
func (m *mirror) outdated(max limits) (ops []byte, first int64) {
	if len(m.groups) == 0 {
		return nil, m.next
	}
	first = m.groups[0].first
	nodes := int(m.next - first)
	if m.bytes <= 2*m.live+max.slackBytes && (nodes <= max.manyNodes || m.bytes >= nodes*max.smallNode) {
		return nil, first
	}
	for _, g := range m.groups[:min(len(m.groups), max.repeatGroups)] {
		if len(ops) >= max.repeatBytes {
			break
		}
		repeated := map[string]bool{}
		for _, key := range g.keys {
			if e, ok := m.entries[key]; ok && e.group == g.first && !repeated[key] {
				repeated[key] = true
				ops = state.AppendPut(ops, key, []byte(e.value))
			}
		}
		first = g.last + 1
	}
	return ops, first
}

// readAtOnce limits the nodes that are read at the same time.
const readAtOnce = 64

// read brings the copy up to a head.
func (m *mirror) read(ctx context.Context, t tree, p paths, h head) error {
	for m.next <= h.Last {
		nodes := make([][]byte, min(h.Last-m.next+1, readAtOnce))
		errs := make([]error, len(nodes))
		var wg sync.WaitGroup
		for i := range nodes {
			path := p.node(m.next + int64(i))
			wg.Go(func() {
				errs[i] = repeat(ctx, func() (err error) {
					nodes[i], _, err = t.get(ctx, path)
					return err
				})
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
		for _, node := range nodes {
			if err := m.add(node); err != nil {
				return err
			}
		}
	}
	m.trim(h.First)
	return nil
}

// split cuts the operations of a group into nodes of at most size bytes.
func split(ops []byte, size int) (nodes [][]byte) {
	size-- // for the first byte
	for len(ops) > size {
		nodes = append(nodes, append([]byte{moreFollow}, ops[:size]...))
		ops = ops[size:]
	}
	return append(nodes, append([]byte{lastOfGroup}, ops...))
}

// SPDX-License-Identifier: Apache-2.0

package opportunistic

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/creelrm/creel/subcluster/levels"
	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// Request is one entry of an attempt's asks, as in YARN's ResourceRequest: the number of containers still wanted for
// (Priority, AllocationRequestID, Size, Name).
type Request struct {
	Priority            int32
	AllocationRequestID int64
	Size                *amounts.Size
	Name                string // host, rack, or "" for any place
	Count               int32
	Strict              bool   // relax_locality = false
	Label               string // only that of the entry for any place counts
}

// Asks are the outstanding asks of an attempt. The zero value is empty.
type Asks struct {
	list []*ask // by priority, allocation request id and size
}

// ask is the number of containers wanted at one key.
type ask struct {
	priority int32
	alloc    int64
	size     *amounts.Size
	label    string
	levels.Ask
	byName map[string]*levels.Place
	asked  int64 // time of the last request that raised the count, ns
}

func (w *ask) compare(r *Request) int {
	return cmp.Or(cmp.Compare(w.priority, r.Priority), cmp.Compare(w.alloc, r.AllocationRequestID),
		cmp.Compare(w.size.Number, r.Size.Number))
}

// Set replaces the entry with the request's key and place. now is in ns.
func (a *Asks) Set(r *Request, now int64) {
	i, found := slices.BinarySearchFunc(a.list, r, (*ask).compare)
	if !found {
		if r.Count <= 0 {
			return
		}
		w := &ask{priority: r.Priority, alloc: r.AllocationRequestID, size: r.Size}
		a.list = slices.Insert(a.list, i, w)
	}
	w := a.list[i]
	switch {
	case r.Name != "":
		w.name(r)
	case r.Count <= 0:
		a.list = slices.Delete(a.list, i, i+1) // with its names
	default:
		if r.Count > w.Count {
			w.asked = now
		}
		w.Count, w.Strict, w.label = r.Count, r.Strict, r.Label
	}
}

// name sets the number of containers at a named place; 0 removes it.
func (w *ask) name(r *Request) {
	p := w.byName[r.Name]
	switch {
	case p != nil && r.Count <= 0:
		w.forget(p)
	case p != nil:
		p.Count, p.Strict = r.Count, r.Strict
	case r.Count > 0:
		if w.byName == nil {
			w.byName = map[string]*levels.Place{}
		}
		p = &levels.Place{Name: r.Name, Count: r.Count, Strict: r.Strict}
		w.byName[r.Name] = p
		w.Places = append(w.Places, p)
	}
}

func (w *ask) forget(p *levels.Place) {
	delete(w.byName, p.Name)
	i := slices.Index(w.Places, p)
	w.Places = slices.Delete(w.Places, i, i+1)
}

// Waiting reports whether a container is wanted.
func (a *Asks) Waiting() bool {
	return slices.ContainsFunc(a.list, func(w *ask) bool { return w.Count > 0 })
}

// Each calls yield with every entry: for each key, the entry for any place first.
func (a *Asks) Each(yield func(*Request) bool) {
	for _, w := range a.list {
		r := Request{
			Priority: w.priority, AllocationRequestID: w.alloc, Size: w.size,
			Count: w.Count, Strict: w.Strict, Label: w.label,
		}
		if !yield(&r) {
			return
		}
		for _, p := range w.Places {
			r.Name, r.Count, r.Strict = p.Name, p.Count, p.Strict
			if !yield(&r) {
				return
			}
		}
	}
}

// AppendState appends the asks as text.
func (a *Asks) AppendState(b []byte) []byte {
	for r := range a.Each {
		b = fmt.Appendf(b, "  opportunistic %d/%d %v at %q: %d strict=%v label=%q\n",
			r.Priority, r.AllocationRequestID, r.Size.V, r.Name, r.Count, r.Strict, r.Label)
	}
	return b
}

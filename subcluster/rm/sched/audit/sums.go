// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"strings"

	"github.com/creelrm/creel/subcluster/rm/sched/amounts"
)

// Sums are the entries of an account.
type Sums struct {
	Used, Held, Pending, AM amounts.Vec // by containers, reservations, asks, and containers of AMs
	Containers              int32
	Asked                   int64 // containers of Pending
	Apps, Running, Waiting  int   // applications; those that are activated; those with asks in the order of service
	Begun                   int32 // applications that have had a container
}

// Add adds the entries of a part.
func (s *Sums) Add(of *Sums) {
	s.Used.Add(&of.Used)
	s.Held.Add(&of.Held)
	s.Pending.Add(&of.Pending)
	s.AM.Add(&of.AM)
	s.Containers += of.Containers
	s.Asked += of.Asked
	s.Apps += of.Apps
	s.Running += of.Running
	s.Waiting += of.Waiting
	s.Begun += of.Begun
}

// Entries are a set of entries of an account.
type Entries uint16

// Entries of an account, under the names of the fields of Sums.
const (
	Used Entries = 1 << iota
	Held
	Pending
	AM
	Containers
	Asked
	Apps
	Running
	Waiting
	Begun
)

// Differ lists the entries, among the given ones, in which the books differ from the truth: "used A, in truth B".
func Differ(books, truth *Sums, among Entries) string {
	var wrong []string
	amount := func(e Entries, name string, a, b *amounts.Vec) {
		if among&e != 0 && !a.Is(b) {
			wrong = append(wrong, fmt.Sprintf("%s %v, in truth %v", name, *a, *b))
		}
	}
	number := func(e Entries, name string, a, b int64) {
		if among&e != 0 && a != b {
			wrong = append(wrong, fmt.Sprintf("%s %d, in truth %d", name, a, b))
		}
	}
	amount(Used, "used", &books.Used, &truth.Used)
	amount(Held, "held", &books.Held, &truth.Held)
	amount(Pending, "pending", &books.Pending, &truth.Pending)
	amount(AM, "used by AMs", &books.AM, &truth.AM)
	number(Containers, "containers", int64(books.Containers), int64(truth.Containers))
	number(Asked, "asked for", books.Asked, truth.Asked)
	number(Apps, "applications", int64(books.Apps), int64(truth.Apps))
	number(Running, "running", int64(books.Running), int64(truth.Running))
	number(Waiting, "waiting", int64(books.Waiting), int64(truth.Waiting))
	number(Begun, "begun", int64(books.Begun), int64(truth.Begun))
	return strings.Join(wrong, "; ")
}

// Ledger adds up the truth by owner, such as a queue. Make it with make.
type Ledger[K comparable] map[K]*Sums

// Add adds entries to those of an owner.
func (l Ledger[K]) Add(owner K, s *Sums) {
	of := l[owner]
	if of == nil {
		of = &Sums{}
		l[owner] = of
	}
	of.Add(s)
}

// Of returns the entries of an owner, zero if none were added.
func (l Ledger[K]) Of(owner K) *Sums {
	if of := l[owner]; of != nil {
		return of
	}
	return &Sums{}
}

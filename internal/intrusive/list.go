// SPDX-License-Identifier: Apache-2.0

package intrusive

import "iter"

// Link stores the neighbours of an element in a List.
type Link[T comparable] struct{ prev, next T }

// List is a doubly linked list through its elements, oldest first. It orders waits of equal length, such as silent
// nodes or silent AMs. A restarted wait moves its element to the end in O(1), and the first element to expire is at the
// front.
type List[T comparable] struct {
	First, last T
	Link        func(T) *Link[T] // returns the links stored in an element
}

// Append moves or adds x to the end.
func (l *List[T]) Append(x T) {
	var none T
	l.Remove(x)
	k := l.Link(x)
	k.prev, k.next = l.last, none
	if l.last != none {
		l.Link(l.last).next = x
	} else {
		l.First = x
	}
	l.last = x
}

// Remove removes x; it does nothing if x is not in the list.
func (l *List[T]) Remove(x T) {
	var none T
	k := l.Link(x)
	switch {
	case k.prev != none:
		l.Link(k.prev).next = k.next
	case l.First == x:
		l.First = k.next
	default:
		return
	}
	if k.next != none {
		l.Link(k.next).prev = k.prev
	} else {
		l.last = k.prev
	}
	*k = Link[T]{}
}

// All yields the elements, oldest first. The yielded element may be removed.
func (l *List[T]) All() iter.Seq[T] {
	return func(yield func(T) bool) {
		var none T
		for x := l.First; x != none; {
			next := l.Link(x).next
			if !yield(x) {
				return
			}
			x = next
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package intrusive

// Heap is a binary heap whose elements store their position in it. An element whose rank changed moves in O(log n). An
// element to be removed is found at once.
type Heap[T any] struct {
	Items []T // in heap order; callers must not change it
	Less  func(a, b T) bool
	Slot  func(T) *int32 // returns the stored position of an element: index+1, 0 while it is in no heap
}

// Len returns the number of elements.
func (h *Heap[T]) Len() int { return len(h.Items) }

// Top returns the least element. The heap must not be empty.
func (h *Heap[T]) Top() T { return h.Items[0] }

// Push adds x, which must not be in the heap.
func (h *Heap[T]) Push(x T) {
	h.Items = append(h.Items, x)
	*h.Slot(x) = int32(len(h.Items))
	h.up(len(h.Items) - 1)
}

// Remove removes x; it does nothing if x is not in the heap.
func (h *Heap[T]) Remove(x T) {
	p := h.Slot(x)
	if *p == 0 {
		return
	}
	i, last := int(*p-1), len(h.Items)-1
	*p = 0
	var zero T
	if i != last {
		h.Items[i] = h.Items[last]
		*h.Slot(h.Items[i]) = int32(i + 1)
	}
	h.Items[last] = zero
	h.Items = h.Items[:last]
	if i != last {
		if !h.down(i) {
			h.up(i)
		}
	}
}

// Fix moves x to its position after its rank changed; it does nothing if x is not in the heap.
func (h *Heap[T]) Fix(x T) {
	p := *h.Slot(x)
	if p == 0 {
		return
	}
	if i := int(p - 1); !h.down(i) {
		h.up(i)
	}
}

// Rebuild restores the order after the ranks of many elements changed.
func (h *Heap[T]) Rebuild() {
	for i := len(h.Items)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

func (h *Heap[T]) up(i int) {
	for i > 0 {
		p := (i - 1) / 2
		if !h.Less(h.Items[i], h.Items[p]) {
			return
		}
		h.swap(i, p)
		i = p
	}
}

func (h *Heap[T]) down(i int) bool {
	moved := false
	for {
		c := 2*i + 1
		if c >= len(h.Items) {
			return moved
		}
		if c+1 < len(h.Items) && h.Less(h.Items[c+1], h.Items[c]) {
			c++
		}
		if !h.Less(h.Items[c], h.Items[i]) {
			return moved
		}
		h.swap(i, c)
		i, moved = c, true
	}
}

func (h *Heap[T]) swap(i, j int) {
	h.Items[i], h.Items[j] = h.Items[j], h.Items[i]
	*h.Slot(h.Items[i]) = int32(i + 1)
	*h.Slot(h.Items[j]) = int32(j + 1)
}

// Check returns the first element that violates the order or stores a wrong position, -1 if there is none. It is for
// audits and tests.
func (h *Heap[T]) Check() int {
	for i, x := range h.Items {
		if int(*h.Slot(x)) != i+1 || i > 0 && h.Less(x, h.Items[(i-1)/2]) {
			return i
		}
	}
	return -1
}

// CheckOne is Check for one element and its neighbours.
func (h *Heap[T]) CheckOne(x T) int {
	at := int(*h.Slot(x)) - 1
	if at < 0 {
		return -1
	}
	for _, k := range []int{2*at + 1, 2*at + 2} {
		if k < len(h.Items) && h.Less(h.Items[k], x) {
			return k
		}
	}
	if at > 0 && h.Less(x, h.Items[(at-1)/2]) {
		return at
	}
	return -1
}

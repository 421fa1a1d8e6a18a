// SPDX-License-Identifier: Apache-2.0

package rm

// heap is a binary heap whose elements know their place in it, so that one
// whose rank changed is moved in O(log n). slot gives the place of an element,
// stored as position+1: zero is "not in the heap".
type heap[T any] struct {
	items []T
	less  func(a, b T) bool
	slot  func(T) *int32
}

func (h *heap[T]) len() int { return len(h.items) }

// top must not be called on an empty heap.
func (h *heap[T]) top() T { return h.items[0] }

func (h *heap[T]) push(x T) {
	h.items = append(h.items, x)
	*h.slot(x) = int32(len(h.items))
	h.up(len(h.items) - 1)
}

// remove takes x out; it does nothing if x is not in.
func (h *heap[T]) remove(x T) {
	p := h.slot(x)
	if *p == 0 {
		return
	}
	i, last := int(*p-1), len(h.items)-1
	*p = 0
	var zero T
	if i != last {
		h.items[i] = h.items[last]
		*h.slot(h.items[i]) = int32(i + 1)
	}
	h.items[last] = zero
	h.items = h.items[:last]
	if i != last {
		if !h.down(i) {
			h.up(i)
		}
	}
}

// fix moves x to its place after its rank changed; nothing if x is not in.
func (h *heap[T]) fix(x T) {
	p := *h.slot(x)
	if p == 0 {
		return
	}
	if i := int(p - 1); !h.down(i) {
		h.up(i)
	}
}

// rebuild orders everything anew, after the ranks of many changed.
func (h *heap[T]) rebuild() {
	for i := len(h.items)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

func (h *heap[T]) up(i int) {
	for i > 0 {
		p := (i - 1) / 2
		if !h.less(h.items[i], h.items[p]) {
			return
		}
		h.swap(i, p)
		i = p
	}
}

func (h *heap[T]) down(i int) bool {
	moved := false
	for {
		c := 2*i + 1
		if c >= len(h.items) {
			return moved
		}
		if c+1 < len(h.items) && h.less(h.items[c+1], h.items[c]) {
			c++
		}
		if !h.less(h.items[c], h.items[i]) {
			return moved
		}
		h.swap(i, c)
		i, moved = c, true
	}
}

func (h *heap[T]) swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	*h.slot(h.items[i]) = int32(i + 1)
	*h.slot(h.items[j]) = int32(j + 1)
}

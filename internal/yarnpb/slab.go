// SPDX-License-Identifier: Apache-2.0

package yarnpb

import (
	"errors"
	"io"
	"unsafe"

	"github.com/planetscale/vtprotobuf/protohelpers"
	"google.golang.org/protobuf/encoding/protowire"
)

// maxDepth is how deep messages may lie in each other, as in Java's runtime. Without a limit a frame of nested
// exceptions or placement constraints would exhaust the stack, which ends a Go program.
const maxDepth = 100

var errTooDeep = errors.New("proto: messages are nested more than 100 deep")

// slab allocates memory for one decoding. An allocate answer of ten containers is five hundred values behind
// pointers; one allocation each costs more than all the rest of decoding. So values of frequent types are cut from
// arrays that double up to maxChunk. The price: retaining one of them retains its neighbors, half a KiB at most. In
// an allocate answer, which comes and goes with every heartbeat, it retains all (newWhole).
//
// slabgen.go makes the generated decoders use it.
type slab struct {
	depth int
	arena bool // strings and bytes point into the input, and chunks have no limit: see Arena and newWhole

	int32s  chunk[int32]
	int64s  chunk[int64]
	bools   chunk[bool]
	strings chunk[string]

	apps       chunk[ApplicationIdProto]
	attempts   chunk[ApplicationAttemptIdProto]
	ids        chunk[ContainerIdProto]
	nodes      chunk[NodeIdProto]
	resources  chunk[ResourceProto]
	amounts    chunk[ResourceInformationProto]
	priorities chunk[PriorityProto]
	tokens     chunk[TokenProto]
	nmTokens   chunk[NMTokenProto]
	asks       chunk[ResourceRequestProto]
	executions chunk[ExecutionTypeRequestProto]
	containers chunk[ContainerProto]
	statuses   chunk[ContainerStatusProto]

	amountLists chunk[*ResourceInformationProto]
}

// chunk is the array values of one type are being cut from.
type chunk[T any] struct{ values []T }

const maxChunk = 4

// room makes sure that n values fit behind those that are taken.
func (c *chunk[T]) room(n int, a *slab) {
	if len(c.values)+n > cap(c.values) {
		size := max(2*cap(c.values), n)
		if !a.arena {
			size = max(min(size, maxChunk), n)
		}
		c.values = make([]T, 0, size)
	}
}

// next is a pointer to a zero T.
func (c *chunk[T]) next(a *slab) *T {
	c.room(1, a)
	n := len(c.values)
	c.values = c.values[:n+1]
	return &c.values[n]
}

// keep is a pointer to v.
func (c *chunk[T]) keep(a *slab, v T) *T {
	p := c.next(a)
	*p = v
	return p
}

// list is an empty list with room for n values.
func (c *chunk[T]) list(a *slab, n int) []T {
	c.room(n, a)
	at := len(c.values)
	c.values = c.values[:at+n]
	return c.values[at : at : at+n]
}

// reset makes all values of the present array free again; earlier, smaller arrays are left to the collector.
func (c *chunk[T]) reset() {
	clear(c.values)
	c.values = c.values[:0]
}

// text is a string of b, for nothing when it is one of the texts every container repeats.
func (a *slab) text(b []byte) string {
	switch string(b) {
	case "":
		return ""
	case "memory-mb":
		return "memory-mb"
	case "vcores":
		return "vcores"
	case "Mi":
		return "Mi"
	case "*":
		return "*"
	case "/default-rack":
		return "/default-rack"
	case "ContainerToken":
		return "ContainerToken"
	case "NMToken":
		return "NMToken"
	}
	if a.arena {
		return unsafe.String(&b[0], len(b))
	}
	return string(b)
}

// maxWhole is the largest message, in bytes, that is kept whole.
const maxWhole = 64 << 10

// newWhole is the slab of an allocate answer, which is frequent and short-lived. Its bytes are copied once, its
// strings point into the copy and its values are in one array of each type, sized by the number of its containers:
// retaining any part of such a message retains all of it. A large message is decoded like others.
func newWhole(b []byte) (slab, []byte) {
	if len(b) > maxWhole {
		return slab{}, b
	}
	a := slab{arena: true}
	if n := min(countField(b, allocatedContainers), len(b)/128); n > 1 { // a container is never so small
		a.strings.room(9*n, &a)
		a.int32s.room(9*n, &a)
		a.int64s.room(6*n+3, &a)
		a.apps.room(n, &a)
		a.attempts.room(n, &a)
		a.ids.room(n, &a)
		a.nodes.room(n+1, &a)
		a.resources.room(n+1, &a)
		a.amounts.room(2*n+2, &a)
		a.amountLists.room(2*n+2, &a)
		a.priorities.room(n+1, &a)
		a.tokens.room(n+1, &a)
		a.containers.room(n, &a)
	}
	return a, append([]byte(nil), b...)
}

// Numbers of AllocateResponseProto's fields.
const (
	allocatedContainers = 3
	completedContainers = 4
)

// countField is how often a field of bytes or messages occurs at the top of a message.
func countField(b []byte, number protowire.Number) (n int) {
	for len(b) > 0 {
		num, kind, size := protowire.ConsumeField(b)
		if size < 0 {
			return n // the decoder will report the error
		}
		if num == number && kind == protowire.BytesType {
			n++
		}
		b = b[size:]
	}
	return n
}

// bytes sets a field of bytes to b.
func (a *slab) bytes(field, b []byte) []byte {
	if a.arena {
		return b[:len(b):len(b)]
	}
	if field = append(field[:0], b...); field == nil {
		field = []byte{}
	}
	return field
}

// varint reads a number of up to ten bytes and returns its length; 0 when b ends within it, -1 when it is longer.
func varint(b []byte) (v uint64, n int) {
	for i, c := range b {
		if i == 10 {
			return 0, -1
		}
		v |= uint64(c&0x7F) << (7 * uint(i))
		if c < 0x80 {
			return v, i + 1
		}
	}
	return 0, 0
}

// badVarint is the error for the n of a varint that could not be read.
func badVarint(n int) error {
	if n < 0 {
		return protohelpers.ErrIntOverflow
	}
	return io.ErrUnexpectedEOF
}

// Arena is reusable memory for decoding messages: a handler of heartbeats that is done with a request when it has
// answered it decodes the next one without allocating. It holds one message at a time, and is for one goroutine.
//
// Everything decoded into an arena, each string and slice included, is invalid after the next message is decoded into
// it. Code that retains a part of the message longer has to copy it (CloneVT, strings.Clone).
type Arena struct {
	slab  slab
	input []byte
}

// maxArena is the largest message, in bytes, whose memory an Arena retains for the next.
const maxArena = 64 << 10

// ArenaMessage is a message that decodes into an Arena: all of this package.
type ArenaMessage interface {
	unmarshal(dAtA []byte, a *slab) error
	Reset()
}

// Unmarshal decodes b, which it copies, into m. The arena's previous content becomes invalid.
func (a *Arena) Unmarshal(b []byte, m ArenaMessage) error {
	if len(a.input) > maxArena {
		*a = Arena{}
	} else {
		a.slab.reset()
	}
	a.slab.arena = true
	a.input = append(a.input[:0], b...)
	m.Reset()
	return m.unmarshal(a.input, &a.slab)
}

func (s *slab) reset() {
	s.depth = 0
	s.int32s.reset()
	s.int64s.reset()
	s.bools.reset()
	s.strings.reset()
	s.apps.reset()
	s.attempts.reset()
	s.ids.reset()
	s.nodes.reset()
	s.resources.reset()
	s.amounts.reset()
	s.priorities.reset()
	s.tokens.reset()
	s.nmTokens.reset()
	s.asks.reset()
	s.executions.reset()
	s.containers.reset()
	s.statuses.reset()
	s.amountLists.reset()
}

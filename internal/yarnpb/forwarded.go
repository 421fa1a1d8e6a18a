// SPDX-License-Identifier: Apache-2.0

package yarnpb

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// ForwardedAllocate is an allocate answer for a forwarder that needs little of it. Fields of a container that only
// the AM reads, mainly its resources and its token, stay encoded: they are among the unknown fields, and are written
// unchanged. Decoding and encoding them was most of an answer's cost.
//
// So these fields seem absent after UnmarshalVT: of AllocatedContainers all but Id, NodeId, Priority, ExecutionType,
// AllocationRequestId and Version; of CompletedContainerStatuses all but ContainerId, State, ExitStatus and
// ExecutionType.
type ForwardedAllocate struct{ AllocateResponseProto }

// Fields of ContainerProto and ContainerStatusProto that are decoded.
var (
	decodedOfContainer = []protowire.Number{1, 2, 5, 7, 8, 9}
	decodedOfStatus    = []protowire.Number{1, 2, 4, 6}
)

// UnmarshalVT decodes b, of which it copies the retained parts. Values of one type are in one array, so that
// retaining a part of the message retains all of it. A large message is decoded like others.
func (m *ForwardedAllocate) UnmarshalVT(b []byte) error {
	if len(b) > maxWhole {
		return m.AllocateResponseProto.UnmarshalVT(b)
	}
	var a slab
	m.room(b, &a)
	encoded := make([]byte, 0, len(b)) // the fields that stay encoded, of all containers
	for len(b) > 0 {
		number, kind, value, n := Cut(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		var err error
		switch {
		case number == allocatedContainers && kind == protowire.BytesType:
			c := a.containers.next(&a)
			m.AllocatedContainers = append(m.AllocatedContainers, c)
			c.unknownFields, err = a.passed(value, decodedOfContainer, c, &encoded)
		case number == completedContainers && kind == protowire.BytesType:
			s := a.statuses.next(&a)
			m.CompletedContainerStatuses = append(m.CompletedContainerStatuses, s)
			s.unknownFields, err = a.passed(value, decodedOfStatus, s, &encoded)
		default:
			err = m.unmarshal(b[:n], &a)
		}
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// passed decodes some fields of the message in a field's value into m, and returns the others, appended to the
// already encoded ones.
func (a *slab) passed(
	value []byte, decoded []protowire.Number, m ArenaMessage, encoded *[]byte,
) (others []byte, err error) {
	begin := len(*encoded)
	b, _ := protowire.ConsumeBytes(value)
	for len(b) > 0 {
		number, _, _, n := Cut(b)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		if !slices.Contains(decoded, number) {
			*encoded = append(*encoded, b[:n]...)
		} else if err := m.unmarshal(b[:n], a); err != nil {
			return nil, err
		}
		b = b[n:]
	}
	return slices.Clip((*encoded)[begin:]), nil
}

// room allocates memory for the decoded parts of b.
func (m *ForwardedAllocate) room(b []byte, a *slab) {
	granted := min(countField(b, allocatedContainers), len(b)/64) // neither is ever so small
	ended := min(countField(b, completedContainers), len(b)/16)
	m.AllocatedContainers = slices.Grow(m.AllocatedContainers, granted)
	m.CompletedContainerStatuses = slices.Grow(m.CompletedContainerStatuses, ended)
	n := granted + ended
	a.strings.room(granted+2, a)
	a.int32s.room(5*n+4, a)
	a.int64s.room(3*n+3, a)
	a.apps.room(n, a)
	a.attempts.room(n, a)
	a.ids.room(n, a)
	a.nodes.room(granted, a)
	a.priorities.room(granted, a)
	a.containers.room(granted, a)
	a.statuses.room(ended, a)
}

// SPDX-License-Identifier: Apache-2.0

package state

import (
	"encoding/binary"
	"fmt"
)

// Tx collects operations that become durable together or not at all. The zero value is empty.
type Tx struct {
	ops   []byte
	count int
}

// Put sets a key. It copies the bytes.
func (t *Tx) Put(key string, value []byte) {
	t.ops = AppendPut(t.ops, key, value)
	t.count++
}

// Delete removes a key; removing an absent key is no error.
func (t *Tx) Delete(key string) {
	t.ops = append(t.ops, opDelete)
	t.ops = binary.AppendUvarint(t.ops, uint64(len(key)))
	t.ops = append(t.ops, key...)
	t.count++
}

// Len is the number of operations.
func (t *Tx) Len() int { return t.count }

// Bytes returns the operations as EachOp reads them. They are valid until the next change of the transaction.
func (t *Tx) Bytes() []byte { return t.ops }

// Reset empties the transaction and retains its memory.
func (t *Tx) Reset() { t.ops, t.count = t.ops[:0], 0 }

// An operation is encoded as a byte, the key and, for put, the value, each preceded by its length as a varint.
const (
	opPut    = 1
	opDelete = 2
)

// AppendPut appends the operation that sets a key.
func AppendPut(b []byte, key string, value []byte) []byte {
	b = append(b, opPut)
	b = binary.AppendUvarint(b, uint64(len(key)))
	b = append(b, key...)
	b = binary.AppendUvarint(b, uint64(len(value)))
	return append(b, value...)
}

// Op is one decoded operation. Of a put, the value is at bytes[At : At+len(Value)].
type Op struct {
	Delete bool
	Key    []byte
	Value  []byte
	At     int
}

// EachOp iterates over the bytes of transactions, one after the other. An error means a writer of another version, or
// a bug: a caller checks for damage before.
func EachOp(ops []byte, f func(Op)) error {
	for at := 0; at < len(ops); {
		code := ops[at]
		at++
		key, n := field(ops[at:])
		if n == 0 || (code != opPut && code != opDelete) {
			return fmt.Errorf("operation %d at byte %d of a block cannot be read", code, at-1)
		}
		at += n
		o := Op{Delete: code == opDelete, Key: key, At: at}
		if code == opPut {
			value, n := field(ops[at:])
			if n == 0 {
				return fmt.Errorf("value at byte %d of a block cannot be read", at)
			}
			at += n
			o.Value, o.At = value, at-len(value)
		}
		f(o)
	}
	return nil
}

// field reads a varint length and that many bytes; n is 0 if they are missing.
func field(b []byte) (value []byte, n int) {
	length, w := binary.Uvarint(b)
	if w <= 0 || length > uint64(len(b)-w) {
		return nil, 0
	}
	return b[w : w+int(length)], w + int(length)
}

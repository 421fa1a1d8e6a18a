// SPDX-License-Identifier: Apache-2.0

package journal

import "github.com/creelrm/creel/subcluster/rm/state"

// Image is a journal's segment in memory, in the format and by the rules of the files. As in Open, damage of a crash
// is cut off, and other damage is rejected. The simulator stores the journals of its ResourceManagers in Images. The
// zero value is empty. An Image has one owner.
type Image struct {
	bytes []byte
	next  uint64 // number of the next block
}

// imageSalt may have any value: here, values never look like blocks by chance.
const imageSalt = 0x5eed

// Block makes the next block, of transactions that become durable together.
func (i *Image) Block(txs ...*state.Tx) []byte {
	block := make([]byte, frameBytes)
	for _, tx := range txs {
		block = append(block, tx.Bytes()...)
	}
	seal(block, max(i.next, 1), imageSalt)
	return block
}

// Write appends a block: all of its bytes if they are synced, else the part that a crash left.
func (i *Image) Write(block []byte, all bool) {
	if len(i.bytes) == 0 {
		i.bytes, i.next = header{kind: kindLog, salt: imageSalt, first: 1}.encode(), 1
	}
	if i.bytes = append(i.bytes, block...); all {
		i.next++
	}
}

// Open reads the journal as the next start would, and cuts off a torn block. Damage that no crash explains is an
// error. The caller owns the entries.
func (i *Image) Open() (entries map[string][]byte, err error) {
	entries = map[string][]byte{}
	if len(i.bytes) == 0 {
		return entries, nil
	}
	s, err := scanSegment(i.bytes, func(body []byte, _ int64) error {
		return state.EachOp(body, func(o state.Op) {
			if !o.Delete {
				entries[string(o.Key)] = append([]byte{}, o.Value...)
			} else {
				delete(entries, string(o.Key))
			}
		})
	})
	if err != nil {
		return nil, err
	}
	i.bytes, i.next = i.bytes[:s.good], s.header.first+s.blocks
	return entries, nil
}

// Len is the number of bytes.
func (i *Image) Len() int { return len(i.bytes) }

// Compact replaces the journal by its live entries, as one block.
func (i *Image) Compact(entries *state.Tx) {
	*i = Image{}
	i.Write(i.Block(entries), true)
}

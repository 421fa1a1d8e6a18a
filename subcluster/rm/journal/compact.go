// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/creelrm/creel/subcluster/rm/state"
)

// compaction is the result of copying all live entries out of sealed segments.
type compaction struct {
	err   error
	tmp   string
	size  int64
	old   []uint64 // replaced segments; the base takes the name of the last one
	moved map[string]move
}

// move is one copied entry, with its old and new location.
type move struct{ from, to location }

// maybeCompact starts the copy if more than half of all bytes are dead; on a full disk it does so even for a small
// journal. The copier only reads sealed files. Transactions committed meanwhile go to a new segment after the base,
// and the index shows the copies that have become stale.
func (j *Journal) maybeCompact() error {
	least := j.opts.CompactBytes
	if j.Room().Full {
		least = min(least, compactFull)
	}
	if j.compact != nil || j.bytes < least || time.Now().Before(j.compactAfter) {
		return nil
	}
	j.mu.Lock()
	if j.live > j.bytes/2 {
		j.mu.Unlock()
		return nil
	}
	entries := maps.Clone(j.index)
	j.mu.Unlock()
	old := append([]uint64(nil), j.segments...)
	if err := j.roll(old[len(old)-1] + 1); err != nil {
		return j.compactLater(err)
	}
	after := j.next
	done := make(chan compaction, 1)
	j.compact = done
	go func() { done <- j.copyLive(old, entries, after) }()
	return nil
}

// compactLater delays a compaction that found no space; other errors are returned.
func (j *Journal) compactLater(err error) error {
	if !noRoom(err) {
		return err
	}
	j.compactAfter = time.Now().Add(compactAgain)
	return nil
}

func (j *Journal) copyLive(old []uint64, entries map[string]location, after uint64) compaction {
	files := map[uint64]*os.File{}
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	id := old[len(old)-1]
	keys := sortedKeys(entries)
	tmp, ats, err := writeBase(j.dir, id, after, func(put func(string, []byte) error) error {
		for _, key := range keys {
			value, err := j.read(files, entries[key])
			if err == nil {
				err = put(key, value)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return compaction{err: err}
	}
	info, err := os.Stat(tmp)
	if err != nil {
		return compaction{err: err}
	}
	r := compaction{tmp: tmp, size: info.Size(), old: old, moved: make(map[string]move, len(keys))}
	for i, key := range keys {
		from := entries[key]
		r.moved[key] = move{from: from, to: location{segment: id, at: ats[i], length: from.length}}
	}
	return r
}

// finishCompaction puts the base in force. The order matters: from its rename on, the base replaces the old segments.
// So a crash before their removal leaves only files that the next Open removes.
func (j *Journal) finishCompaction(r compaction) error {
	j.compact = nil
	if r.err != nil {
		err := j.compactLater(fmt.Errorf("journal: compaction: %w", r.err))
		if err != nil {
			j.fail(err)
		}
		return err
	}
	last := r.old[len(r.old)-1]
	err := os.Rename(r.tmp, filepath.Join(j.dir, segmentName(last)))
	if err == nil {
		err = syncDir(j.dir)
	}
	for _, id := range r.old[:len(r.old)-1] {
		if err == nil {
			err = j.remove(id)
		}
	}
	if err != nil {
		err = fmt.Errorf("journal: compaction: %w", err)
		j.fail(err)
		return err
	}
	j.segments = append([]uint64{last}, j.segments[len(r.old):]...)
	j.bytes = r.size
	for _, id := range j.segments[1:] {
		info, err := os.Stat(filepath.Join(j.dir, segmentName(id)))
		if err != nil {
			j.fail(err)
			return err
		}
		j.bytes += info.Size()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for key, m := range r.moved {
		if j.index[key] == m.from {
			j.index[key] = m.to
		}
	}
	return nil
}

// writeBase writes and syncs a base segment under a temporary name, and returns the values' offsets in the order in
// which they were put.
func writeBase(
	dir string,
	id, after uint64,
	each func(put func(key string, value []byte) error) error,
) (_ string, _ []int64, failed error) {
	tmp := filepath.Join(dir, segmentName(id)+".tmp")
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return "", nil, err
	}
	defer func() {
		f.Close()
		if failed != nil { // leave no partial copy on a full disk
			os.Remove(tmp)
		}
	}()
	w := bufio.NewWriterSize(f, 1<<20)
	if _, err := w.Write(make([]byte, headerBytes)); err != nil {
		return "", nil, err
	}
	h := header{kind: kindBase, salt: rand.Uint32(), after: after}
	at := int64(headerBytes)
	block := make([]byte, frameBytes)
	var ats []int64
	flush := func() error {
		if len(block) == frameBytes {
			return nil
		}
		seal(block, h.count, h.salt)
		h.count++
		at += int64(len(block))
		_, err := w.Write(block)
		block = block[:frameBytes]
		return err
	}
	err = each(func(key string, value []byte) error {
		block = state.AppendPut(block, key, value)
		ats = append(ats, at+int64(len(block)-len(value)))
		if len(block) >= 1<<20 {
			return flush()
		}
		return nil
	})
	if err = errors.Join(err, flush(), w.Flush()); err != nil {
		return "", nil, err
	}
	if _, err := f.WriteAt(h.encode(), 0); err != nil {
		return "", nil, err
	}
	return tmp, ats, f.Sync()
}

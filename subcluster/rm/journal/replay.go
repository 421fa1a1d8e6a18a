// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/creelrm/creel/subcluster/rm/state"
)

const suffix = ".journal"

func segmentName(id uint64) string { return fmt.Sprintf("%016x%s", id, suffix) }

// segments lists the segment numbers of a directory in ascending order.
func segments(dir string) ([]uint64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var ids []uint64
	for _, e := range entries {
		stem, ok := strings.CutSuffix(e.Name(), suffix)
		if !ok || len(stem) != 16 {
			continue
		}
		id, err := strconv.ParseUint(stem, 16, 64)
		if err != nil {
			continue
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids, nil
}

// location is the place of a live value.
type location struct {
	segment uint64
	at      int64
	length  int
}

// scan is the result of reading one segment.
type scan struct {
	header header
	blocks uint64 // readable blocks, in sequence from header.first
	final  int64  // offset of the last readable block
	good   int64  // number of bytes up to the end of the last readable block
	torn   bool   // unreadable bytes follow, and nothing readable after them
}

// scanSegment reads a segment and passes each block's body and offset to block. It fails if there is damage before a
// readable block.
func scanSegment(b []byte, block func(body []byte, at int64) error) (scan, error) {
	h, err := decodeHeader(b)
	if err != nil {
		return scan{}, err
	}
	s := scan{header: h, good: headerBytes}
	for int(s.good) < len(b) {
		number, body, ok := openBlock(b[s.good:], h.salt)
		if !ok {
			if at, found := nextBlock(b[s.good:], h.salt); found {
				return s, fmt.Errorf("block %d at byte %d cannot be read, but a good one follows at byte %d",
					h.first+s.blocks, s.good, s.good+int64(at))
			}
			s.torn = true
			return s, nil
		}
		if number != h.first+s.blocks {
			return s, fmt.Errorf("block at byte %d has number %d, expected %d", s.good, number, h.first+s.blocks)
		}
		if err := block(body, s.good+frameBytes); err != nil {
			return s, fmt.Errorf("block %d at byte %d: %w", number, s.good, err)
		}
		s.blocks++
		s.final = s.good
		s.good += frameBytes + int64(len(body))
	}
	return s, nil
}

// replay fills the index from the directory and returns the scan of the last segment.
func (j *Journal) replay() (last scan, err error) {
	ids, err := segments(j.dir)
	if err != nil {
		return scan{}, err
	}
	ids, err = j.dropSuperseded(ids)
	if err != nil {
		return scan{}, err
	}
	for i, id := range ids {
		b, err := os.ReadFile(filepath.Join(j.dir, segmentName(id)))
		if err != nil {
			return scan{}, err
		}
		final := i == len(ids)-1
		if final && len(b) < headerBytes && (i > 0 || id == 1) {
			// The crash came between the creation of the file and its header.
			if err := j.remove(id); err != nil {
				return scan{}, err
			}
			break
		}
		s, err := scanSegment(b, func(body []byte, at int64) error {
			return state.EachOp(body, func(o state.Op) { j.apply(o, id, at) })
		})
		switch {
		case err != nil:
			return scan{}, corrupt(j.dir, id, err)
		case s.torn && !final:
			return scan{}, corrupt(
				j.dir,
				id,
				fmt.Errorf("the segment ends at byte %d in the middle of a block, but later segments exist", s.good),
			)
		case s.header.kind == kindBase && (s.torn || s.blocks != s.header.count):
			return scan{}, corrupt(j.dir, id, fmt.Errorf("it holds %d of %d blocks", s.blocks, s.header.count))
		case i > 0 && s.header.first != j.next:
			return scan{}, corrupt(
				j.dir,
				id,
				fmt.Errorf("it starts with block %d, expected %d: a segment is missing", s.header.first, j.next),
			)
		}
		j.next = s.header.first + s.blocks
		if s.header.kind == kindBase {
			j.next = s.header.after
		}
		j.segments = append(j.segments, id)
		j.bytes += s.good
		last = s
	}
	return last, nil
}

// dropSuperseded removes the segments before the newest base segment: a crash came between the rename of the base and
// their removal.
func (j *Journal) dropSuperseded(ids []uint64) ([]uint64, error) {
	base := 0
	for i, id := range ids {
		b, err := readHead(filepath.Join(j.dir, segmentName(id)))
		if err != nil {
			return nil, err
		}
		h, err := decodeHeader(b)
		if err == nil && h.kind == kindBase {
			base = i
		}
	}
	for _, id := range ids[:base] {
		if err := j.remove(id); err != nil {
			return nil, err
		}
	}
	return ids[base:], nil
}

func readHead(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, headerBytes)
	n, err := f.ReadAt(b, 0)
	if n < len(b) && err != nil && n == 0 {
		return nil, nil
	}
	return b[:n], nil
}

func corrupt(dir string, id uint64, err error) error {
	return fmt.Errorf(
		"%w: %s: %w; no crash does this: restore a copy of %s, or run: creel rm repair --data %s (it keeps every block that still reads)",
		ErrCorrupt,
		filepath.Join(dir, segmentName(id)),
		err,
		dir,
		dir,
	)
}

// Damage is one range that Repair could not read.
type Damage struct {
	Segment string // file name
	At      int64  // first lost byte
	Bytes   int64  // lost bytes; the whole file if At is 0
	Reason  string
}

// Salvage is the result of Repair.
type Salvage struct {
	Entries int // number of entries
	Blocks  int // readable blocks
	Damage  []Damage
}

// Repair rebuilds a journal from every readable block, in order. The damaged files stay under their names with
// ".damaged" appended. The content of unreadable blocks is lost; the report names the places. A journal without
// damage stays unchanged.
func Repair(dir string) (Salvage, error) {
	lock, err := lockDir(dir, 0)
	if err != nil {
		return Salvage{}, err
	}
	defer lock.Close()
	ids, err := segments(dir)
	if err != nil {
		return Salvage{}, err
	}
	j := &Journal{dir: dir}
	if ids, err = j.dropSuperseded(ids); err != nil {
		return Salvage{}, err
	}
	var out Salvage
	kept := map[string][]byte{}
	next := uint64(1)
	for _, id := range ids {
		name := segmentName(id)
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return out, err
		}
		h, err := decodeHeader(b)
		if err != nil {
			// Without the salt, no checksum of this segment can be verified.
			out.Damage = append(out.Damage, Damage{Segment: name, Bytes: int64(len(b)), Reason: err.Error()})
			continue
		}
		next = max(next, h.after)
		for at := headerBytes; at < len(b); {
			number, body, ok := openBlock(b[at:], h.salt)
			if !ok {
				skip, found := nextBlock(b[at:], h.salt)
				if !found {
					skip = len(b) - at
				}
				out.Damage = append(
					out.Damage,
					Damage{Segment: name, At: int64(at), Bytes: int64(skip), Reason: "checksum differs"},
				)
				at += skip
				continue
			}
			if h.kind == kindLog {
				next = max(next, number+1)
			}
			out.Blocks++
			err := state.EachOp(body, func(o state.Op) {
				if !o.Delete {
					kept[string(o.Key)] = slices.Clone(o.Value)
				} else {
					delete(kept, string(o.Key))
				}
			})
			if err != nil {
				out.Damage = append(
					out.Damage,
					Damage{Segment: name, At: int64(at), Bytes: int64(frameBytes + len(body)), Reason: err.Error()},
				)
			}
			at += frameBytes + len(body)
		}
	}
	out.Entries = len(kept)
	if len(out.Damage) == 0 {
		return out, nil
	}
	last := ids[len(ids)-1]
	tmp, _, err := writeBase(dir, last+1, next, func(put func(key string, value []byte) error) error {
		for _, key := range sortedKeys(kept) {
			if err := put(key, kept[key]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return out, err
	}
	// The base is in force from its rename on; the old files are only renamed.
	if err := os.Rename(tmp, filepath.Join(dir, segmentName(last+1))); err != nil {
		return out, err
	}
	for _, id := range ids {
		path := filepath.Join(dir, segmentName(id))
		if err := os.Rename(path, path+".damaged"); err != nil && !errors.Is(err, os.ErrNotExist) {
			return out, err
		}
	}
	return out, syncDir(dir)
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/creelrm/creel/subcluster/rm/state"
)

// platter is what a disk holds of the files of a directory, beside what the page cache
// says. A sync that fails has the kernel take the pages for clean: what it did not write
// reaches the disk only if it is written again.
type platter struct {
	t     *testing.T
	files map[uint64]*platterFile // by inode
	fails int                     // so many syncs fail
	full  bool                    // no new file finds room
}

type platterFile struct {
	disk  []byte
	clean int // pages up to here are clean: no sync writes them
}

// errSync is what a sync that fails returns.
var errSync = syscall.EIO

func inode(t *testing.T, path string) uint64 {
	t.Helper()
	var s syscall.Stat_t
	if err := syscall.Stat(path, &s); err != nil {
		t.Fatal(err)
	}
	return s.Ino
}

func (p *platter) sync(f *os.File) error {
	if p.full && filepath.Ext(f.Name()) == ".tmp" {
		return syscall.ENOSPC
	}
	b, err := os.ReadFile(f.Name())
	if err != nil {
		return err
	}
	ino := inode(p.t, f.Name())
	is := p.files[ino]
	if is == nil {
		is = &platterFile{}
		p.files[ino] = is
	}
	dirty := is.clean
	is.clean = len(b)
	if p.fails > 0 {
		p.fails--
		return errSync
	}
	if dirty < len(b) {
		is.disk = append(is.disk, make([]byte, len(b)-len(is.disk))...)
		copy(is.disk[dirty:], b[dirty:])
	}
	return nil
}

// powerLoss leaves of the files of a directory what the disk has.
func (p *platter) powerLoss(dir string) {
	p.t.Helper()
	ids, err := segments(dir)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, id := range ids {
		path := filepath.Join(dir, segmentName(id))
		is := p.files[inode(p.t, path)]
		if is == nil {
			p.t.Fatalf("%s was never synced", path)
		}
		if err := os.WriteFile(path, slices.Clone(is.disk), 0o600); err != nil {
			p.t.Fatal(err)
		}
	}
}

// A sync fails, the process ends without having acknowledged, and the next one reads the
// block from the page cache. It serves what it read, so that must be on the disk before
// anything else is acknowledged: a power loss afterwards loses none of it.
func TestTailIsRewrittenAfterFailedSync(t *testing.T) {
	dir := t.TempDir()
	p := &platter{t: t, files: map[uint64]*platterFile{}}
	put := func(r *openJournal, key string) error {
		return r.commit(func(tx *state.Tx) { tx.Put(key, []byte("of "+key)) })
	}
	r := start(t, dir, Options{sync: p.sync})
	if err := put(r, "a"); err != nil {
		t.Fatal(err)
	}
	p.fails = 1
	if err := put(r, "b"); !errors.Is(err, errSync) {
		t.Fatalf("the failed sync was answered %v", err)
	}
	if err := <-r.done; !errors.Is(err, errSync) {
		t.Fatalf("Run ended with %v", err)
	}
	r.stop()

	r = start(t, dir, Options{sync: p.sync})
	if r.Len() != 2 {
		t.Fatalf("%d entries were read, want a and b", r.Len())
	}
	if err := put(r, "c"); err != nil {
		t.Fatal(err)
	}
	r.end(t)
	p.powerLoss(dir)
	if got := contents(t, dir); len(got) != 3 || got["b"] != "of b" {
		t.Fatalf("after a power loss: %v", got)
	}
}

// A start that cannot rewrite the tail does not serve.
func TestFailedStartSyncServesNothing(t *testing.T) {
	dir := t.TempDir()
	p := &platter{t: t, files: map[uint64]*platterFile{}}
	r := start(t, dir, Options{sync: p.sync})
	if err := r.commit(func(tx *state.Tx) { tx.Put("a", []byte("1")) }); err != nil {
		t.Fatal(err)
	}
	r.end(t)
	p.fails = 1
	if _, err := Open(dir, Options{sync: p.sync}); !errors.Is(err, errSync) {
		t.Fatalf("Open gave %v", err)
	}
	if got := contents(t, dir); got["a"] != "1" {
		t.Fatalf("after the failed start: %v", got)
	}
}

// On a full disk there is no room for a copy: the last block is written where it is.
func TestTailIsWrittenInPlaceOnFullDisk(t *testing.T) {
	dir := t.TempDir()
	p := &platter{t: t, files: map[uint64]*platterFile{}}
	r := start(t, dir, Options{sync: p.sync})
	for _, key := range []string{"a", "b"} {
		if err := r.commit(func(tx *state.Tx) { tx.Put(key, []byte("of "+key)) }); err != nil {
			t.Fatal(err)
		}
	}
	r.end(t)
	before := inode(t, filepath.Join(dir, segmentName(1)))
	p.full = true
	r = start(t, dir, Options{sync: p.sync})
	if err := r.commit(func(tx *state.Tx) { tx.Put("c", []byte("of c")) }); err != nil {
		t.Fatal(err)
	}
	r.end(t)
	if inode(t, filepath.Join(dir, segmentName(1))) != before {
		t.Error("the segment was copied")
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*.tmp")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if got := contents(t, dir); len(got) != 3 || got["b"] != "of b" {
		t.Fatalf("after reopening: %v", got)
	}
}

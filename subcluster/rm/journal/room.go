// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// A full disk must not end the process, because the next start would find it full again. So the journal allocates a
// part of the disk in advance: the reserve, a file beside the segments. If a write finds no space, the reserve is cut
// by a step and the write is repeated. So running applications can end in good order, and the journal's owner is
// notified to accept nothing else (see Room). When the reserve is used up, transactions wait unacknowledged. Once
// there is space for twice the reserve again, the journal restores the reserve and works as before.

const (
	reserveName  = "reserve"
	reserveSteps = 8               // number of cuts that use up the reserve
	roomEvery    = time.Second     // interval of checks of a full disk
	compactAgain = 1 * time.Minute // pause after a compaction that found no space
	compactFull  = 1 << 20         // dead bytes that are worth a compaction on a full disk
)

// Room is the space that a journal has for writing.
type Room struct {
	Full    bool      // a write found no space, and the reserve is not complete again
	Since   time.Time // time at which that began
	Reserve int64     // bytes left of the reserve
	Waits   bool      // the reserve is used up: transactions wait for space
}

// Room may be called from any goroutine.
func (j *Journal) Room() Room {
	if r := j.room.Load(); r != nil {
		return *r
	}
	return Room{}
}

// setRoom publishes a change, and calls Options.RoomObserve.
func (j *Journal) setRoom(full, waits bool) {
	before := j.Room()
	now := Room{Full: full, Since: before.Since, Reserve: j.reserve, Waits: waits}
	switch {
	case !full:
		now.Since = time.Time{}
	case !before.Full:
		now.Since = time.Now()
	}
	if now == before {
		return
	}
	j.room.Store(&now)
	if j.opts.RoomObserve != nil && (now.Full != before.Full || now.Waits != before.Waits) {
		j.opts.RoomObserve(now)
	}
}

// noRoom reports whether a write failed because the disk or the quota is full.
func noRoom(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// openReserve finds the reserve, and completes it if there is space.
func (j *Journal) openReserve() error {
	if j.opts.ReserveBytes < 0 {
		return nil
	}
	info, err := os.Stat(filepath.Join(j.dir, reserveName))
	switch {
	case err == nil:
		j.reserve = info.Size()
	case !errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// fillReserve completes the reserve. It returns false if there is no space for it.
func (j *Journal) fillReserve() (bool, error) {
	if j.opts.ReserveBytes < 0 || j.reserve == j.opts.ReserveBytes {
		return true, nil
	}
	f, err := os.OpenFile(filepath.Join(j.dir, reserveName), os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = allocate(f, j.opts.ReserveBytes)
		if err != nil { // a part of it may exist
			err = errors.Join(err, f.Truncate(j.reserve))
		}
		err = errors.Join(err, f.Sync(), f.Close())
	}
	switch {
	case noRoom(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("journal: making the reserve: %w", err)
	}
	j.reserve = j.opts.ReserveBytes
	return true, nil
}

// allocate sets a file's size and reserves its space on the disk.
func allocate(f *os.File, size int64) error {
	if err := f.Truncate(size); err != nil { // it may have been larger
		return err
	}
	err := syscall.Fallocate(int(f.Fd()), 0, 0, size)
	if !errors.Is(err, syscall.EOPNOTSUPP) && !errors.Is(err, syscall.ENOSYS) {
		return err
	}
	zeros := make([]byte, 1<<20)
	for at := int64(0); at < size; at += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros[:min(int64(len(zeros)), size-at)], at); err != nil {
			return err
		}
	}
	return nil
}

// cutReserve frees n bytes of the reserve, but at least one step. It returns false if the reserve is empty.
func (j *Journal) cutReserve(n int) (bool, error) {
	if j.reserve <= 0 {
		return false, nil
	}
	j.reserve = max(0, j.reserve-max(j.opts.ReserveBytes/reserveSteps, int64(n)))
	f, err := os.OpenFile(filepath.Join(j.dir, reserveName), os.O_RDWR, 0o600)
	if err != nil {
		return false, fmt.Errorf("journal: %w", err)
	}
	if err := errors.Join(f.Truncate(j.reserve), f.Sync(), f.Close()); err != nil {
		return false, fmt.Errorf("journal: cutting the reserve: %w", err)
	}
	return true, nil
}

// makeRoom handles a write of n bytes that found no space. It returns nil if the write should be repeated: after a
// cut of the reserve, or a while later. It returns the error of the write if the context has ended and the reserve is
// empty.
func (j *Journal) makeRoom(ctx context.Context, n int, full error) error {
	cut, err := j.cutReserve(n)
	if err != nil {
		return errors.Join(full, err)
	}
	j.setRoom(true, !cut)
	if cut {
		return nil
	}
	timer := time.NewTimer(j.opts.RoomEvery)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case r := <-j.compact: // it may have freed space
		return j.finishCompaction(r)
	case <-ctx.Done():
		return full
	}
}

// regain checks whether a full disk has space again: for the reserve, and for the same amount beside it.
func (j *Journal) regain() error {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(j.dir, &fs); err != nil {
		return fmt.Errorf("journal: %s: %w", j.dir, err)
	}
	if int64(fs.Bavail)*fs.Bsize < 2*j.opts.ReserveBytes-j.reserve {
		return nil
	}
	whole, err := j.fillReserve()
	if err == nil && whole {
		j.compactAfter = time.Time{}
		j.setRoom(false, false)
	}
	return err
}

// Free is the number of bytes on the journal's disk that this process may use.
func (j *Journal) Free() (int64, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(j.dir, &fs); err != nil {
		return 0, fmt.Errorf("journal: %s: %w", j.dir, err)
	}
	return int64(fs.Bavail) * fs.Bsize, nil
}

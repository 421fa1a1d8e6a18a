// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/creelrm/creel/subcluster/rm/state"
)

var _ state.Log = (*Journal)(nil)

// Options tune a journal; zero values mean the defaults.
type Options struct {
	SegmentBytes  int64         // size at which a new segment starts; 64 MiB
	PendingBytes  int           // size of unwritten data at which Commit waits; 64 MiB
	CompactBytes  int64         // total size below which there is no compaction; 32 MiB
	LockWait      time.Duration // wait for another process that has the directory open; 5 s
	WithoutSync   bool          // for measurement: acknowledge after the write to the kernel
	CommitObserve func(transactions int, bytes int)
	ReserveBytes  int64         // of disk, for use when the disk is full; 8 MiB, negative for none
	RoomEvery     time.Duration // interval of checks of a full disk; 1 s
	RoomObserve   func(Room)    // called by Run and Open when the disk becomes full, and when it has space again

	sync func(*os.File) error // set by tests to fail; nil: fdatasync
}

// Journal is a durable map. Commit may be called from any goroutine; Run owns
// the files.
type Journal struct {
	dir     string
	opts    Options
	lock    *os.File
	sync    func(*os.File) error // set by tests to fail
	started atomic.Bool
	room    atomic.Pointer[Room]

	mu      sync.Mutex // guards the fields below; never locked during I/O
	written sync.Cond  // the pending transactions are being written
	pending []byte     // the next block: frame space and operations
	waiting []func(error)
	broken  error
	index   map[string]location
	live    int64 // bytes of live entries, including keys
	wake    chan struct{}

	// Owned by Run, and by Open before it.
	next     uint64   // number of the next block
	segments []uint64 // in force, ascending; the last one is being written
	active   *os.File
	header   header
	size     int64           // of the active segment
	bytes    int64           // of all segments
	compact  chan compaction // result of a running compaction, else nil
	flushed  time.Time       // end of the last flush
	took     time.Duration   // duration of the last flush
	reserve  int64           // bytes left in the reserve

	compactAfter time.Time // no compaction before this: one found no space
}

// Open reads a journal's directory and creates it if it is missing. It cuts off a torn tail, and rejects damage that
// no crash explains (ErrCorrupt). One process may have a directory open at a time.
func Open(dir string, opts Options) (*Journal, error) {
	if opts.SegmentBytes <= 0 {
		opts.SegmentBytes = 64 << 20
	}
	if opts.PendingBytes <= 0 {
		opts.PendingBytes = 64 << 20
	}
	if opts.CompactBytes <= 0 {
		opts.CompactBytes = 32 << 20
	}
	if opts.ReserveBytes == 0 {
		opts.ReserveBytes = 8 << 20
	}
	opts.RoomEvery = cmp.Or(opts.RoomEvery, roomEvery)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	lock, err := lockDir(dir, cmp.Or(opts.LockWait, 5*time.Second))
	if err != nil {
		return nil, err
	}
	j := &Journal{dir: dir, opts: opts, lock: lock, index: map[string]location{}, wake: make(chan struct{}, 1), next: 1,
		sync: opts.sync}
	switch {
	case opts.WithoutSync:
		j.sync = func(*os.File) error { return nil }
	case j.sync == nil:
		j.sync = func(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }
	}
	j.written.L = &j.mu
	if err := j.open(); err != nil {
		lock.Close()
		return nil, err
	}
	j.pending = j.emptyBlock(nil)
	return j, nil
}

func (j *Journal) open() error {
	leftovers, err := filepath.Glob(filepath.Join(j.dir, "*.tmp"))
	if err != nil {
		return err
	}
	for _, name := range leftovers { // of a compaction interrupted by a crash
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	if err := j.openReserve(); err != nil {
		return err
	}
	last, err := j.replay()
	if err != nil {
		return err
	}
	if err := j.openActive(last); err != nil {
		return err
	}
	whole, err := j.fillReserve()
	if err == nil && !whole {
		j.setRoom(true, false)
	}
	return err
}

// openActive opens the segment to write to, and creates it if there is none.
func (j *Journal) openActive(last scan) error {
	switch {
	case len(j.segments) == 0:
		return j.firstRoll(1)
	case last.header.kind == kindBase: // a base is complete: nothing may be appended
		return j.firstRoll(j.segments[len(j.segments)-1] + 1)
	}
	id := j.segments[len(j.segments)-1]
	f, err := j.rewritten(id, last.good)
	if noRoom(err) {
		f, err = j.rewrittenInPlace(id, last)
	}
	if err != nil {
		return fmt.Errorf("journal: rewriting the tail of %s: %w", filepath.Join(j.dir, segmentName(id)), err)
	}
	j.active, j.header, j.size = f, last.header, last.good
	return nil
}

// rewritten replaces a segment by a synced copy of its first size bytes, and opens the copy. The last block may be
// only in the page cache, if the previous process ended because its sync failed. The kernel then treats the pages as
// clean, and the next sync of the same file succeeds without writing them. This also cuts off a torn tail.
func (j *Journal) rewritten(id uint64, size int64) (*os.File, error) {
	path := filepath.Join(j.dir, segmentName(id))
	from, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	f, err := os.OpenFile(path+".tmp", os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if _, err = io.CopyN(f, io.NewSectionReader(from, 0, size), size); err == nil {
		err = j.sync(f)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, errors.Join(err, os.Remove(f.Name()))
	}
	if err := errors.Join(os.Rename(f.Name(), path), syncDir(j.dir)); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_RDWR, 0o600)
}

// rewrittenInPlace is rewritten for a disk without space for a copy: it cuts off a torn tail and writes the last
// block again in place.
func (j *Journal) rewrittenInPlace(id uint64, last scan) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(j.dir, segmentName(id)), os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if last.torn {
		err = f.Truncate(last.good)
	}
	if err == nil && last.blocks > 0 {
		block := make([]byte, last.good-last.final)
		if _, err = f.ReadAt(block, last.final); err == nil {
			_, err = f.WriteAt(block, last.final)
		}
	}
	if err == nil {
		err = j.sync(f)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// firstRoll is roll; on a full disk it uses the rest of the reserve.
func (j *Journal) firstRoll(id uint64) error {
	for {
		err := j.roll(id)
		if !noRoom(err) {
			return err
		}
		cut, failed := j.cutReserve(0)
		if !cut {
			return errors.Join(err, failed)
		}
	}
}

// lockDir makes this the only process that has the directory open. It waits for another process: after a kill, the
// lock remains until the kernel has freed the process's memory. That takes half a second for a large process.
func lockDir(dir string, wait time.Duration) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	const pause = 10 * time.Millisecond
	for err = syscall.Flock(
		int(f.Fd()),
		syscall.LOCK_EX|syscall.LOCK_NB,
	); errors.Is(err, syscall.EWOULDBLOCK) && wait > 0; wait -= pause {
		time.Sleep(pause)
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf(
			"journal: %s is open in another process: %w; stop that one, or give this one a directory of its own",
			dir,
			err,
		)
	}
	return f, nil
}

// Each calls f for every entry in the order of the keys. It must not run concurrently with Run: call it between Open
// and Run.
func (j *Journal) Each(f func(key string, value []byte) error) error {
	files := map[uint64]*os.File{}
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	for _, key := range sortedKeys(j.index) {
		value, err := j.read(files, j.index[key])
		if err != nil {
			return fmt.Errorf("journal: reading %q: %w", key, err)
		}
		if err := f(key, value); err != nil {
			return err
		}
	}
	return nil
}

func (j *Journal) read(files map[uint64]*os.File, p location) ([]byte, error) {
	f := files[p.segment]
	if f == nil {
		var err error
		if f, err = os.Open(filepath.Join(j.dir, segmentName(p.segment))); err != nil {
			return nil, err
		}
		files[p.segment] = f
	}
	value := make([]byte, p.length)
	_, err := f.ReadAt(value, p.at)
	return value, err
}

// Len is the number of entries.
func (j *Journal) Len() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.index)
}

// Commit queues a transaction, which becomes durable before any queued later. Run calls done, which must not block,
// from its own goroutine. Commit only waits while the journal is a whole buffer behind. The transaction may be reused
// at once.
func (j *Journal) Commit(tx *state.Tx, done func(error)) {
	ops := tx.Bytes()
	j.mu.Lock()
	for j.broken == nil && len(j.waiting) > 0 && len(j.pending)+len(ops) > j.opts.PendingBytes {
		j.written.Wait()
	}
	if err := j.broken; err != nil || len(ops) > maxBlockBytes/2 {
		j.mu.Unlock()
		if err == nil {
			err = fmt.Errorf(
				"journal: a transaction of %d bytes is above the limit of %d",
				len(ops),
				maxBlockBytes/2,
			)
		}
		done(err)
		return
	}
	j.pending = append(j.pending, ops...)
	j.waiting = append(j.waiting, done)
	j.mu.Unlock()
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// Confirm implements state.Log. The directory's lock keeps other processes out, so only a failure of the journal
// itself counts.
func (j *Journal) Confirm(context.Context) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.broken
}

// maxGather limits the wait of a flush for further transactions.
const maxGather = 2 * time.Millisecond

// gather waits after a flush for as long as that flush took. So a single transaction is written at once, while a
// stream of transactions reaches the disk in half as many groups, each twice as large. Each group costs a system call
// that blocks and wakes four goroutines, however small it is.
func (j *Journal) gather(ctx context.Context) {
	left := min(j.took, maxGather) - time.Since(j.flushed)
	if left <= 0 {
		return
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Run writes committed transactions until the context ends or the disk fails, and then closes the files. Transactions
// committed before the end are written.
func (j *Journal) Run(ctx context.Context) (err error) {
	if !j.started.CompareAndSwap(false, true) {
		return errors.New("journal: Run was called twice")
	}
	var spare []byte
	var called []func(error)
	defer func() { err = errors.Join(err, j.close(err)) }()
	look := time.NewTicker(j.opts.RoomEvery)
	defer look.Stop()
	for {
		select {
		case <-j.wake:
		case <-look.C:
			if !j.Room().Full {
				continue
			}
			if err := j.regain(); err != nil {
				return err
			}
			continue
		case r := <-j.compact:
			if err := j.finishCompaction(r); err != nil {
				return err
			}
			continue
		case <-ctx.Done():
			return j.flush(ctx, &spare, &called)
		}
		j.gather(ctx)
		if err := j.flush(ctx, &spare, &called); err != nil {
			return err
		}
	}
}

// flush writes one block with all pending transactions, syncs, and calls their done functions.
func (j *Journal) flush(ctx context.Context, spare *[]byte, called *[]func(error)) error {
	j.mu.Lock()
	if len(j.waiting) == 0 {
		j.mu.Unlock()
		return nil
	}
	block, waiting := j.pending, j.waiting
	j.pending, j.waiting = j.emptyBlock(*spare), (*called)[:0]
	j.written.Broadcast()
	j.mu.Unlock()

	began := time.Now()
	err := j.write(ctx, block)
	if err != nil {
		j.fail(err)
	}
	j.flushed = time.Now()
	j.took = j.flushed.Sub(began)
	for i, done := range waiting {
		done(err)
		waiting[i] = nil
	}
	if *spare = nil; cap(block) <= 8<<20 { // the old one is being filled
		*spare = block
	}
	*called = waiting
	if j.opts.CommitObserve != nil {
		j.opts.CommitObserve(len(waiting), len(block))
	}
	if err != nil {
		return err
	}
	return j.maybeCompact()
}

func (j *Journal) emptyBlock(spare []byte) []byte {
	return append(spare[:0], make([]byte, frameBytes)...)
}

// write makes one block durable. On a full disk it waits for space until the context ends.
func (j *Journal) write(ctx context.Context, block []byte) error {
	if len(block) == frameBytes {
		return nil
	}
	for {
		err := j.tryWrite(block)
		if noRoom(err) {
			err = j.makeRoom(ctx, len(block), err)
		} else if err == nil {
			break
		}
		if err != nil {
			return err
		}
	}
	if r := j.Room(); r.Waits {
		j.setRoom(true, false)
	}
	at := j.size + frameBytes
	j.next++
	j.size += int64(len(block))
	j.bytes += int64(len(block))
	j.mu.Lock()
	defer j.mu.Unlock()
	id := j.segments[len(j.segments)-1]
	return state.EachOp(block[frameBytes:], func(o state.Op) { j.apply(o, id, at) })
}

// tryWrite writes a block after the last one. If there is not enough space, no part of it stays.
func (j *Journal) tryWrite(block []byte) error {
	if j.size >= j.opts.SegmentBytes {
		if err := j.roll(j.segments[len(j.segments)-1] + 1); err != nil {
			return err
		}
	}
	seal(block, j.next, j.header.salt)
	_, err := j.active.WriteAt(block, j.size)
	if err == nil {
		err = j.sync(j.active)
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("journal: failed to write %s: %w; check the disk, then start the ResourceManager again",
		j.active.Name(), err)
	if noRoom(err) {
		if cut := j.active.Truncate(j.size); cut != nil {
			return fmt.Errorf("%v; and removing the partial write failed: %w", err, cut)
		}
	}
	return err
}

// apply updates the index with one operation of a block whose body begins at byte at of the segment.
func (j *Journal) apply(o state.Op, segment uint64, at int64) {
	if old, ok := j.index[string(o.Key)]; ok {
		j.live -= int64(len(o.Key) + old.length)
		if o.Delete {
			delete(j.index, string(o.Key))
		}
	}
	if !o.Delete {
		j.index[string(o.Key)] = location{segment: segment, at: at + int64(o.At), length: len(o.Value)}
		j.live += int64(len(o.Key) + len(o.Value))
	}
}

// roll seals the active segment and starts another.
func (j *Journal) roll(id uint64) error {
	h := header{kind: kindLog, first: j.next, salt: rand.Uint32()}
	f, err := os.OpenFile(filepath.Join(j.dir, segmentName(id)), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	_, err = f.Write(h.encode())
	if err = errors.Join(err, f.Sync(), syncDir(j.dir)); err != nil {
		err = errors.Join(err, f.Close(), os.Remove(f.Name()))
		return fmt.Errorf("journal: starting %s: %w", f.Name(), err)
	}
	if j.active != nil {
		j.active.Close()
	}
	j.active, j.header, j.size = f, h, headerBytes
	j.segments = append(j.segments, id)
	j.bytes += headerBytes
	return nil
}

// fail makes every later transaction fail.
func (j *Journal) fail(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.broken == nil {
		j.broken = err
	}
	j.written.Broadcast()
}

func (j *Journal) close(cause error) error {
	if cause == nil {
		cause = state.ErrClosed
	}
	j.fail(cause)
	j.mu.Lock()
	waiting := j.waiting
	j.waiting = nil
	j.mu.Unlock()
	for _, done := range waiting {
		done(cause)
	}
	if j.compact != nil {
		<-j.compact // the copier reads files of the journal: wait for it
	}
	return errors.Join(j.active.Close(), j.lock.Close())
}

// Close closes a journal on which Run was never started.
func (j *Journal) Close() error {
	if !j.started.CompareAndSwap(false, true) {
		return errors.New("journal: Run closes the journal it was started on")
	}
	return j.close(nil)
}

func (j *Journal) remove(id uint64) error {
	return os.Remove(filepath.Join(j.dir, segmentName(id)))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/creelrm/creel/subcluster/rm/state"
)

// smallDisk is a journal on a disk that has space for a block only after the wanted number of steps of the reserve
// were cut.
type smallDisk struct {
	*Journal
	wants atomic.Int64 // steps
	told  chan Room
}

func newSmallDisk(t *testing.T, dir string) *smallDisk {
	t.Helper()
	d := &smallDisk{told: make(chan Room, 100)}
	j, err := Open(dir, Options{
		ReserveBytes: 80_000, // not 1 MiB: of eight steps
		RoomEvery:    5 * time.Millisecond,
		RoomObserve:  func(r Room) { d.told <- r },
	})
	if err != nil {
		t.Fatal(err)
	}
	d.Journal = j
	j.sync = func(*os.File) error {
		info, err := os.Stat(filepath.Join(dir, reserveName))
		if err != nil {
			return err
		}
		if info.Size() > 80_000-10_000*d.wants.Load() {
			return syscall.ENOSPC
		}
		return nil
	}
	return d
}

func (d *smallDisk) next(t *testing.T) Room {
	t.Helper()
	select {
	case r := <-d.told:
		return r
	case <-time.After(5 * time.Minute): // a journal that hangs
		t.Fatalf("nothing was told of the room; it is %+v", d.Room())
		return Room{}
	}
}

// A full disk costs the reserve, step by step, and loses nothing. When that is used
// up transactions wait unanswered; they are answered when there is room, and the
// reserve is made whole again.
func TestFullDiskUsesReserveThenWaits(t *testing.T) {
	dir := t.TempDir()
	d := newSmallDisk(t, dir)
	r := run(d.Journal)
	put := func(key string) {
		t.Helper()
		if err := r.commit(func(tx *state.Tx) { tx.Put(key, []byte(key)) }); err != nil {
			t.Fatal(err)
		}
	}
	put("before")
	if got := r.Room(); got.Full {
		t.Fatalf("there is room, and it says %+v", got)
	}
	d.wants.Store(3)
	put("on the reserve")
	if got := d.next(t); !got.Full || got.Waits || got.Reserve >= 80_000 {
		t.Fatalf("when the reserve is cut first it says %+v", got)
	}
	if got := d.next(t); got.Full || got.Reserve != 80_000 {
		t.Fatalf("when there is room again it says %+v", got)
	}
	d.wants.Store(9) // more than there is
	done := make(chan error, 1)
	var tx state.Tx
	tx.Put("waits", []byte("waits"))
	r.Commit(&tx, func(err error) { done <- err })
	if got := d.next(t); !got.Full || got.Waits {
		t.Fatalf("the second time it says %+v", got)
	}
	if got := d.next(t); !got.Full || !got.Waits || got.Reserve != 0 {
		t.Fatalf("when the reserve is used up it says %+v", got)
	}
	select {
	case err := <-done:
		t.Fatalf("a transaction was answered %v without room", err)
	case <-time.After(50 * time.Millisecond):
	}
	d.wants.Store(8)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := d.next(t); !got.Full || got.Waits {
		t.Fatalf("after the wait it says %+v", got)
	}
	if got := d.next(t); got.Full || got.Reserve != 80_000 {
		t.Fatalf("at the end it says %+v", got)
	}
	d.wants.Store(0)
	r.end(t)
	if got := contents(t, dir); fmt.Sprint(got) != "map[before:before on the reserve:on the reserve waits:waits]" {
		t.Fatalf("after reopening: %v", got)
	}
}

// A journal that is stopped on a full disk without a reserve stops at once and fails the waiting transactions: none
// of them was acknowledged.
func TestAFullDiskHoldsNoEnd(t *testing.T) {
	dir := t.TempDir()
	d := newSmallDisk(t, dir)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	d.wants.Store(9)
	done := make(chan error, 1)
	var tx state.Tx
	tx.Put("never", []byte("x"))
	d.Commit(&tx, func(err error) { done <- err })
	for d.next(t); !d.Room().Waits; {
		time.Sleep(time.Millisecond)
	}
	stop()
	if err := <-done; !noRoom(err) {
		t.Fatalf("what waited was answered %v", err)
	}
	if err := <-ended; !noRoom(err) {
		t.Fatalf("Run gave %v", err)
	}
	if got := contents(t, dir); len(got) != 0 {
		t.Fatalf("after reopening: %v", got)
	}
}

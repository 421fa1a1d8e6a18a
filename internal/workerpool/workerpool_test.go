// SPDX-License-Identifier: Apache-2.0

package workerpool

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

func TestEachPieceOfWorkIsDoneOnce(t *testing.T) {
	const givers, pieces = 8, 500
	done := make([]atomic.Int32, givers*pieces)
	w := New(func(i int) { done[i].Add(1) })
	var wg sync.WaitGroup
	for g := range givers {
		wg.Go(func() {
			for i := range pieces {
				w.Give(g*pieces + i)
			}
		})
	}
	wg.Wait()
	w.Close()
	for i := range done {
		if n := done[i].Load(); n != 1 {
			t.Fatalf("piece %d was done %d times", i, n)
		}
	}
}

func TestNoPieceOfWorkWaitsForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var doing atomic.Int32
		release := make(chan struct{})
		w := New(func(struct{}) {
			doing.Add(1)
			<-release
		})
		const many = maxSpare + 50
		for range many {
			w.Give(struct{}{})
		}
		synctest.Wait()
		if n := doing.Load(); n != many {
			t.Errorf("%d of %d pieces are being done", n, many)
		}
		close(release)
		synctest.Wait()
		if n := w.spare.Load(); n != maxSpare {
			t.Errorf("%d workers wait for more, want the %d that may", n, maxSpare)
		}
		w.Close()
		if n := w.spare.Load(); n != 0 {
			t.Errorf("%d workers wait after Close", n)
		}
	})
}

func TestAWorkerThatWaitsDoesTheNextPiece(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(func(struct{}) {})
		for range 100 {
			w.Give(struct{}{})
			synctest.Wait()
			if n := w.spare.Load(); n != 1 {
				t.Fatalf("%d workers wait after one piece at a time, want 1", n)
			}
		}
		w.Close()
	})
}

func TestAPieceOfWorkMayGiveAnother(t *testing.T) {
	var w *Pool[int]
	var done atomic.Int32
	all := make(chan struct{})
	w = New(func(left int) {
		if done.Add(1); left > 0 {
			w.Give(left - 1)
		} else {
			close(all)
		}
	})
	w.Give(99)
	<-all
	w.Close()
	if n := done.Load(); n != 100 {
		t.Errorf("%d pieces were done, want 100", n)
	}
}

// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creelrm/creel/internal/propertytest"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/creelrm/creel/subcluster/rm/state"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// openJournal is a journal with its Run goroutine.
type openJournal struct {
	*Journal
	stop context.CancelFunc
	done chan error
}

func start(t testing.TB, dir string, opts Options) *openJournal {
	t.Helper()
	j, err := Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	return run(j)
}

func run(j *Journal) *openJournal {
	ctx, cancel := context.WithCancel(context.Background())
	r := &openJournal{Journal: j, stop: cancel, done: make(chan error, 1)}
	go func() { r.done <- j.Run(ctx) }()
	return r
}

func (r *openJournal) end(t testing.TB) {
	t.Helper()
	r.stop()
	if err := <-r.done; err != nil {
		t.Fatal(err)
	}
}

// commit waits for durability.
func (r *openJournal) commit(change func(*state.Tx)) error {
	var tx state.Tx
	change(&tx)
	done := make(chan error, 1)
	r.Commit(&tx, func(err error) { done <- err })
	return <-done
}

func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	j, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	return entries(t, j)
}

func entries(t testing.TB, j *Journal) map[string]string {
	t.Helper()
	got := map[string]string{}
	if err := j.Each(func(k string, v []byte) error { got[k] = string(v); return nil }); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestAcknowledgedDataSurvivesReopening(t *testing.T) {
	dir := t.TempDir()
	r := start(t, dir, Options{})
	for i := range 10 {
		if err := r.commit(func(tx *state.Tx) { tx.Put(fmt.Sprint("app/", i), []byte(strings.Repeat("x", i))) }); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.commit(
		func(tx *state.Tx) { tx.Delete("app/3"); tx.Put("app/4", []byte("new")); tx.Delete("none") },
	); err != nil {
		t.Fatal(err)
	}
	r.end(t)
	got := contents(t, dir)
	if len(got) != 9 || got["app/4"] != "new" || got["app/9"] != "xxxxxxxxx" {
		t.Fatalf("after reopening: %v", got)
	}
	if _, there := got["app/3"]; there {
		t.Fatal("a deleted key came back")
	}
}

func TestOneDirectoryHasOneOwner(t *testing.T) {
	dir := t.TempDir()
	j, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(
		dir,
		Options{LockWait: time.Millisecond},
	); err == nil ||
		!strings.Contains(err.Error(), "another process") {
		t.Fatalf("a second Open gave %v", err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	contents(t, dir)
}

func TestSuccessorWaitsForLock(t *testing.T) {
	dir := t.TempDir()
	j, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	const held = 100 * time.Millisecond
	closed := make(chan error, 1)
	began := time.Now()
	time.AfterFunc(held, func() { closed <- j.Close() })
	next, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < held {
		t.Errorf("opened after %v, while another had it open", took)
	}
	if err := errors.Join(<-closed, next.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestManyCommitsShareASync(t *testing.T) {
	dir := t.TempDir()
	j, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	syncs, gate := 0, make(chan struct{})
	plain := j.sync
	j.sync = func(f *os.File) error { <-gate; syncs++; return plain(f) }
	r := run(j)
	var wg sync.WaitGroup
	var order []int
	wg.Add(1000)
	for i := range 1000 {
		var tx state.Tx
		tx.Put(fmt.Sprint(i), nil)
		r.Commit(&tx, func(err error) {
			if err != nil {
				t.Error(err)
			}
			order = append(order, i) // one goroutine calls
			wg.Done()
		})
	}
	close(gate)
	wg.Wait()
	r.end(t)
	if syncs > 3 {
		t.Errorf("1000 transactions took %d syncs", syncs)
	}
	if !slices.IsSorted(order) {
		t.Error("transactions became durable out of order")
	}
}

func TestFailedDiskIsNotReused(t *testing.T) {
	dir := t.TempDir()
	j, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	bad, plain := errors.New("no space"), j.sync
	fail := false
	j.sync = func(f *os.File) error {
		if fail {
			return bad
		}
		return plain(f)
	}
	r := run(j)
	if err := r.commit(func(tx *state.Tx) { tx.Put("a", []byte("1")) }); err != nil {
		t.Fatal(err)
	}
	fail = true
	if err := r.commit(func(tx *state.Tx) { tx.Put("b", []byte("2")) }); !errors.Is(err, bad) {
		t.Fatalf("the failed sync was answered %v", err)
	}
	if err := <-r.done; !errors.Is(err, bad) {
		t.Fatalf("Run ended with %v", err)
	}
	fail = false
	if err := r.commit(func(tx *state.Tx) { tx.Put("c", []byte("3")) }); !errors.Is(err, bad) {
		t.Fatalf("after the failure a commit was answered %v", err)
	}
	r.stop()
	if got := contents(t, dir); got["a"] != "1" || got["c"] != "" {
		t.Fatalf("after reopening: %v", got)
	}
}

// blocksOf writes n single-key blocks into a fresh directory and returns the
// segment's bytes and the end offset of each block.
func blocksOf(t testing.TB, n int) (name string, whole []byte, ends []int) {
	t.Helper()
	dir := t.TempDir()
	r := start(t, dir, Options{})
	path := filepath.Join(dir, segmentName(1))
	ends = []int{headerBytes}
	for i := range n {
		if err := r.commit(
			func(tx *state.Tx) { tx.Put(fmt.Sprint("k", i), []byte{byte(i), 0xC7, 0xEE, 0x1B, 0x10}) },
		); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, int(info.Size()))
	}
	r.end(t)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return segmentName(1), whole, ends
}

func openBytes(t testing.TB, name string, b []byte) (*Journal, string, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
		t.Fatal(err)
	}
	j, err := Open(dir, Options{})
	return j, dir, err
}

func TestCrashLosesOnlyBlockInFlight(t *testing.T) {
	name, whole, ends := blocksOf(t, 6)
	for cut := headerBytes; cut <= len(whole); cut++ {
		j, dir, err := openBytes(t, name, whole[:cut])
		if err != nil {
			t.Fatalf("cut at byte %d: %v", cut, err)
		}
		want := 0
		for want+1 < len(ends) && ends[want+1] <= cut {
			want++
		}
		if j.Len() != want {
			t.Fatalf("cut at byte %d: %d entries, want the first %d", cut, j.Len(), want)
		}
		// The journal must be writable behind the cut.
		r := run(j)
		if err := r.commit(func(tx *state.Tx) { tx.Put("after", []byte("cut")) }); err != nil {
			t.Fatal(err)
		}
		r.end(t)
		got := contents(t, dir)
		if len(got) != want+1 || got["after"] != "cut" {
			t.Fatalf("cut at byte %d, written and reopened: %v", cut, got)
		}
	}
}

// A crash at the very first start leaves a segment without its header: nothing was ever
// written to the journal.
func TestAnEmptyFirstSegmentIsANewJournal(t *testing.T) {
	whole := header{kind: kindLog, first: 1, salt: 7}.encode()
	for cut := range len(whole) {
		j, dir, err := openBytes(t, segmentName(1), whole[:cut])
		if err != nil {
			t.Fatalf("with %d bytes of the header: %v", cut, err)
		}
		r := run(j)
		if err := r.commit(func(tx *state.Tx) { tx.Put("first", []byte("start")) }); err != nil {
			t.Fatal(err)
		}
		r.end(t)
		if got := contents(t, dir); len(got) != 1 || got["first"] != "start" {
			t.Fatalf("with %d bytes of the header, written and reopened: %v", cut, got)
		}
	}
	// Later segments prove that there was more.
	if _, _, err := openBytes(t, segmentName(2), nil); !errors.Is(err, ErrCorrupt) {
		t.Errorf("an empty second segment without a first gave %v", err)
	}
}

func TestDamageIsCutAtEndRefusedInMiddle(t *testing.T) {
	name, whole, ends := blocksOf(t, 4)
	last := ends[len(ends)-2]
	for at := range whole {
		b := slices.Clone(whole)
		b[at] ^= 0x40
		j, dir, err := openBytes(t, name, b)
		if at >= last {
			if err != nil || j.Len() != 3 {
				t.Fatalf("byte %d of the last block: %v", at, err)
			}
			j.Close()
			continue
		}
		if at >= 9 && at < 12 && err == nil { // padding is under the header's checksum
			t.Fatalf("byte %d of the header passed", at)
		}
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "repair") {
			t.Fatalf("byte %d: %v", at, err)
		}
		if at < headerBytes {
			continue
		}
		s, err := Repair(dir)
		if err != nil || s.Entries != 3 || len(s.Damage) != 1 {
			t.Fatalf("byte %d: repair gave %+v, %v", at, s, err)
		}
		if got := contents(t, dir); len(got) != 3 || got["k3"] == "" {
			t.Fatalf("byte %d: after repair %v", at, got)
		}
		if again, err := Repair(dir); err != nil || len(again.Damage) != 0 {
			t.Fatalf("repairing the repaired: %+v, %v", again, err)
		}
	}
}

func TestAMissingSegmentIsRefused(t *testing.T) {
	dir := t.TempDir()
	r := start(t, dir, Options{SegmentBytes: 200})
	for i := range 30 {
		if err := r.commit(func(tx *state.Tx) { tx.Put(fmt.Sprint("key", i), bytes.Repeat([]byte("v"), 50)) }); err != nil {
			t.Fatal(err)
		}
	}
	r.end(t)
	ids, err := segments(dir)
	if err != nil || len(ids) < 5 {
		t.Fatalf("segments %v, %v", ids, err)
	}
	if err := os.Remove(filepath.Join(dir, segmentName(ids[2]))); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{}); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "missing") {
		t.Fatalf("without a segment: %v", err)
	}
}

func TestCompactionKeepsTheLiveAndForgetsTheDead(t *testing.T) {
	dir := t.TempDir()
	opts := Options{SegmentBytes: 4 << 10, CompactBytes: 16 << 10, ReserveBytes: -1}
	r := start(t, dir, opts)
	want := map[string]string{}
	written := 0
	for round := range 2000 {
		key, value := fmt.Sprint("k", round%37), fmt.Sprintf("%d %s", round, strings.Repeat("v", 60))
		drop := fmt.Sprint("k", (round*7)%41)
		if err := r.commit(func(tx *state.Tx) { tx.Delete(drop); tx.Put(key, []byte(value)) }); err != nil {
			t.Fatal(err)
		}
		delete(want, drop)
		want[key] = value
		written += len(value)
	}
	r.end(t)
	if got := contents(t, dir); !maps.Equal(got, want) {
		t.Fatalf("after %d rounds %d entries, want %d", 2000, len(got), len(want))
	}
	size := 0
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Name() == reserveName {
			continue
		}
		info, _ := f.Info()
		size += int(info.Size())
	}
	if size > written/2 {
		t.Errorf("%d bytes were written and %d are still on disk", written, size)
	}
}

func TestCrashBeforeOldFileRemovalResurrectsNothing(t *testing.T) {
	dir := t.TempDir()
	r := start(t, dir, Options{SegmentBytes: 100, CompactBytes: 1 << 40})
	for i := range 10 {
		if err := r.commit(func(tx *state.Tx) { tx.Put(fmt.Sprint("k", i), bytes.Repeat([]byte("v"), 100)) }); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.commit(func(tx *state.Tx) { tx.Delete("k0") }); err != nil {
		t.Fatal(err)
	}
	r.end(t)
	ids, err := segments(dir)
	if err != nil {
		t.Fatal(err)
	}
	// Write the base by hand over all but the last segment, and leave the old.
	last := ids[len(ids)-1]
	j, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	live := entries(t, j)
	tmp, _, err := writeBase(dir, last, j.next, func(put func(string, []byte) error) error {
		for _, k := range sortedKeys(live) {
			if err := put(k, []byte(live[k])); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	j.Close()
	if err := os.Rename(tmp, filepath.Join(dir, segmentName(last))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "half.tmp"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, dir); !maps.Equal(got, live) || got["k0"] != "" {
		t.Fatalf("after the crash: %d entries, want %d", len(got), len(live))
	}
	left, _ := segments(dir)
	if len(left) != 2 { // the base and the new active segment
		t.Errorf("segments left: %v", left)
	}
}

// The property: after any commits, compactions and reopenings, the journal equals a plain map.
func TestAJournalIsAMap(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "journal")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		opts := Options{SegmentBytes: 300, CompactBytes: 600, WithoutSync: true}
		model := map[string]string{}
		for range rapid.IntRange(1, 4).Draw(t, "lives") {
			j, err := Open(dir, opts)
			if err != nil {
				t.Fatal(err)
			}
			r := run(j)
			for range rapid.IntRange(0, 40).Draw(t, "commits") {
				err := r.commit(func(tx *state.Tx) {
					for range rapid.IntRange(0, 3).Draw(t, "operations") {
						key := rapid.StringMatching("[a-d]{1,2}").Draw(t, "key")
						if rapid.Bool().Draw(t, "delete") {
							tx.Delete(key)
							delete(model, key)
							continue
						}
						value := rapid.StringN(0, 40, -1).Draw(t, "value")
						tx.Put(key, []byte(value))
						model[key] = value
					}
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			r.stop()
			if err := <-r.done; err != nil {
				t.Fatal(err)
			}
		}
		j, err := Open(dir, opts)
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		got := map[string]string{}
		if err := j.Each(func(k string, v []byte) error { got[k] = string(v); return nil }); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(got, model) {
			t.Fatalf("journal %v, map %v", got, model)
		}
	})
}

func FuzzSegment(t *testing.F) {
	f := propertytest.Fuzz(t)
	_, whole, ends := blocksOf(f, 3)
	f.Add(whole)
	f.Add(whole[:ends[1]+5])
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := scanSegment(b, func(body []byte, _ int64) error { return state.EachOp(body, func(state.Op) {}) })
		if err == nil && (s.good > int64(len(b)) || (!s.torn && s.good != int64(len(b)))) {
			t.Fatalf("%d bytes scanned as %+v", len(b), s)
		}
		_ = state.EachOp(b, func(o state.Op) {
			if !bytes.Equal(o.Value, b[o.At:o.At+len(o.Value)]) {
				t.Fatal("an operation's value is not where it says")
			}
		})
	})
}

func BenchmarkCommit(b *testing.B) {
	value := bytes.Repeat([]byte("v"), 200)
	for _, inFlight := range []int{1, 256, 4096} {
		b.Run(fmt.Sprint("inflight=", inFlight), func(b *testing.B) {
			r := start(b, b.TempDir(), Options{})
			slots := make(chan struct{}, inFlight)
			var tx state.Tx
			b.ResetTimer()
			for i := range b.N {
				slots <- struct{}{}
				tx.Reset()
				tx.Put(fmt.Sprintf("app/%010d", i), value)
				r.Commit(&tx, func(error) { <-slots })
			}
			r.end(b)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
		})
	}
}

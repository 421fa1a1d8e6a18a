// SPDX-License-Identifier: Apache-2.0

package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/subcluster/rm/journal"
	"github.com/creelrm/creel/subcluster/rm/state"
	"github.com/creelrm/creel/subcluster/rm/transfer"
	"github.com/creelrm/creel/subcluster/rm/turn"
)

var taken = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func open(t testing.TB, dir string) *journal.Journal {
	t.Helper()
	j, err := journal.Open(dir, journal.Options{WithoutSync: true})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// filled makes a journal with the entries.
func filled(t testing.TB, entries map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	j := open(t, dir)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- j.Run(ctx) }()
	var tx state.Tx
	for key, value := range entries {
		tx.Put(key, []byte(value))
	}
	j.Commit(&tx, func(error) {})
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	return dir
}

func entriesOf(t testing.TB, dir string) map[string]string {
	t.Helper()
	j := open(t, dir)
	defer j.Close()
	out := map[string]string{}
	if err := j.Each(func(key string, value []byte) error {
		out[key] = string(value)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

func exported(t testing.TB, dir string) []byte {
	t.Helper()
	j := open(t, dir)
	defer j.Close()
	var b bytes.Buffer
	if _, err := transfer.Export(j, &b, "the journal", taken); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// many is a state of more than one transaction, with values that are no text.
func many() map[string]string {
	out := map[string]string{"meta": `{"starts":1}`, "empty": "", "secrets": "\x00\xff\n\r"}
	for i := range 3000 {
		out[fmt.Sprintf("app/%d", i)] = strings.Repeat(string(rune('a'+i%26)), i)
	}
	return out
}

func TestImportRestoresWhatExportWrote(t *testing.T) {
	want := many()
	file := exported(t, filled(t, want))
	to := t.TempDir()
	n, err := transfer.Import(t.Context(), open(t, to), bytes.NewReader(file))
	if err != nil || n != len(want) {
		t.Fatalf("%d entries of %d: %v", n, len(want), err)
	}
	if got := entriesOf(t, to); !maps.Equal(got, want) {
		t.Errorf("%d entries differ from the %d exported", len(got), len(want))
	}
	if again := exported(t, to); !bytes.Equal(again, file) {
		t.Error("the file of the same state differs")
	}
	_, err = transfer.Import(t.Context(), open(t, to), bytes.NewReader(file))
	if err == nil || !strings.Contains(err.Error(), "only an empty one") {
		t.Errorf("a state in use is filled: %v", err)
	}
}

// A file that is damaged anywhere changes nothing.
func TestDamagedFileChangesNothing(t *testing.T) {
	file := exported(t, filled(t, map[string]string{"a": "1", "b": "22", "c": ""}))
	damaged := map[string][]byte{"empty": nil, "twice": append(bytes.Clone(file), file...)}
	for i := range file {
		damaged[fmt.Sprintf("without byte %d", i)] = append(bytes.Clone(file[:i]), file[i+1:]...)
		damaged[fmt.Sprintf("cut at %d", i)] = file[:i]
		flipped := bytes.Clone(file)
		flipped[i] ^= 1
		damaged[fmt.Sprintf("byte %d flipped", i)] = flipped
	}
	for name, b := range damaged {
		if bytes.Equal(bytes.TrimRight(b, "\n"), bytes.TrimRight(file, "\n")) {
			continue // without its last byte the file is whole
		}
		l := &memory{entries: map[string]string{}}
		if _, err := transfer.Import(t.Context(), l, bytes.NewReader(b)); err == nil {
			t.Errorf("%s: imported", name)
		}
		if len(l.entries) != 0 || !l.closed {
			t.Errorf("%s: %d entries, closed: %v", name, len(l.entries), l.closed)
		}
	}
}

// An import that ends half-way leaves a mark, with which nothing can be exported. A repeat replaces all of it.
func TestImportThatDidNotEndIsRepeated(t *testing.T) {
	want := many()
	file := exported(t, filled(t, want))
	for broken := 0; ; broken++ {
		l := &memory{entries: map[string]string{}, failAt: broken + 1}
		_, err := transfer.Import(t.Context(), l, bytes.NewReader(file))
		if err == nil {
			if broken < 4 {
				t.Fatalf("the import has %d transactions", broken)
			}
			break
		}
		if !errors.Is(err, errFull) {
			t.Fatal(err)
		}
		if _, marked := l.entries[transfer.Mark]; marked != (broken > 0) {
			t.Fatalf("after %d transactions the mark is there: %v", broken, marked)
		}
		l.failAt = 0
		l.entries["stale"] = "of the first file"
		if broken == 0 {
			continue
		}
		if _, err := transfer.Export(l, &bytes.Buffer{}, "", taken); err == nil {
			t.Fatal("a part of a state is exported")
		}
		if _, err := transfer.Import(t.Context(), l, bytes.NewReader(file)); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(l.entries, want) {
			t.Fatalf("after %d transactions and a repeat there are %d entries of %d", broken, len(l.entries), len(want))
		}
	}
}

func TestRemoveAndFormat(t *testing.T) {
	one, two := creel.ApplicationID{ClusterTimestamp: 1, ID: 1}, creel.ApplicationID{ClusterTimestamp: 1, ID: 10}
	entries := map[string]string{"meta": "{}", turn.AppKey(one): "1", turn.AppKey(two): "2"}
	for n := range int32(3) {
		entries[turn.AttemptKey(creel.AttemptID{Application: one, Attempt: n + 1})] = "a"
		entries[turn.AttemptKey(creel.AttemptID{Application: two, Attempt: n + 1})] = "a"
	}
	dir := filled(t, entries)
	n, err := transfer.RemoveApplication(t.Context(), open(t, dir), one)
	if err != nil || n != 4 {
		t.Fatalf("%d entries removed: %v", n, err)
	}
	left := entriesOf(t, dir)
	if len(left) != 5 || left[turn.AppKey(two)] != "2" {
		t.Errorf("left: %v", left)
	}
	if n, err := transfer.RemoveApplication(t.Context(), open(t, dir), one); err != nil || n != 0 {
		t.Errorf("%d entries removed twice: %v", n, err)
	}
	if n, err := transfer.Format(t.Context(), open(t, dir)); err != nil || n != 5 {
		t.Errorf("%d entries removed: %v", n, err)
	}
	if left := entriesOf(t, dir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// A deletion that ends half-way leaves the mark too, and is repeated.
func TestFormatThatDidNotEndIsRepeated(t *testing.T) {
	for failAt := 1; failAt <= 2; failAt++ {
		l := &memory{entries: many(), failAt: failAt}
		if _, err := transfer.Format(t.Context(), l); !errors.Is(err, errFull) {
			t.Fatal(err)
		}
		if _, marked := l.entries[transfer.Mark]; marked != (failAt > 1) {
			t.Errorf("after %d transactions the mark is there: %v", failAt-1, marked)
		}
		l.failAt = 0
		if _, err := transfer.Format(t.Context(), l); err != nil || len(l.entries) != 0 {
			t.Errorf("%d entries are left: %v", len(l.entries), err)
		}
	}
}

// FuzzImport: no file makes Import panic, and one that it refuses changes nothing.
func FuzzImport(t *testing.F) {
	f := propertytest.Fuzz(t)
	f.Add(exported(t, filled(t, map[string]string{"a": "1", "b": ""})))
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		l := &memory{entries: map[string]string{}}
		n, err := transfer.Import(t.Context(), l, bytes.NewReader(file))
		if err != nil && len(l.entries) != 0 || err == nil && n != len(l.entries) {
			t.Errorf("%d entries of %d: %v", len(l.entries), n, err)
		}
	})
}

var errFull = errors.New("the disk is full")

// memory is a state without durability, whose transaction number failAt fails.
type memory struct {
	entries map[string]string
	failAt  int
	commits int
	closed  bool
}

func (m *memory) Each(f func(key string, value []byte) error) error {
	for _, key := range slices.Sorted(maps.Keys(m.entries)) {
		if err := f(key, []byte(m.entries[key])); err != nil {
			return err
		}
	}
	return nil
}

func (m *memory) Commit(tx *state.Tx, done func(error)) {
	if m.commits++; m.commits == m.failAt {
		done(errFull)
		return
	}
	done(state.EachOp(tx.Bytes(), func(o state.Op) {
		if o.Delete {
			delete(m.entries, string(o.Key))
		} else {
			m.entries[string(o.Key)] = string(o.Value)
		}
	}))
}

func (m *memory) Confirm(context.Context) error { return nil }

func (m *memory) Run(ctx context.Context) error {
	<-ctx.Done()
	return m.Close()
}

func (m *memory) Close() error {
	m.closed = true
	return nil
}

func TestFillNeedsAnEmptyState(t *testing.T) {
	want := map[string]string{"a": "1", "b": "2"}
	dir := t.TempDir()
	if err := transfer.Fill(t.Context(), open(t, dir), map[string][]byte{"a": []byte("1"), "b": []byte("2")}); err != nil {
		t.Fatal(err)
	}
	if got := entriesOf(t, dir); !maps.Equal(got, want) {
		t.Errorf("the state has %v", got)
	}
	err := transfer.Fill(t.Context(), open(t, dir), map[string][]byte{"c": nil})
	if err == nil || !strings.Contains(err.Error(), "only an empty one") || !maps.Equal(entriesOf(t, dir), want) {
		t.Errorf("a state was filled twice: %v", err)
	}
}

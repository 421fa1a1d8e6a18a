// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creelrm/creel/subcluster/rm/journal"
	"github.com/creelrm/creel/subcluster/rm/state"
)

// A journal with a bad block in its middle is refused with the command that
// repairs it; that command keeps the rest, and then the journal opens.
func TestDamagedJournalErrorNamesRepairCommand(t *testing.T) {
	dir := t.TempDir()
	write(t, dir)
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	damaged := false
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if at := bytes.Index(b, []byte("value 1")); at >= 0 {
			b[at] ^= 0x40
			damaged = true
			if err := os.WriteFile(name, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !damaged {
		t.Fatal("no file holds the entry")
	}
	if _, err := journal.Open(
		dir,
		journal.Options{},
	); err == nil ||
		!strings.Contains(err.Error(), "creel rm repair --data "+dir) {
		t.Fatalf("the damaged journal opens with %v", err)
	}
	if code := run(t.Context(), []string{"rm", "repair", "--data", dir}); code != exitOK {
		t.Fatalf("repair: exit code %d", code)
	}
	j, err := journal.Open(dir, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if j.Len() != 2 {
		t.Errorf("%d entries are kept, want 2", j.Len())
	}
	if code := run(t.Context(), []string{"rm", "repair", "--data", filepath.Join(dir, "nowhere")}); code == exitOK {
		t.Error("a directory that is not there is repaired")
	}
	if code := run(t.Context(), []string{"rm", "repair", "--data", dir}); code == exitOK {
		t.Error("a journal in use is repaired")
	}
}

// write makes a journal of three blocks.
func write(t *testing.T, dir string) {
	t.Helper()
	j, err := journal.Open(dir, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- j.Run(ctx) }()
	for i := range 3 {
		var tx state.Tx
		tx.Put(fmt.Sprintf("key %d", i), fmt.Appendf(nil, "value %d", i))
		done := make(chan error, 1)
		j.Commit(&tx, func(err error) { done <- err })
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	_ = j.Close()
}

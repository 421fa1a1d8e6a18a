// SPDX-License-Identifier: Apache-2.0

package role

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A ResourceManager without a journal, or with one in memory, warns at its start and sets its metric.
func TestVolatileJournalIsReported(t *testing.T) {
	shm, err := os.MkdirTemp("/dev/shm", "creel-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(shm) })
	cache, err := os.UserCacheDir() // /tmp may be in memory, and the tree is not for tests to write in
	if err == nil {
		err = os.MkdirAll(cache, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	disk, err := os.MkdirTemp(cache, "creel-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(disk) })
	for dir, want := range map[string]string{
		"":                             "creel.rm.data is not set",
		filepath.Join(shm, "journal"):  "creel.rm.data is in memory",
		filepath.Join(disk, "journal"): "",
	} {
		conf, err := RMSettings(minimal(t, "creel.rm.data="+dir), nil)
		if err != nil {
			t.Fatal(err)
		}
		const any = "127.0.0.1:0"
		p := &conf.Ports
		p.Client, p.Scheduler, p.Tracker, p.Admin, conf.Web = any, any, any, any, any
		rm, err := NewRM(conf)
		if err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		rm.WarnOfVolatileJournal(slog.New(slog.NewTextHandler(&log, nil)))
		if want == "" && log.Len() > 0 || !strings.Contains(log.String(), want) {
			t.Errorf("with the journal %q: %q", dir, log.String())
		}
		metric := "creel_rm_journal_volatile 1\n"
		if want == "" {
			metric = "creel_rm_journal_volatile 0\n"
		}
		if !strings.Contains(metricsOf(rm.Health), metric) {
			t.Errorf("with the journal %q not %s", dir, metric)
		}
		if err := rm.Close(); err != nil {
			t.Error(err)
		}
	}
}

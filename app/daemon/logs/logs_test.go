// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creelrm/creel/internal/audit"
)

// writes remembers each write.
type writes [][]byte

func (w *writes) Write(b []byte) (int, error) {
	*w = append(*w, bytes.Clone(b))
	return len(b), nil
}

func TestConcurrentLinesAreBatchedWithoutLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w writes
		l := lines{out: &w}
		log := slog.New(flushHandler{slog.NewTextHandler(&l, nil), &l}).With("of", "test")
		see := func(want ...string) {
			t.Helper()
			synctest.Wait()
			l.mu.Lock()
			seen := w
			w = nil
			l.mu.Unlock()
			if len(seen) != len(want) {
				t.Fatalf("%d writes: %q", len(seen), seen)
			}
			for i, lines := range want {
				for _, message := range strings.Fields(lines) {
					if !bytes.Contains(seen[i], []byte("msg="+message+" of=test")) {
						t.Errorf("write %d lacks %q: %q", i, message, seen[i])
					}
				}
				if got, n := bytes.Count(seen[i], []byte("\n")), len(strings.Fields(lines)); got != n {
					t.Errorf("write %d has %d lines, not %d: %q", i, got, n, seen[i])
				}
			}
		}

		log.Info("alone")
		see("alone")

		log.Info("second")
		log.Info("third")
		see()
		time.Sleep(pause)
		see("second third")

		log.Info("before")
		log.Warn("trouble")
		see("before trouble")
		log.Info("after")
		time.Sleep(pause)
		see("after")

		log.Info("last")
		l.flush()
		see("last")
		time.Sleep(pause)
		see()

		time.Sleep(pause)
		log.Info("first")
		log.Info("big", "text", strings.Repeat("x", capacity))
		see("first", "big")
	})
}

// Lines of audit are in Hadoop's form where that is asked for; all others stay as they are.
func TestAuditInHadoopsForm(t *testing.T) {
	for role, logger := range map[string]string{
		"rm": "resourcemanager.RMAuditLogger", "router": "router.RouterAuditLogger", "proxy": "creel.AuditLogger",
	} {
		var w writes
		to := &lines{out: &w}
		log := slog.New(Config{Audit: "hadoop", Role: role}.handler(to, true)).With("of", "test")
		log.Info("serves")
		audit.Line{User: "ann", From: "10.0.0.7:1", Operation: "refreshQueues", Result: audit.Success}.Log(log)
		to.flush()
		text := string(bytes.Join(w, nil))
		if want := " INFO " + logger + ": USER=ann\tIP=10.0.0.7\tOPERATION=refreshQueues\tRESULT=SUCCESS\n"; !strings.HasSuffix(text, want) ||
			!strings.Contains(text, "msg=serves") {
			t.Errorf("%q lacks %q", text, want)
		}
	}
}

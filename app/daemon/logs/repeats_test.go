// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creelrm/creel/internal/audit"
)

// repeated returns a logger without times, and a function that returns the lines written since its last call.
func repeated() (*slog.Logger, *repeats, func() []string) {
	var w writes
	l := lines{out: &w}
	s := &repeats{}
	text := slog.NewTextHandler(&l, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	return slog.New(repeatHandler{Handler: text, repeats: s}), s, func() []string {
		synctest.Wait()
		l.flush()
		l.mu.Lock()
		defer l.mu.Unlock()
		text := string(bytes.Join(w, nil))
		w = nil
		return slices.DeleteFunc(strings.Split(text, "\n"), func(l string) bool { return l == "" })
	}
}

func TestErrorsOfOneKindAreWrittenOnceWithCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, _, written := repeated()
		see := func(want ...string) {
			t.Helper()
			if got := written(); !slices.Equal(got, want) {
				t.Errorf("written\n%q, want\n%q", got, want)
			}
		}
		later := func() {
			time.Sleep(Silence)
			synctest.Wait()
		}
		fails := func(i int) {
			log.Warn("failed", "subcluster", "sc-1", "application", fmt.Sprint(i), "error", errors.New("away"))
		}
		for i := range 5 {
			fails(i)
		}
		see(`level=WARN msg=failed subcluster=sc-1 application=0 error=away`)
		later()
		see(`level=WARN msg=failed subcluster=sc-1 application=4 error=away lines=4`)

		fails(5) // still silent
		see()
		later()
		see(`level=WARN msg=failed subcluster=sc-1 application=5 error=away lines=1`)

		later() // quiet for a whole silence
		fails(6)
		see(`level=WARN msg=failed subcluster=sc-1 application=6 error=away`)
		time.Sleep(2 * Silence)
		see()
	})
}

func TestOtherKindsAreWrittenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, s, written := repeated()
		log.Warn("failed", "subcluster", "sc-1")
		log.Warn("failed", "subcluster", "sc-2")
		log.Error("failed", "subcluster", "sc-1")
		log.With("part", "tidy").Warn("failed", "subcluster", "sc-1")
		log.With("part", "tidy").Info("started")
		log.With("part", "tidy").Info("started")
		if got := written(); len(got) != 6 {
			t.Errorf("%d of 6 lines are written: %q", len(got), got)
		}
		s.flush()
	})
}

// The end of a process loses no count.
func TestHeldLinesAreWrittenAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, s, written := repeated()
		for range 3 {
			log.Error("failed")
		}
		s.flush()
		if got := written(); len(got) != 2 || got[1] != "level=ERROR msg=failed lines=2" {
			t.Errorf("written %q", got)
		}
	})
}

func TestKindsOfSilentLinesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, s, written := repeated()
		for i := range kindsMost + 10 {
			for range 2 {
				log.Warn(fmt.Sprintf("failed-%d", i))
			}
		}
		if got := len(written()); got != kindsMost+20 || len(s.kinds) != kindsMost {
			t.Errorf("%d lines are written, %d kinds kept", got, len(s.kinds))
		}
		s.flush()
	})
}

// Each rejected call has its line: of 50 users who try the same change, the log names all.
func TestAuditLinesAreNeverHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, s, written := repeated()
		for i := range 50 {
			audit.Line{
				User: fmt.Sprint("user", i), Operation: "forceKillApplication", Target: "application_1_0001",
				Result: audit.Failure, Error: "not permitted",
			}.Log(log)
		}
		if got := written(); len(got) != 50 || !strings.Contains(got[49], "user=user49") {
			t.Errorf("%d of 50 lines are written: %q", len(got), got)
		}
		s.flush()
	})
}

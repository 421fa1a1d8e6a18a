// SPDX-License-Identifier: Apache-2.0

package redis_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creelrm/creel/statestore/redis"
	"github.com/creelrm/creel/statestore/redis/redistest"
	"github.com/creelrm/creel/statestore/storetest"
)

// lines is a writer for concurrent loggers.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// The client library's messages about broken connections go to the store's log. The test runs alone, since the
// library has one logger for the process.
func TestTheClientLibrarySpeaksThroughTheStoresLog(t *testing.T) {
	server := redistest.Start(t)
	var out lines
	s := open(
		t,
		redis.Config{
			URL:     server.URL(),
			Timeout: 200 * time.Millisecond,
			Log:     slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})),
		},
	)
	claimed(t, s, 1, "sc-1", "sc-1")
	server.Kill()
	for given := 500 * time.Millisecond; !strings.Contains(out.String(), `level=DEBUG msg="redis client" says=`); given *= 2 {
		if given > time.Minute {
			t.Fatalf("nothing was logged; the log is %q", out.String())
		}
		ctx, cancel := context.WithTimeout(t.Context(), given)
		if _, _, err := s.Claim(ctx, storetest.App(2), "sc-1", nil); err == nil {
			t.Fatal("a dead server answered")
		}
		cancel()
	}
}

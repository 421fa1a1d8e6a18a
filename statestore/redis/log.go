// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"fmt"
	"log/slog"

	goredis "github.com/redis/go-redis/v9"
)

// clientLog receives the client library's messages, which would go to stderr: failed connections and switches of a
// primary. Callers get the same facts once, as errors with a reason, so these messages are for debugging.
type clientLog struct{ log *slog.Logger }

func (l clientLog) Printf(ctx context.Context, format string, args ...any) {
	if l.log.Enabled(ctx, slog.LevelDebug) {
		l.log.DebugContext(ctx, "redis client", "says", fmt.Sprintf(format, args...))
	}
}

// listen sets the library's logger. The library has one logger per process: that of the store opened last.
func listen(log *slog.Logger) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	goredis.SetLogger(clientLog{log})
}

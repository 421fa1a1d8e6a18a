// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"fmt"
	"log/slog"

	goredis "github.com/redis/go-redis/v9"
)

// clientLog receives the client library's messages, which would go to stderr: each connection that fails, each switch
// of a primary. Callers learn the same from their errors, once and with a reason, so this is for debugging.
type clientLog struct{ log *slog.Logger }

func (l clientLog) Printf(ctx context.Context, format string, args ...any) {
	if l.log.Enabled(ctx, slog.LevelDebug) {
		l.log.DebugContext(ctx, "redis client", "says", fmt.Sprintf(format, args...))
	}
}

// listen sets it. The library has one logger for the process: that of the store that was opened last.
func listen(log *slog.Logger) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	goredis.SetLogger(clientLog{log})
}

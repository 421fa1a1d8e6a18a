// SPDX-License-Identifier: Apache-2.0

package redisstate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/creelrm/creel/statestore/redis"
)

// lookScript answers with the name and the last write of the process that opened the state last, and changes neither.
var lookScript = redis.NewScript("rm state look", clock+`
redis.call('HSET', KEYS[1], 'looked', string.format('%.0f', us))
local h = redis.call('HMGET', KEYS[1], 'holder', 'written')
return {'OK', h[1] or '', h[2] or ''}
`)

// InUse waits for three times as long as an idle holder waits between its writes. It returns the holder's name if there
// was a write, and "" if the state has no running holder. It takes nothing from a holder.
func InUse(ctx context.Context, cfg Config) (holder string, err error) {
	scripts, err := redis.OpenScripts(cfg.Redis)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, scripts.Close()) }()
	keys := []string{scripts.Key("rm:"+cfg.Name, "meta")}
	look := func() (holder, written string, err error) {
		list, err := scripts.Write(ctx, lookScript, keys)
		if err != nil {
			return "", "", fmt.Errorf("resource manager's state in Redis: %w", err)
		}
		holder, _ = list[1].(string)
		written, _ = list[2].(string)
		return holder, written, nil
	}
	_, before, err := look()
	if err != nil || before == "" {
		return "", err
	}
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case <-time.After(3 * cmp.Or(cfg.Check, time.Second)):
	}
	holder, now, err := look()
	if err != nil || now == before {
		return "", err
	}
	return holder, nil
}

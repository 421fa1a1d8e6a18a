// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/redis"
	"github.com/creelrm/creel/subcluster/rm/pair"
	pairserver "github.com/creelrm/creel/subcluster/rm/pair/server"
	"github.com/creelrm/creel/subcluster/rm/redisstate"
	"github.com/creelrm/creel/subcluster/rm/state"
)

// stateURL is the setting that keeps a ResourceManager's state in Redis.
const stateURL = "creel.rm.state.url"

// stateInRedis is a state in Redis.
type stateInRedis struct{ redisstate.Config }

// redisState reads the settings of a state in Redis.
func redisState(s *settings.Settings, name, holder string, log *slog.Logger) (sharedState, error) {
	url := s.String(stateURL)
	conf := redis.Config{
		URL: url, Prefix: s.String("creel.store.prefix"), Timeout: s.Duration("creel.store.timeout"), Log: log,
	}
	switch {
	case !strings.HasPrefix(url, "redis"):
		return nil, fmt.Errorf("it is not a Redis URL, such as redis://127.0.0.1:6379")
	case hasPassword(url) && !s.Bool("hadoop.security.credential.clear-text-fallback"):
		return nil, fmt.Errorf("it has a password, and hadoop.security.credential.clear-text-fallback=false forbids that")
	}
	var err error
	if conf.TLS, err = redisTLS(s); err != nil {
		return nil, err
	}
	conf.Password, err = storePassword(s, "creel.rm.state.password", "creel.rm.state.password-file")
	return stateInRedis{redisstate.Config{Redis: conf, Name: name, Holder: holder, Log: log}}, err
}

func (stateInRedis) place() string { return "Redis" }

func (r stateInRedis) open(ctx context.Context) (state.Log, error) {
	l, err := redisstate.Open(ctx, r.Config)
	if err != nil {
		return nil, err
	}
	r.logHealth(ctx, l.Health)
	return l, nil
}

func (r stateInRedis) inUse(ctx context.Context) (string, error) {
	return redisstate.InUse(ctx, r.Config)
}

// tailOfPair is about the number of groups that an active one keeps for its standby: several seconds under full load.
const tailOfPair = 4000

func (r stateInRedis) ofPair(id string) sharedState {
	r.Holder, r.Tail = id, tailOfPair
	return r
}

func (r stateInRedis) follow() (state.Follower, error) {
	f, err := redisstate.NewFollower(r.Config)
	if err != nil {
		return nil, err
	}
	return redisFollower{f, r}, nil
}

// redisFollower logs at its takeover what the Redis of a state may lose.
type redisFollower struct {
	*redisstate.Follower
	state stateInRedis
}

func (f redisFollower) Lead(ctx context.Context) (state.Log, error) {
	l, err := f.Follower.Lead(ctx)
	if err == nil {
		f.state.logHealth(ctx, f.Health)
	}
	return l, err
}

// logHealth logs what the Redis of a state may lose.
func (r stateInRedis) logHealth(
	ctx context.Context, health func(context.Context) ([]statestore.Finding, error),
) {
	log := r.Log
	found, err := health(ctx)
	if err != nil {
		log.Warn("failed to check the Redis of the ResourceManager's state", "error", err)
	}
	for _, f := range found {
		log.Warn("the Redis of the ResourceManager's state: "+f.What, "problem", f.Name, "try", f.Try)
	}
	log.Info("the ResourceManager's state is in Redis", "name", r.Name, "problems", len(found))
}

func (r stateInRedis) lease(term time.Duration) (pairserver.Lease, time.Duration, func() error, error) {
	l, err := redisstate.OpenLease(r.Config)
	if err != nil {
		return nil, 0, nil, err
	}
	return &redisLease{l, term}, term, l.Close, nil
}

// redisLease is the lease in Redis as the pair's driver sees it.
type redisLease struct {
	*redisstate.Lease
	term time.Duration
}

// Ask implements pairserver.Lease.
func (l *redisLease) Ask(ctx context.Context, claim bool) pair.Answer {
	ask := l.Look
	if claim {
		ask = func(ctx context.Context) (redisstate.Claim, error) { return l.Claim(ctx, l.term) }
	}
	c, err := ask(ctx)
	return pair.Answer{Won: c.Won, Holder: c.Holder, Left: c.Left, Err: err}
}

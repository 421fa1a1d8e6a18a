// SPDX-License-Identifier: Apache-2.0

package pairs

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/creelrm/creel/statestore/redis"
	"github.com/creelrm/creel/subcluster/rm/redisstate"
	"github.com/creelrm/creel/subcluster/rm/state"
	"github.com/creelrm/creel/subcluster/rm/state/statetest"
)

// direct calls the model without a network and in real time.
type direct struct {
	*conn
	mu *sync.Mutex
}

func (c direct) do(f func(s *server) []any) ([]any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.w.now = time.Now()
	return f(c.w.redis), nil
}

func (c direct) Write(_ context.Context, s *redis.Script, _ []string, args ...any) ([]any, error) {
	return c.do(func(r *server) []any { return r.script(r.primary, s.Name(), texts(args)) })
}

func (c direct) Read(_ context.Context, _ *redis.Script, _ []string, args ...any) ([]any, error) {
	return c.do(func(r *server) []any { return changes(r.primary.data, texts(args)) })
}

func (c direct) Scan(_ context.Context, _, cursor string, _ int) (part []any, next string, err error) {
	part, err = c.do(func(r *server) (out []any) {
		out, next = scan(r.primary.data, cursor)
		return out
	})
	return part, next, err
}

// The model of Redis keeps the contract that a real Redis keeps.
func TestModelKeepsTheContract(t *testing.T) {
	statetest.Run(t, func(*testing.T) statetest.Deployment {
		w := &world{rnd: rand.New(rand.NewPCG(1, 1)), now: time.Now()}
		w.redis = newServer(w)
		c, holders := direct{&conn{w: w}, new(sync.Mutex)}, 0
		config := func() redisstate.Config {
			holders++
			return redisstate.Config{
				Name: "rm", Holder: fmt.Sprint("holder ", holders), Check: time.Hour, Tail: 1000,
				Connect: func() (redisstate.Server, error) { return c, nil },
			}
		}
		return statetest.Deployment{
			Open:   func() (state.Log, error) { return redisstate.Open(context.Background(), config()) },
			Follow: func() (state.Follower, error) { return redisstate.NewFollower(config()) },
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package redisstate

import (
	"context"
	"flag"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/creelrm/creel/statestore/redis"
	"github.com/creelrm/creel/statestore/redis/redistest"
	"github.com/creelrm/creel/subcluster/rm/state"
	"github.com/creelrm/creel/subcluster/rm/state/statetest"
)

// The tests wait for servers more than they compute.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

var names atomic.Int64

// deployment is an empty state at a URL. The holders' number is their name.
func deployment(url string, wait int, check time.Duration) statetest.Deployment {
	name, holders := fmt.Sprint("rm", names.Add(1)), 0
	config := func() Config {
		holders++
		return Config{
			Redis:  redis.Config{URL: url, Wait: wait},
			Name:   name,
			Holder: fmt.Sprint("holder ", holders),
			Check:  check,
			Tail:   1000,
		}
	}
	return statetest.Deployment{
		Open:   func() (state.Log, error) { return Open(context.Background(), config()) },
		Follow: func() (state.Follower, error) { return NewFollower(config()) },
	}
}

func contract(t *testing.T, url string, wait int) {
	// Longer than a test: an idle holder must not notice its fence before the suite asks.
	statetest.Run(t, func(*testing.T) statetest.Deployment { return deployment(url, wait, time.Hour) })
}

func TestOneServerKeepsTheContract(t *testing.T) {
	t.Parallel()
	contract(t, redistest.Start(t).URL(), 0)
}

func TestAClusterKeepsTheContract(t *testing.T) {
	t.Parallel()
	contract(t, redistest.StartCluster(t, 3).URL(), 0)
}

func TestSentinelsWithAReplicaKeepTheContract(t *testing.T) {
	t.Parallel()
	contract(t, redistest.StartSentinels(t).URL(), 1)
}

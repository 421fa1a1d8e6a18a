// SPDX-License-Identifier: Apache-2.0

package zkstate

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/creelrm/creel/subcluster/rm/state"
	"github.com/creelrm/creel/subcluster/rm/state/statetest"
)

func TestMain(m *testing.M) {
	repeatAfter = 10 * time.Microsecond
	goleak.VerifyTestMain(m)
}

// config is the configuration of a process that holds a state on a server.
func config(s *fakeServer, holder string) Config {
	return Config{
		Parent: "/rmstore", Name: "c1", Holder: holder, connect: s.connect,
		Check: time.Hour, // longer than a test: an idle holder must not notice its fence before the suite asks
	}
}

// deployment is an empty state. The holders' number is their name.
func deployment(s *fakeServer, max limits) statetest.Deployment {
	holders := 0
	next := func() Config {
		holders++
		c := config(s, fmt.Sprint("holder ", holders))
		c.limits = max
		return c
	}
	return statetest.Deployment{
		Open:   func() (state.Log, error) { return Open(context.Background(), next()) },
		Follow: func() (state.Follower, error) { return NewFollower(next()) },
	}
}

// short makes each group repeat old entries, and many groups have several nodes.
var short = limits{
	nodeBytes: 4096, requestBytes: 3000, manyNodes: 3, smallNode: 1 << 10, repeatBytes: 100, repeatGroups: 2,
}

func TestLogKeepsTheContract(t *testing.T) {
	statetest.Run(t, func(*testing.T) statetest.Deployment { return deployment(newFake(), short) })
}

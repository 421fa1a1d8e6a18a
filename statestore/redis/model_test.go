// SPDX-License-Identifier: Apache-2.0

package redis_test

import (
	"fmt"
	"testing"

	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/redis"
	"github.com/creelrm/creel/statestore/redis/redistest"
	"github.com/creelrm/creel/statestore/storetest"
)

// Random conversations with Redis and with the memory state give the same
// answers.
func TestRedisAnswersAsTheMemoryStateDoes(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	var last *redis.Store
	storetest.Model(t, func() statestore.Store {
		if last != nil {
			if err := last.Close(); err != nil {
				t.Error(err)
			}
		}
		var err error
		last, err = redis.Open(
			redis.Config{URL: s.URL(), Prefix: fmt.Sprintf("m%d", prefixes.Add(1)), Validate: storetest.Validate},
		)
		if err != nil {
			t.Fatal(err)
		}
		return last
	})
	if last != nil {
		if err := last.Close(); err != nil {
			t.Error(err)
		}
	}
}

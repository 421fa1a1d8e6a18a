// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/policies"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/redis"
)

// validPolicy is asked before a document replaces a good one.
func validPolicy(_ creel.QueuePath, document []byte) error {
	_, err := policies.Parse(document)
	return err
}

// basePolicy is the policy of queues that no document in the store holds for.
func basePolicy(s *settings.Settings) (policies.Policy, error) {
	policy, err := policies.Parse(
		fmt.Appendf(
			nil,
			`{"home":{"policy":%q},"split":{"policy":%q}}`,
			s.String("creel.router.policy"),
			s.String("creel.proxy.policy"),
		),
	)
	if err != nil {
		return policy, usage(fmt.Errorf("creel.router.policy and creel.proxy.policy: %w", err))
	}
	return policy, nil
}

// openStore opens the state store a URL names, and checks that this creel can
// read it. "memory" is a store of this process alone.
func openStore(ctx context.Context, url string, s *settings.Settings) (statestore.Store, func() error, error) {
	if url == "" {
		url = s.String("creel.store.url")
	}
	if url == "memory" {
		return statestore.NewMemory(
			statestore.NewTwin("memory", validPolicy),
			time.Now,
		), func() error { return nil }, nil
	}
	if !strings.Contains(url, "://") {
		return nil, nil, usage(
			fmt.Errorf("store %q: expected memory or a redis URL such as redis://127.0.0.1:6379", url),
		)
	}
	store, err := redis.Open(
		redis.Config{
			URL:     url,
			Prefix:  s.String("creel.store.prefix"),
			Timeout: s.Duration("creel.store.timeout"),
			Wait: s.Int(
				"creel.store.wait-replicas",
			),
			WaitTimeout: s.Duration("creel.store.wait-timeout"),
			Validate:    validPolicy,
			Log:         slog.Default(),
		},
	)
	if err != nil {
		return nil, nil, usage(err)
	}
	check, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := store.CheckSchema(check); err != nil {
		return nil, nil, fmt.Errorf("%w; %w", err, store.Close())
	}
	return store, store.Close, nil
}

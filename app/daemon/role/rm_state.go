// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/redis"
	"github.com/creelrm/creel/subcluster/rm/redisstate"
	"github.com/creelrm/creel/subcluster/rm/state"
)

// stateURL is the setting that keeps a ResourceManager's state in Redis.
const stateURL = "creel.rm.state.url"

// keepsState reports whether a ResourceManager's state survives its process.
func keepsState(s *settings.Settings) bool {
	return s.String("creel.rm.data") != "" || s.String(stateURL) != ""
}

// misplacedState reports what is wrong with the settings of a state in Redis.
func misplacedState(s *settings.Settings) (bool, string) {
	if s.String(stateURL) == "" {
		return false, ""
	}
	_, err := sharedState(s, stateName(s), nil)
	if err == nil && s.String("creel.rm.data") != "" {
		return true, "creel.rm.data (--data) names a journal too"
	}
	if err != nil {
		return true, err.Error()
	}
	return false, ""
}

// stateName is the name of a ResourceManager's state among all in a Redis.
func stateName(s *settings.Settings) string {
	if id := s.String("creel.subcluster.id"); id != "" {
		return id
	}
	return s.String("yarn.resourcemanager.cluster-id")
}

// sharedState reads the settings of a state in Redis; nil if the state is a journal.
func sharedState(s *settings.Settings, name string, log *slog.Logger) (*redisstate.Config, error) {
	if s.String(stateURL) == "" {
		return nil, nil
	}
	conf, err := sharedRedis(s, name, log)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "(unknown host)"
	}
	return &redisstate.Config{
		Redis: conf, Name: name, Holder: fmt.Sprintf("process %d on %s", os.Getpid(), host), Log: log,
	}, nil
}

// sharedRedis reads the settings of the Redis that has the state of a ResourceManager.
func sharedRedis(s *settings.Settings, name string, log *slog.Logger) (conf redis.Config, err error) {
	url := s.String(stateURL)
	conf = redis.Config{
		URL: url, Prefix: s.String("creel.store.prefix"), Timeout: s.Duration("creel.store.timeout"), Log: log,
	}
	switch {
	case name == "":
		return conf, fmt.Errorf("the ResourceManager has no name: set yarn.resourcemanager.cluster-id or creel.subcluster.id")
	case !strings.HasPrefix(url, "redis"):
		return conf, fmt.Errorf("it is not a Redis URL, such as redis://127.0.0.1:6379")
	case hasPassword(url) && !s.Bool("hadoop.security.credential.clear-text-fallback"):
		return conf, fmt.Errorf("it has a password, and hadoop.security.credential.clear-text-fallback=false forbids that")
	}
	conf.Password, err = storePassword(s, "creel.rm.state.password", "creel.rm.state.password-file")
	return conf, err
}

// openShared opens a state in Redis, and fences its previous holder.
func openShared(c redisstate.Config) (state.Log, error) {
	ctx, cancel := context.WithTimeout(context.Background(), storePatience)
	defer cancel()
	l, err := redisstate.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	logHealth(ctx, c, l.Health)
	return l, nil
}

// logHealth logs what the Redis of a state may lose.
func logHealth(
	ctx context.Context, c redisstate.Config, health func(context.Context) ([]statestore.Finding, error),
) {
	log := c.Log
	found, err := health(ctx)
	if err != nil {
		log.Warn("failed to check the Redis of the ResourceManager's state", "error", err)
	}
	for _, f := range found {
		log.Warn("the Redis of the ResourceManager's state: "+f.What, "problem", f.Name, "try", f.Try)
	}
	log.Info("the ResourceManager's state is in Redis", "name", c.Name, "problems", len(found))
}

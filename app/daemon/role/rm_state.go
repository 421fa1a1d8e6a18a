// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/creelrm/creel/internal/settings"
	pairserver "github.com/creelrm/creel/subcluster/rm/pair/server"
	"github.com/creelrm/creel/subcluster/rm/state"
)

// sharedState is a place of a ResourceManager's state from which another host can continue it.
type sharedState interface {
	// place names the service, for messages.
	place() string
	// open makes this process the holder, and fences the previous one.
	open(ctx context.Context) (state.Log, error)
	// inUse returns the name of a running holder, "" if there is none.
	inUse(ctx context.Context) (string, error)
	// ofPair returns the same state for one of an HA pair.
	ofPair(id string) sharedState
	follow() (state.Follower, error)
	// lease returns the lease of an HA pair, its term, and the function that releases its connections.
	lease(term time.Duration) (pairserver.Lease, time.Duration, func() error, error)
}

// keepsState reports whether a ResourceManager's state survives its process.
func keepsState(s *settings.Settings) bool { return s.String("creel.rm.data") != "" || isShared(s) }

// isShared reports whether the state is in Redis or ZooKeeper.
func isShared(s *settings.Settings) bool { return s.String(stateURL) != "" || inZooKeeper(s) }

// stateKey is the setting that names the place of a shared state.
func stateKey(s *settings.Settings) string {
	if inZooKeeper(s) {
		return storeClass
	}
	return stateURL
}

// misplacedState reports what is wrong with the settings of a shared state.
func misplacedState(s *settings.Settings) (bool, string) {
	if s.Bool(hadoopRecords) && !inZooKeeper(s) {
		return true, hadoopRecords + " needs the state in ZooKeeper"
	}
	if !isShared(s) {
		return false, ""
	}
	_, err := sharedStateOf(s, stateName(s), nil)
	if err == nil && s.String("creel.rm.data") != "" {
		return true, "creel.rm.data (--data) names a journal too"
	}
	if err != nil {
		return !overZooKeeper(s) || !ofLogin(err), reasonOf(err)
	}
	return false, ""
}

// ofLogin reports whether an error is one of the login at ZooKeeper, which the store's refusals report too.
func ofLogin(err error) bool {
	var p *settings.Problem
	return errors.As(err, &p) && (p.Key == zkTLS || p.Key == zkPrincipal)
}

// reasonOf is an error's text; of a problem of a setting its key and reason.
func reasonOf(err error) string {
	var p *settings.Problem
	if errors.As(err, &p) {
		return p.Key + ": " + p.Why
	}
	return err.Error()
}

// stateName is the name of a ResourceManager's state among all in a place.
func stateName(s *settings.Settings) string {
	if id := s.String("creel.subcluster.id"); id != "" {
		return id
	}
	return s.String("yarn.resourcemanager.cluster-id")
}

// sharedStateOf reads the settings of a shared state; nil if the state is a journal.
func sharedStateOf(s *settings.Settings, name string, log *slog.Logger) (sharedState, error) {
	if !isShared(s) {
		return nil, nil
	}
	if name == "" {
		return nil, fmt.Errorf("the ResourceManager has no name: set yarn.resourcemanager.cluster-id or creel.subcluster.id")
	}
	host, err := os.Hostname()
	if err != nil {
		host = "(unknown host)"
	}
	holder := fmt.Sprintf("process %d on %s", os.Getpid(), host)
	if inZooKeeper(s) {
		return zooKeeperState(s, name, holder, log)
	}
	return redisState(s, name, holder, log)
}

// openShared opens a shared state, and fences its previous holder.
func openShared(shared sharedState) (state.Log, error) {
	ctx, cancel := context.WithTimeout(context.Background(), storePatience)
	defer cancel()
	return shared.open(ctx)
}

// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/subcluster/rm/journal"
	"github.com/creelrm/creel/subcluster/rm/state"
)

// OpenStopped opens the state of a ResourceManager that does not run, and names it. It refuses a state in use. create
// permits a journal in a directory that does not exist.
func OpenStopped(ctx context.Context, s *settings.Settings, create bool) (l state.Log, name string, err error) {
	if wrong, why := misplacedState(s); wrong {
		return nil, "", s.Problem(stateKey(s), why, "")
	}
	if isShared(s) {
		return openStoppedShared(ctx, s)
	}
	dir := s.String("creel.rm.data")
	if dir == "" {
		return nil, "", &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: "no state is named",
			Try:  "name a journal by --data DIR or creel.rm.data, a Redis by creel.rm.state.url, or a ZooKeeper as Hadoop's",
		}
	}
	if _, err := os.Stat(dir); err != nil && !create {
		return nil, "", &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: "the journal cannot be opened",
			Why:  err.Error(),
			Try:  "name the directory that the ResourceManager had as --data",
		}
	}
	j, err := journal.Open(dir, journal.Options{})
	return j, "the journal in " + dir, err
}

func openStoppedShared(ctx context.Context, s *settings.Settings) (l state.Log, name string, err error) {
	id := stateName(s)
	shared, err := sharedStateOf(s, id, slog.Default())
	if err != nil {
		return nil, "", s.Problem(stateKey(s), err.Error(), "")
	}
	ctx, cancel := context.WithTimeout(ctx, storePatience)
	defer cancel()
	holder, err := shared.inUse(ctx)
	if err != nil {
		return nil, "", err
	}
	if holder != "" {
		return nil, "", &creel.Error{
			Kind: creel.ErrConflict,
			What: fmt.Sprintf("the state of %s is in use by %s", id, holder),
			Try:  "stop that ResourceManager, then repeat the command",
		}
	}
	l, err = openShared(shared)
	return l, "the state of " + id + " in " + shared.place(), err
}

// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/subcluster/rm/hadoopstate"
	"github.com/creelrm/creel/subcluster/rm/server"
	"github.com/creelrm/creel/subcluster/rm/state"
	"github.com/creelrm/creel/subcluster/rm/transfer"
	"github.com/creelrm/creel/subcluster/rm/zkstate"
)

const epochKey = "yarn.resourcemanager.epoch"

// Moved describes a state that moved from or to Hadoop's ResourceManager.
type Moved struct {
	Apps, Running, Tokens int
	Epoch                 int64    // of the next start
	Omitted               []string // parts that the other implementation has no record for
}

func movedOf(p *server.Portable) Moved {
	m := Moved{Apps: len(p.Apps), Tokens: len(p.Delegation.Tokens), Epoch: p.Epoch, Omitted: p.Omitted}
	for i := range p.Apps {
		if !p.Apps[i].State.Ended() {
			m.Running++
		}
	}
	return m
}

// ReadHadoop reads the state of a stopped Hadoop ResourceManager at zk://HOSTS/PATH.
func ReadHadoop(ctx context.Context, s *settings.Settings, url string) (*server.Portable, error) {
	session, parent, err := hadoopAt(ctx, s, url)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	if err := noLeader(ctx, s, session); err != nil {
		return nil, err
	}
	h, err := hadoopstate.Read(ctx, session, parent)
	if err != nil {
		return nil, err
	}
	p, err := h.Portable()
	if err == nil && h.Reservations > 0 {
		p.Omitted = append(p.Omitted, fmt.Sprintf("%d reservations", h.Reservations))
	}
	return p, err
}

// noLeader reports an HA pair of the same cluster that runs. A single ResourceManager cannot be seen.
func noLeader(ctx context.Context, s *settings.Settings, n *zkstate.Session) error {
	cluster := s.String("yarn.resourcemanager.cluster-id")
	if cluster == "" {
		return nil
	}
	lock := zkstate.LockPath(s.String("yarn.resourcemanager.ha.automatic-failover.zk-base-path"), cluster)
	_, _, err := n.Get(ctx, lock)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	return &creel.Error{
		Kind: creel.ErrConflict,
		What: "an active ResourceManager of " + cluster + " has the lock " + lock,
		Try:  "stop both of the pair, and repeat the command when the session of the last one has ended",
	}
}

// FillFromHadoop fills an empty state of creel's ResourceManager. It closes the log.
func FillFromHadoop(ctx context.Context, s *settings.Settings, l state.Log, p *server.Portable) (Moved, error) {
	entries, err := p.Entries(s.Long(epochKey))
	if err == nil {
		err = transfer.Fill(ctx, l, entries)
	}
	return movedOf(p), err
}

// WriteHadoop writes the state of creel's ResourceManager for Hadoop's, to zk://HOSTS/PATH.
func WriteHadoop(ctx context.Context, s *settings.Settings, l state.Log, url string) (m Moved, err error) {
	p, err := server.ReadPortable(l, s.Long(epochKey))
	if err != nil {
		return m, err
	}
	session, parent, err := hadoopAt(ctx, s, url)
	if err != nil {
		return m, err
	}
	defer session.Close()
	return movedOf(p), hadoopstate.Write(ctx, session, parent, hadoopstate.FromPortable(p))
}

// hadoopAt connects to the ZooKeeper of a URL, and returns the parent path of the state in it.
func hadoopAt(ctx context.Context, s *settings.Settings, url string) (n *zkstate.Session, parent string, err error) {
	addresses, parent, err := zkURL(url)
	if err == nil && parent == "" {
		err = errors.New("it has no path")
	}
	if err != nil {
		return nil, "", &creel.Error{
			Kind: creel.ErrInvalidRequest,
			What: fmt.Sprintf("%q is no place of a Hadoop ResourceManager's state", url),
			Why:  err.Error(),
			Try:  "name hadoop.zk.address and yarn.resourcemanager.zk-state-store.parent-path as zk://HOST:PORT,HOST:PORT/rmstore",
		}
	}
	servers, err := zkLogin(s, addresses, slog.Default())
	if err != nil {
		return nil, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, storePatience)
	defer cancel()
	n, err = zkstate.Connect(ctx, servers)
	return n, parent, err
}

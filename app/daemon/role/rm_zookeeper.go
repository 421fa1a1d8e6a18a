// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"time"

	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/subcluster/rm/hadoopstate"
	"github.com/creelrm/creel/subcluster/rm/pair"
	pairserver "github.com/creelrm/creel/subcluster/rm/pair/server"
	"github.com/creelrm/creel/subcluster/rm/state"
	"github.com/creelrm/creel/subcluster/rm/zkstate"
)

const (
	storeClass    = "yarn.resourcemanager.store.class"
	hadoopRecords = "creel.rm.state.hadoop-records"
)

// inZooKeeper reports whether a ResourceManager's state is in ZooKeeper. Hadoop's keys ask for it, and creel's key for
// Redis takes precedence.
func inZooKeeper(s *settings.Settings) bool {
	return s.Bool("yarn.resourcemanager.recovery.enabled") && s.String(stateURL) == "" &&
		strings.HasSuffix(s.String(storeClass), ".ZKRMStateStore")
}

// stateInZooKeeper is a state in ZooKeeper.
type stateInZooKeeper struct {
	zkstate.Config
	elector zkstate.ElectorConfig
}

// zooKeeperState reads the settings of a state in ZooKeeper.
func zooKeeperState(s *settings.Settings, name, holder string, log *slog.Logger) (sharedState, error) {
	addresses, err := zkServers(s.List(zkAddress))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", zkAddress, err)
	}
	servers, err := zkLogin(s, addresses, log)
	if err != nil {
		return nil, err
	}
	parent := s.String("yarn.resourcemanager.zk-state-store.parent-path")
	base := s.String("yarn.resourcemanager.ha.automatic-failover.zk-base-path")
	for _, path := range []string{parent, base} {
		if !strings.HasPrefix(path, "/") {
			return nil, fmt.Errorf("%q is not a path in ZooKeeper", path)
		}
	}
	var records zkstate.Records
	if s.Bool(hadoopRecords) {
		records = hadoopstate.Beside{First: s.Long(epochKey)}
	}
	return stateInZooKeeper{
		zkstate.Config{
			Servers: servers, Parent: parent, Name: name, Holder: holder, Records: records,
			NodeBytes: int(s.Bytes("yarn.resourcemanager.zk-max-znode-size.bytes")),
		},
		zkstate.ElectorConfig{Servers: servers, Base: base, Cluster: s.String("yarn.resourcemanager.cluster-id")},
	}, nil
}

func (stateInZooKeeper) place() string { return "ZooKeeper" }

func (z stateInZooKeeper) open(ctx context.Context) (state.Log, error) {
	l, err := zkstate.Open(ctx, z.Config)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// inUse also finds a Hadoop ResourceManager that leads: it writes nothing while it is idle, but has the lock.
func (z stateInZooKeeper) inUse(ctx context.Context) (string, error) {
	if z.Records != nil && z.elector.Cluster != "" {
		session, err := zkstate.Connect(ctx, z.Servers)
		if err != nil {
			return "", err
		}
		defer session.Close()
		lock := zkstate.LockPath(z.elector.Base, z.elector.Cluster)
		if _, _, err := session.Get(ctx, lock); err == nil {
			return "the active ResourceManager that has the lock " + lock, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return zkstate.InUse(ctx, z.Config)
}

func (z stateInZooKeeper) ofPair(id string) sharedState {
	z.Holder, z.elector.ID = id, id
	return z
}

func (z stateInZooKeeper) follow() (state.Follower, error) {
	f, err := zkstate.NewFollower(z.Config)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (z stateInZooKeeper) lease(time.Duration) (pairserver.Lease, time.Duration, func() error, error) {
	e, err := zkstate.OpenElector(z.elector)
	if err != nil {
		return nil, 0, nil, err
	}
	term := z.Servers.Term()
	return &zkLease{e, term}, term, e.Close, nil
}

// zkLease is the elector as the pair's driver sees it.
type zkLease struct {
	*zkstate.Elector
	term time.Duration
}

// Ask implements pairserver.Lease. The end of another process's session is unknown, so the driver asks again at its
// usual interval.
func (l *zkLease) Ask(ctx context.Context, claim bool) pair.Answer {
	ask := l.Look
	if claim {
		ask = l.Claim
	}
	c, err := ask(ctx)
	a := pair.Answer{Won: c.Won, Holder: c.Holder, Err: err}
	if c.Holder != "" {
		a.Left = l.term
	}
	return a
}

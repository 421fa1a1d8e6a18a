// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/subcluster/rm/hadoopstate"
	"github.com/creelrm/creel/subcluster/rm/pair"
	pairserver "github.com/creelrm/creel/subcluster/rm/pair/server"
	"github.com/creelrm/creel/subcluster/rm/state"
	"github.com/creelrm/creel/subcluster/rm/zkstate"
)

const (
	storeClass = "yarn.resourcemanager.store.class"
	zkAddress  = "hadoop.zk.address"

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
	servers, err := zkLogin(s, log)
	if err != nil {
		return nil, err
	}
	if servers.Addresses, err = zkServers(s.List(zkAddress)); err != nil {
		return nil, fmt.Errorf("%s: %w", zkAddress, err)
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

// zkLogin reads the settings of sessions in ZooKeeper, without its address.
func zkLogin(s *settings.Settings, log *slog.Logger) (servers zkstate.Servers, err error) {
	servers = zkstate.Servers{Timeout: s.Duration("hadoop.zk.timeout-ms"), Log: log}
	if servers.Auth, err = zkAuth(s.String("hadoop.zk.auth")); err != nil {
		return servers, fmt.Errorf("hadoop.zk.auth: %w", err)
	}
	if servers.ACL, err = zkACL(s.String("hadoop.zk.acl")); err != nil {
		return servers, fmt.Errorf("hadoop.zk.acl: %w", err)
	}
	return servers, nil
}

// zkServers reads host:port pairs. Like Hadoop's, a host alone has ZooKeeper's usual port.
func zkServers(list []string) (out []string, err error) {
	for _, address := range list {
		switch host, port, err := net.SplitHostPort(address); {
		case address == "":
		case err != nil && !strings.Contains(address, ":"):
			out = append(out, net.JoinHostPort(address, "2181"))
		case err != nil || host == "" || port == "" || strings.Contains(port, "/"):
			return nil, fmt.Errorf("%q is not host:port", address)
		default:
			out = append(out, address)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no ZooKeeper server is named")
	}
	return out, nil
}

// zkFile returns the content of the file that a value names after @, or the value.
func zkFile(value string) (string, error) {
	path, isFile := strings.CutPrefix(strings.TrimSpace(value), "@")
	if !isFile {
		return value, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("%s", fileReason(err))
	}
	return string(b), nil
}

// zkAuth reads proofs of identity: scheme:secret, separated by commas.
func zkAuth(value string) (out []zkstate.Auth, err error) {
	if value, err = zkFile(value); err != nil {
		return nil, err
	}
	for part := range strings.SplitSeq(value, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		scheme, secret, found := strings.Cut(part, ":")
		if !found || scheme != "digest" || !strings.Contains(secret, ":") {
			return nil, fmt.Errorf("each part must be digest:USER:PASSWORD, the only scheme that creel supports")
		}
		out = append(out, zkstate.Auth{Scheme: scheme, Secret: secret})
	}
	return out, nil
}

// zkACL reads rights: scheme:id:rights, separated by commas.
func zkACL(value string) (out []zk.ACL, err error) {
	if value, err = zkFile(value); err != nil {
		return nil, err
	}
	for part := range strings.SplitSeq(value, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		first, last := strings.Index(part, ":"), strings.LastIndex(part, ":")
		if first == last {
			return nil, fmt.Errorf("%q is not scheme:id:rights", part)
		}
		a := zk.ACL{Scheme: part[:first], ID: part[first+1 : last]}
		if a.Scheme == "digest" {
			_, hash, _ := strings.Cut(a.ID, ":")
			if _, err := base64.StdEncoding.DecodeString(hash); err != nil || hash == "" {
				return nil, fmt.Errorf("%q is not digest:USER:HASH:rights", part)
			}
		}
		for _, right := range part[last+1:] {
			i := strings.IndexRune("rwcda", right)
			if i < 0 {
				return nil, fmt.Errorf("%q is not a right of ZooKeeper, which are r, w, c, d and a", right)
			}
			a.Perms |= 1 << i
		}
		out = append(out, a)
	}
	return out, nil
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

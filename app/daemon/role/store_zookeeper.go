// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/statestore/mariadb"
	"github.com/creelrm/creel/statestore/nodes"
	"github.com/creelrm/creel/statestore/zookeeper"
)

const (
	federationClass = "yarn.federation.state-store.class"
	federationPath  = "yarn.federation.zk-state-store.parent-path"
)

// overZooKeeper reports whether the state store is in ZooKeeper.
func overZooKeeper(s *settings.Settings) bool {
	return strings.HasPrefix(s.String("creel.store.url"), zkScheme)
}

// zooKeeperStore reads the settings of a state store in ZooKeeper: zk://HOST:PORT,HOST:PORT/PATH.
func zooKeeperStore(s *settings.Settings) (conf zookeeper.Config, err error) {
	const key = "creel.store.url"
	addresses, path, err := zkURL(s.String(key))
	if err != nil {
		return conf, s.Problem(key, err.Error(), "write zk://HOST:PORT,HOST:PORT/PATH")
	}
	servers, err := zkLogin(s, addresses, slog.Default())
	if err != nil {
		return conf, err
	}
	if strings.Trim(path, "/") == "" {
		path = "/" + strings.Trim(s.String(federationPath), "/")
	}
	const split = "yarn.resourcemanager.zk-appid-node.split-index"
	if v, ok := s.Lookup(split); ok && v.Text != "" && v.Text != "0" {
		return conf, s.Problem(split, "creel does not find homes that Hadoop's Routers split by it",
			"set 0 at Hadoop's Routers too, or use a store on Redis")
	}
	return zookeeper.Config{
		Servers: servers, Parent: path, Validate: ValidPolicy, Confirm: true,
		HadoopLease: hadoopLease(s),
		HadoopHTTPS: httpsOnly(s), // as Hadoop's Routers believe
	}, nil
}

// opensNodes returns the function that opens a store in a tree of nodes, nil if the settings name another store. It
// makes no call yet.
func opensNodes(s *settings.Settings) func() (*nodes.Store, error) {
	switch {
	case overZooKeeper(s):
		return func() (*nodes.Store, error) { return openBy(s, zooKeeperStore, zookeeper.Open) }
	case overMariaDB(s):
		return func() (*nodes.Store, error) { return openBy(s, mariaDBStore, mariadb.Open) }
	}
	return nil
}

func openBy[C any](
	s *settings.Settings, read func(*settings.Settings) (C, error), open func(C) (*nodes.Store, error),
) (*nodes.Store, error) {
	conf, err := read(s)
	if err != nil {
		return nil, err
	}
	store, err := open(conf)
	if err != nil {
		return nil, s.Problem("creel.store.url", err.Error(), "")
	}
	return store, nil
}

// openNodes opens a store, and checks that this creel can read its data.
func openNodes(
	ctx context.Context, s *settings.Settings, open func() (*nodes.Store, error),
) (*nodes.Store, error) {
	store, err := open()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, storePatience)
	defer cancel()
	waits := time.AfterFunc(storeSilence, func() {
		slog.Warn("the state store does not answer yet", "store", shownStore(s),
			"waits_for", (storePatience - storeSilence).String())
	})
	err = store.CheckSchema(ctx)
	waits.Stop()
	if err == nil {
		err = joinFederation(ctx, store, s)
	}
	if err != nil {
		_ = store.Close()
		return nil, storeError(s, err)
	}
	return store, nil
}

// unusedStoreClass returns a warning if Hadoop's key names another store than the one in use.
func unusedStoreClass(s *settings.Settings) []string {
	class := s.String(federationClass)
	if class == "" || !Member(s) || strings.HasSuffix(class, ".MemoryFederationStateStore") ||
		strings.HasSuffix(class, ".ZookeeperFederationStateStore") && overZooKeeper(s) ||
		strings.HasSuffix(class, ".SQLFederationStateStore") && overMariaDB(s) && namesDatabase(s) {
		return nil
	}
	return []string{origin(s, federationClass) + ": " + federationClass + "=" + class +
		" has no effect: creel uses creel.store.url instead: members and homes in this store are unknown to it"}
}

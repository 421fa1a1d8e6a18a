// SPDX-License-Identifier: Apache-2.0

package zookeeper

import (
	"strings"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/zkclient"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/statestore/nodes"
)

// Config of a store. Servers and Parent are required.
type Config struct {
	Servers  zkclient.Servers
	Parent   string // the root of Hadoop's records
	Validate statestore.Validate
	MaxWait  time.Duration // of a call without a deadline, 10 s

	// HadoopLease is the lease of members that Hadoop's ResourceManagers registered; 15 min, three of their heartbeats.
	HadoopLease time.Duration
	// HadoopHTTPS: their web ports use TLS, which Hadoop's records do not tell.
	HadoopHTTPS bool
	// Confirm makes a new store wait for the homes that ResourceManagers report (Reopen) before its first claim.
	Confirm bool

	// Tests replace them.
	connect func(zkclient.Servers) (session, error)
	local   func() time.Time
}

// maxChange is the size of the largest transaction: ZooKeeper refuses requests of more than 1 MiB.
const maxChange = 1_000_000

// Open makes a store, which connects in the background.
func Open(cfg Config) (*nodes.Store, error) {
	cfg.Servers = cfg.Servers.WithDefaults()
	if !strings.HasPrefix(cfg.Parent, "/") || strings.Trim(cfg.Parent, "/") == "" {
		return nil, &creel.Error{
			Kind: creel.ErrInvalidRequest, What: "invalid path in ZooKeeper", Why: cfg.Parent + " is not below /",
			Try: "set yarn.federation.state-store.zk.parent-path to a path such as /federationstore",
		}
	}
	if cfg.connect == nil {
		cfg.connect = func(s zkclient.Servers) (session, error) { return zkclient.Connect(s) }
	}
	session, err := cfg.connect(cfg.Servers)
	if err != nil {
		return nil, err
	}
	root := strings.TrimSuffix(cfg.Parent, "/")
	return nodes.Open(nodes.Config{
		Tree: &tree{session, cfg.Servers, root}, System: "ZooKeeper", Parent: root, MaxChange: maxChange,
		Validate: cfg.Validate, MaxWait: cfg.MaxWait, HadoopLease: cfg.HadoopLease,
		HadoopHTTPS: cfg.HadoopHTTPS, Confirm: cfg.Confirm,
		Local: cfg.local,
	}), nil
}

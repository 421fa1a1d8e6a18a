// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/statestore"
	"github.com/creelrm/creel/subcluster/rm/pair"
)

// haEnabled is the setting that makes a ResourceManager one of an HA pair.
const haEnabled = "yarn.resourcemanager.ha.enabled"

// PairConfig is the configuration of a ResourceManager as one of an HA pair.
type PairConfig struct {
	ID    string
	Pair  pair.Config
	State sharedState
	Webs  map[string]string // web address of each of the pair, by id
	// Fresh reads the settings again, for a takeover.
	Fresh func() (RMConfig, error)
}

// pairID returns the id of this ResourceManager in an HA pair, "" if it is alone or if no setting decides it.
func pairID(s *settings.Settings) string {
	if !s.Bool(haEnabled) {
		return ""
	}
	if id := s.String("yarn.resourcemanager.ha.id"); id != "" {
		return id
	}
	if ids := idsOfThisHost(s); len(ids) == 1 {
		return ids[0]
	}
	return ""
}

// idsOfThisHost returns the ids of a pair whose yarn.resourcemanager.address is one of this host's, as Hadoop's
// ResourceManager compares them.
func idsOfThisHost(s *settings.Settings) (ids []string) {
	for _, id := range s.List("yarn.resourcemanager.ha.rm-ids") {
		host, _, err := net.SplitHostPort(s.AddressOf("yarn.resourcemanager.address", id))
		if err == nil && isThisHost(host) {
			ids = append(ids, id)
		}
	}
	return ids
}

// isThisHost reports whether a host name or IP address is that of a network interface of this host. It waits for a name
// server for at most 2 s.
func isThisHost(host string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return false
	}
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	return slices.ContainsFunc(found, func(ip netip.Addr) bool {
		return ip.IsLoopback() || slices.ContainsFunc(interfaces, func(a net.Addr) bool {
			prefix, ok := a.(*net.IPNet)
			return ok && prefix.IP.Equal(ip.Unmap().AsSlice())
		})
	})
}

// listenAt returns the address to listen on, which in a pair is that of this ResourceManager's id.
func listenAt(s *settings.Settings, key string) string {
	const bindHost = "yarn.resourcemanager.bind-host"
	if id := pairID(s); id != "" {
		return s.ListenOf(key, id, bindHost)
	}
	return s.Listen(key, bindHost)
}

// addressAt returns the address for clients, which in a pair is that of this ResourceManager's id.
func addressAt(s *settings.Settings, key string) string {
	if id := pairID(s); id != "" {
		return s.AddressOf(key, id)
	}
	return s.Address(key)
}

// incompletePair reports the missing settings of a pair.
func incompletePair(s *settings.Settings) (bool, string) {
	if !s.Bool(haEnabled) {
		return false, ""
	}
	ids, id := s.List("yarn.resourcemanager.ha.rm-ids"), s.String("yarn.resourcemanager.ha.id")
	local := []string(nil)
	if id == "" {
		local = idsOfThisHost(s)
	}
	switch {
	case !isShared(s):
		return true, "neither " + stateURL + " is set, nor " + storeClass + " with " +
			"yarn.resourcemanager.recovery.enabled: a pair keeps its state in Redis or ZooKeeper"
	case inZooKeeper(s) && s.String("yarn.resourcemanager.cluster-id") == "":
		return true, "yarn.resourcemanager.cluster-id is not set, and names the pair in ZooKeeper"
	case len(ids) < 2:
		return true, fmt.Sprintf("yarn.resourcemanager.ha.rm-ids names %d ResourceManagers", len(ids))
	case strings.Contains(strings.Join(ids, ""), "."):
		return true, "yarn.resourcemanager.ha.rm-ids has an id with a dot, and ids are parts of settings' names"
	case id == "" && len(local) != 1:
		return true, fmt.Sprintf("yarn.resourcemanager.ha.id is not set, and the addresses of %d of the "+
			"ResourceManagers are of this host", len(local))
	case id != "" && !slices.Contains(ids, id):
		return true, fmt.Sprintf("yarn.resourcemanager.ha.id is %q, which is not in yarn.resourcemanager.ha.rm-ids", id)
	}
	for _, key := range []string{
		"yarn.resourcemanager.address", "yarn.resourcemanager.scheduler.address",
		"yarn.resourcemanager.resource-tracker.address", "yarn.resourcemanager.admin.address", rmWeb(s),
	} {
		for _, id := range ids {
			if s.AddressOf(key, id) == "" {
				return true, fmt.Sprintf("neither %s.%s nor yarn.resourcemanager.hostname.%s is set", key, id, id)
			}
		}
	}
	return false, ""
}

// pairConfig reads the settings of a pair, which incompletePair has accepted.
func pairConfig(s *settings.Settings, shared sharedState, store statestore.Store) *PairConfig {
	c := &PairConfig{
		ID: pairID(s),
		Pair: pair.Config{
			Automatic: s.Bool("yarn.resourcemanager.ha.automatic-failover.enabled"),
			Lease:     s.Duration("creel.rm.ha.lease"),
		},
		State: shared.ofPair(pairID(s)),
		Webs:  map[string]string{},
		Fresh: func() (RMConfig, error) {
			fresh, err := s.Reload()
			if err != nil {
				return RMConfig{}, err
			}
			return RMSettings(fresh, store)
		},
	}
	for _, id := range s.List("yarn.resourcemanager.ha.rm-ids") {
		c.Webs[id] = s.AddressOf(rmWeb(s), id)
	}
	return c
}

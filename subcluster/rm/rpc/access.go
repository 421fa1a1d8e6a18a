// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"fmt"
	"net/netip"
	"os/user"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
	"github.com/creelrm/creel/subcluster/rm/queues"
)

// ProxyRule says whom a user may act for, and from where: hadoop.proxyuser.U.*.
// "*" in a list stands for all. A host is an address, a network in CIDR form or
// a name's address resolved by whoever made the rule.
type ProxyRule struct {
	Hosts  []string
	Users  []string
	Groups []string
}

// impersonate is asked when real wants to act for effective.
func (a *access) impersonate(real, effective string, remote netip.Addr) error {
	a.mu.RLock()
	rule, ok := a.proxies[real]
	a.mu.RUnlock()
	if !ok ||
		(!listed(rule.Users, effective) && !slices.ContainsFunc(a.groupsOf(effective), func(g string) bool { return listed(rule.Groups, g) }) && !listed(rule.Groups, "*")) {
		return &creel.Error{
			Kind: creel.ErrNotPermitted,
			What: fmt.Sprintf("User: %s is not allowed to impersonate %s", real, effective),
		}
	}
	for _, h := range rule.Hosts {
		if h == "*" || h == remote.String() {
			return nil
		}
		if net, err := netip.ParsePrefix(h); err == nil && net.Contains(remote) {
			return nil
		}
		if h == "localhost" && remote.IsLoopback() {
			return nil
		}
	}
	return &creel.Error{
		Kind: creel.ErrNotPermitted,
		What: fmt.Sprintf("Unauthorized connection for super-user: %s from IP %s", real, remote),
	}
}

func listed(list []string, name string) bool {
	return slices.Contains(list, name) || slices.Contains(list, "*")
}

// access answers who may do what. Its rules may be replaced while it is asked.
type access struct {
	mu       sync.RWMutex
	proxies  map[string]ProxyRule
	adminACL queues.ACL
	acls     bool // yarn.acl.enable
	lookup   func(user string) []string
	cache    map[string]cachedGroups
}

type cachedGroups struct {
	groups []string
	until  time.Time
}

const (
	groupsCached    = 300 * time.Second // hadoop.security.groups.cache.secs
	maxCachedGroups = 100_000
)

// SystemGroups finds a user's groups on this machine, primary first; a user
// that the machine does not know has none.
func SystemGroups(name string) []string {
	u, err := user.Lookup(name)
	if err != nil {
		return nil
	}
	ids, err := u.GroupIds()
	if err != nil {
		return nil
	}
	var groups []string
	for _, id := range append([]string{u.Gid}, ids...) {
		if g, err := user.LookupGroupId(id); err == nil && !slices.Contains(groups, g.Name) {
			groups = append(groups, g.Name)
		}
	}
	return groups
}

func (a *access) groupsOf(name string) []string {
	now := time.Now()
	a.mu.RLock()
	c, ok := a.cache[name]
	a.mu.RUnlock()
	if ok && now.Before(c.until) {
		return c.groups
	}
	groups := a.lookup(name)
	a.mu.Lock()
	if len(a.cache) >= maxCachedGroups {
		clear(a.cache)
	}
	a.cache[name] = cachedGroups{groups: groups, until: now.Add(groupsCached)}
	a.mu.Unlock()
	return groups
}

func (a *access) forgetGroups() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.cache)
}

func (a *access) setAdmin(acl queues.ACL) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.adminACL = acl
}

func (a *access) setProxies(p map[string]ProxyRule) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.proxies = p
}

// isAdmin applies yarn.admin.acl, whether or not other ACLs are on.
func (a *access) isAdmin(name string) bool {
	a.mu.RLock()
	acl := a.adminACL
	a.mu.RUnlock()
	return acl.All || acl.Allows(name, a.groupsOf(name))
}

// isRouter reports whether a user may speak as a router of the federation: one
// that may act for others, or an administrator.
func (a *access) isRouter(name string) bool {
	a.mu.RLock()
	_, actsForOthers := a.proxies[name]
	a.mu.RUnlock()
	return actsForOthers || a.isAdmin(name)
}

// appAccess is YARN's rule for an application: its owner, its ACL, the queue's
// administrators, the cluster's administrators; anyone while ACLs are off.
func (a *access) appAccess(
	caller, owner string,
	kind pb.ApplicationAccessTypeProto,
	c *pb.ApplicationSubmissionContextProto,
	queueAdmin func(user string, groups []string) bool,
) bool {
	if !a.acls || caller == owner || a.isAdmin(caller) {
		return true
	}
	groups := a.groupsOf(caller)
	for _, entry := range c.GetAmContainerSpec().GetApplication_ACLs() {
		if entry.GetAccessType() == kind && ParseACL(entry.GetAcl()).Allows(caller, groups) {
			return true
		}
	}
	return queueAdmin != nil && queueAdmin(caller, groups)
}

// ParseACL reads Hadoop's form: "user1,user2 group1,group2", "*" for everyone,
// a space for nobody.
func ParseACL(s string) queues.ACL {
	if strings.TrimSpace(s) == "*" {
		return queues.ACL{All: true}
	}
	users, groups, _ := strings.Cut(s, " ")
	return queues.ACL{Users: words(users), Groups: words(groups)}
}

func words(s string) []string {
	var out []string
	for w := range strings.SplitSeq(s, ",") {
		if w = strings.TrimSpace(w); w != "" {
			out = append(out, w)
		}
	}
	return out
}

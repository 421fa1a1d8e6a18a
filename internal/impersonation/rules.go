// SPDX-License-Identifier: Apache-2.0

package impersonation

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/httpguard"
)

// Rule lists the users that a proxy user may act for, and the hosts it may call from: hadoop.proxyuser.U.*. "*" among
// users or groups stands for all.
type Rule struct {
	Hosts  httpguard.Machines
	Users  []string
	Groups []string
}

// Rules are the rules of all proxy users, by their names.
type Rules map[string]Rule

// Check returns an error unless real may act for effective from remote, with Hadoop's message. groups returns the
// groups of a user.
func (rs Rules) Check(groups func(user string) []string, real, effective string, remote netip.Addr) error {
	rule, ok := rs[real]
	if !ok || !rule.covers(groups, effective) {
		return &creel.Error{
			Kind: creel.ErrNotPermitted,
			What: fmt.Sprintf("User: %s is not allowed to impersonate %s", real, effective),
		}
	}
	if rule.Hosts.Includes(remote) {
		return nil
	}
	return &creel.Error{
		Kind: creel.ErrNotPermitted,
		What: fmt.Sprintf("Unauthorized connection for super-user: %s from IP %s", real, remote),
	}
}

// MayActForOthers reports whether a user has a rule that permits it to act for some user from some host.
func (rs Rules) MayActForOthers(user string) bool {
	rule := rs[user]
	return len(rule.Hosts) > 0 && len(rule.Users)+len(rule.Groups) > 0
}

// covers reports whether the proxy user may act for a user.
func (r *Rule) covers(groups func(user string) []string, user string) bool {
	if listed(r.Users, user) || listed(r.Groups, "*") {
		return true
	}
	return slices.ContainsFunc(groups(user), func(g string) bool { return listed(r.Groups, g) })
}

func listed(list []string, name string) bool {
	return slices.Contains(list, name) || slices.Contains(list, "*")
}

// SPDX-License-Identifier: Apache-2.0

package impersonation

import (
	"net/netip"
	"sync"
)

// Current has the rules in force of a server. They may be replaced at any time. It is safe for concurrent use.
type Current struct {
	groups func(user string) []string

	mu    sync.RWMutex
	rules Rules
}

// NewCurrent makes a Current. groups returns the groups of a user.
func NewCurrent(rules Rules, groups func(user string) []string) *Current {
	return &Current{groups: groups, rules: rules}
}

// Check is Rules.Check by the rules in force.
func (c *Current) Check(real, effective string, remote netip.Addr) error {
	return c.get().Check(c.groups, real, effective, remote)
}

// Has reports whether a user has a rule.
func (c *Current) Has(user string) bool {
	_, ok := c.get()[user]
	return ok
}

// Replace puts rules in force.
func (c *Current) Replace(rules Rules) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rules = rules
}

func (c *Current) get() Rules {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.rules
}

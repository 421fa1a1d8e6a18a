// SPDX-License-Identifier: Apache-2.0

package httpguard

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Machines is a list of machines in Hadoop's form: addresses, networks in CIDR form and host names, or "*" alone for
// all.
type Machines []string

// lookupTime bounds a client's wait for the resolution of the names in a list.
const lookupTime = 5 * time.Second

// Check returns an error for an entry that can match no machine.
func (m Machines) Check() error {
	for _, entry := range m {
		if strings.Contains(entry, "/") {
			if _, err := netip.ParsePrefix(entry); err != nil {
				return fmt.Errorf("%q is no network; write it as 10.1.0.0/16", entry)
			}
		}
	}
	return nil
}

// Includes reports whether an address belongs to a machine of the list. It resolves names at each call, because a
// machine may change its address. A name that does not resolve matches no address.
func (m Machines) Includes(address netip.Addr) bool {
	if len(m) == 1 && m[0] == "*" {
		return true
	}
	var names []string
	for _, entry := range m {
		if network, err := netip.ParsePrefix(entry); err == nil {
			if network.Contains(address) {
				return true
			}
		} else if one, err := netip.ParseAddr(entry); err == nil {
			if one.Unmap() == address {
				return true
			}
		} else {
			names = append(names, entry)
		}
	}
	if len(names) == 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookupTime)
	defer cancel()
	return slices.ContainsFunc(names, func(name string) bool {
		found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
		return err == nil && slices.ContainsFunc(found, func(a netip.Addr) bool { return a.Unmap() == address })
	})
}

// SPDX-License-Identifier: Apache-2.0

package httpguard

import (
	"net/netip"
	"testing"
)

func TestListMatchesAddressNetworkOrName(t *testing.T) {
	for _, tc := range []struct {
		list    Machines
		address string
		want    bool
	}{
		{Machines{"*"}, "10.1.2.3", true},
		{Machines{"*", "10.1.2.4"}, "10.1.2.3", false}, // as Hadoop has it: a star stands for all when it is alone
		{nil, "10.1.2.3", false},
		{Machines{"10.1.2.3"}, "10.1.2.3", true},
		{Machines{"10.1.2.4", "10.1.2.3"}, "10.1.2.3", true},
		{Machines{"10.1.0.0/16"}, "10.1.2.3", true},
		{Machines{"10.1.0.0/16"}, "10.2.2.3", false},
		{Machines{"fd00::/8"}, "fd00::1", true},
		{Machines{"localhost"}, "127.0.0.1", true},
		{Machines{"localhost"}, "127.0.0.2", false},
		{Machines{"nowhere.invalid"}, "127.0.0.1", false},
	} {
		if got := tc.list.Includes(netip.MustParseAddr(tc.address)); got != tc.want {
			t.Errorf("%s in %v: %t", tc.address, tc.list, got)
		}
	}
	if err := (Machines{"10.1.2.3", "host", "10.1.0.0/16"}).Check(); err != nil {
		t.Error(err)
	}
	if err := (Machines{"10.1.0.0/99"}).Check(); err == nil {
		t.Error("a network that is none passes")
	}
}

// SPDX-License-Identifier: Apache-2.0

package secure

import (
	"os"
	"strings"
	"testing"
)

func TestKDCGrantsTicketsForKeytab(t *testing.T) {
	kdc := StartKDC(t, Realm{})
	keytab := kdc.AddPrincipal(t, "alice")
	cache := kdc.Login(t, "alice", keytab)
	list := kdc.run(t, "klist", "-e", "-c", cache)
	for _, want := range []string{
		"Default principal: alice@CREEL.TEST", "krbtgt/CREEL.TEST@CREEL.TEST", "aes256-cts-hmac-sha1-96",
	} {
		if !strings.Contains(list, want) {
			t.Errorf("klist does not show %q:\n%s", want, list)
		}
	}
}

func TestKDCReadsNoConfigurationOfTheMachine(t *testing.T) {
	kdc := StartKDC(t, Realm{Name: "OTHER.TEST", Enctypes: "aes128-cts-hmac-sha256-128", Lifetime: "5m"})
	keytab := kdc.AddPrincipal(t, "yarn/localhost")
	cache := kdc.Login(t, "yarn/localhost", keytab)
	list := kdc.run(t, "klist", "-e", "-c", cache)
	if !strings.Contains(list, "yarn/localhost@OTHER.TEST") || !strings.Contains(list, "aes128-cts-hmac-sha256-128") {
		t.Errorf("klist shows\n%s", list)
	}
	if info, err := os.Stat(keytab); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("keytab: %v, %v", info, err)
	}
}

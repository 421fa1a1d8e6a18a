// SPDX-License-Identifier: Apache-2.0

package role

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/internal/settings"
)

// ldapDefines are complete settings of LdapGroupsMapping, with a PEM file to trust and a keystore of the client.
func ldapDefines(trusted, keystore string) []string {
	return []string{
		groupMapping + "=" + ldapClass, overLDAP + "url=ldap://localhost:1", overLDAP + "base=dc=x",
		ldapTrust + "=" + trusted, ldapKeystore + "=" + keystore, ldapKeystore + ".password=changeit",
	}
}

func TestIncompleteLDAPStopsTheStart(t *testing.T) {
	cert, _, keystore := certificate(t, time.Now().Add(time.Hour))
	word := filepath.Join(t.TempDir(), "word")
	if err := os.WriteFile(word, []byte("open\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	complete := ldapDefines(cert, keystore)
	for want, more := range map[string][]string{
		"":                        nil,
		"url is not set":          {overLDAP + "url="},
		"is not ldap://HOST:PORT": {overLDAP + "url=localhost"},
		"cn=admin is not set":     {overLDAP + "bind.user=cn=admin"},
		"cannot be read":          {overLDAP + "bind.user=cn=admin", ldapPassword + ".file=/nowhere/word"},
		"no credential provider":  {ldapPassword + ".alias=word"},
		ldapTrust + ":":           {ldapTrust + "=/nowhere/trust"},
		ldapKeystore + ":":        {ldapKeystore + ".password=guess"},
		"has no {0}":              {overLDAP + "search.filter.user=(uid=x)"},
	} {
		for _, role := range []settings.Role{settings.RM, settings.Router, settings.Proxy} {
			err := Check(minimal(t, append(complete, more...)...), role)
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) ||
				!strings.Contains(err.Error(), incompleteLDAP)) {
				t.Errorf("%s with %s: %v", role, more, err)
			}
		}
	}
	s := minimal(t, append(complete, overLDAP+"bind.user=cn=admin", ldapPassword+".file="+word)...)
	if got, err := bindPassword(s); got != "open" || err != nil {
		t.Errorf("the password is %q, %v", got, err)
	}
}

func TestPasswordWithoutTLSIsAWarning(t *testing.T) {
	has := func(more ...string) bool {
		t.Helper()
		s := minimal(t, append([]string{groupMapping + "=" + ldapClass, overLDAP + "bind.user=cn=admin",
			ldapPassword + "=word"}, more...)...)
		return strings.Contains(strings.Join(Warnings(s, settings.Router), "\n"), "not encrypted on the network")
	}
	if !has(overLDAP + "url=ldaps://a,ldap://b") {
		t.Error("a server without TLS is no warning")
	}
	if has(overLDAP+"url=ldaps://a") || has(overLDAP+"url=ldap://a", overLDAP+"ssl=true") {
		t.Error("servers with TLS are a warning")
	}
}

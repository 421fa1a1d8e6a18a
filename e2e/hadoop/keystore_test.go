// SPDX-License-Identifier: Apache-2.0

package hadoop

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/creelrm/creel/internal/jceks"
)

// Keystores that `hadoop credential create` writes now are read, with and without a password.
func TestKeystoreOfHadoopIsRead(t *testing.T) {
	t.Parallel()
	const shell = "org.apache.hadoop.security.alias.CredentialShell"
	for _, tc := range []struct{ scheme, password string }{{"jceks", ""}, {"localjceks", "pass \\ word"}} {
		c := Client{}
		password := "none"
		if tc.password != "" {
			password = tc.password
			c.Env = []string{"HADOOP_CREDSTORE_PASSWORD=" + tc.password}
		}
		c = c.Setup(t)
		file := filepath.Join(t.TempDir(), "creds.jceks")
		provider := tc.scheme + "://file" + file
		for alias, secret := range map[string]string{"creel.store.password": "one word", "Another.Alias": "x"} {
			c.Run(t, shell, "create", alias, "-value", secret, "-provider", provider).OK(t)
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s, err := jceks.Open(b, password)
		if err != nil {
			t.Fatal(err)
		}
		for alias, want := range map[string]string{"creel.store.password": "one word", "another.alias": "x"} {
			if got, found, err := s.Secret(alias); string(got) != want || !found || err != nil {
				t.Errorf("%s, %s: %q, %t, %v", provider, alias, got, found, err)
			}
		}
	}
}

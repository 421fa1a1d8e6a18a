// SPDX-License-Identifier: Apache-2.0

package jceks_test

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"github.com/creelrm/creel/internal/jceks"
)

// Hadoop 3.4.2 made the files of testdata (TestKeystoreOfHadoopIsRead of e2e/hadoop makes others) by `hadoop credential
// create`: Creel.store.password and creel.store.sentinel-password without a password of the keystore, and
// creel.store.password with the password s3cret.
func read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSecretsOfHadoopsKeystoreAreRead(t *testing.T) {
	for _, tc := range []struct{ file, password, alias, want string }{
		{"none.jceks", "none", "creel.store.password", "first secret"},
		{"none.jceks", "none", "CREEL.store.password", "first secret"},
		{"none.jceks", "none", "creel.store.sentinel-password", "second"},
		{"guarded.jceks", "s3cret", "creel.store.password", "guarded"},
	} {
		s, err := jceks.Open(read(t, tc.file), tc.password)
		if err != nil {
			t.Fatal(err)
		}
		if got, found, err := s.Secret(tc.alias); string(got) != tc.want || !found || err != nil {
			t.Errorf("%s in %s: %q, %t, %v", tc.alias, tc.file, got, found, err)
		}
		if _, found, err := s.Secret("another"); found || err != nil {
			t.Errorf("an alias that %s lacks: %t, %v", tc.file, found, err)
		}
	}
}

func TestDamagedKeystoreIsRefused(t *testing.T) {
	file := read(t, "guarded.jceks")
	if _, err := jceks.Open(file, "none"); !errors.Is(err, jceks.ErrPassword) {
		t.Errorf("another password: %v", err)
	}
	for i := range file {
		damaged := bytes.Clone(file)
		damaged[i] ^= 0x10
		if _, err := jceks.Open(damaged, "s3cret"); err == nil {
			t.Errorf("byte %d was changed: no error", i)
		}
		if _, err := jceks.Open(file[:i], "s3cret"); err == nil {
			t.Errorf("cut off after %d bytes: no error", i)
		}
	}
	if _, err := jceks.Open(make([]byte, jceks.MaxSize+1), ""); err == nil {
		t.Error("too large: no error")
	}
}

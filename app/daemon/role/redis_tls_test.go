// SPDX-License-Identifier: Apache-2.0

package role

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/statestore/redis/redistest"
)

// tlsRedis is a Redis that serves one user, with a certificate of its own list, over TLS.
func tlsRedis(t *testing.T, cert, key, clients, word string) (port string) {
	t.Helper()
	acl := filepath.Join(t.TempDir(), "users.acl")
	text := fmt.Sprintf("user default on nopass -@all +ping\nuser creel on #%x ~creel:* ~{creel:* &* +@all\n",
		sha256.Sum256([]byte(word)))
	if err := os.WriteFile(acl, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ = net.SplitHostPort(l.Addr().String())
	l.Close()
	redistest.Start(t, "--aclfile", acl, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key,
		"--tls-ca-cert-file", clients, "--tls-auth-clients", "yes")
	return port
}

// The store and a ResourceManager's state are in a Redis that asks for a certificate and a user. Others are rejected.
func TestRedisAsksForCertificateAndUser(t *testing.T) {
	end := time.Now().Add(100 * 24 * time.Hour)
	serverCert, serverKey, _ := certificate(t, end)
	cert, key, keystore := certificate(t, end)
	otherCert, otherKey, _ := certificate(t, end)
	port := tlsRedis(t, serverCert, serverKey, cert, "s3cret")
	dir := t.TempDir()
	word := func(text string) string {
		path := filepath.Join(dir, text)
		if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	url := "rediss://creel@localhost:" + port
	good := []string{
		"creel.store.url=" + url, stateURL + "=" + url, redisTruststore + "=" + serverCert,
		"creel.store.password-file=" + word("s3cret"), "creel.rm.state.password-file=" + word("s3cret"),
	}
	own := []string{redisCertificate + "=" + cert, redisKey + "=" + key}
	for name, shown := range map[string][]string{
		"PEM": own, "keystore": {redisKeystore + "=" + keystore, redisKeystoreWord + "=changeit"},
	} {
		s := minimal(t, slices.Concat(good, shown)...)
		store, done, err := OpenStore(t.Context(), s)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := store.Records(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := done(); err != nil {
			t.Error(err)
		}
	}
	shared, err := sharedStateOf(minimal(t, slices.Concat(good, own)...), "c1", nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), storePatience)
	defer cancel()
	if holder, err := shared.inUse(ctx); err != nil || holder != "" {
		t.Errorf("the state is in use by %q (%v)", holder, err)
	}

	for want, change := range map[string][]string{
		"certificate required": nil,
		"tls: ":                {redisCertificate + "=" + otherCert, redisKey + "=" + otherKey},
		"its certificate has no signer that this machine trusts": append([]string{redisTruststore + "=" + otherCert}, own...),
		"user": append([]string{"creel.store.password-file=" + word("guess")}, own...),
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		_, _, err := OpenStore(ctx, minimal(t, slices.Concat(good, change)...))
		cancel()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("want %q: %v", want, err)
		}
	}
}

func TestUnusableTLSToRedisIsReported(t *testing.T) {
	cert, key, keystore := certificate(t, time.Now().Add(time.Hour))
	over := "creel.store.url=rediss://r:6379"
	for _, c := range []struct {
		want    string
		defines []string
	}{
		{"", []string{over}},
		{"", []string{"creel.store.url=redis://r:6379"}},
		{"", []string{over, redisTruststore + "=" + cert}},
		{"", []string{"creel.store.url=redis://r:6379?tls=true", redisCertificate + "=" + cert, redisKey + "=" + key}},
		{"", []string{stateURL + "=rediss://r:6379", redisKeystore + "=" + keystore, redisKeystoreWord + "=changeit"}},
		{"is not rediss://", []string{"creel.store.url=redis://r:6379", redisTruststore + "=" + cert}},
		{redisKey + " is not set", []string{over, redisCertificate + "=" + cert}},
		{redisCertificate + " is not set", []string{over, redisKey + "=" + key}},
		{"the password is wrong", []string{over, redisKeystore + "=" + keystore, redisKeystoreWord + "=guess"}},
		{redisTruststore + ": /nowhere cannot be read", []string{over, redisTruststore + "=/nowhere"}},
	} {
		if wrong, why := incompleteRedisTLS(minimal(t, c.defines...)); wrong != (c.want != "") || !strings.Contains(why, c.want) {
			t.Errorf("%v: %t %q, want %q", c.defines, wrong, why, c.want)
		}
	}
}

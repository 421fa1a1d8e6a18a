// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pavlo-v-chernykh/keystore-go/v4"
	"software.sslmate.com/src/go-pkcs12"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// pair is a certificate of localhost that signed itself.
type pair struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newPair(t testing.TB, serial int64, end time.Time) pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: noon.Add(-time.Hour), NotAfter: end,
	}
	b, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(b)
	if err != nil {
		t.Fatal(err)
	}
	return pair{key, cert}
}

func (p pair) der(t testing.TB) []byte {
	t.Helper()
	b, err := x509.MarshalPKCS8PrivateKey(p.key)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (p pair) pem(t testing.TB) (cert, key []byte) {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.cert.Raw}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: p.der(t)})
}

func (p pair) pkcs12(t testing.TB, password string) []byte {
	t.Helper()
	b, err := pkcs12.Modern.Encode(p.key, p.cert, nil, password)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// jks makes a keystore with a trusted certificate and a key for each pair.
func jks(t testing.TB, password, keyPassword string, pairs ...pair) []byte {
	t.Helper()
	k := keystore.New()
	if err := k.SetTrustedCertificateEntry("ca", keystore.TrustedCertificateEntry{
		CreationTime: noon, Certificate: keystore.Certificate{Type: "X509", Content: newPair(t, 99, noon).cert.Raw},
	}); err != nil {
		t.Fatal(err)
	}
	for i, p := range pairs {
		err := k.SetPrivateKeyEntry(string(rune('a'+i)), keystore.PrivateKeyEntry{
			CreationTime: noon, PrivateKey: p.der(t), CertificateChain: []keystore.Certificate{{Type: "X509", Content: p.cert.Raw}},
		}, []byte(keyPassword))
		if err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if err := k.Store(&b, []byte(password)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func write(t testing.TB, path string, b []byte) string {
	t.Helper()
	if path == "" {
		path = filepath.Join(t.TempDir(), "file")
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestStoresOfEachKindAreRead(t *testing.T) {
	p := newPair(t, 7, noon.Add(time.Hour))
	cert, key := p.pem(t)
	for name, s := range map[string]Store{
		"PEM":          {Certificate: write(t, "", cert), Key: write(t, "", key), Keystore: "/nowhere"},
		"PEM in one":   {Certificate: write(t, "", append(key, cert...)), Key: write(t, "", append(cert, key...))},
		"JKS":          {Keystore: write(t, "", jks(t, "storepass", "keypass", p)), Password: "storepass", KeyPassword: "keypass"},
		"one password": {Keystore: write(t, "", jks(t, "storepass", "storepass", p)), Password: "storepass"},
		"PKCS12":       {Keystore: write(t, "", p.pkcs12(t, "storepass")), Password: "storepass", KeyPassword: "ignored"},
	} {
		c, err := s.Load(noon)
		if err != nil || c.Leaf.SerialNumber.Int64() != 7 || !p.key.Equal(c.PrivateKey) {
			t.Errorf("%s: %v, %v", name, c, err)
		}
	}
}

func TestUnusableStoresAreRejected(t *testing.T) {
	good, other := newPair(t, 1, noon.Add(time.Hour)), newPair(t, 2, noon.Add(time.Hour))
	cert, key := good.pem(t)
	_, otherKey := other.pem(t)
	store := jks(t, "storepass", "keypass", good)
	file := func(b []byte) string { return write(t, "", b) }
	for name, c := range map[string]struct {
		store Store
		want  string
	}{
		"no file":           {Store{Keystore: "/nowhere/keystore"}, "/nowhere/keystore cannot be read: no such file"},
		"no key file":       {Store{Certificate: file(cert)}, "cannot be read"},
		"no certificate":    {Store{Key: file(key)}, "cannot be read"},
		"another key":       {Store{Certificate: file(cert), Key: file(otherKey)}, "does not match"},
		"half a file":       {Store{Certificate: file(cert[:len(cert)/2]), Key: file(key)}, "PEM"},
		"a wrong password":  {Store{Keystore: file(store), Password: "wrong"}, "damaged, or the password is wrong"},
		"a wrong key's":     {Store{Keystore: file(store), Password: "storepass"}, `the password of key "a" is wrong`},
		"half a keystore":   {Store{Keystore: file(store[:len(store)/2]), Password: "storepass"}, "damaged"},
		"no key":            {Store{Keystore: file(jks(t, "p", "p")), Password: "p"}, "has no key"},
		"two keys":          {Store{Keystore: file(jks(t, "p", "p", good, other)), Password: "p"}, "several keys"},
		"PKCS12's password": {Store{Keystore: file(good.pkcs12(t, "storepass")), Password: "wrong"}, "the password is wrong"},
		"neither":           {Store{Keystore: file([]byte("text")), Password: "p"}, "pkcs12"},
		"a long file":       {Store{Keystore: file(make([]byte, maxFile+1))}, "larger than"},
		"a directory":       {Store{Keystore: t.TempDir()}, "cannot be read"},
		"an expired one":    {Store{Keystore: file(jks(t, "p", "p", newPair(t, 3, noon))), Password: "p"}, "expired at 2026-03-01T12:00:00Z"},
	} {
		if got, err := c.store.Load(noon); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	early := Store{Keystore: file(good.pkcs12(t, "p")), Password: "p"}
	if _, err := early.Load(noon.Add(-2 * time.Hour)); err == nil || !strings.Contains(err.Error(), "not valid before") {
		t.Errorf("before its time: %v", err)
	}
}

// A changed file replaces the certificate of new connections. A file that cannot be used replaces nothing.
func TestChangedFilesReplaceCertificate(t *testing.T) {
	path := write(t, "", newPair(t, 1, noon.Add(100*24*time.Hour)).pkcs12(t, "p"))
	s, err := Open(Store{Keystore: path, Password: "p"}, noon)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, nil))
	check := func(name string, serial int64, lines ...string) {
		t.Helper()
		text.Reset()
		s.Check(noon, log)
		s.Check(noon, log)
		if got := s.current.Load().Leaf.SerialNumber.Int64(); got != serial {
			t.Errorf("%s: certificate %d is in force", name, got)
		}
		if got := text.String(); strings.Count(got, "\n") != len(lines) {
			t.Errorf("%s: the log is\n%s", name, got)
		}
		for _, line := range lines {
			if !strings.Contains(text.String(), line) {
				t.Errorf("%s: no %q in\n%s", name, line, text.String())
			}
		}
	}
	check("the same", 1)
	write(t, path, newPair(t, 22, noon.Add(60*24*time.Hour)).pkcs12(t, "p"))
	check("another", 22, "TLS certificate replaced")
	write(t, path, []byte("broken"))
	check("a broken file", 22, "using the previous one")
	write(t, path, newPair(t, 3, noon).pkcs12(t, "p"))
	check("an expired one", 22, "the certificate expired")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	check("no file", 22, "no such file")
	write(t, path, newPair(t, 444444, noon.Add(29*24*time.Hour)).pkcs12(t, "p"))
	check("a short one", 444444, "TLS certificate replaced", "expires soon")
}

// handshake connects with one version and cipher, and returns the serial number of the server's certificate.
func handshake(t *testing.T, server *tls.Config, client *tls.Config) (serial int64, err error) {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if tls.Server(a, server).Handshake() != nil {
			a.Close()
		}
	}()
	client.InsecureSkipVerify = true
	c := tls.Client(b, client)
	err = c.Handshake()
	b.Close()
	<-done
	if err == nil {
		serial = c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	return serial, err
}

func TestOldVersionsAndWeakCiphersAreRefused(t *testing.T) {
	s, err := Open(Store{Keystore: write(t, "", newPair(t, 5, noon.Add(time.Hour)).pkcs12(t, "p")), Password: "p"}, noon)
	if err != nil {
		t.Fatal(err)
	}
	const good = tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
	conf, err := s.Config([]string{"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "SSL_RSA_WITH_DES_CBC_SHA"})
	if err != nil {
		t.Fatal(err)
	}
	if conf.MinVersion != tls.VersionTLS12 { // older versions also lack a cipher here
		t.Errorf("the lowest version is %x", conf.MinVersion)
	}
	for name, c := range map[string]struct {
		version uint16
		cipher  uint16
		ok      bool
	}{
		"TLS 1.3":         {tls.VersionTLS13, 0, true},
		"TLS 1.2":         {tls.VersionTLS12, good, true},
		"TLS 1.1":         {tls.VersionTLS11, tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, false},
		"TLS 1.0":         {tls.VersionTLS10, tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, false},
		"CBC":             {tls.VersionTLS12, tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, false},
		"RC4":             {tls.VersionTLS12, tls.TLS_ECDHE_ECDSA_WITH_RC4_128_SHA, false},
		"an excluded one": {tls.VersionTLS12, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, false},
	} {
		client := &tls.Config{MinVersion: c.version, MaxVersion: c.version}
		if c.cipher != 0 {
			client.CipherSuites = []uint16{c.cipher}
		}
		if serial, err := handshake(t, conf, client); (err == nil) != c.ok || c.ok && serial != 5 {
			t.Errorf("%s: certificate %d, %v", name, serial, err)
		}
	}
	if _, err := s.Config([]string{"TLS_AES_128_GCM_SHA256"}); err == nil {
		t.Error("a cipher of TLS 1.3 is said to be excluded")
	}
	var all []string
	for _, id := range suites {
		all = append(all, tls.CipherSuiteName(id))
	}
	if _, err := s.Config(all); err == nil {
		t.Error("all ciphers are excluded without an error")
	}
}

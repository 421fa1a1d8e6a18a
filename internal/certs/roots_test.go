// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pavlo-v-chernykh/keystore-go/v4"
	"software.sslmate.com/src/go-pkcs12"
)

// A truststore is read in each form, and a wrong password is named.
func TestRootsOfEachForm(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	want := x509.NewCertPool()
	want.AddCert(cert)

	p12, err := pkcs12.Modern.EncodeTrustStore([]*x509.Certificate{cert}, "word")
	if err != nil {
		t.Fatal(err)
	}
	jks := keystore.New()
	if err := jks.SetTrustedCertificateEntry("ca", keystore.TrustedCertificateEntry{
		CreationTime: time.Now(), Certificate: keystore.Certificate{Type: "X509", Content: der},
	}); err != nil {
		t.Fatal(err)
	}
	var stored bytes.Buffer
	if err := jks.Store(&stored, []byte("word")); err != nil {
		t.Fatal(err)
	}
	for kind, content := range map[string][]byte{
		"pem": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), "p12": p12, "jks": stored.Bytes(),
	} {
		path := filepath.Join(t.TempDir(), kind)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := Roots(path, "word"); err != nil || !got.Equal(want) {
			t.Errorf("%s: %v", kind, err)
		}
		_, err := Roots(path, "guess")
		if kind != "pem" && (err == nil || !strings.Contains(err.Error(), "password is wrong")) {
			t.Errorf("%s with a wrong password: %v", kind, err)
		}
	}
	if _, err := Roots("/nowhere/trust", ""); err == nil || !strings.Contains(err.Error(), "trust cannot be read") {
		t.Errorf("a missing file: %v", err)
	}
}

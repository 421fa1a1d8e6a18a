// SPDX-License-Identifier: Apache-2.0

package ldap

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/internal/programs"
)

// The directory's base, and its administrator with the password.
const (
	Base     = "dc=creel,dc=test"
	Admin    = "cn=admin," + Base
	Password = "word-of-the-directory"
)

// Slapd is a running OpenLDAP server on loopback, with a database of its own.
type Slapd struct {
	Plain, TLS  string // ldap://127.0.0.1:PORT, ldaps://localhost:PORT
	Certificate string // a PEM file, of localhost alone
	dir         string
	process     *process.Process
}

const slapdConf = `include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/nis.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile DIR/pid
TLSCertificateFile DIR/certificate.pem
TLSCertificateKeyFile DIR/key.pem
database mdb
maxsize 16777216
suffix "` + Base + `"
rootdn "` + Admin + `"
rootpw ` + Password + `
directory DIR/database
`

// Start fills a directory with entries in LDIF, and serves it until the test ends.
func Start(t testing.TB, ldif string) *Slapd {
	t.Helper()
	dir := t.TempDir()
	s := &Slapd{dir: dir, Certificate: filepath.Join(dir, "certificate.pem")}
	s.certify(t)
	write(t, filepath.Join(dir, "slapd.conf"), strings.ReplaceAll(slapdConf, "DIR", dir))
	conf, content := filepath.Join(dir, "slapd.conf"), filepath.Join(dir, "entries.ldif")
	write(t, content, ldif)
	if err := os.Mkdir(filepath.Join(dir, "database"), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), process.Guard)
	defer cancel()
	if _, all, code := process.Run(ctx, t, process.Command{
		Name: "slapadd", Dir: dir,
		Args: []string{program(t, "slapadd"), "-f", conf, "-l", content},
	}); code != 0 {
		t.Fatalf("slapadd: %d\n%s", code, all)
	}
	s.Plain = "ldap://" + process.FreeAddress(t, "127.0.0.1")
	_, port, err := net.SplitHostPort(process.FreeAddress(t, "127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	s.TLS = "ldaps://localhost:" + port
	s.Run(t)
	return s
}

// Run starts the server again after Kill.
func (s *Slapd) Run(t testing.TB) {
	t.Helper()
	s.process = process.Start(t, process.Command{
		Name: "slapd", Dir: s.dir,
		Args: []string{program(t, "slapd"), "-f", filepath.Join(s.dir, "slapd.conf"), "-d", "0",
			"-h", s.Plain + " " + strings.Replace(s.TLS, "localhost", "127.0.0.1", 1)},
	})
	s.process.WaitPort(t, strings.TrimPrefix(s.Plain, "ldap://"))
}

// Kill ends the server as a crash does.
func (s *Slapd) Kill() { s.process.Kill() }

// Modify applies a change in LDIF.
func (s *Slapd) Modify(t testing.TB, change string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), process.Guard)
	defer cancel()
	_, all, code := process.Run(ctx, t, process.Command{
		Name: "ldapmodify", Dir: s.dir, Stdin: strings.NewReader(change),
		Args: []string{program(t, "ldapmodify"), "-x", "-H", s.Plain, "-D", Admin, "-w", Password},
	})
	if code != 0 {
		t.Fatalf("ldapmodify: %d\n%s", code, all)
	}
}

// certify makes a certificate of localhost and its key.
func (s *Slapd) certify(t testing.TB) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	own := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, own, own, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, s.Certificate, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	block := &pem.Block{Type: "PRIVATE KEY", Bytes: private}
	write(t, filepath.Join(s.dir, "key.pem"), string(pem.EncodeToMemory(block)))
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func program(t testing.TB, name string) string {
	t.Helper()
	path, err := programs.Path(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

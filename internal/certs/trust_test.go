// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pavlo-v-chernykh/keystore-go/v4"
	"software.sslmate.com/src/go-pkcs12"
)

// signed is a certificate of localhost that is valid now, with the server that has it.
func signed(t *testing.T, name string) (*x509.Certificate, *httptest.Server) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, IsCA: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true,
	}
	b, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(b)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "served")
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{b}, PrivateKey: key}}}
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	server.StartTLS()
	t.Cleanup(server.Close)
	return cert, server
}

// get calls a server as localhost.
func get(trust *Trust, server *httptest.Server) (string, error) {
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
	}
	client := http.Client{Transport: &http.Transport{DialTLSContext: trust.DialTLS(dial, HTTP11), DisableKeepAlives: true}}
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	answer, err := client.Get("https://localhost:" + port)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	return string(b), err
}

// truststores are a trusted certificate in each form.
func truststores(t *testing.T, cert *x509.Certificate) map[string][]byte {
	t.Helper()
	store := keystore.New()
	entry := keystore.TrustedCertificateEntry{
		CreationTime: noon, Certificate: keystore.Certificate{Type: "X509", Content: cert.Raw},
	}
	var jks bytes.Buffer
	if err := store.SetTrustedCertificateEntry("signer", entry); err != nil {
		t.Fatal(err)
	}
	if err := store.Store(&jks, []byte("changeit")); err != nil {
		t.Fatal(err)
	}
	p12, err := pkcs12.Modern.EncodeTrustStore([]*x509.Certificate{cert}, "changeit")
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{
		"jks": jks.Bytes(), "pkcs12": p12, "pem": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}),
	}
}

func TestClientTrustsSignersOfTruststore(t *testing.T) {
	cert, server := signed(t, "localhost")
	other, _ := signed(t, "localhost")
	wrong, elsewhere := signed(t, "other.example")
	for kind, text := range truststores(t, cert) {
		path := filepath.Join(t.TempDir(), "truststore")
		write(t, path, text)
		trust, err := OpenTrust(path, "changeit", slog.Default())
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		if got, err := get(trust, server); got != "served" {
			t.Errorf("%s: %q, %v", kind, got, err)
		}
		if kind != "pem" {
			if _, err := OpenTrust(path, "wrong", slog.Default()); err == nil || !strings.Contains(err.Error(), "password is wrong") {
				t.Errorf("%s, a wrong password: %v", kind, err)
			}
		}
		write(t, path, truststores(t, other)[kind])
		if stranger, err := OpenTrust(path, "changeit", slog.Default()); err != nil {
			t.Errorf("%s: %v", kind, err)
		} else if got, err := get(stranger, server); err == nil {
			t.Errorf("%s: a server by another signer is trusted: %q", kind, got)
		}
		write(t, path, truststores(t, wrong)[kind])
		if trust, err := OpenTrust(path, "changeit", slog.Default()); err != nil {
			t.Errorf("%s: %v", kind, err)
		} else if got, err := get(trust, elsewhere); err == nil {
			t.Errorf("%s: a certificate of another host is accepted: %q", kind, got)
		}
	}
	if machine, err := OpenTrust("", "", slog.Default()); err != nil {
		t.Error(err)
	} else if got, err := get(machine, server); err == nil {
		t.Errorf("the machine's signers: %q", got)
	}
}

func TestChangedTruststoreIsReadAgain(t *testing.T) {
	cert, server := signed(t, "localhost")
	other, _ := signed(t, "localhost")
	path := filepath.Join(t.TempDir(), "truststore")
	write(t, path, truststores(t, other)["jks"])
	var log bytes.Buffer
	trust, err := OpenTrust(path, "changeit", slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	soon := time.Now()
	look := func() {
		soon = soon.Add(trustEvery + time.Second)
		trust.Check(soon)
	}
	write(t, path, []byte("half a file"))
	look()
	look()
	if n := strings.Count(log.String(), "using the previous one"); n != 1 || trust.roots.Load() == nil {
		t.Errorf("a broken truststore is reported %d times\n%s", n, &log)
	}
	write(t, path, truststores(t, cert)["pkcs12"])
	trust.Check(soon) // too early
	if _, err := get(trust, server); err == nil {
		t.Error("the new truststore was read before its time")
	}
	look()
	if got, err := get(trust, server); got != "served" {
		t.Errorf("with the new truststore: %q, %v", got, err)
	}
}

func TestTruststoreWithoutSignersIsRejected(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "text": "no truststore", "pem": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
	} {
		path := filepath.Join(t.TempDir(), "truststore")
		write(t, path, []byte(text))
		if _, err := OpenTrust(path, "changeit", slog.Default()); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := OpenTrust("/nowhere/truststore", "", slog.Default()); err == nil {
		t.Error("a missing truststore is no error")
	}
}

// A server that asks for a certificate gets the client's present one, and rejects a client without one.
func TestClientShowsItsCertificate(t *testing.T) {
	serverCert, server := signed(t, "localhost")
	first, second := newPair(t, 11, time.Now().Add(100*24*time.Hour)), newPair(t, 12, time.Now().Add(100*24*time.Hour))
	var shown atomic.Int64
	server.TLS.ClientAuth = tls.RequireAnyClientCert
	server.TLS.VerifyPeerCertificate = func(raw [][]byte, _ [][]*x509.Certificate) error {
		c, err := x509.ParseCertificate(raw[0])
		if err == nil {
			shown.Store(c.SerialNumber.Int64())
		}
		return err
	}
	truststore := write(t, "", truststores(t, serverCert)["pem"])
	open := func() *Trust {
		trust, err := OpenTrust(truststore, "", slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return trust
	}
	if got, err := get(open(), server); err == nil {
		t.Errorf("without a certificate: %q", got)
	}
	path := write(t, "", first.pkcs12(t, "word"))
	trust := open()
	if err := trust.Present(Store{Keystore: path, Password: "guess"}, time.Now()); err == nil {
		t.Error("a wrong password is no error")
	}
	if err := trust.Present(Store{Keystore: path, Password: "word"}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if got, err := get(trust, server); got != "served" || shown.Load() != 11 {
		t.Errorf("certificate %d: %q, %v", shown.Load(), got, err)
	}
	write(t, path, append(second.pkcs12(t, "word"), 0)) // half-written
	trust.Check(time.Now().Add(trustEvery))
	if got, err := get(trust, server); got != "served" || shown.Load() != 11 {
		t.Errorf("after a broken file, certificate %d: %q, %v", shown.Load(), got, err)
	}
	write(t, path, second.pkcs12(t, "word"))
	trust.Check(time.Now().Add(3 * trustEvery))
	if got, err := get(trust, server); got != "served" || shown.Load() != 12 {
		t.Errorf("after another file, certificate %d: %q, %v", shown.Load(), got, err)
	}
}

// A server verifies the certificates of clients by a truststore that may change.
func TestServerVerifiesClients(t *testing.T) {
	client, stranger := newPair(t, 1, time.Now().Add(time.Hour)), newPair(t, 2, time.Now().Add(time.Hour))
	path := filepath.Join(t.TempDir(), "truststore")
	write(t, path, truststores(t, client.cert)["jks"])
	trust, err := OpenTrust(path, "changeit", slog.Default())
	if err != nil {
		t.Fatal(err)
	}
	server, err := Open(Store{Keystore: write(t, "", newPair(t, 5, time.Now().Add(time.Hour)).pkcs12(t, "p")), Password: "p"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	conf, err := server.Config(nil)
	if err != nil {
		t.Fatal(err)
	}
	trust.VerifyClients(conf)
	verified := func(show *pair) (chains int, err error) {
		t.Helper()
		a, b := net.Pipe()
		defer a.Close()
		defer b.Close()
		own := &tls.Config{InsecureSkipVerify: true}
		if show != nil {
			own.Certificates = []tls.Certificate{{Certificate: [][]byte{show.cert.Raw}, PrivateKey: show.key}}
		}
		go func() {
			c := tls.Client(b, own)
			_ = c.Handshake()
			_, _ = c.Read(make([]byte, 1)) // what the server sends after it
		}()
		c := tls.Server(a, conf)
		err = c.Handshake()
		return len(c.ConnectionState().VerifiedChains), err
	}
	for name, x := range map[string]struct {
		show   *pair
		chains int
		ok     bool
	}{"none": {nil, 0, true}, "a client": {&client, 1, true}, "a stranger": {&stranger, 0, false}} {
		if chains, err := verified(x.show); chains != x.chains || (err == nil) != x.ok {
			t.Errorf("%s: %d chains, %v", name, chains, err)
		}
	}
	write(t, path, truststores(t, stranger.cert)["jks"])
	trust.Check(time.Now().Add(time.Minute))
	if chains, err := verified(&stranger); chains != 1 || err != nil {
		t.Errorf("after a change: %d chains, %v", chains, err)
	}
	if _, err := verified(&client); err == nil {
		t.Error("after a change the former signer is trusted")
	}
}

// A client whose signer was removed cannot resume a session of before.
func TestRemovedSignerEndsSessions(t *testing.T) {
	client := newPair(t, 1, time.Now().Add(time.Hour))
	path := filepath.Join(t.TempDir(), "truststore")
	write(t, path, truststores(t, client.cert)["jks"])
	trust, err := OpenTrust(path, "changeit", slog.Default())
	if err != nil {
		t.Fatal(err)
	}
	server, err := Open(Store{Keystore: write(t, "", newPair(t, 5, time.Now().Add(time.Hour)).pkcs12(t, "p")), Password: "p"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	conf, err := server.Config(nil)
	if err != nil {
		t.Fatal(err)
	}
	trust.VerifyClients(conf)
	port := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%d %v", len(r.TLS.VerifiedChains), r.TLS.DidResume)
	}))
	port.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	port.TLS = conf
	port.StartTLS()
	t.Cleanup(port.Close)
	caller := http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		InsecureSkipVerify: true, ClientSessionCache: tls.NewLRUClientSessionCache(4),
		Certificates: []tls.Certificate{{Certificate: [][]byte{client.cert.Raw}, PrivateKey: client.key}},
	}}}
	call := func() string {
		answer, err := caller.Get(port.URL)
		if err != nil {
			return "refused"
		}
		defer answer.Body.Close()
		b, _ := io.ReadAll(answer.Body)
		return string(b)
	}
	if first, second := call(), call(); first != "1 false" || second != "1 true" {
		t.Errorf("with its signer the client is served %q, then %q", first, second)
	}
	write(t, path, truststores(t, newPair(t, 2, time.Now().Add(time.Hour)).cert)["jks"])
	trust.Check(time.Now().Add(time.Minute))
	if got := call(); got != "refused" {
		t.Errorf("without its signer the client is served %q", got)
	}
}

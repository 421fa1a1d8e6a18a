// SPDX-License-Identifier: Apache-2.0

package webserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// serveTLS serves a handler by TLS until the test ends, and returns its address and a client that trusts it.
func serveTLS(t *testing.T, h http.Handler, c Config) (address string, client *http.Client) {
	t.Helper()
	issued := httptest.NewUnstartedServer(nil) // the library's certificate of example.com
	issued.StartTLS()
	issued.Close()
	c.TLS = &tls.Config{Certificates: issued.TLS.Certificates, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Task(l, h, c)(ctx) }()
	pool := x509.NewCertPool()
	pool.AddCert(issued.Certificate())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "example.com"}}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String(), &http.Client{Transport: transport}
}

func TestPortWithTLSServesTLSAlone(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := r.Context().Value(connKey{}).(*conn); !ok {
			t.Error("limits of slow clients do not see the connection")
		}
		body, err := io.ReadAll(r.Body)
		if r.TLS == nil || err != nil {
			t.Error(r.TLS, err)
		}
		w.Write(body)
	})
	address, client := serveTLS(t, h, Config{StrictTransport: 90 * time.Second})
	for range 2 { // the second request waits on the connection of the first
		answer, err := client.Post("https://"+address+"/?user.name=alice", "text/plain", strings.NewReader("text"))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if string(body) != "text" || err != nil || answer.Header.Get("Strict-Transport-Security") != "max-age=90" {
			t.Errorf("%q, %v, %v", body, err, answer.Header)
		}
		if c := answer.Cookies(); len(c) != 1 || !c[0].Secure {
			t.Errorf("cookies %v", c)
		}
	}
	answer, err := http.Get("http://" + address)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusBadRequest {
		t.Errorf("without TLS: %s", answer.Status)
	}
	if _, err := http.Get("https://" + address); err == nil {
		t.Error("a client without the signer accepts the certificate")
	}
}

func TestStrictTransportCanBeOff(t *testing.T) {
	address, client := serveTLS(t, http.NotFoundHandler(), Config{})
	answer, err := client.Get("https://" + address)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if v := answer.Header.Values("Strict-Transport-Security"); len(v) != 0 {
		t.Errorf("the header is %q", v)
	}
}

// Without a certificate a client reads the health alone.
func TestPortThatNeedsCertificates(t *testing.T) {
	served := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	for path, want := range map[string]int{
		"/livez": 204, "/readyz?verbose": 204, "/ws/v1/cluster/info": 403, "/livez/": 403, "/": 403,
	} {
		for name, state := range map[string]*tls.ConnectionState{
			"no TLS": nil, "no certificate": {}, "an unverified one": {PeerCertificates: []*x509.Certificate{{}}},
			"a verified one": {VerifiedChains: [][]*x509.Certificate{{{}}}},
		} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.TLS = state
			w := httptest.NewRecorder()
			withCertificate(served).ServeHTTP(w, r)
			want := want
			if name == "a verified one" {
				want = http.StatusNoContent
			}
			if w.Code != want || w.Code == 403 && !strings.Contains(w.Body.String(), "ssl.server.truststore.location") {
				t.Errorf("%s with %s: %d %s", path, name, w.Code, w.Body)
			}
		}
	}
}

// A stranger's failed handshakes write one line.
func TestFailedHandshakesAreOneLine(t *testing.T) {
	var text bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&text, nil)))
	defer slog.SetDefault(before)
	l := NewFigures().errorLog(&net.TCPAddr{Port: 1})
	for range 5 {
		l.Print("http: TLS handshake error from 127.0.0.1:1: EOF")
	}
	if got := text.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "handshakes failed") {
		t.Errorf("the log is\n%s", got)
	}
	l.Print("http: another matter")
	if got := text.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, "another matter") {
		t.Errorf("the log is\n%s", got)
	}
}

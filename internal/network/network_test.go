// SPDX-License-Identifier: Apache-2.0

package network_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creelrm/creel/internal/network"
)

// A connection error is reported without Go's terms, and unwraps to the original.
func TestConnectionErrorsAreReadable(t *testing.T) {
	_, err := net.Dial("tcp", "127.0.0.1:1")
	if told := network.InWords(err); told.Error() != "connection refused: no server listens there" || !errors.Is(told, syscall.ECONNREFUSED) {
		t.Errorf("%v of %v", told, err)
	}
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	known := x509.NewCertPool()
	known.AddCert(server.Certificate())
	for want, conf := range map[string]*tls.Config{
		"no signer that this machine trusts": {RootCAs: x509.NewCertPool()},
		`not for "elsewhere"`:                {RootCAs: known, ServerName: "elsewhere"},
		"has expired": {RootCAs: known, Time: func() time.Time {
			return server.Certificate().NotAfter.Add(time.Hour)
		}},
	} {
		client := http.Client{Transport: &http.Transport{TLSClientConfig: conf}}
		_, err := client.Get(server.URL)
		told := network.InWords(err).Error()
		if !strings.Contains(told, want) || strings.Contains(told, "x509") || strings.Contains(told, "tls:") {
			t.Errorf("%q, want %q", told, want)
		}
	}
	if err := errors.New("the disk is full"); network.InWords(err) != err {
		t.Error("what is no connection's is changed")
	}
}

// Errors of a system call or of a closed connection are reported without addresses and names of calls.
func TestErrorsOfCallsLoseTheirAddresses(t *testing.T) {
	for want, err := range map[string]error{
		"no route to host":          &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)},
		"the connection was closed": &net.OpError{Op: "write", Net: "tcp", Err: os.NewSyscallError("write", syscall.EPIPE)},
		"the call was abandoned":    &url.Error{Op: "Get", URL: "http://10.0.0.1/", Err: context.Canceled},
	} {
		if got := network.InWords(err); got.Error() != want {
			t.Errorf("%v: %v, want %s", err, got, want)
		}
	}
}

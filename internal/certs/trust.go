// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"sync/atomic"
	"time"
)

// trustEvery is the time after which a changed truststore is read again at the latest: Hadoop's
// ssl.client.truststore.reload.interval.
const trustEvery = 10 * time.Second

// handshakeTime bounds the handshake of a client, which waits for the server.
const handshakeTime = 5 * time.Second

// Trust has the signers of servers that a client accepts: those of a truststore, else the machine's. It is safe for
// concurrent use.
type Trust struct {
	path, password string
	log            *slog.Logger
	roots          atomic.Pointer[x509.CertPool] // nil: the machine's
	next           atomic.Int64                  // time of the next look at the file, Unix ns
	looks          atomic.Bool                   // a caller looks at the file
	file           watched                       // of that caller
}

// OpenTrust reads a truststore (JKS, PKCS12 or PEM), or with path "" trusts the machine's signers.
func OpenTrust(path, password string, log *slog.Logger) (*Trust, error) {
	t := &Trust{path: path, password: password, log: log, file: watched{files: []string{path}}}
	if path == "" {
		return t, nil
	}
	t.next.Store(time.Now().Add(trustEvery).UnixNano())
	_, err := t.file.check(t.read)
	return t, err
}

func (t *Trust) read() error {
	signers, err := Roots(t.path, t.password)
	if err != nil {
		return err
	}
	t.roots.Store(signers)
	return nil
}

// Check reads a changed truststore again. One that cannot be used changes nothing, and is logged once. One caller
// looks at the file, others go on.
func (t *Trust) Check(now time.Time) {
	if t.path == "" || now.UnixNano() < t.next.Load() || !t.looks.CompareAndSwap(false, true) {
		return
	}
	defer t.looks.Store(false)
	t.next.Store(now.Add(trustEvery).UnixNano())
	switch replaced, err := t.file.check(t.read); {
	case err != nil:
		t.log.Error("failed to read the truststore again; using the previous one", "error", err,
			"try", "write a truststore with the signers; it is read again by itself")
	case replaced:
		t.log.Info("truststore replaced", "file", t.path)
	}
}

// DialTLS makes a connection to host:port by dial, and proves that a trusted signer knows the server by this host. It
// is the DialTLSContext of an http.Transport.
func (t *Trust) DialTLS(
	dial func(ctx context.Context, network, address string) (net.Conn, error),
) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		plain, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		t.Check(time.Now())
		conn := tls.Client(plain, &tls.Config{
			ServerName: host, RootCAs: t.roots.Load(), MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		})
		ctx, cancel := context.WithTimeout(ctx, handshakeTime)
		defer cancel()
		if err := conn.HandshakeContext(ctx); err != nil {
			plain.Close()
			return nil, &net.OpError{Op: "dial", Net: network, Err: err} // no call was sent
		}
		return conn, nil
	}
}

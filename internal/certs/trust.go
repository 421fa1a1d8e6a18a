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

// HTTP11 is the protocol of web ports above TLS.
const HTTP11 = "http/1.1"

// Trust has the signers of servers that a client accepts: those of a truststore, else the machine's. It may have a
// certificate of the client's own. Of a server it has the signers of its clients. It is safe for concurrent use.
type Trust struct {
	path, password string
	log            *slog.Logger
	roots          atomic.Pointer[x509.CertPool] // nil: the machine's
	own            *Server                       // the client's certificate; nil: none
	next           atomic.Int64                  // time of the next look at the files, Unix ns
	looks          atomic.Bool                   // a caller looks at the files
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

// Present makes the client show a certificate to servers that ask for one. Call it before the first connection.
func (t *Trust) Present(store Store, now time.Time) (err error) {
	t.own, err = Open(store, now)
	return err
}

func (t *Trust) read() error {
	signers, err := Roots(t.path, t.password)
	if err != nil {
		return err
	}
	t.roots.Store(signers)
	return nil
}

// Check reads a changed truststore again, and the client's own certificate. One that cannot be used changes nothing,
// and is logged once. One caller looks at the files, others go on.
func (t *Trust) Check(now time.Time) {
	if now.UnixNano() < t.next.Load() || !t.looks.CompareAndSwap(false, true) {
		return
	}
	defer t.looks.Store(false)
	t.next.Store(now.Add(trustEvery).UnixNano())
	if t.own != nil {
		t.own.Check(now, t.log)
	}
	if t.path == "" {
		return
	}
	switch replaced, err := t.file.check(t.read); {
	case err != nil:
		t.log.Error("failed to read the truststore again; using the previous one", "error", err,
			"try", "write a truststore with the signers; it is read again by itself")
	case replaced:
		t.log.Info("truststore replaced", "file", t.path)
	}
}

// config is the TLS of a connection to a host, whose name the server's certificate must have.
func (t *Trust) config(host string, protocols []string) *tls.Config {
	t.Check(time.Now())
	c := &tls.Config{ServerName: host, RootCAs: t.roots.Load(), MinVersion: tls.VersionTLS12, NextProtos: protocols}
	if t.own != nil {
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return t.own.current.Load(), nil
		}
	}
	return c
}

// VerifyClients makes a server ask its clients for certificates. The handshake of a client that shows one of another
// signer fails. A client that shows none has no r.TLS.VerifiedChains.
func (t *Trust) VerifyClients(c *tls.Config) {
	c.ClientAuth = tls.VerifyClientCertIfGiven
	base := c.Clone()
	var last atomic.Pointer[tls.Config] // one for all connections, so that sessions resume
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		t.Check(time.Now())
		signers := t.roots.Load()
		if now := last.Load(); now != nil && now.ClientCAs == signers {
			return now, nil
		}
		now := base.Clone()
		now.ClientCAs = signers
		last.Store(now)
		return now, nil
	}
}

// DialTLS makes a connection to host:port by dial, and proves that a trusted signer knows the server by this host.
// protocols are the names of the protocol above TLS, if the servers distinguish several. With HTTP11 it is the
// DialTLSContext of an http.Transport.
func (t *Trust) DialTLS(
	dial func(ctx context.Context, network, address string) (net.Conn, error), protocols ...string,
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
		conn := tls.Client(plain, t.config(host, protocols))
		ctx, cancel := context.WithTimeout(ctx, handshakeTime)
		defer cancel()
		if err := conn.HandshakeContext(ctx); err != nil {
			plain.Close()
			return nil, &net.OpError{Op: "dial", Net: network, Err: err} // no call was sent
		}
		return conn, nil
	}
}

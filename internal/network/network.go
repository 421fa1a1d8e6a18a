// SPDX-License-Identifier: Apache-2.0

// Package network explains connection errors in plain words.
package network

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"syscall"
)

// plainError is a connection error in plain words; it unwraps to the original error.
type plainError struct {
	text string
	error
}

func (e *plainError) Error() string { return e.text }
func (e *plainError) Unwrap() error { return e.error }

// InWords returns a connection error in words for operators. Other errors are returned unchanged.
func InWords(err error) error {
	var of *url.Error
	if errors.As(err, &of) { // its text repeats the address with the whole query
		err = of.Err
	}
	var name *net.DNSError
	var n net.Error
	var op *net.OpError
	var errno syscall.Errno
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.As(err, &untrusted):
		return &plainError{certificate(untrusted.Err), err}
	case errors.As(err, new(tls.RecordHeaderError)):
		return &plainError{"it does not use TLS", err}
	case errors.As(err, &name):
		return &plainError{fmt.Sprintf("the host %q has no known address", name.Name), err}
	case errors.Is(err, syscall.ECONNREFUSED):
		return &plainError{"connection refused: no server listens there", err}
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &n) && n.Timeout():
		return &plainError{"no answer came in time", err}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return &plainError{"the connection ended before the answer did", err}
	case errors.Is(err, context.Canceled):
		return &plainError{"the call was abandoned", err}
	case errors.Is(err, net.ErrClosed), errors.Is(err, syscall.EPIPE):
		return &plainError{"the connection was closed", err}
	case errors.As(err, &op) && errors.As(op.Err, &errno):
		return &plainError{errno.Error(), err}
	}
	return err
}

// certificate explains why a server's certificate is rejected.
func certificate(err error) string {
	var of x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &of):
		return fmt.Sprintf("its certificate is not for %q", of.Host)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "its certificate has expired, or is not valid yet"
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return "its certificate has no signer that this machine trusts (SSL_CERT_FILE adds signers, " +
			"and so do the truststores of a daemon's settings)"
	}
	return "its certificate is invalid: " + err.Error()
}

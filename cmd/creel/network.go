// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"syscall"
)

// networkError is an error of a connection in words; what it was is still found in it.
type networkError struct {
	text string
	error
}

func (e *networkError) Error() string { return e.text }
func (e *networkError) Unwrap() error { return e.error }

// inWords says what became of a connection as one would tell an operator.
func inWords(err error) error {
	var of *url.Error
	if errors.As(err, &of) { // its text repeats the address, with all of the query
		err = of.Err
	}
	var name *net.DNSError
	var n net.Error
	switch {
	case errors.As(err, &name):
		return &networkError{fmt.Sprintf("no address is known of the host %q", name.Name), err}
	case errors.Is(err, syscall.ECONNREFUSED):
		return &networkError{"nobody listens there", err}
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &n) && n.Timeout():
		return &networkError{"no answer came in time", err}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return &networkError{"the connection ended before the answer did", err}
	}
	return err
}

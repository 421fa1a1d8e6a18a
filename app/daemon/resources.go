// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"syscall"
)

// Resources lists the resources that an assembly acquired: sockets, stores, clients. A failing step closes it, so that
// resources of earlier steps do not leak. It is not safe for concurrent use.
type Resources struct {
	release []func() error
}

// OnClose adds a function that Close calls before all functions added earlier.
func (h *Resources) OnClose(release func() error) { h.release = append(h.release, release) }

// OnCloseLast adds a function that Close calls after all others.
func (h *Resources) OnCloseLast(release func() error) {
	h.release = slices.Insert(h.release, 0, release)
}

// Close releases everything, once.
func (h *Resources) Close() error {
	var errs []error
	for _, release := range slices.Backward(h.release) {
		errs = append(errs, release())
	}
	h.release = nil
	return errors.Join(errs...)
}

// Listen binds a TCP port and records it. name is the setting or flag that chose the address.
func (h *Resources) Listen(name, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, ListenError(name, address, err)
	}
	h.OnClose(func() error {
		if err := l.Close(); !errors.Is(err, net.ErrClosed) { // the server may have closed it already
			return err
		}
		return nil
	})
	return l, nil
}

// ListenError describes for users why an address cannot be bound.
func ListenError(name, address string, err error) error {
	var dns *net.DNSError
	why, try := err.Error(), "give another address"
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		why, try = "another program listens there", "end it, or choose another port; port 0 means any free one"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		why, try = "this machine has no such address", "choose one of its addresses, or 0.0.0.0 for all"
	case errors.Is(err, os.ErrPermission):
		why, try = "this user may not", "choose a port from 1024 on"
	case errors.As(err, &dns):
		why = "the host " + dns.Name + " is not known"
	}
	return fmt.Errorf("%s: cannot listen on %s: %s; %s", name, address, why, try)
}

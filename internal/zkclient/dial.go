// SPDX-License-Identifier: Apache-2.0

package zkclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/creelrm/creel/internal/network"
)

// hosts passes host names to the library, whose own provider passes addresses. The certificate and the principal of a
// server have its name.
type hosts struct {
	mu         sync.Mutex
	names      []string
	next, last int // last is -1 until a connection succeeds
}

func (h *hosts) Init(servers []string) error {
	h.names = servers
	return nil
}

func (h *hosts) Len() int { return len(h.names) }

// Next implements zk.HostProvider. The library pauses if round is true.
func (h *hosts) Next() (server string, round bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := h.next
	h.next = (i + 1) % len(h.names)
	round = i == h.last
	if h.last < 0 {
		h.last = 0
	}
	return h.names[i], round
}

func (h *hosts) Connected() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = (h.next + len(h.names) - 1) % len(h.names)
}

// dialer makes connections on which TLS and the login are done when the library sees the server's first message.
type dialer struct {
	servers Servers
	timeout atomic.Int64          // ms; of the session, by the server
	failure atomic.Pointer[error] // the reason for which there is no connection
	warned  map[string]bool       // reasons that were logged; of the library's goroutine
}

// dial is the library's zk.Dialer. patience is the time for a connection to one address.
func (d *dialer) dial(network, address string, patience time.Duration) (net.Conn, error) {
	conn, err := d.connect(network, address, patience)
	if err != nil {
		return nil, d.failed(address, err)
	}
	return conn, nil
}

func (d *dialer) connect(network, address string, patience time.Duration) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	s := &stream{dialer: d, address: address}
	if d.servers.SASL != nil { // first, so that no session of the server waits for a KDC
		if s.login, err = d.servers.SASL(host); err != nil {
			return nil, &loginError{err}
		}
	}
	dial := anyAddress(patience)
	if d.servers.TLS != nil {
		dial = d.servers.TLS.DialTLS(dial)
	}
	ctx, cancel := context.WithTimeout(context.Background(), d.servers.Timeout)
	defer cancel()
	if s.Conn, err = dial(ctx, network, address); err != nil {
		return nil, err
	}
	return s, nil
}

// anyAddress connects to one of a host's addresses, in random order.
func anyAddress(patience time.Duration) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		found, err := net.DefaultResolver.LookupHost(ctx, host)
		if err != nil {
			return nil, err
		}
		rand.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
		var conn net.Conn
		for _, ip := range found {
			one := net.Dialer{Timeout: patience}
			if conn, err = one.DialContext(ctx, network, net.JoinHostPort(ip, port)); err == nil {
				return conn, nil
			}
		}
		return nil, err
	}
}

// failed keeps the reason for which there is no connection. One that more attempts hardly change is logged, once until
// the next connection.
func (d *dialer) failed(address string, err error) error {
	err = d.cause(err)
	reason := fmt.Errorf("%s: %w", address, err)
	d.failure.Store(&reason)
	var unreachable net.Error
	var number syscall.Errno
	if errors.Is(err, errClosed) || errors.As(err, &unreachable) && unreachable.Timeout() || errors.As(err, &number) {
		return reason
	}
	if text := err.Error(); !d.warned[text] {
		if d.warned == nil {
			d.warned = map[string]bool{}
		}
		d.warned[text] = true
		d.servers.Log.Warn("failed to connect to ZooKeeper", "server", address, "error", err)
	}
	return reason
}

var errClosed = errors.New("the server closed the connection")

// cause explains the error of a connection.
func (d *dialer) cause(err error) error {
	var login *loginError
	switch {
	case errors.As(err, &login):
		return err
	case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return network.InWords(err)
	case d.servers.TLS != nil:
		return fmt.Errorf("%w: it has no quorum, or its port is not for TLS", errClosed)
	}
	return fmt.Errorf("%w: it has no quorum, or its port is for TLS", errClosed)
}

// connected forgets the failures.
func (d *dialer) connected() {
	d.failure.Store(nil)
	d.warned = nil
}

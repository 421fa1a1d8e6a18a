// SPDX-License-Identifier: Apache-2.0

// Package webserver serves a daemon's web port: limits against slow clients, TLS, Hadoop's simple authentication, and
// the profiles of a process on a separate port.
package webserver

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/creelrm/creel/internal/certs"
	"github.com/creelrm/creel/internal/username"
)

// Config is the configuration of a web port. Zero values mean the defaults in brackets.
type Config struct {
	ReadHeaderTimeout time.Duration                   // for a client to send its headers [10 s]
	IdleTimeout       time.Duration                   // of a connection between two requests [2 min]
	DrainTime         time.Duration                   // for answers in progress at the end [5 s]
	RefuseAnonymous   bool                            // 403 for requests without user.name, cookie or another login
	ReadOnly          bool                            // believe no name of a client, and reject changes
	Login             Login                           // beside user.name, if RefuseAnonymous is set [none]
	Tickets           Tickets                         // the only logins, if it is set [user.name]
	Open              []string                        // paths that are read without a ticket
	ActFor            ActFor                          // decides on doAs beside a ticket [the handler decides]
	Names             *username.Rules                 // from login names to users [Hadoop's default]
	MaxConnections    int                             // 503 above [20,000]
	MaxPerAddress     int                             // of one remote address, 503 above [half of MaxConnections]
	Wrap              func(http.Handler) http.Handler // around the handler of each port [nothing]
	Figures           *Figures                        // of the port [separate ones]
	TLS               *tls.Config                     // TLS alone is accepted [HTTP]
	Certificate       *certs.Server                   // of TLS, for the caller to renew
	NeedCertificate   bool                            // reject clients without one, with TLS that verifies it
	StrictTransport   time.Duration                   // for which browsers shall use TLS only, with TLS [no demand]
}

// ActFor returns an error unless real may act for effective from an address.
type ActFor func(real, effective string, remote netip.Addr) error

// Login is an identification other than user.name, such as a delegation token.
type Login struct {
	// Shown reports whether a request has one, valid or not.
	Shown func(*http.Request) bool
	// Handler serves requests that have one and no user.name. It checks the login at every path that it serves, and
	// rejects all others by DisallowAnonymous.
	Handler http.Handler
}

// Task serves handler on a listener until its context ends; then answers in progress have the drain time. It closes
// the listener.
func Task(l net.Listener, handler http.Handler, c Config) func(context.Context) error {
	first := cmp.Or(c.ReadHeaderTimeout, 10*time.Second)
	identified := identify(handler, anonymous(handler, c), c.Names)
	switch {
	case c.Tickets != nil:
		identified = byTicket(handler, c)
	case c.ReadOnly:
		identified = readOnly(handler, c.RefuseAnonymous)
	}
	figures := c.Figures
	if figures == nil {
		figures = NewFigures()
	}
	if c.NeedCertificate {
		identified = withCertificate(identified)
	}
	if c.TLS != nil {
		identified = strictTransport(identified, c.StrictTransport)
	}
	server := &http.Server{
		Handler:           boundBodies(identified, first),
		ErrorLog:          figures.errorLog(l.Addr()),
		ReadHeaderTimeout: first,
		IdleTimeout:       cmp.Or(c.IdleTimeout, 2*time.Minute),
		MaxHeaderBytes:    64 << 10,
		ConnState:         state,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, plain(c))
		},
	}
	return func(ctx context.Context) error {
		ended := make(chan struct{})
		stop := context.AfterFunc(ctx, func() {
			defer close(ended)
			drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), cmp.Or(c.DrainTime, 5*time.Second))
			defer cancel()
			if server.Shutdown(drain) != nil {
				server.Close()
			}
		})
		most := cmp.Or(c.MaxConnections, 20_000)
		var accepted net.Listener = newListener(l, first, most, cmp.Or(c.MaxPerAddress, (most+1)/2), figures)
		if c.TLS != nil {
			accepted = tls.NewListener(accepted, c.TLS)
		}
		err := server.Serve(accepted)
		if !stop() {
			<-ended // Serve returns when the listener is closed; connections are closed after it
		}
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		return err
	}
}

// SPDX-License-Identifier: Apache-2.0

package rpcauth

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"github.com/creelrm/creel/internal/gssapi"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/kerberos"
)

// Server offers KERBEROS for a service, with the protections of hadoop.rpc.protection. now is the clock.
func Server(
	a *gssapi.Acceptor, offers []gssapi.Protection, now func() time.Time,
) (*hrpc.KerberosServer, error) {
	if len(a.Service.Names) != 2 {
		return nil, fmt.Errorf("principal %s does not have the form service/host@REALM", a.Service)
	}
	if len(a.Keys) == 0 {
		return nil, fmt.Errorf("the keytab has no AES key of %s", a.Service)
	}
	if len(offers) == 0 {
		return nil, fmt.Errorf("service %s offers no protection", a.Service)
	}
	return &hrpc.KerberosServer{
		Protocol: a.Service.Names[0], ServerID: a.Service.Names[1],
		Begin: func() hrpc.ServerExchange {
			return &server{gssapi.Server{Acceptor: a, Offers: offers, Random: rand.Reader}, now}
		},
	}, nil
}

type server struct {
	gssapi.Server
	now func() time.Time
}

func (s *server) Step(token []byte) (reply []byte, done bool, err error) {
	return s.Server.Step(token, s.now())
}

func (s *server) Principal() string { return s.Client().String() }

func (s *server) Layer() hrpc.Layer { return layer(s.Server.Layer()) }

// layer converts a missing layer into a nil interface.
func layer(l *gssapi.Layer) hrpc.Layer {
	if l == nil {
		return nil
	}
	return l
}

// ticketTime bounds the wait for a ticket during a handshake.
const ticketTime = 15 * time.Second

// Client logs in to the services with one of the principals. accepts are the protections, the preferred one first. A
// server that names itself otherwise is rejected before it gets a ticket.
func Client(l *kerberos.Login, services []gssapi.Principal, accepts []gssapi.Protection) *hrpc.KerberosLogin {
	return ClientOf(l, fmt.Sprint(services), accepts, func(protocol, serverID string) (gssapi.Principal, error) {
		for _, p := range services {
			if slices.Equal(p.Names, []string{protocol, serverID}) {
				return p, nil
			}
		}
		return gssapi.Principal{}, fmt.Errorf("the server is %.80q/%.80q, expected is %s", protocol, serverID, services)
	})
}

// ClientOf is Client for a service that the server's two names for itself select. key differs for logins with other
// rules.
func ClientOf(
	l *kerberos.Login, key string, accepts []gssapi.Protection,
	service func(protocol, serverID string) (gssapi.Principal, error),
) *hrpc.KerberosLogin {
	return &hrpc.KerberosLogin{
		Principal: l.Principal.String(),
		Key:       fmt.Sprint(key, accepts),
		Begin: func(protocol, serverID string) (hrpc.Exchange, error) {
			to, err := service(protocol, serverID)
			if err != nil {
				return nil, err
			}
			ctx, cancel := context.WithTimeout(context.Background(), ticketTime)
			defer cancel()
			ticket, err := l.Ticket(ctx, to)
			if err != nil {
				return nil, err
			}
			return WithTicket(ticket, accepts)(protocol, serverID)
		},
	}
}

// Digest returns protections by the names of DIGEST-MD5, for connections that log in by a token.
func Digest(list []gssapi.Protection) []hrpc.Protection {
	names := map[gssapi.Protection]hrpc.Protection{
		gssapi.Authentication: hrpc.Authentication, gssapi.Integrity: hrpc.Integrity, gssapi.Privacy: hrpc.Privacy,
	}
	out := make([]hrpc.Protection, len(list))
	for i, p := range list {
		out[i] = names[p]
	}
	return out
}

// WithTicket begins exchanges by one ticket, with whichever server.
func WithTicket(ticket gssapi.Ticket, accepts []gssapi.Protection) func(string, string) (hrpc.Exchange, error) {
	return func(string, string) (hrpc.Exchange, error) {
		return &client{gssapi.Client{Ticket: ticket, Accepts: accepts, Random: rand.Reader}}, nil
	}
}

type client struct{ gssapi.Client }

func (c *client) Step(token []byte) (reply []byte, done bool, err error) {
	return c.Client.Step(token, time.Now())
}

func (c *client) Layer() hrpc.Layer { return layer(c.Client.Layer()) }

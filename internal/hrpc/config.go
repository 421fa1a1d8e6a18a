// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/creelrm/creel/internal/username"
)

// TokenFunc looks up a token by the identifier's bytes. It returns the password (usually an HMAC of the identifier) and
// the identity; hrpc fills its Method and TokenIdentifier. An error rejects the connection as
// SecretManager$InvalidToken unless it is an *Error.
type TokenFunc func(identifier []byte) (password []byte, who Identity, err error)

// Config describes a Server's services, its clients, and its limits. A zero limit takes the default. The comment of a
// limit names the corresponding Hadoop key, if one exists.
type Config struct {
	Services []Service

	// Simple accepts clients by user name alone (hadoop.security.authentication = simple). Tokens, if set, offers TOKEN
	// by DIGEST-MD5. A port with only Tokens rejects connections without SASL, like Hadoop's scheduler and NM ports.
	Simple bool
	Tokens TokenFunc
	// Relay, if set, is called first. It returns a login at the server that issued the token, and the client's
	// resulting identity; or nil. That server verifies the client for this one.
	Relay func(identifier []byte) (at *RelayedLogin, identity func() Identity, err error)

	// Kerberos, if set, offers KERBEROS by GSSAPI. It excludes Simple.
	Kerberos *KerberosServer

	// Names maps the login names of clients without a token to users (hadoop.security.auth_to_local). Nil: Hadoop's
	// default.
	Names *username.Rules

	// Protections are offered to clients with a token, the preferred one first (hadoop.rpc.protection). Others are
	// rejected. Default: Authentication only.
	Protections []Protection

	// Impersonate is called when a client names a real user beside the effective one (hadoop.proxyuser.*). Nil rejects
	// such clients.
	Impersonate func(real, effective string, remote netip.Addr) error

	// Authorize is called once per connection (security.*.protocol.acl). Nil accepts every identity.
	Authorize func(who *Identity, protocol string, remote netip.Addr) error

	// ErrorOf converts a handler's error into the answer. It is not called for *Error values. Nil, or a nil result,
	// becomes java.lang.RuntimeException with the error's text.
	ErrorOf func(error) *Error

	Interceptors []Interceptor
	Logger       *slog.Logger // nil: silent

	MaxFrame int // ipc.maximum.data.length, 128 MiB: bytes of one request frame
	// 1 GiB: bytes of incomplete or unanswered requests, above 1 KiB each, over all connections
	MaxRequestBytes int64
	MaxConnections  int // ipc.server.max.connections, 50,000 (Hadoop: no limit)
	MaxPerAddress   int // connections of one address, 0: no separate limit
	// calls in flight on all connections, 65,536 (Hadoop: handlers * ipc.server.handler.queue.size)
	MaxCalls        int
	MaxCallsPerConn int // calls in flight on one connection, 4,096
	// 16 MiB of answers queued on one connection whose client does not read; above it the server stops reading
	MaxReplyBytes      int
	MaxReplyBytesTotal int64         // the same over all connections, 1 GiB; above it such connections are closed
	HandshakeTime      time.Duration // from accept to the accepted connection context, 20 s
	IdleTime           time.Duration // close connections idle this long, 20 s (2 * ipc.client.connection.maxidletime)
	// ...only while at least this many are open, ipc.client.idlethreshold 4000; negative: always
	IdleThreshold int
	// close a connection that for this time accepts no byte of a queued answer, or sends none of a begun frame, 60 s
	StallTime time.Duration
	DrainTime time.Duration // Run's wait for calls in flight after its context ended, 10 s
}

func (c Config) withDefaults() Config {
	setInt := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	setTime := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	c.Protections = protectionsOr(c.Protections)
	setInt(&c.MaxFrame, 128<<20)
	setInt(&c.MaxConnections, 50_000)
	setInt(&c.MaxCalls, 65_536)
	setInt(&c.MaxCallsPerConn, 4_096)
	setInt(&c.MaxReplyBytes, 16<<20)
	setInt(&c.IdleThreshold, 4_000)
	if c.MaxRequestBytes == 0 {
		c.MaxRequestBytes = 1 << 30
	}
	if c.MaxReplyBytesTotal == 0 {
		c.MaxReplyBytesTotal = 1 << 30
	}
	setTime(&c.HandshakeTime, 20*time.Second)
	setTime(&c.IdleTime, 20*time.Second)
	setTime(&c.StallTime, 60*time.Second)
	setTime(&c.DrainTime, 10*time.Second)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Validate reports the first unusable value in a Config.
func (c Config) Validate() error {
	if !c.Simple && c.Tokens == nil && c.Kerberos == nil {
		return errors.New("hrpc: no client could connect: set Simple, Tokens or Kerberos")
	}
	if c.Simple && c.Kerberos != nil {
		return errors.New("hrpc: Simple would let clients pass by Kerberos: set one of both")
	}
	for _, p := range c.Protections {
		if p != Authentication && p != Integrity && p != Privacy {
			return fmt.Errorf("hrpc: protection %q is unknown", p)
		}
		if p != Authentication && c.Tokens == nil {
			return fmt.Errorf("hrpc: protection %q needs SASL: set Tokens", p)
		}
	}
	if len(c.Services) == 0 {
		return errors.New("hrpc: no service")
	}
	seen := map[string]bool{}
	for _, s := range c.Services {
		if s.Protocol == "" || seen[s.Protocol] {
			return fmt.Errorf("hrpc: protocol %q is unnamed or served twice", s.Protocol)
		}
		seen[s.Protocol] = true
		for name, m := range s.Methods {
			if err := m.validate(); err != nil {
				return fmt.Errorf("hrpc: %s.%s: %w", s.Protocol, name, err)
			}
		}
		if s.Other != nil {
			if err := s.Other.validate(); err != nil {
				return fmt.Errorf("hrpc: %s: Other: %w", s.Protocol, err)
			}
		}
	}
	for _, l := range []int64{
		int64(c.MaxFrame), c.MaxRequestBytes, int64(c.MaxConnections), int64(c.MaxPerAddress), int64(c.MaxCalls),
		int64(c.MaxCallsPerConn), int64(c.MaxReplyBytes), c.MaxReplyBytesTotal,
		int64(c.HandshakeTime), int64(c.IdleTime), int64(c.StallTime), int64(c.DrainTime),
	} {
		if l < 0 {
			return fmt.Errorf("hrpc: a limit is negative (%d): use 0 for the default", l)
		}
	}
	return nil
}

func (m *Method) validate() error {
	switch {
	case m.Raw != nil && (m.Serve != nil || m.NewRequest != nil):
		return errors.New("both Raw and Serve are set")
	case m.Raw == nil && (m.Serve == nil || m.NewRequest == nil):
		return errors.New("set Raw, or Serve with NewRequest")
	}
	return nil
}

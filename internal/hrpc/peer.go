// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"context"
	"log/slog"
	"net"
	"time"
)

// Credential is a token on the client's side.
type Credential struct {
	Identifier []byte
	Password   []byte
	Kind       string
	Service    string
	// Protections are accepted from the server, the preferred one first (hadoop.rpc.protection). A server that asks for
	// no login is rejected then. Nil: the weakest that it offers.
	Protections []Protection
}

// accepts are the protections for a login by this token.
func (c *Credential) accepts() []Protection {
	if len(c.Protections) > 0 {
		return c.Protections
	}
	return []Protection{Authentication, Integrity, Privacy}
}

// Login is a client's identity. With a Credential it authenticates by SASL TOKEN, with Kerberos by SASL GSSAPI; if it
// has both, by the token where the server accepts one. Otherwise it sends User without proof (SIMPLE). RealUser is set
// if RealUser impersonates User (proxy user). With Kerberos, a User means that the principal impersonates User.
type Login struct {
	User       string
	RealUser   string
	Credential *Credential
	Kerberos   *KerberosLogin
}

// Target is a server with its protocol, and the client's login.
type Target struct {
	Address  string // host:port
	Protocol string // declaringClassProtocolName
	Version  uint64 // clientProtocolVersion; 0 means 1
	Login    Login
}

// ClientConfig configures a Client. Zero values take the defaults. The comment of a value names the corresponding
// Hadoop key, if one exists.
type ClientConfig struct {
	// KindOf converts a remote class to a Go sentinel that errors.Is finds in the RemoteError. Nil, or a nil result:
	// none.
	KindOf func(class string) error

	Interceptors []ClientInterceptor
	Logger       *slog.Logger // nil: silent

	// Dial opens a connection; nil dials TCP. The connection must be one of package net's stream sockets.
	Dial func(ctx context.Context, address string) (net.Conn, error)

	ConnectTime  time.Duration // ipc.client.connect.timeout, 20 s: dial and handshake
	PingInterval time.Duration // ipc.ping.interval, 60 s: silence while calls wait before a ping is sent
	// close a connection after this silence while calls wait, 0: never (the answer may take long; contexts end calls)
	DeadTime time.Duration
	IdleTime time.Duration // ipc.client.connection.maxidletime, 10 s: close a connection with no call
	// close a connection that accepts no byte of a request for this time, 60 s; if Dial is nil, also one whose machine
	// acknowledges none
	StallTime       time.Duration
	MaxResponse     int // ipc.maximum.response.length, 128 MiB
	MaxPending      int // bytes of requests queued on one connection before callers wait, 16 MiB
	MaxCallsPerConn int // calls waiting on one connection, 65,536; above it calls fail as busy
}

// CallOptions are header fields of one call.
type CallOptions struct {
	RetryCount    int32 // 0 at the first try
	CallerContext CallerContext
	Trace         TraceInfo
}

type optionsKey struct{}

// WithOptions sets the header fields of calls that use the returned context.
func WithOptions(ctx context.Context, o CallOptions) context.Context {
	return context.WithValue(ctx, optionsKey{}, &o)
}

// ClientInterceptor sees a call before it is sent, and may change its options (a trace, a caller context). done, if not
// nil, is called once with the outcome.
type ClientInterceptor func(ctx context.Context, target *Target, method string, options *CallOptions) (done func(error))

// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"context"
	"net/netip"

	"google.golang.org/protobuf/proto"
)

// AuthMethod is the way in which a connection proved its user.
type AuthMethod int8

// Simple is a user name without proof; Token is SASL DIGEST-MD5 with a token; Kerberos is SASL GSSAPI.
const (
	Simple AuthMethod = iota
	Token
	Kerberos
)

func (m AuthMethod) String() string {
	switch m {
	case Token:
		return "TOKEN"
	case Kerberos:
		return methodKerberos
	}
	return "SIMPLE"
}

// Identity is the client of a server's connection.
type Identity struct {
	User     string // effective user; for AMRM and NM tokens the attempt id
	RealUser string // the user that impersonates User, or ""
	Method   AuthMethod

	Principal       string // "" unless Method is Kerberos
	TokenKind       string // "" unless Method is Token
	TokenIdentifier []byte // the identifier's bytes as the client sent them
	Value           any    // any value from Config.Tokens, such as the decoded identifier
}

// CallerContext is RPCCallerContextProto: text for audit logs.
type CallerContext struct {
	Context   string
	Signature []byte
}

// TraceInfo is RPCTraceInfoProto.
type TraceInfo struct {
	TraceID     int64
	ParentID    int64
	SpanContext []byte
}

// Call is one call from its handler's view. It is read only. The handler's context is cancelled when its connection
// ends or the server is stopped hard.
type Call struct {
	Identity      *Identity // shared by all calls of the connection
	Remote        netip.AddrPort
	Protocol      string
	Method        string
	ClientID      string // 16 raw bytes from Hadoop's clients
	CallID        int32
	RetryCount    int32 // -1 when the client sent none
	CallerContext CallerContext
	Trace         TraceInfo
	RequestBytes  int // size of the encoded request

	callState
}

// CallFrom returns the call of a handler's context, or nil.
func CallFrom(ctx context.Context) *Call {
	c, _ := ctx.Value(callKey{}).(*Call)
	return c
}

// Later lets a handler answer after it has returned, without occupying a goroutine. The handler calls Later before it
// returns, then returns ErrLater. Exactly one call of reply is required, from any goroutine; it encodes and sends
// without blocking. If the connection has ended by then, the answer is dropped. The context stays valid until reply is
// called.
func Later(ctx context.Context) (reply func(response proto.Message, err error)) {
	return CallFrom(ctx).later()
}

// LaterSending is Later for callers that can spend time on sending: reply makes the system call itself, and wakes no
// other goroutine.
func LaterSending(ctx context.Context) (reply func(response proto.Message, err error)) {
	c := CallFrom(ctx)
	reply = c.later()
	c.sends = true
	return reply
}

// LaterRaw is Later for raw handlers. reply copies the response bytes.
func LaterRaw(ctx context.Context) (reply func(response []byte, err error)) {
	return CallFrom(ctx).laterRaw()
}

// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"errors"
	"fmt"
)

// Java class names hrpc itself answers with, or recognises. Nested classes are
// written with $, as Class.getName does.
const (
	ClassRetriable        = "org.apache.hadoop.ipc.RetriableException"
	ClassStandby          = "org.apache.hadoop.ipc.StandbyException"
	ClassAccessControl    = "org.apache.hadoop.security.AccessControlException"
	ClassAuthorization    = "org.apache.hadoop.security.authorize.AuthorizationException"
	ClassInvalidToken     = "org.apache.hadoop.security.token.SecretManager$InvalidToken"
	ClassSasl             = "javax.security.sasl.SaslException"
	ClassVersionMismatch  = "org.apache.hadoop.ipc.RPC$VersionMismatch"
	ClassNoSuchProtocol   = "org.apache.hadoop.ipc.RpcNoSuchProtocolException"
	ClassNoSuchMethod     = "org.apache.hadoop.ipc.RpcNoSuchMethodException"
	ClassRPCServer        = "org.apache.hadoop.ipc.RpcServerException"
	ClassIPC              = "org.apache.hadoop.ipc.IpcException"
	ClassInvalidProtobuf  = "org.apache.hadoop.thirdparty.protobuf.InvalidProtocolBufferException"
	ClassRuntimeException = "java.lang.RuntimeException"
)

// Detail is RpcErrorCodeProto: the kind of failure of an error answer.
type Detail int32

// The numbers of RpcErrorCodeProto. From DetailFatalUnknown on the connection
// ends with the answer.
const (
	DetailNone                          Detail = 0
	DetailApplication                   Detail = 1
	DetailNoSuchMethod                  Detail = 2
	DetailNoSuchProtocol                Detail = 3
	DetailRPCServer                     Detail = 4
	DetailSerializingResponse           Detail = 5
	DetailVersionMismatch               Detail = 6
	DetailFatalUnknown                  Detail = 10
	DetailFatalUnsupportedSerialization Detail = 11
	DetailFatalInvalidHeader            Detail = 12
	DetailFatalDeserializing            Detail = 13
	DetailFatalVersionMismatch          Detail = 14
	DetailFatalUnauthorized             Detail = 15
)

// Fatal reports whether a connection ends with an answer of this detail.
func (d Detail) Fatal() bool { return d >= DetailFatalUnknown }

// Error is an error as a server answers it. A handler may return one (wrapped or not); any other error goes through
// Config.ErrorOf.
type Error struct {
	Class   string // Java class name, getName() form
	Message string
	Detail  Detail // DetailNone means DetailApplication
}

func (e *Error) Error() string { return e.Class + ": " + e.Message }

// Errorf makes an application error of a Java class.
func Errorf(class, format string, args ...any) *Error {
	return &Error{Class: class, Message: fmt.Sprintf(format, args...), Detail: DetailApplication}
}

// Busy makes the error Hadoop's clients take as "busy, try again".
func Busy(format string, args ...any) *Error { return Errorf(ClassRetriable, format, args...) }

// ErrLater is returned by a handler that called Later: the answer will come through the function that Later returned.
var ErrLater = errors.New("hrpc: the answer comes later")

// ErrClosed is wrapped by errors of calls on a Client that was closed.
var ErrClosed = errors.New("hrpc: client is closed")

// RemoteError is an error answered by a server. Kind is the result of ClientConfig.KindOf for the class; errors.Is
// finds it.
type RemoteError struct {
	Class   string
	Message string // message and, from Java servers, a stack trace
	Detail  Detail
	Fatal   bool // the server ended the connection
	Kind    error
}

func (e *RemoteError) Error() string { return e.Class + ": " + e.Message }

func (e *RemoteError) Unwrap() error { return e.Kind }

// Retriable reports whether the server answered "busy, try again".
func (e *RemoteError) Retriable() bool { return e.Class == ClassRetriable }

// TransportError is a connection that could not be made or that failed. Sent
// false means that the call did not reach the server, so that repeating it is
// safe for any method.
type TransportError struct {
	Op      string // "dial", "handshake", "read", "write"
	Address string
	Sent    bool
	Err     error
}

func (e *TransportError) Error() string {
	if e.Sent {
		return fmt.Sprintf("hrpc: %s %s: %v (the call may have been served)", e.Op, e.Address, e.Err)
	}
	return fmt.Sprintf("hrpc: %s %s: %v", e.Op, e.Address, e.Err)
}

func (e *TransportError) Unwrap() error { return e.Err }

// MayBeServed reports whether the call may have reached the server.
func (e *TransportError) MayBeServed() bool { return e.Sent }

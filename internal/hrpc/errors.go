// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"errors"
	"fmt"
)

// Names of Java classes that hrpc sends or recognises. Nested classes are written with $, as by Class.getName.
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

// The numbers of RpcErrorCodeProto. From DetailFatalUnknown on, the answer ends the connection.
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

// Fatal reports whether an answer of this detail ends the connection.
func (d Detail) Fatal() bool { return d >= DetailFatalUnknown }

// Error is an error that a server sends as an answer. A handler may return one, wrapped or not. Config.ErrorOf converts
// any other error.
type Error struct {
	Class   string // Java class name, getName() form
	Message string
	Detail  Detail // DetailNone means DetailApplication
}

func (e *Error) Error() string { return e.Class + ": " + e.Message }

// Errorf makes an application error with a Java class.
func Errorf(class, format string, args ...any) *Error {
	return &Error{Class: class, Message: fmt.Sprintf(format, args...), Detail: DetailApplication}
}

// Busy makes an error that Hadoop's clients treat as "busy, try again".
func Busy(format string, args ...any) *Error { return Errorf(ClassRetriable, format, args...) }

// ErrLater is the error of a handler that called Later: the function returned by Later will send the answer.
var ErrLater = errors.New("hrpc: the answer comes later")

// ErrClosed is wrapped by errors of calls on a closed Client.
var ErrClosed = errors.New("hrpc: client is closed")

// RemoteError is an error answered by a server. Kind is the result of ClientConfig.KindOf for the class, and errors.Is
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

// TransportError is a failure to open or use a connection. If Sent is false, the call did not reach the server, so any
// method can be repeated safely.
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

// SPDX-License-Identifier: Apache-2.0

// Package hrpc implements Hadoop RPC v9, both ends. It handles bytes and protobuf messages and has no knowledge of
// YARN.
//
// # The wire
//
// A client opens a connection with seven bytes, and from then on both sides send frames: a 4-byte big-endian length
// and varint-delimited protobufs.
//
//	"hrpc" 09 class auth            auth: 00 none, DF SASL
//	[ len | RpcRequestHeader -33 | RpcSaslProto ] ...        only when DF
//	[ len | RpcRequestHeader -3  | IpcConnectionContext ]
//	[ len | RpcRequestHeader id  | RequestHeader | request ] ...
//	[ len | RpcRequestHeader -4 ]                            ping, no answer
//
//	[ len | RpcResponseHeader id SUCCESS | response ]
//	[ len | RpcResponseHeader id ERROR ]                     the call failed
//	[ len | RpcResponseHeader id FATAL ]                     the connection ends
//
// Answers come in any order. header.go contains the codecs, frame.go the framing.
//
// # Server
//
// A [Server] is made from a [Config] whose Services are tables of methods. Run accepts connections until its context
// ends, then drains. One goroutine reads each connection. It serves calls of a [Method] marked Inline itself, and the
// answers of calls that arrived together leave in one write. Any other method runs in its own goroutine. A handler that
// answers upon a later event calls [Later] and returns [ErrLater]; its call then occupies no goroutine. A client that
// does not read blocks nothing: answers are sent without blocking, and unsent bytes are queued up to a limit. Above the
// limit the server stops reading the connection, and finally closes it.
//
// [CallFrom] returns the [Call] of a handler's context, with the details of its caller.
//
// Above a limit a server answers org.apache.hadoop.ipc.RetriableException. Hadoop's clients treat it as "busy, try
// again". Config names the setting of each limit.
//
// An [Interceptor] is called before and after each call's handler. The package telemetry below contains interceptors
// for traces, metrics and audit.
//
// # Authentication
//
// A server accepts user names without proof (SIMPLE), tokens (DIGEST-MD5) or tickets (GSSAPI), see [Config]. Package
// internal/kerberos/rpcauth makes a [KerberosServer] and a [KerberosLogin].
// After the exchange a [Layer] may wrap all packets.
//
// # Client
//
// A [Client] opens one connection for each (address, login, protocol) and multiplexes calls on it. [Client.Peer] names
// such a triple. [Peer.Call] sends a call and waits for its answer or the end of its context. An error sent by the
// server is a [RemoteError]. A failed connection is a [TransportError], which states whether the call may have reached
// the server.
package hrpc

// SPDX-License-Identifier: Apache-2.0

// Package hrpc speaks Hadoop RPC v9, both ends. It knows bytes and protobuf
// messages; it does not know YARN.
//
// # The wire
//
// A client opens a connection with seven bytes, and from then on both sides
// send frames: a 4-byte big-endian length and varint-delimited protobufs.
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
// Answers come in any order. header.go holds the codecs, frame.go the framing.
//
// # Server
//
// A [Server] is made from a [Config] whose Services are tables of methods; Run
// accepts until its context ends, then drains. One goroutine reads each
// connection. A [Method] marked Inline is served on that goroutine, and the
// answers of the calls that arrived together leave in one write; any other
// method gets a goroutine for the time of the call. A handler that wants to
// answer when something else happens takes [Later] and returns [ErrLater]: it
// then holds neither. Nothing waits for a client that does not read: answers
// go out without blocking, what the socket does not take is queued up to a
// limit, and above it the connection stops being read and is closed at last.
//
// What a handler may know of its caller is in the [Call] that [CallFrom] finds
// in its context.
//
// Over a limit a server answers org.apache.hadoop.ipc.RetriableException,
// which Hadoop's clients take as "busy, try again". Config names the setting of
// each limit.
//
// An [Interceptor] sees each call before and after its handler; package telemetry
// below has those for traces, figures and audit.
//
// # Client
//
// A [Client] keeps one connection for each (address, login, protocol) and
// multiplexes calls on it. [Client.Peer] names such a triple; [Peer.Call] sends
// a call and waits for its answer or for its context. An error the server
// answered is a [RemoteError]; a connection that failed is a [TransportError],
// which tells whether the call may have reached the server.
package hrpc

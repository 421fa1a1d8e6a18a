// SPDX-License-Identifier: Apache-2.0

// Package yarnpb holds the messages of Hadoop YARN 3.4 as Go structs: what travels inside a Hadoop RPC v9 call, inside
// a token and inside a container's launch context. The .proto files are ours, written from the field tables of the
// protocols; numbers, labels and defaults are the wire contract, package and file names never travel.
//
// # Two codecs, the same bytes
//
// Every message has the stock runtime (google.golang.org/protobuf/proto) and reflection-free methods made by
// vtprotobuf: SizeVT, MarshalVT, MarshalToSizedBufferVT (writes backwards from the end of a buffer the caller owns),
// UnmarshalVT and CloneVT. slabgen.go has these decoders allocate several values at once and refuse messages nested
// more than 100 deep. Both write fields in ascending order, as Java does, so bytes made by Hadoop survive
// decode and encode unchanged.
//
// An [Arena] decodes into memory that is used again for the next message: for handlers that are done with a request when
// they have answered it. Nothing of such a message may be kept. An AllocateResponseProto is decoded whole by UnmarshalVT:
// whoever keeps a part of it keeps all of it. [Passed] decodes of it what a proxy looks at, and leaves the rest
// encoded.
//
// MarshalVT refuses a message whose required field is absent, like the stock runtime; UnmarshalVT does too.
//
// # What we do not know survives
//
// Fields unknown to these files are kept by both codecs and written after the known ones. Whoever forwards a message
// clones and changes it; whoever rebuilds it from its parts loses them.
//
// # Numbers as Java writes them
//
// A negative int32 travels as a ten byte varint. An enum value unknown to us stays in its field as a number; the Java
// runtime would move it to the unknown fields.
//
//go:generate ./gen.sh
package yarnpb

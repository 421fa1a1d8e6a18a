// SPDX-License-Identifier: Apache-2.0

// Package yarnpb contains the messages of Hadoop YARN 3.4 as Go structs: the content of Hadoop RPC v9 calls, of
// tokens and of launch contexts. The .proto files are creel's, written from the field tables of the protocols.
// Numbers, labels and defaults are the wire contract; package and file names are never sent.
//
// # Two codecs, the same bytes
//
// Every message has the stock runtime (google.golang.org/protobuf/proto) and reflection-free methods made by
// vtprotobuf: SizeVT, MarshalVT, MarshalToSizedBufferVT (writes backwards from the end of a caller's buffer),
// UnmarshalVT and CloneVT. slabgen.go makes these decoders allocate several values at once and reject messages nested
// more than 100 deep. Both write fields in ascending order, as Java does, so bytes made by Hadoop survive decode and
// encode unchanged.
//
// An [Arena] decodes into memory that is reused for the next message: for handlers that are done with a request when
// they have answered it. No part of such a message may be retained. UnmarshalVT decodes an AllocateResponseProto into
// common memory: retaining a part of it retains all of it. [ForwardedAllocate] decodes only the parts that a proxy
// needs, and leaves the rest encoded.
//
// MarshalVT and UnmarshalVT reject a message whose required field is absent, like the stock runtime.
//
// # Unknown fields survive
//
// Both codecs retain fields unknown to these files and write them after the known ones. Code that forwards a message
// clones and changes it; rebuilding it from its parts loses unknown fields.
//
// # Numbers as Java writes them
//
// A negative int32 is sent as a ten byte varint. An unknown enum value stays in its field as a number; the Java
// runtime would move it to the unknown fields.
//
//go:generate ./gen.sh
package yarnpb

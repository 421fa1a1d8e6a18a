// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"bytes"
	"encoding/binary"
)

// route is the content of a call's packet without its call id and its request: the caller and the method. Most calls of
// a connection differ only in those two. So a connection stores the route of its last call, and that packet's bytes
// between id and request. One comparison then replaces the decoding of two headers if the next packet repeats those
// bytes.
type route struct {
	clientID string
	retry    int32
	answer   string // the end of its successful answers' header, see answerTail

	header  []byte // RequestHeaderProto, and its service and method
	service *service
	method  *method // nil: there was no servable call

	tail     []byte // from the client id to the end of header, as written by Hadoop's clients and creel's
	inHeader int    // number of tail's bytes in RpcRequestHeaderProto
}

// setCaller records the caller.
func (r *route) setCaller(clientID []byte, retry int32) {
	if r.answer != "" && retry == r.retry && string(clientID) == r.clientID {
		return
	}
	r.clientID, r.retry = string(clientID), retry
	r.answer = answerTail(r.clientID, retry)
	r.expect()
}

// setMethod records the method. The header is copied.
func (r *route) setMethod(header []byte, s *service, m *method) {
	r.header = append(r.header[:0], header...)
	r.service, r.method = s, m
	r.expect()
}

// expect writes the tail of a next call that is like this one.
func (r *route) expect() {
	r.tail = appendBytesField(r.tail[:0], 4, r.clientID)
	r.tail = appendVarintField(r.tail, 5, zigzag(r.retry))
	r.inHeader = len(r.tail)
	r.tail = binary.AppendUvarint(r.tail, uint64(len(r.header)))
	r.tail = append(r.tail, r.header...)
}

// repeated splits a packet that differs from the last call's only in its id and its request. For any other packet, such
// as one with a trace or a caller context, ok is false: it must be decoded.
func (r *route) repeated(frame []byte) (callID int32, request []byte, ok bool) {
	const before = 1 + len(usualHeader) // a byte for the size, and the bytes before the call id
	if r.method == nil || len(frame) <= before || string(frame[1:before]) != usualHeader {
		return 0, nil, false
	}
	id, n := uvarint(frame[before:])
	size := len(usualHeader) + n + r.inHeader
	if n <= 0 || size >= 0x80 || int(frame[0]) != size || !bytes.HasPrefix(frame[before+n:], r.tail) {
		return 0, nil, false
	}
	callID = unzigzag(id)
	return callID, frame[before+n+len(r.tail):], callID >= 0
}

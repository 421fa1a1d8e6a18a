// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"encoding/binary"
	"fmt"
)

// Call ids that do not number calls.
const (
	idUnauthorized = -1 // answers that concern the connection itself
	idContext      = -3
	idPing         = -4
	idSasl         = -33
)

const (
	rpcVersion    = 9
	kindProtobuf  = 2 // RpcKindProto RPC_PROTOCOL_BUFFER
	opFinalPacket = 0 // OperationProto RPC_FINAL_PACKET
	authNone      = 0x00
	authSasl      = 0xDF
)

// RpcStatusProto.
const (
	statusSuccess = 0
	statusError   = 1
	statusFatal   = 2
)

// requestHeader is RpcRequestHeaderProto. Slices point into the frame.
type requestHeader struct {
	kind       int32 // -1: absent
	op         int32 // -1: absent
	callID     int32
	retryCount int32
	clientID   []byte
	trace      []byte // encoded RPCTraceInfoProto
	caller     []byte // encoded RPCCallerContextProto
}

func (h *requestHeader) decode(b []byte) error {
	if h.decodeUsual(b) {
		return nil
	}
	*h = requestHeader{kind: -1, op: -1, retryCount: -1}
	const needID, needClient = 1, 2
	missing := needID | needClient
	f := fields{rest: b}
	for f.next() {
		switch f.num {
		case 1:
			h.kind = int32(f.value)
		case 2:
			h.op = int32(f.value)
		case 3:
			h.callID = unzigzag(f.value)
			missing &^= needID
		case 4:
			h.clientID = f.bytes
			missing &^= needClient
		case 5:
			h.retryCount = unzigzag(f.value)
		case 6:
			h.trace = f.bytes
		case 7:
			h.caller = f.bytes
		}
	}
	if f.err != nil {
		return fmt.Errorf("request header: %w", f.err)
	}
	if missing != 0 {
		return fmt.Errorf("request header: call id or client id is missing: %w", errMalformed)
	}
	return nil
}

// usualHeader is the beginning of nearly every request header: kind protobuf, final packet, and the tag of the call id.
const usualHeader = "\x08\x02\x10\x00\x18"

// decodeUsual decodes the header of nearly every packet: usualHeader, call id, client id and retry count, in this order
// and nothing else. It costs a quarter of the general decoder.
func (h *requestHeader) decodeUsual(b []byte) bool {
	if len(b) < len(usualHeader) || string(b[:len(usualHeader)]) != usualHeader {
		return false
	}
	b = b[len(usualHeader):]
	id, n := uvarint(b)
	if n <= 0 {
		return false
	}
	b = b[n:]
	if len(b) < 2 || b[0] != 4<<3|2 || int(b[1]) >= 0x80 || len(b) < int(b[1])+4 {
		return false
	}
	end := 2 + int(b[1])
	client := b[2:end:end]
	if b = b[end:]; b[0] != 5<<3 || b[1] >= 0x80 || len(b) != 2 {
		return false
	}
	*h = requestHeader{
		kind:       kindProtobuf,
		op:         opFinalPacket,
		callID:     unzigzag(id),
		retryCount: unzigzag(uint64(b[1])),
		clientID:   client,
	}
	return true
}

// appendRequestHeader appends the delimited header of a client's packet.
func appendRequestHeader(b []byte, callID, retryCount int32, clientID string, o *CallOptions) []byte {
	start := len(b)
	b = append(b, 0) // the size, below 128 unless a caller context or trace follows
	b = append(b, 1<<3, kindProtobuf, 2<<3, opFinalPacket)
	b = appendVarintField(b, 3, zigzag(callID))
	b = appendBytesField(b, 4, clientID)
	b = appendVarintField(b, 5, zigzag(retryCount))
	if o != nil && o.Trace.present() {
		b = appendBytesField(b, 6, o.Trace.append(nil))
	}
	if o != nil && o.CallerContext.Context != "" {
		b = appendBytesField(b, 7, o.CallerContext.append(nil))
	}
	return fixSize(b, start)
}

// fixSize writes the size of the bytes after b[start] into the byte reserved for it, and inserts more bytes if the
// size needs them.
func fixSize(b []byte, start int) []byte {
	size := uint64(len(b) - start - 1)
	if size < 0x80 {
		b[start] = byte(size)
		return b
	}
	n := sizeUvarint(size)
	b = append(b, make([]byte, n-1)...)
	copy(b[start+n:], b[start+1:len(b)-n+1])
	binary.PutUvarint(b[start:], size)
	return b
}

func (t *TraceInfo) present() bool {
	return t.TraceID != 0 || t.ParentID != 0 || len(t.SpanContext) > 0
}

func (t *TraceInfo) append(b []byte) []byte {
	if t.TraceID != 0 || t.ParentID != 0 {
		b = appendVarintField(b, 1, uint64(t.TraceID))
		b = appendVarintField(b, 2, uint64(t.ParentID))
	}
	if len(t.SpanContext) > 0 {
		b = appendBytesField(b, 3, t.SpanContext)
	}
	return b
}

func (t *TraceInfo) decode(b []byte) error {
	*t = TraceInfo{}
	f := fields{rest: b}
	for f.next() {
		switch f.num {
		case 1:
			t.TraceID = int64(f.value)
		case 2:
			t.ParentID = int64(f.value)
		case 3:
			t.SpanContext = append([]byte(nil), f.bytes...)
		}
	}
	return f.err
}

func (c *CallerContext) append(b []byte) []byte {
	b = appendBytesField(b, 1, c.Context)
	if len(c.Signature) > 0 {
		b = appendBytesField(b, 2, c.Signature)
	}
	return b
}

func (c *CallerContext) decode(b []byte) error {
	*c = CallerContext{}
	f := fields{rest: b}
	for f.next() {
		switch f.num {
		case 1:
			c.Context = string(f.bytes)
		case 2:
			c.Signature = append([]byte(nil), f.bytes...)
		}
	}
	return f.err
}

// callHeader is RequestHeaderProto. Slices point into the frame.
type callHeader struct {
	method   []byte
	protocol []byte
	version  uint64
}

func (h *callHeader) decode(b []byte) error {
	*h = callHeader{}
	const needMethod, needProtocol, needVersion = 1, 2, 4
	missing := needMethod | needProtocol | needVersion
	f := fields{rest: b}
	for f.next() {
		switch f.num {
		case 1:
			h.method = f.bytes
			missing &^= needMethod
		case 2:
			h.protocol = f.bytes
			missing &^= needProtocol
		case 3:
			h.version = f.value
			missing &^= needVersion
		}
	}
	if f.err != nil {
		return fmt.Errorf("call header: %w", f.err)
	}
	if missing != 0 {
		return fmt.Errorf("call header: method, protocol or version is missing: %w", errMalformed)
	}
	return nil
}

func appendCallHeader(b []byte, method, protocol string, version uint64) []byte {
	size := sizeBytesField(len(method)) + sizeBytesField(len(protocol)) + 1 + sizeUvarint(version)
	b = binary.AppendUvarint(b, uint64(size))
	b = appendBytesField(b, 1, method)
	b = appendBytesField(b, 2, protocol)
	return appendVarintField(b, 3, version)
}

// responseHeader is RpcResponseHeaderProto.
type responseHeader struct {
	callID     int32
	status     int32
	class      []byte
	message    []byte
	detail     Detail
	clientID   []byte
	retryCount int32
}

func (h *responseHeader) decode(b []byte) error {
	*h = responseHeader{status: -1, retryCount: -1}
	hasID := false
	f := fields{rest: b}
	for f.next() {
		switch f.num {
		case 1:
			h.callID, hasID = int32(uint32(f.value)), true
		case 2:
			h.status = int32(f.value)
		case 4:
			h.class = f.bytes
		case 5:
			h.message = f.bytes
		case 6:
			h.detail = Detail(f.value)
		case 7:
			h.clientID = f.bytes
		case 8:
			h.retryCount = unzigzag(f.value)
		}
	}
	if f.err != nil {
		return fmt.Errorf("response header: %w", f.err)
	}
	if !hasID || h.status < statusSuccess || h.status > statusFatal {
		return fmt.Errorf("response header: call id or status is missing: %w", errMalformed)
	}
	return nil
}

// appendSuccessHeader appends the delimited header of a successful answer.
func appendSuccessHeader(b []byte, callID, retryCount int32, clientID string) []byte {
	return appendSuccess(b, callID, answerTail(clientID, retryCount))
}

// answerTail is the part of a successful answer's header after its call id. It is the same for all calls of one client.
func answerTail(clientID string, retryCount int32) string {
	b := []byte{2 << 3, statusSuccess, 3 << 3, rpcVersion}
	b = appendBytesField(b, 7, clientID)
	return string(appendVarintField(b, 8, zigzag(retryCount)))
}

// appendSuccess is appendSuccessHeader for callers that stored the answerTail.
func appendSuccess(b []byte, callID int32, tail string) []byte {
	start := len(b)
	b = append(b, 0, 1<<3)
	b = binary.AppendUvarint(b, uint64(uint32(callID)))
	return fixSize(append(b, tail...), start)
}

// maxErrorText bounds the text of an error answer, in bytes. A message built from a hostile request must not become a
// hostile answer.
const maxErrorText = 16 << 10

// appendErrorFrame appends the whole frame of an error answer. It has no body: Java clients drop the connection on any
// byte after the header.
func appendErrorFrame(b []byte, callID, retryCount int32, clientID string, e *Error) []byte {
	detail, status := e.Detail, uint64(statusError)
	if detail == DetailNone {
		detail = DetailApplication
	}
	if detail.Fatal() {
		status = statusFatal
	}
	frame := len(b)
	b = append(b, 0, 0, 0, 0)
	start := len(b)
	b = append(b, 0)
	b = appendVarintField(b, 1, uint64(uint32(callID)))
	b = appendVarintField(b, 2, status)
	b = append(b, 3<<3, rpcVersion)
	b = appendBytesField(b, 4, e.Class)
	b = appendBytesField(b, 5, validText(e.Message))
	b = appendVarintField(b, 6, uint64(detail))
	b = appendBytesField(b, 7, clientID)
	b = appendVarintField(b, 8, zigzag(retryCount))
	b = fixSize(b, start)
	binary.BigEndian.PutUint32(b[frame:], uint32(len(b)-frame-4))
	return b
}

// connectionContext is IpcConnectionContextProto.
type connectionContext struct {
	effectiveUser string
	realUser      string
	protocol      string
}

func (c *connectionContext) decode(b []byte) error {
	*c = connectionContext{}
	f := fields{rest: b}
	for f.next() {
		switch f.num {
		case 2:
			u := fields{rest: f.bytes}
			for u.next() {
				switch u.num {
				case 1:
					c.effectiveUser = string(u.bytes)
				case 2:
					c.realUser = string(u.bytes)
				}
			}
			if u.err != nil {
				f.fail()
			}
		case 3:
			c.protocol = string(f.bytes)
		}
	}
	if f.err != nil {
		return fmt.Errorf("connection context: %w", f.err)
	}
	return nil
}

// appendContextFrame appends the frame that ends a client's handshake.
func appendContextFrame(b []byte, clientID string, c connectionContext) []byte {
	var user []byte
	if c.effectiveUser != "" {
		user = appendBytesField(user, 1, c.effectiveUser)
	}
	if c.realUser != "" {
		user = appendBytesField(user, 2, c.realUser)
	}
	frame := len(b)
	b = append(b, 0, 0, 0, 0)
	b = appendRequestHeader(b, idContext, -1, clientID, nil)
	size := sizeBytesField(len(user)) + sizeBytesField(len(c.protocol))
	b = binary.AppendUvarint(b, uint64(size))
	b = appendBytesField(b, 2, user)
	b = appendBytesField(b, 3, c.protocol)
	binary.BigEndian.PutUint32(b[frame:], uint32(len(b)-frame-4))
	return b
}

// appendPing appends a ping. No server answers pings.
func appendPing(b []byte, clientID string) []byte {
	frame := len(b)
	b = append(b, 0, 0, 0, 0)
	b = appendRequestHeader(b, idPing, -1, clientID, nil)
	binary.BigEndian.PutUint32(b[frame:], uint32(len(b)-frame-4))
	return b
}

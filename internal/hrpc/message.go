// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
)

// The methods that vtprotobuf generates. Messages with these methods are encoded directly into the buffer for the
// socket.
type vtMarshaler interface {
	SizeVT() int
	MarshalToSizedBufferVT([]byte) (int, error)
}

type vtUnmarshaler interface{ UnmarshalVT([]byte) error }

var errTooLarge = errors.New("message is larger than 128 MiB, the largest a Hadoop peer reads")

const maxMessage = 128<<20 - 4096 // leaves room for the headers

// appendMessage appends a delimited message to the caller's buffer. A nil message is encoded as an empty one: one byte
// 00.
func appendMessage(b []byte, m proto.Message) ([]byte, error) {
	if m == nil {
		return append(b, 0), nil
	}
	if v, ok := m.(vtMarshaler); ok {
		size := v.SizeVT()
		if size > maxMessage {
			return b, errTooLarge
		}
		start := len(b)
		b = binary.AppendUvarint(growBuffer(b, size+5), uint64(size))
		end := len(b) + size
		n, err := v.MarshalToSizedBufferVT(b[len(b):end])
		if err != nil {
			return b[:start], err
		}
		if n != size {
			return b[:start], fmt.Errorf("%T changed while it was encoded", m)
		}
		return b[:end], nil
	}
	size := proto.Size(m)
	if size > maxMessage {
		return b, errTooLarge
	}
	start := len(b)
	b = binary.AppendUvarint(growBuffer(b, size+5), uint64(size))
	body := len(b)
	b, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(b, m)
	if err == nil && len(b)-body != size {
		err = fmt.Errorf("%T changed while it was encoded", m)
	}
	if err != nil {
		return b[:start], err
	}
	return b, nil
}

func appendRaw(b, message []byte) ([]byte, error) {
	if len(message) > maxMessage {
		return b, errTooLarge
	}
	b = binary.AppendUvarint(growBuffer(b, len(message)+5), uint64(len(message)))
	return append(b, message...), nil
}

func unmarshal(b []byte, m proto.Message) error {
	if v, ok := m.(vtUnmarshaler); ok {
		return v.UnmarshalVT(b)
	}
	return proto.Unmarshal(b, m)
}

// validText converts a text to a valid protobuf string of bounded size.
func validText(s string) string {
	if len(s) > maxErrorText {
		s = s[:maxErrorText]
	}
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "?")
	}
	return s
}

// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"encoding/binary"
	"fmt"
)

// SaslState of RpcSaslProto.
const (
	saslSuccess   = 0
	saslNegotiate = 1
	saslInitiate  = 2
	saslChallenge = 3
	saslResponse  = 4
	saslWrap      = 5
)

// saslAuth is one SaslAuth: an offer of the server, or the client's choice. The choice repeats the offer without its
// challenge. A field's presence matters.
type saslAuth struct {
	method, mechanism, protocol, serverID, challenge string
	hasProtocol, hasServerID, hasChallenge           bool
}

func (a *saslAuth) append(b []byte, withChallenge bool) []byte {
	b = appendBytesField(b, 1, a.method)
	b = appendBytesField(b, 2, a.mechanism)
	if a.hasProtocol {
		b = appendBytesField(b, 3, a.protocol)
	}
	if a.hasServerID {
		b = appendBytesField(b, 4, a.serverID)
	}
	if a.hasChallenge && withChallenge {
		b = appendBytesField(b, 5, a.challenge)
	}
	return b
}

func (a *saslAuth) decode(b []byte) error {
	*a = saslAuth{}
	f := fields{rest: b}
	has := 0
	for f.next() {
		switch f.num {
		case 1:
			a.method = string(f.bytes)
			has |= 1
		case 2:
			a.mechanism = string(f.bytes)
			has |= 2
		case 3:
			a.protocol, a.hasProtocol = string(f.bytes), true
		case 4:
			a.serverID, a.hasServerID = string(f.bytes), true
		case 5:
			a.challenge, a.hasChallenge = string(f.bytes), true
		}
	}
	if f.err == nil && has != 3 {
		return errMalformed
	}
	return f.err
}

// saslMessage is RpcSaslProto. The token points into the frame.
type saslMessage struct {
	state    int32
	token    []byte
	hasToken bool
	auths    []saslAuth
}

// maxAuths bounds the memory used for a peer's message.
const maxAuths = 16

func (m *saslMessage) decode(b []byte) error {
	*m = saslMessage{state: -1}
	f := fields{rest: b}
	for f.next() {
		switch f.num {
		case 2:
			m.state = int32(f.value)
		case 3:
			m.token, m.hasToken = f.bytes, true
		case 4:
			var a saslAuth
			if err := a.decode(f.bytes); err != nil || len(m.auths) == maxAuths {
				return fmt.Errorf("SASL message: an auth: %w", errMalformed)
			}
			m.auths = append(m.auths, a)
		}
	}
	if f.err != nil {
		return fmt.Errorf("SASL message: %w", f.err)
	}
	if m.state < saslSuccess || m.state > saslWrap {
		return fmt.Errorf("SASL message: the state is missing or unknown: %w", errMalformed)
	}
	return nil
}

func (m *saslMessage) append(b []byte) []byte {
	b = appendVarintField(b, 2, uint64(m.state))
	if m.hasToken {
		b = appendBytesField(b, 3, m.token)
	}
	for i := range m.auths {
		b = appendBytesField(b, 4, m.auths[i].append(nil, m.state != saslInitiate))
	}
	return b
}

// appendSaslFrame appends a whole SASL packet of the server or the client.
func appendSaslFrame(b []byte, m *saslMessage, client bool) []byte {
	frame := len(b)
	b = append(b, 0, 0, 0, 0)
	if client {
		b = appendRequestHeader(b, idSasl, -1, "", nil)
	} else {
		b = appendSuccessHeader(b, idSasl, -1, "")
	}
	body := m.append(nil)
	b = binary.AppendUvarint(b, uint64(len(body)))
	b = append(b, body...)
	binary.BigEndian.PutUint32(b[frame:], uint32(len(b)-frame-4))
	return b
}

// appendWrapped seals plain frames into WRAP packets, which the peer's buffer can hold.
func appendWrapped(b, plain []byte, l Layer, client bool) []byte {
	for len(plain) > 0 {
		n := min(len(plain), l.MaxPlain())
		token := l.Seal(getBuffer(n+l.Overhead()), plain[:n])
		b = appendSaslFrame(b, &saslMessage{state: saslWrap, token: token, hasToken: true}, client)
		putBuffer(token)
		plain = plain[n:]
	}
	return b
}

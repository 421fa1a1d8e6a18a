// SPDX-License-Identifier: Apache-2.0

package gssapi

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"time"

	"github.com/jcmturner/gofork/encoding/asn1"
	"github.com/jcmturner/gokrb5/v8/asn1tools"
	"github.com/jcmturner/gokrb5/v8/iana/asnAppTag"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// The kinds of tokens that establish a context.
const (
	tokenRequest = 0x0100
	tokenReply   = 0x0200
	tokenError   = 0x0300
)

// oid is the DER of the mechanism's identifier, 1.2.840.113554.1.2.2.
var oid = []byte{0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 0x01, 0x02, 0x02}

// maxToken bounds the tokens that establish a context. A ticket with the authorisation data of Active Directory may
// have 48 KB.
const maxToken = 64 << 10

var (
	errRandom = errors.New("the source of random bytes failed")
	errToken  = errors.New("malformed Kerberos token")
)

// frame wraps a message of Kerberos into a token.
func frame(kind uint16, message []byte) []byte {
	body := append(bytes.Clone(oid), byte(kind>>8), byte(kind))
	return asn1tools.AddASNAppTag(append(body, message...), 0)
}

// unframe returns the message in a token and its kind.
func unframe(token []byte) (kind uint16, message []byte, err error) {
	if len(token) > maxToken {
		return 0, nil, errToken
	}
	var outer asn1.RawValue
	rest, err := asn1.Unmarshal(token, &outer)
	if err != nil || len(rest) > 0 || outer.Class != asn1.ClassApplication || outer.Tag != 0 || !outer.IsCompound {
		return 0, nil, errToken
	}
	body, ok := bytes.CutPrefix(outer.Bytes, oid)
	if !ok || len(body) < 2 {
		return 0, nil, errToken
	}
	return binary.BigEndian.Uint16(body), body[2:], nil
}

// decode runs a decoder of gokrb5. The decoders' own errors name Go's types, and some decoders panic when a length is
// wrong; both become errToken.
func decode(decoder func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = errToken
		}
	}()
	if decoder() != nil {
		return errToken
	}
	return nil
}

// open decrypts a part of a message. It does not change the part.
func open(part types.EncryptedData, key Key, usage uint32) ([]byte, error) {
	if part.EType != key.Type {
		return nil, errCrypt
	}
	c, err := newCrypt(key, usage)
	if err != nil {
		return nil, err
	}
	return c.decrypt(bytes.Clone(part.Cipher))
}

// shut encrypts a part of a message.
func shut(plain []byte, key Key, usage uint32, random io.Reader) (types.EncryptedData, error) {
	c, err := newCrypt(key, usage)
	if err != nil {
		return types.EncryptedData{}, err
	}
	var confounder [16]byte
	if _, err := io.ReadFull(random, confounder[:]); err != nil {
		return types.EncryptedData{}, errRandom
	}
	return types.EncryptedData{EType: key.Type, Cipher: c.encrypt(nil, confounder[:], plain)}, nil
}

// newKey draws a key of a type.
func newKey(kind int32, random io.Reader) (Key, error) {
	s, ok := suites[kind]
	if !ok {
		return Key{}, errKeyType
	}
	k := Key{kind, make([]byte, s.size)}
	if _, err := io.ReadFull(random, k.Value); err != nil {
		return Key{}, errRandom
	}
	return k, nil
}

// newSequence draws the first sequence number. It has 30 bits, since some implementations read 32 bits as signed.
func newSequence(random io.Reader) (uint32, error) {
	var b [4]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return 0, errRandom
	}
	return binary.BigEndian.Uint32(b[:]) & 0x3fffffff, nil
}

func toWire(k Key) types.EncryptionKey {
	return types.EncryptionKey{KeyType: k.Type, KeyValue: k.Value}
}

// Flags of the checksum of the authenticator, by which the initiator asks for services.
const (
	wantMutual    = 2
	wantReplay    = 4
	wantSequence  = 8
	wantConf      = 16
	wantIntegrity = 32
)

// checksumType is the type of the checksum that has the flags instead of a sum.
const checksumType = 0x8003

// writeFlags makes the checksum: a length, 16 bytes for channel bindings, and the flags.
func writeFlags(flags uint32) types.Checksum {
	b := binary.LittleEndian.AppendUint32(nil, 16)
	b = append(b, make([]byte, 16)...)
	return types.Checksum{CksumType: checksumType, Checksum: binary.LittleEndian.AppendUint32(b, flags)}
}

// readFlags reads the flags. A delegated ticket that follows them is ignored.
func readFlags(c types.Checksum) (uint32, error) {
	if c.CksumType != checksumType || len(c.Checksum) < 24 || binary.LittleEndian.Uint32(c.Checksum) != 16 {
		return 0, errToken
	}
	return binary.LittleEndian.Uint32(c.Checksum[20:]), nil
}

// replyTo makes the AP-REP to an authenticator, encrypted by the ticket's key.
func replyTo(a *types.Authenticator, ticketKey, sub Key, sequence uint32, random io.Reader) ([]byte, error) {
	part, err := asn1.Marshal(messages.EncAPRepPart{
		CTime: a.CTime, Cusec: a.Cusec, Subkey: toWire(sub), SequenceNumber: int64(sequence),
	})
	if err != nil {
		return nil, errToken
	}
	sealed, err := shut(asn1tools.AddASNAppTag(part, asnAppTag.EncAPRepPart), ticketKey, usageReply, random)
	if err != nil {
		return nil, err
	}
	reply, err := asn1.Marshal(messages.APRep{PVNO: 5, MsgType: 15, EncPart: sealed})
	if err != nil {
		return nil, errToken
	}
	return frame(tokenReply, asn1tools.AddASNAppTag(reply, asnAppTag.APREP)), nil
}

// stamp splits a time into the seconds and microseconds of a message.
func stamp(now time.Time) (seconds time.Time, micros int) {
	now = now.UTC()
	return now.Truncate(time.Second), now.Nanosecond() / 1000
}

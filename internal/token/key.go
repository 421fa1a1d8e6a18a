// SPDX-License-Identifier: Apache-2.0

package token

import (
	"crypto/hmac"
	"crypto/sha1" // Hadoop's HMAC of tokens is HmacSHA1; a peer accepts nothing else
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"math/rand/v2"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/yarnpb"
)

// PasswordSize is the length of a password in bytes.
const PasswordSize = sha1.Size

// secretSize is the length of creel's secrets: 64 bits, as in Hadoop.
const secretSize = 8

// Key is a master key. The secret is never written after the key is made.
type Key struct {
	ID     int32
	Secret []byte
}

// NewSecret makes a secret from rnd, which must be unpredictable.
func NewSecret(rnd *rand.Rand) []byte {
	return binary.BigEndian.AppendUint64(make([]byte, 0, secretSize), rnd.Uint64())
}

// IsZero reports whether a key was never made.
func (k Key) IsZero() bool { return k.Secret == nil }

// Password is HMAC-SHA1 of an identifier's bytes. It may be called from any goroutine; for many passwords under one
// key use a Mac.
func (k Key) Password(identifier []byte) []byte {
	return NewMac(k).Append(nil, identifier)
}

// Verify reports in constant time whether a password belongs to an identifier.
func (k Key) Verify(identifier, password []byte) bool {
	return hmac.Equal(k.Password(identifier), password)
}

// Proto converts the key to the message that a ResourceManager sends to nodes; it shares the secret.
func (k Key) Proto() *yarnpb.MasterKeyProto {
	return &yarnpb.MasterKeyProto{KeyId: proto.Int32(k.ID), Bytes: k.Secret}
}

// KeyFrom converts the key in a message; zero without a key.
func KeyFrom(p *yarnpb.MasterKeyProto) Key {
	if p == nil || len(p.Bytes) == 0 {
		return Key{}
	}
	return Key{ID: p.GetKeyId(), Secret: p.Bytes}
}

// ParseAMRMKeys reads the AMRM master keys from the state store of Hadoop's ResourceManager. They are an
// AMRMTokenSecretManagerStateProto: the current key, and the next one while keys roll. Unknown fields are skipped.
func ParseAMRMKeys(b []byte) (Ring, error) {
	var current, next Key
	for rest := b; len(rest) > 0; {
		field, kind, n := protowire.ConsumeTag(rest)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		size := protowire.ConsumeFieldValue(field, kind, rest[n:])
		if size < 0 {
			return nil, protowire.ParseError(size)
		}
		value := rest[n : n+size]
		rest = rest[n+size:]
		if field > 2 {
			continue
		}
		if kind != protowire.BytesType {
			return nil, fmt.Errorf("field %d is no message", field)
		}
		message, _ := protowire.ConsumeBytes(value)
		p := new(yarnpb.MasterKeyProto)
		if err := p.UnmarshalVT(message); err != nil {
			return nil, err
		}
		key := KeyFrom(p)
		if key.IsZero() || p.KeyId == nil {
			return nil, fmt.Errorf("field %d is no master key: it has no id, or no secret", field)
		}
		if field == 1 {
			current = key
		} else {
			next = key
		}
	}
	switch {
	case current.IsZero():
		return nil, errors.New("there is no current master key")
	case next.IsZero():
		return Ring{current}, nil
	}
	return Ring{next, current}, nil
}

// Mac signs with one key. The key is expanded once, so a password costs only the hash of its identifier. A Mac belongs
// to one owner; goroutines must not share it.
type Mac struct {
	key  Key
	hash hash.Hash
}

// NewMac prepares a key.
func NewMac(k Key) *Mac { return &Mac{key: k, hash: hmac.New(sha1.New, k.Secret)} }

// Key is the key of the Mac.
func (m *Mac) Key() Key { return m.key }

// Append appends the password of an identifier.
func (m *Mac) Append(b, identifier []byte) []byte {
	m.hash.Reset()
	m.hash.Write(identifier)
	return m.hash.Sum(b)
}

// Identifier is any identifier of this package.
type Identifier interface{ Append([]byte) []byte }

// sealed makes the token of identifier bytes in b. The password is appended to them in the same memory.
func (m *Mac) sealed(b []byte, kind, service string) Token {
	n := len(b)
	b = m.Append(b, b[:n])
	return Token{Identifier: b[:n:n], Password: b[n:], Kind: kind, Service: service}
}

// AMRM creates the token of an attempt. Its service is empty; the bearer fills it. The key id is the Mac's.
func (m *Mac) AMRM(attempt creel.AttemptID) Token {
	return m.sealed(AMRM{Attempt: attempt, KeyID: m.key.ID}.Append(make([]byte, 0, 64)), KindAMRM, "")
}

// NM creates an attempt's token for a node whose service is ip:port. The key id is the Mac's.
func (m *Mac) NM(id NM, service string) Token {
	id.KeyID = m.key.ID
	return m.sealed(id.Append(make([]byte, 0, 96+len(id.Node.Host)+len(id.User))), KindNM, service)
}

// Container creates a container's token for a node whose service is ip:port. The key id is the Mac's.
func (m *Mac) Container(id Container, service string) Token {
	id.KeyID = m.key.ID
	size := 224 + len(id.Node.Host) + len(id.User) + len(id.Label)
	return m.sealed(id.Append(make([]byte, 0, size)), KindContainer, service)
}

// ClientToAM creates a client's token for the AM of the key's attempt.
func (m *Mac) ClientToAM(id ClientToAM) Token {
	return m.sealed(id.Append(make([]byte, 0, 96)), KindClientToAM, "")
}

// Ring is the keys under which a verifier accepts tokens at a moment. It is immutable, so goroutines may share it.
type Ring []Key

// Find returns the key with an id.
func (r Ring) Find(id int32) (Key, bool) {
	for _, k := range r {
		if k.ID == id {
			return k, true
		}
	}
	return Key{}, false
}

// Password returns the password of an identifier under the key with an id. The error is of kind ErrInvalidToken.
func (r Ring) Password(id int32, identifier []byte) ([]byte, error) {
	k, ok := r.Find(id)
	if !ok {
		return nil, invalid("its master key %d is not accepted here (any more)", id)
	}
	return k.Password(identifier), nil
}

func invalid(format string, args ...any) error {
	return &creel.Error{Kind: creel.ErrInvalidToken, What: "token refused", Why: fmt.Sprintf(format, args...),
		Try: "get a new token from the ResourceManager that issued this one"}
}

// SPDX-License-Identifier: Apache-2.0

package statestore

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"io"

	"github.com/creelrm/creel"
)

// SealRing is the ring whose keys seal the secrets of a UAM record.
const SealRing = "seal"

// A sealed value is
//
//	version 1 | key id, 4 bytes big endian | nonce, 12 bytes | AES-256-GCM
//
// The AES key is the HKDF-SHA256 of the ring's secret, so that a secret may have any length and
// serve other purposes too.
const (
	sealVersion  = 1
	sealNonceLen = 12
	sealHeader   = 1 + 4 + sealNonceLen
	sealInfo     = "creel seal v1"
)

// Seal encrypts plain with a key of SealRing. bound names the value's owner, e.g. an attempt and a member: Open rejects
// the value for any other owner. random must be a cryptographic source (crypto/rand.Reader); one key may seal 2^32
// values.
func Seal(random io.Reader, key Key, bound, plain []byte) ([]byte, error) {
	aead, err := sealCipher(key)
	if err != nil {
		return nil, err
	}
	out := make([]byte, sealHeader, sealHeader+len(plain)+aead.Overhead())
	out[0] = sealVersion
	binary.BigEndian.PutUint32(out[1:], uint32(key.ID))
	if _, err := io.ReadFull(random, out[5:sealHeader]); err != nil {
		return nil, failf(
			creel.ErrUnavailable,
			"check the system's random source",
			"value not sealed",
			"no nonce: %v",
			err,
		)
	}
	return aead.Seal(out, out[5:sealHeader], plain, sealBound(out[:5], bound)), nil
}

// Open decrypts the output of Seal with one of the keys. It returns creel.ErrInvalidToken if none of them sealed the
// value, or the value was changed or has another owner.
func Open(keys []Key, bound, sealed []byte) ([]byte, error) {
	if len(sealed) < sealHeader || sealed[0] != sealVersion {
		return nil, failf(
			creel.ErrInvalidToken,
			"request a new one",
			"sealed value refused",
			"it was not sealed by this version of creel",
		)
	}
	id := int32(binary.BigEndian.Uint32(sealed[1:]))
	for _, k := range keys {
		if k.ID != id {
			continue
		}
		aead, err := sealCipher(k)
		if err != nil {
			return nil, err
		}
		plain, err := aead.Open(nil, sealed[5:sealHeader], sealed[sealHeader:], sealBound(sealed[:5], bound))
		if err != nil {
			return nil, failf(
				creel.ErrInvalidToken,
				"request a new one",
				"sealed value refused",
				"it was changed, or has another owner",
			)
		}
		return plain, nil
	}
	return nil, failf(
		creel.ErrInvalidToken,
		"keep old keys for longer than sealed values live",
		"sealed value refused",
		"key %d is not in the ring any more",
		id,
	)
}

func sealCipher(k Key) (cipher.AEAD, error) {
	if err := CheckSecret(k.Secret); err != nil {
		return nil, err
	}
	derived, err := hkdf.Key(sha256.New, k.Secret, nil, sealInfo, 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func sealBound(header, bound []byte) []byte {
	return append(append(make([]byte, 0, len(header)+len(bound)), header...), bound...)
}

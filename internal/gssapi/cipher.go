// SPDX-License-Identifier: Apache-2.0

package gssapi

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"sync"

	"github.com/jcmturner/gokrb5/v8/crypto/rfc3961"
)

// Key is a key of Kerberos.
type Key struct {
	Type  int32 // 17 to 20
	Value []byte
}

// suite is an encryption type.
type suite struct {
	size    int // bytes of a key
	hash    func() hash.Hash
	macKey  int // bytes of a derived key for checksums
	macSize int
	sha2    bool // RFC 8009: the checksum covers the ciphertext
}

var suites = map[int32]suite{
	17: {16, sha1.New, 16, 12, false},
	18: {32, sha1.New, 32, 12, false},
	19: {16, sha256.New, 16, 16, true},
	20: {32, sha512.New384, 24, 24, true},
}

// Numbers of key usages.
const (
	usageTicket        = 2
	usageAuthenticator = 11
	usageReply         = 12
	usageAcceptorSeal  = 22
	usageInitiatorSeal = 24
)

// crypt encrypts, decrypts and signs with the keys derived for one usage.
type crypt struct {
	suite
	block    cipher.Block
	integral hash.Hash // of encrypted messages
	checksum hash.Hash // of others
}

var (
	errKeyType = errors.New("the encryption type is not one of AES (17 to 20)")
	errSeal    = errors.New("a wrapped message fails its integrity check")
	errCrypt   = errors.New("an encrypted message fails its integrity check")
)

// newCrypt derives the keys of a usage.
func newCrypt(key Key, usage uint32) (*crypt, error) {
	s, ok := suites[key.Type]
	if !ok {
		return nil, fmt.Errorf("key of type %d: %w", key.Type, errKeyType)
	}
	if len(key.Value) != s.size {
		return nil, fmt.Errorf("a key of type %d has %d bytes instead of %d", key.Type, len(key.Value), s.size)
	}
	c := &crypt{suite: s}
	encrypt, err := derive(key, s, usage, 0xAA, s.size)
	if err != nil {
		return nil, err
	}
	integral, err := derive(key, s, usage, 0x55, s.macKey)
	if err != nil {
		return nil, err
	}
	checksum, err := derive(key, s, usage, 0x99, s.macKey)
	if err != nil {
		return nil, err
	}
	c.block, err = aes.NewCipher(encrypt)
	c.integral, c.checksum = hmac.New(s.hash, integral), hmac.New(s.hash, checksum)
	return c, err
}

// derive derives a key of size bytes: by RFC 3961 for the older types, by RFC 8009 for the newer ones.
func derive(key Key, s suite, usage uint32, kind byte, size int) ([]byte, error) {
	label := append(binary.BigEndian.AppendUint32(nil, usage), kind)
	if !s.sha2 {
		block, err := aes.NewCipher(key.Value)
		if err != nil {
			return nil, err
		}
		derived, previous := make([]byte, size), fold([5]byte(label))
		for at := 0; at < size; at += aes.BlockSize {
			block.Encrypt(derived[at:], previous)
			previous = derived[at:]
		}
		return derived, nil
	}
	h := hmac.New(s.hash, key.Value)
	h.Write([]byte{0, 0, 0, 1})
	h.Write(append(label, 0))
	h.Write(binary.BigEndian.AppendUint32(nil, uint32(size)*8))
	return h.Sum(nil)[:size], nil
}

// folds has the folded labels by label. There are three for each usage, and a login needs fifteen of them.
var folds sync.Map

// fold returns the n-fold of a label for a block of AES by RFC 3961.
func fold(label [5]byte) []byte {
	folded, ok := folds.Load(label)
	if !ok {
		folded, _ = folds.LoadOrStore(label, rfc3961.Nfold(label[:], 8*aes.BlockSize))
	}
	return folded.([]byte)
}

// sum appends the checksum of the parts.
func (c *crypt) sum(dst []byte, h hash.Hash, parts ...[]byte) []byte {
	h.Reset()
	for _, p := range parts {
		h.Write(p)
	}
	var sum [sha512.Size384]byte
	return append(dst, h.Sum(sum[:0])[:c.macSize]...)
}

// overhead is the number of bytes that encryption adds.
func (c *crypt) overhead() int { return aes.BlockSize + c.macSize }

var zeroIV [aes.BlockSize]byte

// encrypt appends the encryption of the parts. The confounder has 16 random bytes.
func (c *crypt) encrypt(dst, confounder []byte, parts ...[]byte) []byte {
	at := len(dst)
	dst = append(dst, confounder...)
	for _, p := range parts {
		dst = append(dst, p...)
	}
	var mac []byte
	if !c.sha2 {
		mac = c.sum(nil, c.integral, dst[at:])
	}
	size := len(dst)
	dst = append(dst, zeroIV[:(aes.BlockSize-(size-at)%aes.BlockSize)%aes.BlockSize]...)
	body := dst[at:]
	cipher.NewCBCEncrypter(c.block, zeroIV[:]).CryptBlocks(body, body)
	if n := len(body); n > aes.BlockSize { // ciphertext stealing: the last two blocks change places
		var last [aes.BlockSize]byte
		copy(last[:], body[n-aes.BlockSize:])
		copy(body[n-aes.BlockSize:], body[n-2*aes.BlockSize:n-aes.BlockSize])
		copy(body[n-2*aes.BlockSize:], last[:])
	}
	dst = dst[:size]
	if c.sha2 {
		mac = c.sum(nil, c.integral, zeroIV[:], dst[at:])
	}
	return append(dst, mac...)
}

// decrypt returns the decrypted bytes without the confounder. It overwrites the ciphertext.
func (c *crypt) decrypt(text []byte) ([]byte, error) {
	n := len(text) - c.macSize
	if n < aes.BlockSize {
		return nil, errCrypt
	}
	body, mac := text[:n], text[n:]
	if c.sha2 && !hmac.Equal(mac, c.sum(nil, c.integral, zeroIV[:], body)) {
		return nil, errCrypt
	}
	c.unsteal(body)
	if !c.sha2 && !hmac.Equal(mac, c.sum(nil, c.integral, body)) {
		return nil, errCrypt
	}
	return body[aes.BlockSize:], nil
}

// unsteal decrypts CBC with ciphertext stealing in place.
func (c *crypt) unsteal(body []byte) {
	const b = aes.BlockSize
	if len(body) == b {
		c.block.Decrypt(body, body)
		return
	}
	tail := (len(body)-1)%b + 1
	front := len(body) - tail - b // whole blocks before the last two
	last, stolen := body[front:front+b], body[front+b:]
	var plain, before [b]byte
	c.block.Decrypt(plain[:], last)
	copy(before[:], plain[:])
	copy(before[:], stolen) // the ciphertext of the last block but one
	for i := range stolen {
		plain[i] ^= stolen[i]
	}
	copy(stolen, plain[:tail])
	previous := zeroIV
	if front > 0 {
		copy(previous[:], body[front-b:front])
		cipher.NewCBCDecrypter(c.block, zeroIV[:]).CryptBlocks(body[:front], body[:front])
	}
	c.block.Decrypt(last, before[:])
	for i := range last {
		last[i] ^= previous[i]
	}
}

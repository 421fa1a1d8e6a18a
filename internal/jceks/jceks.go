// SPDX-License-Identifier: Apache-2.0

// Package jceks reads the secret keys of Java keystores of type JCEKS, as `hadoop credential create` writes them. Each
// secret is the key of an entry.
package jceks

import (
	"bytes"
	"crypto/cipher"
	"crypto/des"
	"crypto/md5"  // the format demands it
	"crypto/sha1" // the format demands it
	"crypto/subtle"
	"encoding/asn1"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
)

// MaxSize is the size of the largest keystore that is read.
const MaxSize = 1 << 20

// maxIterations bounds the work of one decryption. Java's limit is the same.
const maxIterations = 5_000_000

// ErrPassword means that the password does not match the file, or that the file is damaged: its digest covers both.
var ErrPassword = errors.New("its password is another one, or the file is damaged")

// Store is an opened keystore.
type Store struct {
	password string
	sealed   map[string]object // by alias
}

const (
	magic       = 0xcececece
	magicOfJKS  = 0xfeedfeed
	privateKey  = 1
	certificate = 2
	secretKey   = 3
)

// Open reads a keystore and checks its digest. Secrets stay encrypted.
func Open(file []byte, password string) (*Store, error) {
	if len(file) > MaxSize {
		return nil, fmt.Errorf("it is longer than %d bytes", MaxSize)
	}
	if len(file) < 12+sha1.Size {
		return nil, errors.New("it is too short for a keystore")
	}
	switch binary.BigEndian.Uint32(file) {
	case magic:
	case magicOfJKS:
		return nil, errors.New("it is a keystore of type JKS, which has no secret keys")
	default:
		return nil, errors.New("it is not a keystore of type JCEKS")
	}
	body, digest := file[:len(file)-sha1.Size], file[len(file)-sha1.Size:]
	if subtle.ConstantTimeCompare(digest, digestOf(body, password)) == 0 {
		return nil, ErrPassword
	}
	s := &Store{password: password, sealed: map[string]object{}}
	r := &reader{b: body[4:]}
	version := r.uint32()
	if version != 1 && version != 2 {
		return nil, fmt.Errorf("its version %d is unknown", version)
	}
	for n := r.uint32(); n > 0 && r.err == nil; n-- {
		tag, alias := r.uint32(), strings.ToLower(r.utf())
		r.take(8) // the time of its creation
		switch tag {
		case privateKey:
			r.take(int(r.uint32()))
			for k := r.uint32(); k > 0 && r.err == nil; k-- {
				r.certificate(version)
			}
		case certificate:
			r.certificate(version)
		case secretKey:
			if o, ok := r.stream().(object); ok {
				s.sealed[alias] = o
			} else {
				r.fail()
			}
		default:
			r.fail()
		}
	}
	if r.err == nil && len(r.b) > 0 {
		r.fail()
	}
	if r.err != nil {
		return nil, r.err
	}
	return s, nil
}

// certificate skips a certificate.
func (r *reader) certificate(version uint32) {
	if version == 2 {
		r.utf()
	}
	r.take(int(r.uint32()))
}

func digestOf(body []byte, password string) []byte {
	h := sha1.New()
	for _, c := range utf16.Encode([]rune(password)) {
		h.Write([]byte{byte(c >> 8), byte(c)})
	}
	h.Write([]byte("Mighty Aphrodite"))
	h.Write(body)
	return h.Sum(nil)
}

// Secret returns the secret of an alias. Aliases do not distinguish case.
func (s *Store) Secret(alias string) (secret []byte, found bool, err error) {
	o, found := s.sealed[strings.ToLower(alias)]
	if !found {
		return nil, false, nil
	}
	plain, err := unseal(o, s.password)
	if err != nil {
		return nil, true, err
	}
	r := &reader{b: plain}
	key, ok := r.stream().(object)
	if r.err != nil || !ok || key.class != "javax.crypto.spec.SecretKeySpec" {
		return nil, true, errors.New("its key is not a SecretKeySpec")
	}
	secret, ok = key.fields["key"].([]byte)
	if !ok {
		return nil, true, errors.New("its key is empty")
	}
	return secret, true, nil
}

// unseal decrypts a sealed object.
func unseal(o object, password string) ([]byte, error) {
	const algorithm = "PBEWithMD5AndTripleDES"
	sealed, _ := o.fields["encryptedContent"].([]byte)
	encoded, _ := o.fields["encodedParams"].([]byte)
	if name, _ := o.fields["sealAlg"].(string); name != algorithm {
		return nil, fmt.Errorf("it is encrypted by %q, not by %s", name, algorithm)
	}
	var parameters struct {
		Salt       []byte
		Iterations int
	}
	rest, err := asn1.Unmarshal(encoded, &parameters)
	n := parameters.Iterations
	if err != nil || len(rest) > 0 || len(parameters.Salt) != 8 || n < 1 || n > maxIterations {
		return nil, errors.New("the parameters of its encryption cannot be read")
	}
	derived := derive(parameters.Salt, password, n)
	block, err := des.NewTripleDESCipher(derived[:24])
	if err != nil {
		return nil, err
	}
	if len(sealed) == 0 || len(sealed)%des.BlockSize != 0 {
		return nil, errors.New("its encrypted part is cut off")
	}
	plain := make([]byte, len(sealed))
	cipher.NewCBCDecrypter(block, derived[24:]).CryptBlocks(plain, sealed)
	pad := int(plain[len(plain)-1])
	if pad < 1 || pad > des.BlockSize ||
		!bytes.Equal(plain[len(plain)-pad:], bytes.Repeat([]byte{byte(pad)}, pad)) {
		return nil, ErrPassword
	}
	return plain[:len(plain)-pad], nil
}

// derive makes the 24 bytes of the key and the 8 of the initial vector, each 16 from one half of the salt. If the
// halves are equal, the first is inverted.
func derive(salt []byte, password string, iterations int) []byte {
	salt = bytes.Clone(salt)
	if bytes.Equal(salt[:4], salt[4:]) {
		slices.Reverse(salt[:4])
	}
	var secret []byte
	for _, c := range utf16.Encode([]rune(password)) {
		secret = append(secret, byte(c&0x7f))
	}
	var out []byte
	for half := range 2 {
		hashed := salt[half*4 : half*4+4]
		for range iterations {
			sum := md5.Sum(append(hashed[:len(hashed):len(hashed)], secret...))
			hashed = sum[:]
		}
		out = append(out, hashed...)
	}
	return out
}

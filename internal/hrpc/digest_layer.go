// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"crypto/cipher"
	"crypto/des"
	"crypto/hmac"
	"crypto/md5"
	"crypto/subtle"
	"encoding/binary"
	"errors"
)

// layer is the layer of one end after the exchange, or nil if packets are not wrapped.
func (d *digest) layer(client bool) (Layer, error) {
	switch d.qop {
	case Integrity:
		return newIntegrity(d, client), nil
	case Privacy:
		return newPrivacy(d, client)
	}
	return nil, nil
}

// Both layers end a token with a type and a sequence number of the direction, and contain a part of a MAC.
const (
	macSize  = 10
	tailSize = 6 // 00 01 and the sequence number
	sealSize = macSize + tailSize
)

// macs are the signing keys and sequence numbers of one connection.
type macs struct {
	sealKey, openKey [md5.Size]byte
	sealSeq, openSeq uint32
}

// keyOf derives a key of a direction from the session's secret.
func (d *digest) keyOf(purpose string) [md5.Size]byte {
	a1 := d.a1()
	return md5.Sum(append(a1[:], purpose+" magic constant"...))
}

func newMacs(d *digest, client bool) macs {
	toServer := d.keyOf("Digest session key to client-to-server signing key")
	toClient := d.keyOf("Digest session key to server-to-client signing key")
	if client {
		return macs{sealKey: toServer, openKey: toClient}
	}
	return macs{sealKey: toClient, openKey: toServer}
}

func mac(key *[md5.Size]byte, seq uint32, message []byte) [macSize]byte {
	h := hmac.New(md5.New, key[:])
	var s [4]byte
	binary.BigEndian.PutUint32(s[:], seq)
	h.Write(s[:])
	h.Write(message)
	var sum [md5.Size]byte
	h.Sum(sum[:0])
	return [macSize]byte(sum[:macSize])
}

// appendTail ends a token.
func appendTail(dst []byte, seq uint32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, 0, 1), seq)
}

// integrity seals and opens the packets of one connection under auth-int:
// message, first 10 bytes of HMAC-MD5(key, seq + message), 00 01, seq.
type integrity struct {
	macs
	maxBuffer int
}

func newIntegrity(d *digest, client bool) *integrity {
	return &integrity{newMacs(d, client), d.maxBuffer}
}

// Seal, Open, MaxPlain and Overhead implement Layer.
func (i *integrity) MaxPlain() int { return i.maxBuffer - sealSize }
func (i *integrity) Overhead() int { return sealSize }

func (i *integrity) Seal(dst, message []byte) []byte {
	m := mac(&i.sealKey, i.sealSeq, message)
	dst = append(dst, message...)
	dst = appendTail(append(dst, m[:]...), i.sealSeq)
	i.sealSeq++
	return dst
}

var errSeal = errors.New("SASL: a wrapped packet fails its integrity check")

func (i *integrity) Open(token []byte) (message []byte, err error) {
	n := len(token) - sealSize
	if n < 0 {
		return nil, errSeal
	}
	m := mac(&i.openKey, i.openSeq, token[:n])
	if subtle.ConstantTimeCompare(appendTail(m[:], i.openSeq), token[n:]) != 1 {
		return nil, errSeal
	}
	i.openSeq++
	return token[:n], nil
}

// privacy seals and opens the packets of one connection under auth-conf with 3DES:
// encrypted(message, padding, first 10 bytes of HMAC-MD5(key, seq + message)), 00 01, seq.
// The blocks of a direction are one chain over all packets.
type privacy struct {
	macs
	maxBuffer int
	encrypt   cipher.BlockMode
	decrypt   cipher.BlockMode
}

func newPrivacy(d *digest, client bool) (*privacy, error) {
	seal := d.keyOf("Digest H(A1) to client-to-server sealing key")
	open := d.keyOf("Digest H(A1) to server-to-client sealing key")
	if !client {
		seal, open = open, seal
	}
	p := &privacy{macs: newMacs(d, client), maxBuffer: d.maxBuffer}
	sealBlock, err := tripleDES(seal)
	if err != nil {
		return nil, err
	}
	openBlock, err := tripleDES(open)
	if err != nil {
		return nil, err
	}
	p.encrypt = cipher.NewCBCEncrypter(sealBlock, seal[des.BlockSize:])
	p.decrypt = cipher.NewCBCDecrypter(openBlock, open[des.BlockSize:])
	return p, nil
}

// tripleDES makes the cipher of a sealing key: its first two times 7 bytes are two keys of DES.
func tripleDES(key [md5.Size]byte) (cipher.Block, error) {
	first, second := desKey([7]byte(key[:7])), desKey([7]byte(key[7:14]))
	return des.NewTripleDESCipher(append(append(append([]byte(nil), first[:]...), second[:]...), first[:]...))
}

// desKey makes a key of DES from 56 bits: 7 bits in each byte, and one for parity, which no implementation reads.
func desKey(bits [7]byte) (key [8]byte) {
	n := binary.BigEndian.Uint64(append([]byte{0}, bits[:]...))
	for i := 7; i >= 0; i-- {
		key[i] = byte(n&0x7f) << 1
		n >>= 7
	}
	return key
}

// MaxPlain is Java's: 26 bytes are kept for the rest.
func (p *privacy) MaxPlain() int { return p.maxBuffer - 26 }
func (p *privacy) Overhead() int { return des.BlockSize + sealSize }

func (p *privacy) Seal(dst, message []byte) []byte {
	begin := len(dst)
	m := mac(&p.sealKey, p.sealSeq, message)
	dst = append(dst, message...)
	pad := des.BlockSize - (len(message)+macSize)%des.BlockSize
	for range pad {
		dst = append(dst, byte(pad))
	}
	dst = append(dst, m[:]...)
	p.encrypt.CryptBlocks(dst[begin:], dst[begin:])
	dst = appendTail(dst, p.sealSeq)
	p.sealSeq++
	return dst
}

// Open decrypts in place. All failures are one error: it tells nothing about the decrypted bytes.
func (p *privacy) Open(token []byte) ([]byte, error) {
	n := len(token) - tailSize
	if n < 2*des.BlockSize || n%des.BlockSize != 0 {
		return nil, errSeal
	}
	plain := token[:n]
	p.decrypt.CryptBlocks(plain, plain)
	text, sum := plain[:n-macSize], plain[n-macSize:]
	pad := int(text[len(text)-1])
	good := pad >= 1 && pad <= des.BlockSize && pad <= len(text)
	if !good {
		pad = 0
	}
	message := text[:len(text)-pad]
	m := mac(&p.openKey, p.openSeq, message)
	same := subtle.ConstantTimeCompare(m[:], sum) & subtle.ConstantTimeCompare(appendTail(nil, p.openSeq), token[n:])
	if !good || same != 1 {
		return nil, errSeal
	}
	p.openSeq++
	return message, nil
}

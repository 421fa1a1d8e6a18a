// SPDX-License-Identifier: Apache-2.0

package gssapi

import (
	"crypto/hmac"
	"encoding/binary"
	"io"
)

// Context is an established context of either end. It wraps the messages that it sends and unwraps those that it
// receives. Its two directions are independent, so one goroutine may wrap while another one unwraps.
type Context struct {
	// Client and Service are the two ends, as the ticket names them.
	Client, Service Principal

	send, receive direction
}

// direction is one direction of a context.
type direction struct {
	crypt    *crypt
	flags    byte // of every token
	sequence uint64
}

// Flags of a token by RFC 4121.
const (
	flagAcceptor  = 1 // sent by the acceptor
	flagSealed    = 2
	flagAcceptKey = 4 // the acceptor chose the key
)

const headerSize = 16

// newContext makes a context from its key. acceptorKey reports that the acceptor chose the key.
func newContext(key Key, acceptor, acceptorKey bool, mine, theirs uint32) (*Context, error) {
	client, err := newCrypt(key, usageInitiatorSeal)
	if err != nil {
		return nil, err
	}
	service, err := newCrypt(key, usageAcceptorSeal)
	if err != nil {
		return nil, err
	}
	var flags byte
	if acceptorKey {
		flags = flagAcceptKey
	}
	c := &Context{send: direction{client, flags, 0}, receive: direction{service, flags | flagAcceptor, 0}}
	if acceptor {
		c.send, c.receive = c.receive, c.send
	}
	c.send.sequence, c.receive.sequence = uint64(mine), uint64(theirs)
	return c, nil
}

// header makes the header of a token: extra is the number of checksum or filler bytes.
func (d *direction) header(sealed bool, extra, rotation int) (h [headerSize]byte) {
	h[0], h[1], h[2], h[3] = 5, 4, d.flags, 0xff
	if sealed {
		h[2] |= flagSealed
	}
	binary.BigEndian.PutUint16(h[4:], uint16(extra))
	binary.BigEndian.PutUint16(h[6:], uint16(rotation))
	binary.BigEndian.PutUint64(h[8:], d.sequence)
	return h
}

// overhead is the number of bytes that wrapping adds.
func (d *direction) overhead(sealed bool) int {
	if sealed {
		return 2*headerSize + d.crypt.overhead()
	}
	return headerSize + d.crypt.macSize
}

// Wrap appends a token with the message. sealed encrypts it; random is then the source of the confounder.
func (c *Context) Wrap(dst, message []byte, sealed bool, random io.Reader) ([]byte, error) {
	d := &c.send
	bare := d.header(sealed, 0, 0)
	if sealed {
		var confounder [16]byte
		if _, err := io.ReadFull(random, confounder[:]); err != nil {
			return nil, errRandom
		}
		dst = append(dst, bare[:]...)
		dst = d.crypt.encrypt(dst, confounder[:], message, bare[:])
	} else {
		full := d.header(false, d.crypt.macSize, 0)
		dst = append(dst, full[:]...)
		dst = append(dst, message...)
		dst = d.crypt.sum(dst, d.crypt.checksum, message, bare[:])
	}
	d.sequence++
	return dst, nil
}

// Unwrap returns the message of a token, and whether it was encrypted. It overwrites the token, whose memory the
// message shares. Messages must arrive in order: a token that is repeated, missing or reflected is an error.
func (c *Context) Unwrap(token []byte) (message []byte, sealed bool, err error) {
	d := &c.receive
	if len(token) < headerSize {
		return nil, false, errSeal
	}
	head, body := token[:headerSize], token[headerSize:]
	sealed = head[2]&flagSealed != 0
	extra, rotation := int(binary.BigEndian.Uint16(head[4:])), int(binary.BigEndian.Uint16(head[6:]))
	want := d.header(sealed, extra, rotation)
	if len(body) == 0 || !hmac.Equal(head, want[:]) {
		return nil, false, errSeal
	}
	rotate(body, rotation)
	if sealed {
		message, err = d.unseal(body, extra)
	} else {
		message, err = d.verify(body, extra)
	}
	if err != nil {
		return nil, false, errSeal
	}
	d.sequence++
	return message, sealed, nil
}

// unseal decrypts a message. The header is repeated inside, after as many filler bytes as it says.
func (d *direction) unseal(body []byte, filler int) ([]byte, error) {
	plain, err := d.crypt.decrypt(body)
	if err != nil {
		return nil, err
	}
	n := len(plain) - headerSize
	want := d.header(true, filler, 0)
	if n < filler || !hmac.Equal(plain[n:], want[:]) {
		return nil, errSeal
	}
	return plain[:n-filler], nil
}

// verify checks a message that was not encrypted.
func (d *direction) verify(body []byte, size int) ([]byte, error) {
	n := len(body) - size
	if size != d.crypt.macSize || n < 0 {
		return nil, errSeal
	}
	bare := d.header(false, 0, 0)
	if !hmac.Equal(body[n:], d.crypt.sum(nil, d.crypt.checksum, body[:n], bare[:])) {
		return nil, errSeal
	}
	return body[:n], nil
}

// rotate undoes the rotation of a token's body to the right by n bytes.
func rotate(body []byte, n int) {
	if n %= len(body); n == 0 {
		return
	}
	front := append([]byte(nil), body[:n]...)
	copy(body, body[n:])
	copy(body[len(body)-n:], front)
}

// SPDX-License-Identifier: Apache-2.0

package gssapi

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Protection is what protects the messages after a SASL exchange. Its values are the bits of RFC 4752.
type Protection byte

const (
	Authentication Protection = 1 // nothing
	Integrity      Protection = 2 // a checksum
	Privacy        Protection = 4 // encryption
)

func (p Protection) String() string {
	switch p {
	case Authentication:
		return "authentication"
	case Integrity:
		return "integrity"
	case Privacy:
		return "privacy"
	}
	return fmt.Sprintf("protection %d", byte(p))
}

// ParseProtections parses the value of hadoop.rpc.protection: names with commas, the preferred one first.
func ParseProtections(text string) (list []Protection, err error) {
	for word := range strings.SplitSeq(text, ",") {
		switch strings.ToLower(strings.TrimSpace(word)) {
		case "authentication":
			list = append(list, Authentication)
		case "integrity":
			list = append(list, Integrity)
		case "privacy":
			list = append(list, Privacy)
		default:
			return nil, fmt.Errorf("%.40q is none of authentication, integrity and privacy", strings.TrimSpace(word))
		}
	}
	return list, nil
}

// maxBuffer is the size of the largest wrapped message that an end announces; Java's default.
const maxBuffer = 65536

// minBuffer is the smallest size that a peer may announce for wrapped messages.
const minBuffer = 1024

// Layer wraps and unwraps the messages after an exchange. One goroutine may seal while another one opens.
type Layer struct {
	context *Context
	sealed  bool
	max     int
	random  io.Reader
}

// MaxPlain is the size of the largest message that the peer accepts in one token.
func (l *Layer) MaxPlain() int { return l.max }

// Overhead is the number of bytes that Seal adds.
func (l *Layer) Overhead() int { return l.context.send.overhead(l.sealed) }

// Seal appends a token with the message. It panics if the source of random bytes fails, as crypto/rand itself does:
// without them nothing can be sent.
func (l *Layer) Seal(dst, message []byte) []byte {
	dst, err := l.context.Wrap(dst, message, l.sealed, l.random)
	if err != nil {
		panic(err)
	}
	return dst
}

// Open returns the message of a token, whose bytes it overwrites. A message that is not encrypted is an error where
// encryption was agreed upon.
func (l *Layer) Open(token []byte) ([]byte, error) {
	message, sealed, err := l.context.Unwrap(token)
	if err == nil && sealed != l.sealed {
		err = errSeal
	}
	if err != nil {
		return nil, err
	}
	return message, nil
}

// agree makes the layer of a protection, or nil if nothing is wrapped. size is the peer's announced buffer.
func agree(c *Context, p Protection, size int, random io.Reader) (*Layer, error) {
	if p == Authentication {
		return nil, nil
	}
	if size < minBuffer {
		return nil, fmt.Errorf("the peer accepts only %d bytes in a wrapped message; %d are needed", size, minBuffer)
	}
	l := &Layer{context: c, sealed: p == Privacy, random: random}
	l.max = min(size, maxBuffer) - l.Overhead()
	return l, nil
}

var errOrder = errors.New("a SASL message is out of order")

// offer is the message with protections and the size of the buffer.
func offer(p Protection) []byte {
	if p == Authentication {
		return []byte{byte(p), 0, 0, 0}
	}
	return []byte{byte(p), maxBuffer >> 16, maxBuffer >> 8 & 0xff, maxBuffer & 0xff}
}

// Server is the server's end of an exchange.
type Server struct {
	// Acceptor accepts the client's ticket; Offers are the protections that the client may choose.
	Acceptor *Acceptor
	Offers   []Protection
	Random   io.Reader

	step    int
	context *Context
	layer   *Layer
}

// Step takes the client's message and returns the answer. After done the exchange is complete.
func (s *Server) Step(token []byte, now time.Time) (reply []byte, done bool, err error) {
	s.step++
	switch s.step {
	case 1:
		s.context, reply, err = s.Acceptor.Accept(token, now, s.Random)
		return reply, false, err
	case 2:
		if len(token) > 0 {
			return nil, false, errOrder
		}
		var all Protection
		for _, p := range s.Offers {
			all |= p
		}
		reply, err = s.context.Wrap(nil, offer(all), false, s.Random)
		return reply, false, err
	case 3:
		return nil, true, s.choose(token)
	}
	return nil, false, errOrder
}

// choose reads the client's choice.
func (s *Server) choose(token []byte) error {
	text, _, err := s.context.Unwrap(token)
	if err != nil {
		return err
	}
	if len(text) < 4 {
		return errToken
	}
	chosen, ok := Protection(text[0]), false
	for _, p := range s.Offers {
		ok = ok || p == chosen
	}
	if !ok {
		return fmt.Errorf("the client chose %s, which is not offered", chosen)
	}
	if name := string(text[4:]); name != "" && name != s.context.Client.String() {
		return fmt.Errorf("the ticket of %s does not permit to act for %.80q", s.context.Client, name)
	}
	s.layer, err = agree(s.context, chosen, size24(text), s.Random)
	return err
}

func size24(text []byte) int { return int(text[1])<<16 | int(text[2])<<8 | int(text[3]) }

// Client returns the authenticated client after the exchange.
func (s *Server) Client() Principal { return s.context.Client }

// Layer returns the layer after the exchange; nil if nothing is wrapped.
func (s *Server) Layer() *Layer { return s.layer }

// Client is the client's end of an exchange.
type Client struct {
	Ticket Ticket
	// Accepts are the protections that the client accepts, the preferred one first.
	Accepts []Protection
	Random  io.Reader

	step      int
	initiator *Initiator
	context   *Context
	layer     *Layer
}

// Step takes the server's message and returns the answer. The first call takes nothing. After done the exchange is
// complete, when the server has confirmed it.
func (c *Client) Step(token []byte, now time.Time) (reply []byte, done bool, err error) {
	c.step++
	switch c.step {
	case 1:
		if len(token) > 0 {
			return nil, false, errOrder
		}
		c.initiator, reply, err = Initiate(c.Ticket, now, c.Random)
		return reply, false, err
	case 2:
		c.context, err = c.initiator.Finish(token)
		return nil, false, err
	case 3:
		reply, err = c.choose(token)
		return reply, err == nil, err
	}
	return nil, false, errOrder
}

// choose answers the server's offer.
func (c *Client) choose(token []byte) ([]byte, error) {
	text, _, err := c.context.Unwrap(token)
	if err != nil {
		return nil, err
	}
	if len(text) != 4 {
		return nil, errToken
	}
	for _, p := range c.Accepts {
		if Protection(text[0])&p == 0 {
			continue
		}
		if c.layer, err = agree(c.context, p, size24(text), c.Random); err != nil {
			return nil, err
		}
		return c.context.Wrap(nil, offer(p), false, c.Random)
	}
	return nil, fmt.Errorf("the server offers none of the protections %v: see hadoop.rpc.protection", c.Accepts)
}

// Layer returns the layer after the exchange; nil if nothing is wrapped.
func (c *Client) Layer() *Layer { return c.layer }

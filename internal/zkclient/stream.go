// SPDX-License-Identifier: Apache-2.0

package zkclient

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/creelrm/creel/internal/network"
)

// Login begins a SASL exchange with the server of a host.
type Login func(host string) (Exchange, error)

// Exchange is the client's end of a SASL exchange.
type Exchange interface {
	// Step takes the server's message and returns the answer. The first call takes nothing. After done the exchange is
	// complete, when the server has confirmed the answer.
	Step(token []byte) (reply []byte, done bool, err error)
}

// stream is a connection to a server.
//
// The library sets no end for some of its waits, and a very late one for others: here each wait has one. It also does
// not report the timeout of the session, which the server's first message has, and it knows no SASL. A login follows
// that first message, and precedes every request. So the stream logs in when it has received the message, and then
// delivers it.
type stream struct {
	net.Conn
	dialer  *dialer
	address string
	login   Exchange // nil: none
	greeted bool
	first   []byte // the rest of the server's first message
}

func (s *stream) bounded(t time.Time) time.Time {
	if latest := time.Now().Add(s.dialer.servers.Timeout); t.IsZero() || t.After(latest) {
		return latest
	}
	return t
}

func (s *stream) SetReadDeadline(t time.Time) error { return s.Conn.SetReadDeadline(s.bounded(t)) }

func (s *stream) SetWriteDeadline(t time.Time) error { return s.Conn.SetWriteDeadline(s.bounded(t)) }

func (s *stream) Read(b []byte) (int, error) {
	if !s.greeted {
		if err := s.greet(); err != nil {
			return 0, s.dialer.failed(s.address, err)
		}
	}
	if len(s.first) > 0 {
		n := copy(b, s.first)
		s.first = s.first[n:]
		return n, nil
	}
	return s.Conn.Read(b)
}

// maxMessage bounds a message of a server before the login ends, in bytes.
const maxMessage = 64 << 10

// greet receives the server's first message: its length, the protocol's version, the timeout in ms, the session's id
// and password. Id 0 means that the session has expired.
func (s *stream) greet() error {
	message, err := s.receive()
	if err != nil {
		return err
	}
	if len(message) < 16 {
		return errForeign
	}
	s.dialer.timeout.Store(int64(binary.BigEndian.Uint32(message[4:])))
	if session := binary.BigEndian.Uint64(message[8:]); s.login != nil && session != 0 {
		if err := s.logIn(); err != nil {
			return &loginError{err}
		}
	}
	s.first = append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...)
	s.greeted = true
	s.dialer.connected()
	return nil
}

var errForeign = errors.New("the server does not speak ZooKeeper's protocol, or expects TLS")

// receive reads a message.
func (s *stream) receive() ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(s.Conn, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > maxMessage {
		return nil, errForeign
	}
	message := make([]byte, n)
	_, err := io.ReadFull(s.Conn, message)
	return message, err
}

// loginError is the reason for which a login failed.
type loginError struct{ reason error }

func (l *loginError) Error() string { return "the login by Kerberos failed: " + l.reason.Error() }

func (l *loginError) Unwrap() error { return l.reason }

// Codes of ZooKeeper.
const (
	opSASL         = 102
	codeAuthFailed = -115
	codeNoLogin    = -124 // the server requires the login that failed
)

// logIn makes the SASL exchange. Each message of it is a request and its answer.
func (s *stream) logIn() error {
	token, done, err := s.login.Step(nil)
	for id := int32(1); err == nil; id++ {
		var answer []byte
		answer, err = s.ask(id, token)
		switch {
		case err != nil:
			return err
		case done: // and the server has confirmed it
			return nil
		case answer == nil:
			return errors.New("the server has no login by Kerberos: its JAAS configuration has no section Server")
		}
		token, done, err = s.login.Step(answer)
	}
	return err
}

// ask sends a token and returns the server's, nil if it has none.
func (s *stream) ask(id int32, token []byte) ([]byte, error) {
	const header = 4 + 4 + 4 // id, operation, size of the token
	request := binary.BigEndian.AppendUint32(nil, uint32(header+len(token)))
	request = binary.BigEndian.AppendUint32(request, uint32(id))
	request = binary.BigEndian.AppendUint32(request, opSASL)
	request = binary.BigEndian.AppendUint32(request, uint32(len(token)))
	var never time.Time
	if err := errors.Join(s.SetWriteDeadline(never), s.SetReadDeadline(never)); err != nil {
		return nil, err
	}
	_, err := s.Write(append(request, token...))
	if err != nil {
		return nil, network.InWords(err)
	}
	answer, err := s.receive()
	if err != nil {
		return nil, network.InWords(err)
	}
	return tokenOf(id, answer)
}

// tokenOf reads an answer: id, transaction, code, size of the token or -1, token.
func tokenOf(id int32, answer []byte) ([]byte, error) {
	if len(answer) < 16 || int32(binary.BigEndian.Uint32(answer)) != id {
		return nil, errForeign
	}
	if code := int32(binary.BigEndian.Uint32(answer[12:])); code != 0 {
		return nil, rejection(code)
	}
	if len(answer) < 20 {
		return nil, errForeign
	}
	size, token := int32(binary.BigEndian.Uint32(answer[16:])), answer[20:]
	switch {
	case size < 0:
		return nil, nil
	case int(size) != len(token):
		return nil, errForeign
	}
	return token, nil
}

// rejection returns the error of a code of ZooKeeper.
func rejection(code int32) error {
	if code == codeAuthFailed || code == codeNoLogin {
		return errors.New("the server rejects the ticket; its log has the reason")
	}
	return fmt.Errorf("the server answers with code %d", code)
}

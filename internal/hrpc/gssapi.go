// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"errors"
	"fmt"
	"time"
)

// A Layer wraps the packets that follow a SASL exchange. Seal and Open are called by different goroutines.
type Layer interface {
	// Seal appends a token with the message.
	Seal(dst, message []byte) []byte
	// Open returns the message of a token, which it may overwrite.
	Open(token []byte) ([]byte, error)
	// MaxPlain is the size of the largest message that the peer accepts; Seal adds Overhead bytes.
	MaxPlain() int
	Overhead() int
}

// An Exchange is one end of SASL GSSAPI on one connection.
type Exchange interface {
	// Step takes the peer's message and returns the answer. The client's first step takes nothing.
	Step(token []byte) (reply []byte, done bool, err error)
	// Layer is the agreed layer after the last step, or nil if packets are not wrapped.
	Layer() Layer
}

// ServerExchange is a server's end.
type ServerExchange interface {
	Exchange
	// Principal is the client's principal after the last step.
	Principal() string
}

// KerberosServer makes a server offer KERBEROS.
type KerberosServer struct {
	// Protocol and ServerID are the two names of the service's principal: yarn and the host.
	Protocol, ServerID string
	Begin              func() ServerExchange
}

// KerberosLogin makes a client log in by Kerberos. Such a client never falls back to SIMPLE.
type KerberosLogin struct {
	Principal string
	// Key differs for logins that must not share a connection.
	Key string
	// Begin starts an exchange with a server that names itself by the two names of its principal.
	Begin func(protocol, serverID string) (Exchange, error)
}

const (
	methodKerberos  = "KERBEROS"
	mechanismGSSAPI = "GSSAPI"
)

func (k *KerberosServer) offer() saslAuth {
	return saslAuth{
		method: methodKerberos, mechanism: mechanismGSSAPI,
		protocol: k.Protocol, hasProtocol: true, serverID: k.ServerID, hasServerID: true,
	}
}

// stepKerberos passes a client's token to its exchange and sends the answer. done reports that the client is
// authenticated.
func (c *conn) stepKerberos(h *requestHeader, token []byte) (done bool, err error) {
	x := c.sasl.exchange
	reply, done, err := x.Step(token)
	if err != nil {
		return false, h.fatalf(DetailFatalUnauthorized, ClassSasl, "%v", err)
	}
	if !done {
		return false, c.sayOf(&saslMessage{state: saslChallenge, token: reply, hasToken: true})
	}
	who := &Identity{Method: Kerberos, Principal: x.Principal()}
	if who.User, err = c.s.cfg.Names.Short(who.Principal); err != nil {
		return false, h.fatalf(DetailFatalUnauthorized, ClassAccessControl, "%v", err)
	}
	if err := c.sayOf(&saslMessage{state: saslSuccess, token: reply, hasToken: len(reply) > 0}); err != nil {
		return false, err
	}
	c.sasl.proven, c.stage = who, stageContext
	return true, c.wrapPackets(x.Layer())
}

// wrapPackets wraps all further packets in a layer, if there is one.
func (c *conn) wrapPackets(l Layer) error {
	if l == nil {
		return nil
	}
	c.seal = l
	if !c.waitWritten(time.Now().Add(lingerTime)) {
		return errStalled
	}
	c.w.wrap = func(dst, plain []byte) []byte { return appendWrapped(dst, plain, l, false) }
	return nil
}

// actFor returns the identity of a Kerberos client whose connection context names a user: its own, or another one for
// whom it may act.
func (c *conn) actFor(who *Identity, user string) (*Identity, error) {
	if user == "" || user == who.Principal {
		return who, nil
	}
	short, err := c.s.cfg.Names.Short(user)
	if err != nil {
		return nil, Errorf(ClassAccessControl, "%v", err)
	}
	if short == who.User {
		return who, nil
	}
	other := *who
	other.User, other.RealUser = short, who.User
	return &other, c.s.impersonate(&other, c)
}

var errNotSecure = errors.New(
	"hrpc: the server does not authenticate by Kerberos; SIMPLE is not permitted for this login")

// errNoLogin is the answer to a server that would take calls unprotected.
var errNoLogin = errors.New("hrpc: the server asks for no login, and this token's calls must be protected")

// kerberos answers the server's offer of KERBEROS.
func (cc *clientConn) kerberos(offer saslAuth) error {
	x, err := cc.target.Login.Kerberos.Begin(offer.protocol, offer.serverID)
	if err != nil {
		return fmt.Errorf("hrpc: Kerberos: %w", err)
	}
	token, done, err := x.Step(nil)
	message := &saslMessage{state: saslInitiate, token: token, hasToken: true, auths: []saslAuth{offer}}
	for err == nil {
		answer, failure := cc.ask(message)
		if failure != nil {
			return failure
		}
		switch {
		case answer.state == saslSuccess && done:
			cc.wrapPackets(x.Layer())
			return nil
		case answer.state != saslChallenge || done:
			return fmt.Errorf("hrpc: SASL: state %d is out of order", answer.state)
		}
		token, done, err = x.Step(answer.token)
		message = &saslMessage{state: saslResponse, token: token, hasToken: true}
	}
	return fmt.Errorf("hrpc: Kerberos: %w", err)
}

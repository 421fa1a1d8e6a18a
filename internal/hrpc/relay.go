// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"errors"
	"fmt"
	"slices"
	"sync"
)

// RelayedLogin is a connection whose login another party makes. A client presents a token to creel's server. creel does
// not have the password; the issuing server does. So creel forwards that server's challenge to its client, and the
// client's answer back. Then the connection is authenticated as the client, and carries calls in the client's name.
//
// That server's protection must be "authentication": auth-int and auth-conf seal each packet with a key derived from
// the password. When the connection ends, only the client can make another.
type RelayedLogin struct {
	cc        *clientConn
	offer     saslAuth
	started   bool
	ended     chan struct{}
	closeOnce sync.Once
}

var errRelayEnded = errors.New("the login was of a client's connection, which has ended")

// Relay opens a connection to the server at address and receives its challenge. The caller must close it.
func (c *Client) Relay(address, protocol string) (*RelayedLogin, error) {
	target := &Target{Address: address, Protocol: protocol, Version: 1}
	key := connKey{address: address, protocol: protocol, token: fmt.Sprintf("relayed %d", c.nextID())}
	l := &RelayedLogin{cc: newClientConn(c, key, target), ended: make(chan struct{})}
	l.cc.login = l
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, &TransportError{Op: "dial", Address: address, Err: ErrClosed}
	}
	c.conns[key] = l.cc // for Close
	c.mu.Unlock()
	if err := l.cc.dial(); err != nil {
		l.Close()
		return nil, &TransportError{Op: "dial", Address: address, Err: err}
	}
	if err := l.negotiate(); err != nil {
		l.Close()
		var remote *RemoteError
		if errors.As(err, &remote) {
			return nil, err
		}
		return nil, &TransportError{Op: "handshake", Address: address, Err: err}
	}
	return l, nil
}

func (l *RelayedLogin) negotiate() error {
	l.cc.w.hold([]byte{'h', 'r', 'p', 'c', rpcVersion, 0, authSasl})
	m, err := l.cc.ask(&saslMessage{state: saslNegotiate})
	if err != nil {
		return err
	}
	i := slices.IndexFunc(m.auths, func(a saslAuth) bool { return a.method == "TOKEN" && a.mechanism == "DIGEST-MD5" })
	if m.state != saslNegotiate || i < 0 {
		return errors.New("the server offers no login by token with DIGEST-MD5")
	}
	l.offer = m.auths[i]
	ch, err := parseChallenge(l.offer.challenge)
	if err != nil {
		return err
	}
	if !slices.Contains(ch.qops, Authentication) {
		return fmt.Errorf("the server wants protection %q: a login can be relayed with %q only "+
			"(hadoop.rpc.protection = authentication)", ch.qops, Authentication)
	}
	return nil
}

// Address is the server's address.
func (l *RelayedLogin) Address() string { return l.cc.target.Address }

// Challenge is the server's challenge, unchanged.
func (l *RelayedLogin) Challenge() string { return l.offer.challenge }

// Answer sends the client's answer to the server and returns the server's reply for the client. The error is a
// *RemoteError if the server rejects it. Afterwards Peer can make calls until Ended.
func (l *RelayedLogin) Answer(text string) (final []byte, err error) {
	cc := l.cc
	m, err := cc.ask(&saslMessage{
		state: saslInitiate, token: []byte(text), hasToken: true, auths: []saslAuth{l.offer},
	})
	if err != nil {
		return nil, err
	}
	if m.state != saslSuccess {
		return nil, fmt.Errorf("hrpc: SASL: state %d instead of success", m.state)
	}
	if _, err := cc.w.send(
		appendContextFrame(nil, cc.client.id, connectionContext{protocol: cc.target.Protocol}),
	); err != nil {
		return nil, err
	}
	c := cc.client
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	l.started = true
	close(cc.ready)
	c.wg.Add(1)
	go l.run()
	return m.token, nil
}

// run reads answers until the connection ends.
func (l *RelayedLogin) run() {
	defer l.cc.client.wg.Done()
	defer close(l.ended)
	err := l.cc.read()
	l.cc.fail("read", err)
	l.cc.w.fail(err)
	l.cc.fr.dropBuffer()
}

// Peer makes calls in the name of the logged-in client.
func (l *RelayedLogin) Peer() *Peer {
	p := &Peer{client: l.cc.client, target: l.cc.target, key: l.cc.key, only: true}
	p.conn.Store(l.cc)
	return p
}

// Ended is closed when the connection has ended.
func (l *RelayedLogin) Ended() <-chan struct{} { return l.ended }

// Close ends the connection.
func (l *RelayedLogin) Close() {
	l.closeOnce.Do(func() {
		l.cc.fail("close", errRelayEnded)
		if !l.started { // otherwise its reader notices the end
			close(l.ended)
		}
	})
}

// beginRelay makes the issuing server of a token check this client. The client gets that server's challenge in a second
// list of offers, after creel's own.
func (c *conn) beginRelay(l *RelayedLogin, identifier []byte, identity func() Identity) error {
	c.upstream = l // close will end it
	x := c.sasl
	x.relay, x.identifier, x.identity = l, identifier, identity
	return c.sayOf(c.s.offers(l.Challenge()))
}

// finishRelay forwards the client's answer to that challenge, and the reply back; the context follows.
func (c *conn) finishRelay(h *requestHeader, m *saslMessage) error {
	l, x := c.upstream, c.sasl
	denied := func(class, format string, args ...any) error {
		return h.fatalf(DetailFatalUnauthorized, class, format, args...)
	}
	if m.state != saslInitiate || len(m.auths) != 1 || m.auths[0].method != "TOKEN" {
		return denied(ClassSasl, "SASL state %d after a second list of offers: an INITIATE by TOKEN is due", m.state)
	}
	ch, err := parseChallenge(l.Challenge())
	if err != nil {
		return denied(ClassSasl, "%v", err)
	}
	text := string(m.token)
	a, err := parseResponse(text, ch.nonce, []Protection{Authentication})
	if err != nil {
		return denied(ClassSasl, "%v; a login can be relayed with %q only", err, Authentication)
	}
	if string(a.identifier) != string(x.identifier) {
		return denied(ClassSasl, "the second answer is of another token than the first")
	}
	final, err := l.Answer(text)
	var remote *RemoteError
	if errors.As(err, &remote) {
		return denied(remote.Class, "%s", remote.Message)
	}
	if err != nil {
		return err // as if that server had closed the connection: the client reconnects
	}
	c.s.wg.Add(1)
	go func() {
		defer c.s.wg.Done()
		<-l.Ended()
		c.nc.Close() // the client logs in again
	}()
	if err := c.sayOf(&saslMessage{state: saslSuccess, token: final, hasToken: true}); err != nil {
		return err
	}
	who := x.identity()
	who.Method, who.TokenIdentifier = Token, a.identifier
	x.proven, c.stage = &who, stageContext
	return nil
}

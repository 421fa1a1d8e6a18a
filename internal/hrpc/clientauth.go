// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// handshake is the client's half: the connection header, SASL if there is a token, the connection context. The server
// answers neither header nor context. So without SASL the client waits for nothing, and sends all of it with the first
// call.
func (cc *clientConn) handshake() error {
	login := &cc.target.Login
	context := connectionContext{effectiveUser: login.User, realUser: login.RealUser, protocol: cc.target.Protocol}
	if login.Credential == nil && login.Kerberos == nil {
		if login.User == "" {
			return errors.New("hrpc: the login has neither a user nor a token")
		}
		cc.w.hold([]byte{'h', 'r', 'p', 'c', rpcVersion, 0, authNone})
		cc.w.hold(appendContextFrame(nil, cc.client.id, context))
		return nil
	}
	cc.w.hold([]byte{'h', 'r', 'p', 'c', rpcVersion, 0, authSasl})
	way, err := cc.sasl()
	if err != nil {
		return err
	}
	switch {
	case way == Token: // the token names the user
		context.effectiveUser, context.realUser = "", ""
	case way == Kerberos:
		if context.realUser = ""; login.User == "" {
			context.effectiveUser = login.Kerberos.Principal
		}
	case login.User == "":
		return errors.New("hrpc: the server takes no tokens and the login has no user besides its token")
	}
	_, err = cc.w.send(appendContextFrame(nil, cc.client.id, context))
	return err
}

// sasl authenticates with a token or by Kerberos. The result is Simple if the server asked to continue without SASL.
func (cc *clientConn) sasl() (AuthMethod, error) {
	m, err := cc.ask(&saslMessage{state: saslNegotiate})
	if err != nil {
		return 0, err
	}
	login := &cc.target.Login
	if m.state == saslSuccess {
		switch {
		case login.Kerberos != nil:
			return 0, errNotSecure
		case len(login.Credential.Protections) > 0:
			return 0, errNoLogin
		}
		return Simple, nil
	}
	if m.state != saslNegotiate {
		return 0, fmt.Errorf("hrpc: SASL: state %d instead of offers", m.state)
	}
	if i := findOffer(m, "TOKEN", "DIGEST-MD5"); login.Credential != nil && (i >= 0 || login.Kerberos == nil) {
		return Token, cc.answerOffers(login.Credential, m, false)
	}
	if i := findOffer(m, methodKerberos, mechanismGSSAPI); i >= 0 {
		return Kerberos, cc.kerberos(m.auths[i])
	}
	return 0, errNotSecure
}

// findOffer returns the index of an offer, or -1.
func findOffer(m *saslMessage, method, mechanism string) int {
	return slices.IndexFunc(m.auths, func(a saslAuth) bool { return a.method == method && a.mechanism == mechanism })
}

// answerOffers accepts the server's offer for tokens. again means that these are the second offers.
func (cc *clientConn) answerOffers(token *Credential, m *saslMessage, again bool) error {
	if m.state != saslNegotiate {
		return fmt.Errorf("hrpc: SASL: state %d instead of offers", m.state)
	}
	var offers []string
	for i := range m.auths {
		offers = append(offers, m.auths[i].method+" "+m.auths[i].mechanism)
	}
	i := findOffer(m, "TOKEN", "DIGEST-MD5")
	if i < 0 {
		return fmt.Errorf(
			"hrpc: the server offers [%s], none of which takes a token",
			strings.Join(offers, ", "),
		)
	}
	offer := m.auths[i]
	d := &digest{
		user:     base64.StdEncoding.EncodeToString(token.Identifier),
		password: base64.StdEncoding.EncodeToString(token.Password),
		cnonce:   randomNonce(),
	}
	initiate := &saslMessage{state: saslInitiate, hasToken: true, auths: []saslAuth{offer}}
	text := offer.challenge
	if text == "" { // the challenge follows in a separate packet
		var err error
		if m, err = cc.ask(initiate); err != nil {
			return err
		}
		if m.state != saslChallenge {
			return fmt.Errorf("hrpc: SASL: state %d instead of a challenge", m.state)
		}
		text = string(m.token)
		initiate = &saslMessage{state: saslResponse, hasToken: true}
	}
	ch, err := parseChallenge(text)
	if err != nil {
		return err
	}
	d.nonce, d.maxBuffer = ch.nonce, ch.maxBuffer
	if d.qop, err = ch.choose(token.accepts()); err != nil {
		return err
	}
	initiate.token = []byte(d.responseText())
	if m, err = cc.ask(initiate); err != nil {
		return err
	}
	if m.state == saslNegotiate && !again { // the server relays this challenge from another server
		return cc.answerOffers(token, m, true)
	}
	if m.state != saslSuccess || string(m.token) != "rspauth="+d.rspauth() {
		return errors.New("hrpc: SASL: the server does not know the token's password")
	}
	layer, err := d.layer(true)
	if err != nil {
		return err
	}
	cc.wrapPackets(layer)
	return nil
}

// wrapPackets wraps all further packets in a layer, if there is one.
func (cc *clientConn) wrapPackets(l Layer) {
	if l == nil {
		return
	}
	cc.seal = l
	cc.w.wrap = func(dst, plain []byte) []byte { return appendWrapped(dst, plain, l, true) }
}

// ask sends a SASL packet and waits for the server's packet.
func (cc *clientConn) ask(m *saslMessage) (*saslMessage, error) {
	cc.w.send(appendSaslFrame(nil, m, true)) // on failure the server may report the reason
	frame, err := cc.fr.next(maxHandshakeFrame)
	if err != nil {
		return nil, err
	}
	header, rest, err := delimited(frame)
	if err != nil {
		return nil, err
	}
	var h responseHeader
	if err := h.decode(header); err != nil {
		return nil, err
	}
	if h.status != statusSuccess {
		return nil, cc.remoteError(&h)
	}
	if h.callID != idSasl {
		return nil, fmt.Errorf("hrpc: SASL: an answer to call %d", h.callID)
	}
	body, _, err := delimited(rest)
	if err != nil {
		return nil, err
	}
	var answer saslMessage
	if err := answer.decode(body); err != nil {
		return nil, err
	}
	answer.token = slices.Clone(answer.token) // the frame's buffer will be overwritten
	return &answer, nil
}

// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
)

const httpAnswer = "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n" +
	"This port speaks Hadoop RPC, not HTTP. The web port is another one.\r\n"

// errHTTP ends the connection of a browser.
var errHTTP = errors.New("HTTP on an RPC port")

// stage is the message that a connection's handshake waits for.
type stage byte

const (
	stageHeader stage = iota
	stageSasl
	stageContext
	stageDone
)

// saslExchange is the progress of a server's half of the SASL exchange.
type saslExchange struct {
	offered bool // NEGOTIATE was answered
	asked   bool // CHALLENGE was sent, RESPONSE is due
	nonce   string
	// exchange is the client's login by Kerberos, after it began one.
	exchange ServerExchange
	proven   *Identity // after the exchange: the identity proved by a token

	// For a login that another server checks, see relay.go.
	relay      *RelayedLogin
	identifier []byte
	identity   func() Identity
}

// handshake reads everything before the first call: the connection header, the SASL exchange, the connection context.
// After errNothingYet it may be called again, and continues from the same point.
func (c *conn) handshake() error {
	for {
		var err error
		switch c.stage {
		case stageHeader:
			err = c.beginHandshake()
		case stageSasl:
			err = c.readSasl()
		case stageContext:
			err = c.readContext()
		case stageDone:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (c *conn) beginHandshake() error {
	auth, err := c.readHeader()
	if err != nil {
		return err
	}
	switch auth {
	case authSasl:
		c.stage, c.sasl = stageSasl, &saslExchange{}
		return nil
	case authNone:
		if !c.s.cfg.Simple {
			return fatalf(idUnauthorized, DetailFatalUnauthorized, ClassAccessControl,
				"SIMPLE authentication is not enabled here. %s", c.s.available())
		}
		c.stage = stageContext
		return nil
	}
	return fatalf(
		idUnauthorized,
		DetailFatalUnauthorized,
		ClassIPC,
		"unknown auth protocol %d: 0 is none, -33 is SASL",
		int8(auth),
	)
}

// readHeader reads the seven bytes: "hrpc", version, service class, auth.
func (c *conn) readHeader() (auth byte, err error) {
	b, err := c.fr.peek(4)
	if err != nil {
		return 0, err
	}
	switch magic := string(b); magic {
	case "hrpc":
	case "GET ":
		c.batch = append(getBuffer(0), httpAnswer...)
		c.flush()
		linger(c.nc)
		return 0, errHTTP
	default:
		if b, err = c.fr.peek(5); err == errNothingYet {
			return 0, err
		} else if err != nil || b[4] < rpcVersion {
			return 0, errors.New("the first bytes are not a Hadoop RPC header")
		}
		return 0, fatalf(idUnauthorized, DetailFatalVersionMismatch, ClassVersionMismatch,
			"the first bytes are not a Hadoop RPC header: %q", magic)
	}
	if b, err = c.fr.peek(7); err != nil {
		return 0, err
	}
	if v := b[4]; v != rpcVersion {
		if v < rpcVersion { // such a client would not understand this server's answer
			return 0, errors.New("the client speaks an older Hadoop RPC")
		}
		return 0, fatalf(idUnauthorized, DetailFatalVersionMismatch, ClassVersionMismatch,
			"this server speaks RPC version %d, the client %d", rpcVersion, v)
	}
	c.fr.r += len(b)
	return b[6], nil
}

// open decodes the front of a client's packet and performs the checks common to all packets.
func (h *requestHeader) open(frame []byte) (rest []byte, err error) {
	header, rest, err := delimited(frame)
	if err == nil {
		err = h.decode(header)
	}
	if err != nil {
		return nil, fatalf(idUnauthorized, DetailFatalDeserializing, ClassRPCServer, "%v", err)
	}
	switch {
	case h.kind < 0:
		return nil, h.fatalf(DetailFatalInvalidHeader, ClassRPCServer, "the header names no RPC kind")
	case h.op != opFinalPacket:
		return nil, h.fatalf(DetailFatalInvalidHeader, ClassRPCServer, "RPC operation %d is not supported", h.op)
	case h.kind != kindProtobuf:
		return nil, h.fatalf(
			DetailFatalInvalidHeader,
			ClassRPCServer,
			"RPC kind %d is not supported, protobuf (2) is",
			h.kind,
		)
	}
	return rest, nil
}

// fatalf makes an answer to this packet that ends the connection.
func (h *requestHeader) fatalf(detail Detail, class, format string, args ...any) *fatal {
	f := fatalf(h.callID, detail, class, format, args...)
	f.retry, f.clientID = h.retryCount, string(h.clientID)
	return f
}

// readContext reads the connection context and determines the client's identity.
func (c *conn) readContext() error {
	var frame []byte
	var err error
	if c.seal != nil {
		frame, err = c.nextSealed()
	} else {
		frame, err = c.fr.next(maxHandshakeFrame)
	}
	if err != nil {
		return err
	}
	var proven *Identity
	if c.sasl != nil {
		proven = c.sasl.proven
	}
	if err := c.acceptContext(frame, proven); err != nil {
		return err
	}
	c.stage, c.sasl = stageDone, nil
	return nil
}

// acceptContext determines the client's identity. proven is the identity that SASL proved, or nil.
func (c *conn) acceptContext(frame []byte, proven *Identity) error {
	var h requestHeader
	rest, err := h.open(frame)
	if err != nil {
		return err
	}
	if h.callID != idContext {
		return h.fatalf(
			DetailFatalInvalidHeader,
			ClassRPCServer,
			"call id %d came before the connection context (-3)",
			h.callID,
		)
	}
	var cc connectionContext
	body, _, err := delimited(rest)
	if err == nil {
		err = cc.decode(body)
	}
	if err != nil {
		return h.fatalf(DetailFatalDeserializing, ClassRPCServer, "%v", err)
	}
	who := proven
	if who == nil {
		if cc.effectiveUser == "" {
			return h.fatalf(DetailFatalUnauthorized, ClassAccessControl, "the connection context names no user")
		}
		who = &Identity{Method: Simple}
		if who.User, err = c.s.cfg.Names.Short(cc.effectiveUser); err == nil {
			who.RealUser, err = c.s.cfg.Names.Short(cc.realUser)
		}
		if err != nil {
			return h.fatalf(DetailFatalUnauthorized, ClassAccessControl, "%v", err)
		}
		if who.RealUser == who.User {
			who.RealUser = ""
		}
		if who.RealUser != "" {
			if err := c.s.impersonate(who, c); err != nil {
				return h.fatalf(DetailFatalUnauthorized, ClassAuthorization, "%v", err)
			}
		}
	} else if who.Method == Kerberos {
		if who, err = c.actFor(who, cc.effectiveUser); err != nil {
			return h.fatalf(DetailFatalUnauthorized, ClassAuthorization, "%v", err)
		}
	} else if cc.effectiveUser != "" && cc.effectiveUser != who.User {
		return h.fatalf(
			DetailFatalUnauthorized,
			ClassAccessControl,
			"the token belongs to %q, not to %q of the connection context: a token cannot act for another user",
			who.User,
			cc.effectiveUser,
		)
	}
	if a := c.s.cfg.Authorize; a != nil {
		if err := a(who, cc.protocol, c.remote.Addr()); err != nil {
			return h.fatalf(DetailFatalUnauthorized, ClassAuthorization, "%v", err)
		}
	}
	c.who, c.protocol = who, cc.protocol
	c.allowed = c.s.services[cc.protocol]
	return nil
}

func (s *Server) impersonate(who *Identity, c *conn) error {
	if s.cfg.Impersonate == nil {
		return Errorf(ClassAuthorization, "user %q may not impersonate %q", who.RealUser, who.User)
	}
	return s.cfg.Impersonate(who.RealUser, who.User, c.remote.Addr())
}

// readSasl is the server's half of the SASL exchange.
func (c *conn) readSasl() error {
	x, offers := c.sasl, c.s.cfg.Protections
	for {
		h, m, err := c.saslPacket()
		if err != nil {
			return err
		}
		denied := func(class, format string, args ...any) error {
			return h.fatalf(DetailFatalUnauthorized, class, format, args...)
		}
		if c.s.cfg.Simple && c.s.cfg.Tokens == nil { // only SIMPLE: make the client drop SASL
			if err := c.sayOf(&saslMessage{state: saslSuccess}); err != nil {
				return err
			}
			c.stage = stageContext
			return nil
		}
		switch {
		case x.relay != nil:
			return c.finishRelay(&h, &m)

		case m.state == saslNegotiate && x.offered:
			return denied(ClassAccessControl, "a second NEGOTIATE")

		case m.state == saslNegotiate, m.state == saslInitiate && !x.offered:
			x.offered, x.nonce = true, c.s.newNonce()
			if err := c.sayOf(c.s.offers(challengeText(x.nonce, offers))); err != nil {
				return err
			}

		case m.state == saslInitiate && !x.asked:
			if len(m.auths) != 1 {
				return denied(ClassSasl, "INITIATE names %d methods instead of one", len(m.auths))
			}
			a := m.auths[0]
			if c.s.cfg.Simple && a.method == "SIMPLE" && a.mechanism == "" {
				c.stage = stageContext
				return nil
			}
			if k := c.s.cfg.Kerberos; k != nil && a.method == methodKerberos && a.mechanism == mechanismGSSAPI {
				x.asked, x.exchange = true, k.Begin()
				if done, err := c.stepKerberos(&h, m.token); done || err != nil {
					return err
				}
				continue
			}
			if c.s.cfg.Tokens == nil || a.method != "TOKEN" || a.mechanism != "DIGEST-MD5" {
				return denied(ClassAccessControl, "%s by %q is not offered here", a.method, a.mechanism)
			}
			if len(m.token) > 0 {
				return c.finishToken(&h, string(m.token))
			}
			x.asked = true
			text := challengeText(x.nonce, offers)
			if err := c.sayOf(&saslMessage{state: saslChallenge, token: []byte(text), hasToken: true}); err != nil {
				return err
			}

		case m.state == saslResponse && x.exchange != nil:
			if done, err := c.stepKerberos(&h, m.token); done || err != nil {
				return err
			}

		case m.state == saslResponse && x.asked:
			return c.finishToken(&h, string(m.token))

		default:
			return denied(ClassSasl, "SASL state %d is out of order", m.state)
		}
	}
}

// saslPacket reads a SASL packet.
func (c *conn) saslPacket() (h requestHeader, m saslMessage, err error) {
	frame, err := c.fr.next(maxHandshakeFrame)
	if err != nil {
		return h, m, err
	}
	rest, err := h.open(frame)
	if err != nil {
		return h, m, err
	}
	if h.callID != idSasl {
		return h, m, h.fatalf(
			DetailFatalInvalidHeader,
			ClassRPCServer,
			"call id %d came before SASL was done",
			h.callID,
		)
	}
	body, _, err := delimited(rest)
	if err == nil {
		err = m.decode(body)
	}
	if err != nil {
		return h, m, h.fatalf(DetailFatalDeserializing, ClassRPCServer, "%v", err)
	}
	return h, m, nil
}

// sayOf sends a SASL packet.
func (c *conn) sayOf(m *saslMessage) error {
	c.batch = appendSaslFrame(getBuffer(0), m, false)
	return c.flush()
}

// available names the ways to log in without SIMPLE.
func (s *Server) available() string {
	switch {
	case s.cfg.Kerberos == nil:
		return "Connect with a token"
	case s.cfg.Tokens == nil:
		return "Log in by Kerberos (kinit)"
	}
	return "Log in by Kerberos (kinit), or connect with a token"
}

// offers is the answer to NEGOTIATE; it already contains the challenge.
func (s *Server) offers(challenge string) *saslMessage {
	m := &saslMessage{state: saslNegotiate}
	if s.cfg.Tokens != nil {
		m.auths = append(m.auths, saslAuth{
			method: "TOKEN", mechanism: "DIGEST-MD5",
			hasProtocol: true, serverID: digestRealm, hasServerID: true,
			challenge: challenge, hasChallenge: true,
		})
	}
	if s.cfg.Kerberos != nil {
		m.auths = append(m.auths, s.cfg.Kerberos.offer())
	}
	if s.cfg.Simple {
		m.auths = append(m.auths, saslAuth{method: "SIMPLE"})
	}
	return m
}

// finishToken verifies the client's response; the context follows.
func (c *conn) finishToken(h *requestHeader, text string) error {
	a, err := parseResponse(text, c.sasl.nonce, c.s.cfg.Protections)
	if err != nil {
		return h.fatalf(DetailFatalUnauthorized, ClassSasl, "%v", err)
	}
	if c.s.cfg.Relay != nil {
		at, identity, err := c.s.cfg.Relay(a.identifier)
		if err != nil {
			return h.refusedToken(err)
		}
		if at != nil {
			return c.beginRelay(at, a.identifier, identity)
		}
	}
	password, who, err := c.s.cfg.Tokens(a.identifier)
	if err != nil {
		return h.refusedToken(err)
	}
	if !a.verify(password) {
		return h.fatalf(
			DetailFatalUnauthorized,
			ClassSasl,
			"DIGEST-MD5: the response does not match the token's password",
		)
	}
	layer, err := a.layer(false)
	if err != nil {
		return h.fatalf(DetailFatalUnauthorized, ClassSasl, "%v", err)
	}
	who.Method, who.TokenIdentifier = Token, a.identifier
	if err := c.sayOf(
		&saslMessage{state: saslSuccess, token: []byte("rspauth=" + a.rspauth()), hasToken: true},
	); err != nil {
		return err
	}
	c.sasl.proven, c.stage = &who, stageContext
	return c.wrapPackets(layer)
}

// refusedToken answers an unknown token, or a token whose lookup failed.
func (h *requestHeader) refusedToken(err error) error {
	class := ClassInvalidToken
	var e *Error
	if errors.As(err, &e) {
		class, err = e.Class, errors.New(e.Message)
	}
	return h.fatalf(DetailFatalUnauthorized, class, "%v", err)
}

func randomNonce() string {
	var b [30]byte
	rand.Read(b[:])
	return base64.StdEncoding.EncodeToString(b[:])
}

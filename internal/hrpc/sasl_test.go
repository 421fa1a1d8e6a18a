// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// knownToken is the one token the servers of these tests know.
var knownToken = &Credential{
	Identifier: []byte("\x0a\x03attempt"),
	Password:   []byte("twenty bytes of hmac"),
	Kind:       "TEST",
}

func knowsToken(identifier []byte) ([]byte, Identity, error) {
	switch string(identifier) {
	case string(knownToken.Identifier):
		return knownToken.Password, Identity{User: "appattempt_1_0001_000001", TokenKind: "TEST"}, nil
	case "expired":
		return nil, Identity{}, Errorf("org.example.TokenExpired", "it was good until yesterday")
	}
	return nil, Identity{}, errors.New("no such token")
}

func TestTokensOpenPortsThatTakeThem(t *testing.T) {
	for _, c := range []struct {
		port   string
		change func(*Config)
		login  Login
		want   string // the identity seen by the server, or ...
		class  string // ... the error's class, "-" for an error of our own
	}{
		{"token only", func(c *Config) { c.Simple, c.Tokens = false, knowsToken }, Login{Credential: knownToken},
			"appattempt_1_0001_000001||TOKEN|TEST|\x0a\x03attempt", ""},
		{"token only", func(c *Config) { c.Simple, c.Tokens = false, knowsToken }, alice, "", ClassAccessControl},
		{"both", func(c *Config) { c.Tokens = knowsToken }, Login{Credential: knownToken},
			"appattempt_1_0001_000001||TOKEN|TEST|\x0a\x03attempt", ""},
		{"both", func(c *Config) { c.Tokens = knowsToken }, alice, "alice||SIMPLE||", ""},
		{"simple only", func(*Config) {}, Login{User: "alice", Credential: knownToken}, "alice||SIMPLE||", ""},
		{"simple only", func(*Config) {}, Login{Credential: knownToken}, "", "-"},
		{"both", func(c *Config) { c.Tokens = knowsToken },
			Login{Credential: &Credential{Identifier: knownToken.Identifier, Password: []byte("guess")}}, "", ClassSasl},
		{"both", func(c *Config) { c.Tokens = knowsToken },
			Login{Credential: &Credential{Identifier: []byte("made up")}}, "", ClassInvalidToken},
		{"both", func(c *Config) { c.Tokens = knowsToken },
			Login{Credential: &Credential{Identifier: []byte("expired")}}, "", "org.example.TokenExpired"},
		{"integrity", func(c *Config) { c.Tokens, c.Protections = knowsToken, []Protection{Integrity} }, Login{Credential: knownToken},
			"appattempt_1_0001_000001||TOKEN|TEST|\x0a\x03attempt", ""},
		{"simple only", func(*Config) {}, Login{}, "", "-"},
	} {
		cfg := echoConfig()
		c.change(&cfg)
		s := start(t, cfg)
		got, err := try(s.peer(client(t, ClientConfig{}), c.login), "whoami", "")
		var e *RemoteError
		switch {
		case c.class == "" && (err != nil || got != c.want):
			t.Errorf("%s, %+v: got %q, %v", c.port, c.login, got, err)
		case c.class == "-" && (err == nil || errors.As(err, &e)):
			t.Errorf("%s, %+v: got %q, %v; wanted an error of the client", c.port, c.login, got, err)
		case c.class != "" && c.class != "-" && (!errors.As(err, &e) || e.Class != c.class || !e.Fatal || e.Detail != DetailFatalUnauthorized):
			t.Errorf("%s, %+v: got %q, %v, want %s", c.port, c.login, got, err, c.class)
		}
	}
}

func TestLayersCarryEverySizeAndManyCallers(t *testing.T) {
	for _, p := range []Protection{Integrity, Privacy} {
		t.Run(string(p), func(t *testing.T) { carryEverySize(t, p) })
	}
}

func carryEverySize(t *testing.T, protection Protection) {
	cfg := echoConfig()
	cfg.Simple, cfg.Tokens, cfg.Protections = false, knowsToken, []Protection{protection}
	s := start(t, cfg)
	p := s.peer(client(t, ClientConfig{}), Login{Credential: knownToken})
	for _, size := range []int{0, 200, 65_000, 65_510, 65_520, 66_000, 1_000_000} {
		want := strings.Repeat("y", size)
		if got := call(t, p, "apart", want); got != want {
			t.Errorf("%d bytes came back as %d", size, len(got))
		}
	}
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range 20 {
				want := fmt.Sprint(i, j)
				if got, err := try(p, []string{"echo", "apart"}[j%2], want); err != nil || got != want {
					t.Errorf("sent %q, got %q, %v", want, got, err)
				}
			}
		})
	}
	wg.Wait()
	var e *RemoteError
	if _, err := try(p, "missing", ""); !errors.As(err, &e) || !errors.Is(err, errMissing) {
		t.Errorf("an error under %s: %v", protection, err)
	}
}

// Servers of other makes may leave the challenge out of the offer and send it
// when asked; ours does so for clients that initiate without a token.
func TestATokenClientWithoutAnEarlyChallenge(t *testing.T) {
	cfg := echoConfig()
	cfg.Tokens = knowsToken
	s := start(t, cfg)
	nc := dialRaw(t, s.address)
	say := func(m *saslMessage) saslMessage {
		nc.Write(appendSaslFrame(nil, m, true))
		h, rest := readFrame(t, nc)
		if h.callID != idSasl || h.status != statusSuccess {
			t.Fatalf("%+v: %s", h, h.message)
		}
		body, _, _ := delimited(rest)
		var answer saslMessage
		if err := answer.decode(body); err != nil {
			t.Fatal(err)
		}
		return answer
	}
	nc.Write(hello(authSasl))
	token := saslAuth{
		method:      "TOKEN",
		mechanism:   "DIGEST-MD5",
		hasProtocol: true,
		serverID:    "default",
		hasServerID: true,
	}
	offers := say(&saslMessage{state: saslInitiate, auths: []saslAuth{token}})
	if offers.state != saslNegotiate || len(offers.auths) != 2 || offers.auths[1].method != "SIMPLE" {
		t.Fatalf("INITIATE before NEGOTIATE is answered by %+v", offers)
	}
	asked := say(&saslMessage{state: saslInitiate, auths: []saslAuth{token}, hasToken: true})
	if asked.state != saslChallenge {
		t.Fatalf("INITIATE without a token is answered by %+v", asked)
	}
	ch, err := parseChallenge(string(asked.token))
	if err != nil {
		t.Fatal(err)
	}
	d := &digest{
		user:     b64(knownToken.Identifier),
		password: b64(knownToken.Password),
		nonce:    ch.nonce,
		cnonce:   "c",
		qop:      Authentication,
	}
	done := say(&saslMessage{state: saslResponse, hasToken: true, token: []byte(d.responseText())})
	if done.state != saslSuccess || string(done.token) != "rspauth="+d.rspauth() {
		t.Fatalf("RESPONSE is answered by %+v", done)
	}
	nc.Write(appendContextFrame(nil, rawID, connectionContext{protocol: echoProtocol}))
	nc.Write(callFrame(t, 1, "echo", "in"))
	if h, _ := readFrame(t, nc); h.callID != 1 || h.status != statusSuccess {
		t.Fatalf("%+v", h)
	}
}

func TestChoosingSimpleBySaslGetsNoAnswer(t *testing.T) {
	cfg := echoConfig()
	cfg.Tokens = knowsToken
	s := start(t, cfg)
	nc := dialRaw(t, s.address)
	nc.Write(hello(authSasl))
	nc.Write(appendSaslFrame(nil, &saslMessage{state: saslNegotiate}, true))
	if h, _ := readFrame(t, nc); h.callID != idSasl {
		t.Fatalf("%+v", h)
	}
	nc.Write(appendSaslFrame(nil, &saslMessage{state: saslInitiate, auths: []saslAuth{{method: "SIMPLE"}}}, true))
	nc.Write(helloAlice()[7:])
	nc.Write(callFrame(t, 5, "whoami", ""))
	if h, rest := readFrame(t, nc); h.callID != 5 || !strings.Contains(string(rest), "alice||SIMPLE") {
		t.Fatalf("%+v %q", h, rest)
	}
}

func TestImpersonationRules(t *testing.T) {
	cfg := echoConfig()
	cfg.Impersonate = func(real, effective string, remote netip.Addr) error {
		if real == "oozie" && effective == "alice" && remote.IsLoopback() {
			return nil
		}
		return fmt.Errorf("%s may not act for %s", real, effective)
	}
	cfg.Authorize = func(who *Identity, protocol string, _ netip.Addr) error {
		if who.User == "mallory" {
			return fmt.Errorf("mallory may not use %s", protocol)
		}
		return nil
	}
	s := start(t, cfg)
	c := client(t, ClientConfig{})
	if got := call(t, s.peer(c, Login{User: "alice", RealUser: "oozie"}), "whoami", ""); got != "alice|oozie|SIMPLE||" {
		t.Errorf("the server sees %q", got)
	}
	for _, login := range []Login{{User: "root", RealUser: "oozie"}, {User: "mallory"}} {
		var e *RemoteError
		if _, err := try(
			s.peer(c, login),
			"whoami",
			"",
		); !errors.As(err, &e) || e.Class != ClassAuthorization ||
			!e.Fatal {
			t.Errorf("%+v: %v", login, err)
		}
	}
}

// A principal logs in as its user, as in Hadoop with simple authentication.
func TestLoginNamesAreShortened(t *testing.T) {
	cfg := echoConfig()
	cfg.Impersonate = func(real, effective string, _ netip.Addr) error {
		if real != "oozie" || effective != "alice" {
			return fmt.Errorf("%s may not act for %s", real, effective)
		}
		return nil
	}
	s := start(t, cfg)
	c := client(t, ClientConfig{})
	for login, want := range map[Login]string{
		{User: "alice@REALM"}:                               "alice||SIMPLE||",
		{User: "svc/host@REALM"}:                            "svc||SIMPLE||",
		{User: "alice@REALM", RealUser: "oozie/host@REALM"}: "alice|oozie|SIMPLE||",
		{User: "alice/host@REALM", RealUser: "alice@REALM"}: "alice||SIMPLE||",
	} {
		if got := call(t, s.peer(c, login), "whoami", ""); got != want {
			t.Errorf("%+v: the server sees %q", login, got)
		}
	}
	var e *RemoteError
	if _, err := try(s.peer(c, Login{User: "alice@"}), "whoami", ""); !errors.As(err, &e) || !e.Fatal {
		t.Errorf("a malformed name: %v", err)
	}
}

// A rejected caller that retries constantly costs the server one connection per refusalTime, and is admitted after
// that time when the rules change.
func TestARefusalIsBelievedForAMoment(t *testing.T) {
	var allowed atomic.Bool
	cfg := echoConfig()
	cfg.Impersonate = func(real, effective string, _ netip.Addr) error {
		if allowed.Load() {
			return nil
		}
		return fmt.Errorf("%s may not act for %s", real, effective)
	}
	s := start(t, cfg)
	login := Login{User: "alice", RealUser: "oozie"}

	c := client(t, ClientConfig{})
	c.refusalTime = time.Hour
	for range 20 {
		var e *RemoteError
		if _, err := try(s.peer(c, login), "whoami", ""); !errors.As(err, &e) || e.Class != ClassAuthorization {
			t.Fatal(err)
		}
	}
	if n := s.Stats().Accepted; n != 1 {
		t.Errorf("%d connections for 20 calls that were refused, want 1", n)
	}
	call(t, s.peer(c, Login{User: "alice"}), "echo", "") // another login is not meant
	allowed.Store(true)
	if _, err := try(s.peer(c, login), "whoami", ""); err == nil {
		t.Error("the refusal was forgotten before its time")
	}

	allowed.Store(false)
	c = client(t, ClientConfig{})
	c.refusalTime = time.Nanosecond
	if _, err := try(s.peer(c, login), "whoami", ""); err == nil {
		t.Error("oozie was let in")
	}
	allowed.Store(true)
	eventually(t, "oozie is let in once the refusal is forgotten", func() bool {
		got, err := try(s.peer(c, login), "whoami", "")
		return err == nil && got == "alice|oozie|SIMPLE||"
	})
}

func TestATokenCannotActForAnotherUser(t *testing.T) {
	cfg := echoConfig()
	cfg.Tokens = func([]byte) ([]byte, Identity, error) { return nil, Identity{User: "bob"}, nil }
	s := start(t, cfg)
	for user, want := range map[string]int32{"": 9, "bob": 9, "alice": idContext} {
		nc := dialRaw(t, s.address)
		nc.Write(hello(authSasl))
		nc.Write(appendSaslFrame(nil, &saslMessage{state: saslNegotiate}, true))
		_, rest := readFrame(t, nc)
		body, _, _ := delimited(rest)
		var m saslMessage
		if err := m.decode(body); err != nil {
			t.Fatal(err)
		}
		ch, _ := parseChallenge(m.auths[0].challenge)
		d := &digest{nonce: ch.nonce, cnonce: "c", qop: Authentication, user: b64([]byte("t"))}
		nc.Write(
			appendSaslFrame(
				nil,
				&saslMessage{state: saslInitiate, hasToken: true, token: []byte(d.responseText()), auths: m.auths[:1]},
				true,
			),
		)
		readFrame(t, nc)
		nc.Write(appendContextFrame(nil, rawID, connectionContext{effectiveUser: user, protocol: echoProtocol}))
		nc.Write(callFrame(t, 9, "echo", ""))
		if h, _ := readFrame(t, nc); h.callID != want || (want < 0) != (h.detail == DetailFatalUnauthorized) {
			t.Errorf("context of %q: %+v", user, h)
		}
	}
}

func TestATamperedPacketEndsTheConnection(t *testing.T) {
	for _, p := range []Protection{Integrity, Privacy} {
		t.Run(string(p), func(t *testing.T) { tamper(t, p) })
	}
}

func tamper(t *testing.T, protection Protection) {
	cfg := echoConfig()
	cfg.Simple, cfg.Tokens, cfg.Protections = false, knowsToken, []Protection{protection}
	s := start(t, cfg)
	var last []byte
	for what, spoil := range map[string]func(Layer, []byte) []byte{
		"nothing":       func(l Layer, b []byte) []byte { return l.Seal(nil, b) },
		"a flipped bit": func(l Layer, b []byte) []byte { b = l.Seal(nil, b); b[5] ^= 1; return b },
		"a replay": func(l Layer, b []byte) []byte {
			if last == nil {
				last = l.Seal(nil, b)
			}
			return last
		},
		"a stub":      func(Layer, []byte) []byte { return []byte("short") },
		"a plain one": nil,
	} {
		nc, m, ch := challenged(t, s.address)
		d := &digest{
			user:     b64(knownToken.Identifier),
			password: b64(knownToken.Password),
			nonce:    ch.nonce,
			cnonce:   "c",
			qop:      protection, maxBuffer: digestMaxBuffer,
		}
		nc.Write(
			appendSaslFrame(
				nil,
				&saslMessage{state: saslInitiate, hasToken: true, token: []byte(d.responseText()), auths: m.auths},
				true,
			),
		)
		readFrame(t, nc)
		seal, err := d.layer(true)
		if err != nil {
			t.Fatal(err)
		}
		last = nil
		nc.Write(
			appendWrapped(nil, appendContextFrame(nil, rawID, connectionContext{protocol: echoProtocol}), seal, true),
		)
		for i := range int32(2) {
			frame := callFrame(t, i, "echo", "x")
			if spoil != nil {
				frame = appendSaslFrame(
					nil,
					&saslMessage{state: saslWrap, hasToken: true, token: spoil(seal, frame)},
					true,
				)
			}
			nc.Write(frame)
		}
		var answers []responseHeader
		for plain := []byte(nil); len(answers) == 0 || answers[len(answers)-1].status != statusFatal && len(answers) < 2; {
			_, rest := readFrame(t, nc) // one may hold several answers
			body, _, _ := delimited(rest)
			if err := m.decode(body); err != nil || m.state != saslWrap {
				t.Fatalf("%s: answered %+v", what, m)
			}
			opened, err := seal.Open(m.token)
			if err != nil {
				t.Fatal(err)
			}
			plain = append(plain, opened...)
			for {
				frame, rest, ok, _ := cutFrame(plain, 1<<20)
				if !ok {
					break
				}
				plain = rest
				header, _, _ := delimited(frame)
				var h responseHeader
				if err := h.decode(header); err != nil {
					t.Fatal(err)
				}
				answers = append(answers, h)
			}
		}
		good := map[string]int{"nothing": 2, "a replay": 1}[what]
		for i, h := range answers {
			if want := i >= good; want != (h.status == statusFatal) ||
				want && (h.detail != DetailFatalUnauthorized && what != "a plain one") {
				t.Errorf("%s: answer %d is %+v", what, i, h)
			}
		}
	}
}

// challenged begins a login by token, and returns the connection, the offer and its challenge.
func challenged(t *testing.T, address string) (net.Conn, saslMessage, challenge) {
	t.Helper()
	nc := dialRaw(t, address)
	nc.Write(append(hello(authSasl), appendSaslFrame(nil, &saslMessage{state: saslNegotiate}, true)...))
	_, rest := readFrame(t, nc)
	body, _, _ := delimited(rest)
	var m saslMessage
	if err := m.decode(body); err != nil {
		t.Fatal(err)
	}
	ch, err := parseChallenge(m.auths[0].challenge)
	if err != nil {
		t.Fatal(err)
	}
	return nc, m, ch
}

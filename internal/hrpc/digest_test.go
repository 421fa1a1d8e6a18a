// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
)

// The exchange and the packets were recorded between two ends of a JDK 17.
func TestPrivacyAgreesWithTheJDK(t *testing.T) {
	d := &digest{
		user: "CgoKCAgBEJ7p2vSbMRABEP3b7pgF", password: "c2VjcmV0cGFzc3dvcmRieXRlczEy",
		nonce: "521T4rSYAjJe5ChQs8e4r20tMB2Dz6YQpWhZSlKY", cnonce: "PawGbQoewEhHM5guWSmYphF3a5AxrIEAEiOp5Bme",
		qop: Privacy, maxBuffer: digestMaxBuffer,
	}
	if got := d.response() + " " + d.rspauth(); got !=
		"f0dd8bc6a9696ebfff942e74a4fcb4b5 53813010d38628ebcd21f16fa846f8ca" {
		t.Error(got)
	}
	client, err := d.layer(true)
	if err != nil {
		t.Fatal(err)
	}
	server, err := d.layer(false)
	if err != nil {
		t.Fatal(err)
	}
	if n := client.MaxPlain(); n != 65510 {
		t.Errorf("the client sends %d bytes in a packet", n)
	}
	for _, c := range []struct {
		from, to      Layer
		message, want string
	}{
		{client, server, "hello", "fa221d6c6cb3f86de9b4cf1bbe51e07c000100000000"},
		{server, client, "hello", "e57b50c84f07e1c4f4fe6abe062f791b000100000000"},
		{
			client, server, "a second message of the chain",
			"307cc97d5ae82c24bade57476c6a1a99310c7938e4f6d0f9799a34c335b5e5d3268c0017c58bc412000100000001",
		},
		{
			server, client, "a second message of the chain",
			"6efbddc3eb9e87a1216347cc59789946e1cd94391cbec9dd2bf3bb6e58f6cb7be123d4a9c03a9d1f000100000001",
		},
	} {
		sealed := c.from.Seal(nil, []byte(c.message))
		if want := unhex(t, c.want); !bytes.Equal(sealed, want) {
			t.Errorf("%q: sealed %x, want %x", c.message, sealed, want)
		}
		if m, err := c.to.Open(sealed); err != nil || string(m) != c.message {
			t.Errorf("opened %q, %v", m, err)
		}
	}
}

// Each end uses the first protection that its list permits, and none beside it.
func TestEndsAgreeOnPermittedProtection(t *testing.T) {
	for _, c := range []struct {
		offers, accepts []Protection
		refused         bool
	}{
		{nil, nil, false},
		{[]Protection{Privacy}, nil, false},
		{[]Protection{Authentication, Privacy}, []Protection{Privacy}, false},
		{[]Protection{Privacy, Integrity}, []Protection{Integrity}, false},
		{[]Protection{Privacy}, []Protection{Integrity, Authentication}, true},
		{[]Protection{Authentication}, []Protection{Privacy}, true},
		{[]Protection{Integrity, Authentication}, []Protection{Privacy}, true},
	} {
		cfg := echoConfig()
		cfg.Simple, cfg.Tokens, cfg.Protections = false, knowsToken, c.offers
		s := start(t, cfg)
		token := *knownToken
		token.Protections = c.accepts
		p := s.peer(client(t, ClientConfig{}), Login{Credential: &token})
		got, err := try(p, "echo", "x")
		if refused := err != nil && strings.Contains(err.Error(), "see hadoop.rpc.protection"); refused != c.refused ||
			!refused && (err != nil || got != "x") {
			t.Errorf("offered %q, accepted %q: %q, %v", c.offers, c.accepts, got, err)
		}
	}
}

// A client cannot log in with a protection or cipher that the server does not offer, even if the offer was changed on
// its way.
func TestServerRejectsWeakerProtection(t *testing.T) {
	for what, c := range map[string]struct {
		change func(*digest) string
		want   string // of the server's message, "" for success
	}{
		"the offered one": {func(d *digest) string { return d.responseText() }, ""},
		"authentication": {func(d *digest) string { d.qop = Authentication; return d.responseText() },
			`protection "auth" was not offered`},
		"integrity": {func(d *digest) string { d.qop = Integrity; return d.responseText() },
			`protection "auth-int" was not offered`},
		"none": {func(d *digest) string {
			d.qop = Authentication
			return strings.Replace(d.responseText(), ",qop=auth", "", 1)
		}, `protection "auth" was not offered`},
		"two protections": {func(d *digest) string { return "qop=auth," + d.responseText() }, "two of qop"},
		"a weaker cipher": {func(d *digest) string {
			return strings.Replace(d.responseText(), "3des", "rc4-40", 1)
		}, `cipher "rc4-40" was not offered`},
		"no cipher": {func(d *digest) string {
			return strings.Replace(d.responseText(), `,cipher="3des"`, "", 1)
		}, `cipher "" was not offered`},
		"two ciphers": {func(d *digest) string { return d.responseText() + `,cipher="des"` }, "two of cipher"},
		"a tiny buffer": {func(d *digest) string {
			return strings.Replace(d.responseText(), "maxbuf=65536", "maxbuf=20", 1)
		}, "maxbuf is no number above 1024"},
		"a label of the stronger one": {func(d *digest) string {
			d.qop = Authentication
			return strings.Replace(d.responseText(), "qop=auth", `qop=auth-conf,cipher="3des"`, 1)
		}, "the response does not match the token's password"},
	} {
		cfg := echoConfig()
		cfg.Simple, cfg.Tokens, cfg.Protections = false, knowsToken, []Protection{Privacy}
		nc, m, ch := challenged(t, start(t, cfg).address)
		d := &digest{
			user: b64(knownToken.Identifier), password: b64(knownToken.Password), nonce: ch.nonce, cnonce: "c",
			qop: Privacy,
		}
		nc.Write(appendSaslFrame(nil, &saslMessage{
			state: saslInitiate, hasToken: true, token: []byte(c.change(d)), auths: m.auths,
		}, true))
		h, _ := readFrame(t, nc)
		if c.want == "" && h.status != statusSuccess || c.want != "" && (h.status != statusFatal ||
			h.detail != DetailFatalUnauthorized || !strings.Contains(string(h.message), c.want)) {
			t.Errorf("%s: %+v, %s", what, h, h.message)
		}
	}
}

// A server that cannot encrypt by 3DES is left, not trusted with another cipher.
func TestClientRejectsChallenge(t *testing.T) {
	const head = `realm="default",nonce="n",charset=utf-8,algorithm=md5-sess,`
	for text, want := range map[string]string{
		head + `qop="auth-conf",cipher="3des,rc4"`:      "",
		head + `qop="auth-conf",cipher="rc4,rc4-40"`:    "here is 3des only",
		head + `qop="auth-conf"`:                        "here is 3des only",
		head + `qop="auth"`:                             "see hadoop.rpc.protection",
		head:                                            "see hadoop.rpc.protection",
		head + `qop="auth-conf",cipher="3des",maxbuf=1`: "maxbuf",
	} {
		ch, err := parseChallenge(text)
		if err == nil {
			_, err = ch.choose([]Protection{Privacy})
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestDamagedPrivacyPacketsAreRejected(t *testing.T) {
	d := &digest{user: "u", password: base64.StdEncoding.EncodeToString([]byte("p")), nonce: "n", cnonce: "c",
		qop: Privacy, maxBuffer: digestMaxBuffer}
	seal := func() []byte {
		l, err := newPrivacy(d, true)
		if err != nil {
			t.Fatal(err)
		}
		return l.Seal(nil, []byte("a message of some blocks, and a bit"))
	}
	whole := seal()
	for i := range whole {
		damaged := bytes.Clone(whole)
		damaged[i] ^= 0x10
		l, err := newPrivacy(d, false)
		if err != nil {
			t.Fatal(err)
		}
		if m, err := l.Open(damaged); !errors.Is(err, errSeal) {
			t.Errorf("byte %d: opened %q, %v", i, m, err)
		}
	}
	for n := range whole {
		l, err := newPrivacy(d, false)
		if err != nil {
			t.Fatal(err)
		}
		if m, err := l.Open(bytes.Clone(whole[:n])); !errors.Is(err, errSeal) {
			t.Errorf("%d bytes: opened %q, %v", n, m, err)
		}
	}
	// Its own packet, sent back.
	l, err := newPrivacy(d, true)
	if err != nil {
		t.Fatal(err)
	}
	if m, err := l.Open(seal()); !errors.Is(err, errSeal) {
		t.Errorf("a reflected packet: %q, %v", m, err)
	}
}

// A token whose calls must be protected is not shown to a server that asks for no login.
func TestProtectedTokenRejectsServerWithoutLogin(t *testing.T) {
	cfg := echoConfig()
	cfg.Simple, cfg.Tokens = true, nil
	server := start(t, cfg)
	for _, want := range [][]Protection{nil, {Authentication}, {Privacy}} {
		held := *knownToken
		held.Protections = want
		_, err := try(server.peer(client(t, ClientConfig{}), Login{User: "alice", Credential: &held}), "whoami", "")
		if (err == nil) != (want == nil) || err != nil && !errors.Is(err, errNoLogin) {
			t.Errorf("protections %q: %v", want, err)
		}
	}
}

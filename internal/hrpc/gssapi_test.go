// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
)

// pretended is both ends of an exchange of two round trips, without any secret: the client sends "hello NAME", the
// server "who?", the client its name.
type pretended struct {
	name, seen string
	step       int
	layer      Layer
	refuse     bool
}

func (p *pretended) Layer() Layer      { return p.layer }
func (p *pretended) Principal() string { return p.seen }

func (p *pretended) Step(token []byte) (reply []byte, done bool, err error) {
	p.step++
	if p.name != "" { // the client's end
		if p.step == 1 {
			return []byte("hello"), false, nil
		}
		if string(token) != "who?" {
			return nil, false, errors.New("the server does not ask")
		}
		return []byte(p.name), true, nil
	}
	if p.refuse {
		return nil, false, errors.New("the ticket is forged")
	}
	if p.step == 1 {
		return []byte("who?"), false, nil
	}
	p.seen = string(token)
	return nil, true, nil
}

// mask is a layer that hides bytes, and reports reflected ones.
type mask struct{ mine, theirs byte }

func (m mask) MaxPlain() int { return 1000 }
func (m mask) Overhead() int { return 1 }

func (m mask) Seal(dst, message []byte) []byte {
	dst = append(dst, m.mine)
	for _, b := range message {
		dst = append(dst, b^0x55)
	}
	return dst
}

func (m mask) Open(token []byte) ([]byte, error) {
	if len(token) == 0 || token[0] != m.theirs {
		return nil, errSeal
	}
	for i := range token {
		token[i] ^= 0x55
	}
	return token[1:], nil
}

func pretend(layer Layer, refuse bool) *KerberosServer {
	return &KerberosServer{Protocol: "yarn", ServerID: "host", Begin: func() ServerExchange {
		return &pretended{layer: layer, refuse: refuse}
	}}
}

func pretendLogin(name string, layer Layer) Login {
	return Login{Kerberos: &KerberosLogin{Principal: name, Begin: func(protocol, id string) (Exchange, error) {
		if protocol != "yarn" || id != "host" {
			return nil, errors.New("another server")
		}
		return &pretended{name: name, layer: layer}, nil
	}}}
}

func TestKerberosClientIsIdentified(t *testing.T) {
	act := func(real, effective string, _ netip.Addr) error {
		if effective != "bob" {
			return errors.New("not permitted")
		}
		return nil
	}
	as := func(user string) Login { l := pretendLogin("alice@R", nil); l.User = user; return l }
	for _, c := range []struct {
		name   string
		change func(*Config)
		login  Login
		want   string // the identity seen by the server, or the error
	}{
		{"kerberos only", func(c *Config) {}, pretendLogin("alice@R", nil), "alice||KERBEROS||"},
		{"with tokens", func(c *Config) { c.Tokens = knowsToken }, pretendLogin("alice@R", nil), "alice||KERBEROS||"},
		{
			"a token first", func(c *Config) { c.Tokens = knowsToken },
			Login{Kerberos: pretendLogin("alice@R", nil).Kerberos, Credential: knownToken}, "appattempt_1_0001_000001||TOKEN",
		},
		{
			"a token that is not accepted", func(c *Config) {},
			Login{Kerberos: pretendLogin("alice@R", nil).Kerberos, Credential: knownToken}, "alice||KERBEROS||",
		},
		{"wrapped", func(c *Config) { c.Kerberos = pretend(mask{1, 2}, false) }, pretendLogin("alice@R", mask{2, 1}),
			"alice||KERBEROS||"},
		{"own name", func(c *Config) {}, as("alice@R"), "alice||KERBEROS||"},
		{"short name", func(c *Config) {}, as("alice"), "alice||KERBEROS||"},
		{"for bob", func(c *Config) { c.Impersonate = act }, as("bob"), "bob|alice|KERBEROS||"},
		{"for carol", func(c *Config) { c.Impersonate = act }, as("carol"), "not permitted"},
		{"forged", func(c *Config) { c.Kerberos = pretend(nil, true) }, pretendLogin("alice@R", nil), "the ticket is forged"},
		{"another server", func(c *Config) { c.Kerberos.ServerID = "other" }, pretendLogin("alice@R", nil), "another server"},
		{"simple client", func(c *Config) {}, alice, "SIMPLE authentication is not enabled here"},
		{"token alone", func(c *Config) {}, Login{Credential: knownToken}, "none of which takes a token"},
		{"simple server", func(c *Config) { c.Simple, c.Kerberos = true, nil }, as("alice"), "SIMPLE is not permitted"},
		{
			"server of tokens", func(c *Config) { c.Simple, c.Kerberos, c.Tokens = true, nil, knowsToken }, as("alice"),
			"SIMPLE is not permitted",
		},
	} {
		cfg := echoConfig()
		cfg.Simple, cfg.Kerberos = false, pretend(nil, false)
		c.change(&cfg)
		s := start(t, cfg)
		got, err := try(s.peer(client(t, ClientConfig{}), c.login), "whoami", "")
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestKerberosLayerCarriesEverySize(t *testing.T) {
	cfg := echoConfig()
	cfg.Simple, cfg.Kerberos = false, pretend(mask{1, 2}, false)
	s := start(t, cfg)
	p := s.peer(client(t, ClientConfig{}), pretendLogin("alice@R", mask{2, 1}))
	for _, size := range []int{0, 1, 999, 1000, 1001, 100_000} {
		want := strings.Repeat("y", size)
		if got := call(t, p, "apart", want); got != want {
			t.Errorf("%d bytes came back as %d", size, len(got))
		}
	}
}

func TestKerberosMessagesOutOfOrderAreRejected(t *testing.T) {
	choice := saslAuth{method: methodKerberos, mechanism: mechanismGSSAPI}
	for name, messages := range map[string][]*saslMessage{
		"a second initiate": {
			{state: saslNegotiate},
			{state: saslInitiate, auths: []saslAuth{choice}, token: []byte("hello"), hasToken: true},
			{state: saslInitiate, auths: []saslAuth{choice}, token: []byte("hello"), hasToken: true},
		},
		"a response first": {{state: saslNegotiate}, {state: saslResponse, token: []byte("alice@R"), hasToken: true}},
		"simple":           {{state: saslNegotiate}, {state: saslInitiate, auths: []saslAuth{{method: "SIMPLE"}}}},
		"token": {
			{state: saslNegotiate},
			{state: saslInitiate, auths: []saslAuth{{method: "TOKEN", mechanism: "DIGEST-MD5"}}},
		},
	} {
		cfg := echoConfig()
		cfg.Simple, cfg.Kerberos = false, pretend(nil, false)
		s := start(t, cfg)
		nc := dialRaw(t, s.address)
		nc.Write([]byte{'h', 'r', 'p', 'c', rpcVersion, 0, authSasl})
		for i, m := range messages {
			nc.Write(appendSaslFrame(nil, m, true))
			h, _ := readFrame(t, nc)
			if last := i == len(messages)-1; last != (h.status == statusFatal) {
				t.Errorf("%s: message %d: status %d %s", name, i, h.status, h.message)
			}
		}
	}
}

func TestKerberosExcludesSimple(t *testing.T) {
	cfg := echoConfig()
	cfg.Kerberos = pretend(nil, false)
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "Simple would let clients pass by Kerberos") {
		t.Error(err)
	}
}

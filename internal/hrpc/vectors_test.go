// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

var recordings = []string{"tracker", "client", "am", "nm-start", "nm-status", "nm-stop"}

func recorded(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name + ".bin")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// frames cuts a recording.
func frames(t testing.TB, b []byte) (out [][]byte) {
	t.Helper()
	for len(b) > 0 {
		n := 4 + int(binary.BigEndian.Uint32(b))
		out = append(out, b[4:n])
		b = b[n:]
	}
	return out
}

// conversation is the content of a recording.
type conversation struct {
	protocol  string
	nonce     string
	user      string           // base64 of the token identifier
	requests  map[int32]string // method by call id
	responses map[int32][]byte
}

// Decoding each recorded header and encoding it again must give its bytes.
func hear(t *testing.T, name string) conversation {
	c := conversation{requests: map[int32]string{}, responses: map[int32][]byte{}}
	for _, frame := range frames(t, recorded(t, name+".c2s")[7:]) {
		header, rest, err := delimited(frame)
		if err != nil {
			t.Fatal(err)
		}
		var usual, general requestHeader
		if err := general.decode(
			append(bytes.Clone(header), 0x78, 0),
		); err != nil { // an unknown field leads past the short cut
			t.Fatal(err)
		}
		if err := usual.decode(header); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(usual) != fmt.Sprint(general) {
			t.Errorf("the short cut decodes %+v, the general way %+v", usual, general)
		}
		again := appendRequestHeader(nil, usual.callID, usual.retryCount, string(usual.clientID), nil)
		if !bytes.Equal(again[1:], header) {
			t.Errorf("request header\n%x, encoded again\n%x", header, again[1:])
		}
		message, rest, err := delimited(rest)
		if err != nil {
			t.Fatal(err)
		}
		switch id := usual.callID; {
		case id == idSasl:
			var m saslMessage
			if err := m.decode(message); err != nil {
				t.Fatal(err)
			}
			if again := m.append(nil); !bytes.Equal(again, message) {
				t.Errorf("SASL message\n%x, encoded again\n%x", message, again)
			}
			if m.state == saslInitiate {
				directives(string(m.token), func(key, value string) error {
					if key == "username" {
						c.user = value
					}
					return nil
				})
			}
		case id == idContext:
			var cc connectionContext
			if err := cc.decode(message); err != nil {
				t.Fatal(err)
			}
			c.protocol = cc.protocol
			if again := appendContextFrame(nil, string(usual.clientID), cc)[4:]; !bytes.Equal(again, frame) {
				t.Errorf("context\n%x, encoded again\n%x", frame, again)
			}
		case id >= 0:
			var h callHeader
			if err := h.decode(message); err != nil {
				t.Fatal(err)
			}
			c.requests[id] = string(h.method)
			if again := appendCallHeader(nil, string(h.method), string(h.protocol), h.version)[1:]; !bytes.Equal(
				again,
				message,
			) {
				t.Errorf("call header\n%x, encoded again\n%x", message, again)
			}
			if _, rest, err := delimited(rest); err != nil || len(rest) > 0 {
				t.Errorf("call %d: %d bytes after the request, %v", id, len(rest), err)
			}
		}
	}
	for _, frame := range frames(t, recorded(t, name+".s2c")) {
		header, rest, err := delimited(frame)
		if err != nil {
			t.Fatal(err)
		}
		var h responseHeader
		if err := h.decode(header); err != nil {
			t.Fatal(err)
		}
		if again := appendSuccessHeader(nil, h.callID, h.retryCount, string(h.clientID))[1:]; !bytes.Equal(
			again,
			header,
		) {
			t.Errorf("response header\n%x, encoded again\n%x", header, again)
		}
		message, _, err := delimited(rest)
		if err != nil {
			t.Fatal(err)
		}
		if h.callID != idSasl {
			c.responses[h.callID] = message
			continue
		}
		var m saslMessage
		if err := m.decode(message); err != nil {
			t.Fatal(err)
		}
		if again := m.append(nil); !bytes.Equal(again, message) {
			t.Errorf("SASL message\n%x, encoded again\n%x", message, again)
		}
		if m.state == saslNegotiate {
			ch, err := parseChallenge(m.auths[0].challenge)
			if err != nil {
				t.Fatal(err)
			}
			c.nonce = ch.nonce
		}
	}
	return c
}

// passwordIn finds the password of a token identifier in a recording that
// holds the token: in TokenProto it follows as field 2.
func passwordIn(t *testing.T, recording []byte, identifier []byte) []byte {
	for from := 0; ; {
		i := bytes.Index(recording[from:], identifier)
		if i < 0 {
			t.Fatal("the token is in no recording")
		}
		from += i + len(identifier)
		if recording[from] == 2<<3|2 && recording[from+1] == 20 {
			return recording[from+2 : from+22]
		}
	}
}

// The recorded requests of Hadoop's clients are sent to creel's server, which answers the calls with the messages of
// Hadoop's server: the bytes must be the same.
func TestRecordedClientsAreAnsweredByteForByte(t *testing.T) {
	tokens := append(recorded(t, "client.s2c"), recorded(t, "am.s2c")...)
	for _, name := range recordings {
		t.Run(name, func(t *testing.T) {
			heard := hear(t, name)
			if len(heard.requests) == 0 || len(heard.requests) != len(heard.responses) {
				t.Fatalf("%d requests and %d responses", len(heard.requests), len(heard.responses))
			}
			cfg := Config{Services: []Service{{Protocol: heard.protocol, Version: 1, Other: &Method{Inline: true,
				Raw: func(ctx context.Context, _ []byte) ([]byte, error) {
					c := CallFrom(ctx)
					if c.Method != heard.requests[c.CallID] {
						t.Errorf("call %d is %q, recorded as %q", c.CallID, c.Method, heard.requests[c.CallID])
					}
					return heard.responses[c.CallID], nil
				}}}}}
			if heard.user == "" {
				cfg.Simple = true
			} else {
				cfg.Tokens = func(identifier []byte) ([]byte, Identity, error) {
					return passwordIn(t, tokens, identifier), Identity{User: "appattempt", TokenKind: "recorded"}, nil
				}
			}
			s := start(t, cfg, func(s *Server) { s.newNonce = func() string { return heard.nonce } })
			nc := dialRaw(t, s.address)
			if _, err := nc.Write(recorded(t, name+".c2s")); err != nil {
				t.Fatal(err)
			}
			want := recorded(t, name+".s2c")
			got := make([]byte, len(want))
			if n, err := io.ReadFull(nc, got); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes, %v; got\n%swant\n%s", n, err, hex.Dump(got[:n]), hex.Dump(want))
			}
		})
	}
}

// The same recording, one byte at a time: no frame boundary is special.
func TestARecordedClientInSingleBytes(t *testing.T) {
	heard := hear(t, "client")
	s := start(t, Config{Simple: true, Services: []Service{{Protocol: heard.protocol, Version: 1, Other: &Method{
		Inline: true,
		Raw:    func(ctx context.Context, _ []byte) ([]byte, error) { return heard.responses[CallFrom(ctx).CallID], nil },
	}}}})
	nc := dialRaw(t, s.address)
	go func() {
		for _, b := range recorded(t, "client.c2s") {
			nc.Write([]byte{b})
		}
	}()
	want := recorded(t, "client.s2c")
	got := make([]byte, len(want))
	if n, err := io.ReadFull(nc, got); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d of %d bytes, %v", n, len(want), err)
	}
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestKnownPacketsToTheByte(t *testing.T) {
	id := string(unhex(t, "000102030405060708090a0b0c0d0e0f"))
	for _, c := range []struct {
		what string
		got  []byte
		want string
	}{
		{"NEGOTIATE", appendSaslFrame(nil, &saslMessage{state: saslNegotiate}, true), "0000000e 0a 0802100018412200 2801 02 1001"},
		{"switch to simple", appendSaslFrame(nil, &saslMessage{state: saslSuccess}, false), "00000012 0e 08dfffffff0f 1000 1809 3a00 4001 02 1000"},
		{"ping", appendPing(nil, id), "0000001b 1a 08021000 1807 2210000102030405060708090a0b0c0d0e0f 2801"},
		{"context", appendContextFrame(nil, id, connectionContext{effectiveUser: "alice", protocol: "org.apache.hadoop.yarn.api.ApplicationClientProtocolPB"}),
			"0000005d 1a 0802100018052210000102030405060708090a0b0c0d0e0f2801 41 12070a05616c696365 1a36" + hex.EncodeToString([]byte("org.apache.hadoop.yarn.api.ApplicationClientProtocolPB"))},
	} {
		if want := unhex(t, c.want); !bytes.Equal(c.got, want) {
			t.Errorf("%s:\n%x, want\n%x", c.what, c.got, want)
		}
	}
}

func TestDigestAgreesWithTheJDK(t *testing.T) {
	d := digest{
		user:     "CgoKCAgBEJ7p2vSbMRABEP3b7pgF",
		password: "c2VjcmV0cGFzc3dvcmRieXRlczEy",
		nonce:    "fZNEMJGQe5gj/wo/iwYRJSqVYZdOyRnVhjLYstjH",
		cnonce:   "3JpNg10bDuivaLl8D1Kc1SeMKlPuD/ocOB949HGt",
		qop:      Authentication,
	}
	if got := d.response() + " " + d.rspauth(); got != "c51057d311661b2cd5c581f3487ac2ce 86191d9d7bdfe180c716e13e24fe5558" {
		t.Errorf("auth: %s", got)
	}
	d.nonce, d.cnonce, d.qop = "Z+DAqWOEdcRpRZtadkX6h+pWoxBKV5wzpWvW5cFG", "/ft4E2FWFueGC/zgplA991tJ0AD+asLDS5WmI75P", Integrity
	if got := d.response() + " " + d.rspauth(); got != "22c911fae742f6ff45e657444afcd696 3f88b095cd85188a256d8f3acd1feeb1" {
		t.Errorf("auth-int: %s", got)
	}
	client, server := newIntegrity(&d, true), newIntegrity(&d, false)
	sealed := client.Seal(nil, []byte("hello"))
	if want := unhex(t, "68656c6c6f ba130c502f53f0f8eaee 0001 00000000"); !bytes.Equal(sealed, want) {
		t.Errorf("sealed %x, want %x", sealed, want)
	}
	if m, err := server.Open(sealed); err != nil || string(m) != "hello" {
		t.Errorf("opened %q, %v", m, err)
	}
	if _, err := server.Open(sealed); err == nil {
		t.Error("a packet opened twice")
	}
	a, err := parseResponse(d.responseText(), d.nonce, []Protection{Integrity})
	if err != nil {
		t.Fatal(err)
	}
	password, _ := base64.StdEncoding.DecodeString(d.password)
	if !a.verify(password) || a.verify(append(password, 0)) {
		t.Error("verify")
	}
}

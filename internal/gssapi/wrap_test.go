// SPDX-License-Identifier: Apache-2.0

package gssapi

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/creelrm/creel/internal/propertytest"
)

// contexts returns the two ends of an established context.
func contexts(t testing.TB, kind int32) (client, service *Context) {
	t.Helper()
	c, s := &Client{Ticket: issue(t, grant{kind: kind}), Accepts: everything, Random: seeded(2)},
		&Server{Acceptor: acceptor(t), Offers: everything, Random: seeded(3)}
	if err := negotiate(c, s, noon, nil); err != nil {
		t.Fatal(err)
	}
	return c.context, s.context
}

// rotated rotates a token's body to the right, as some implementations do.
func rotated(token []byte, n int) []byte {
	token = bytes.Clone(token)
	binary.BigEndian.PutUint16(token[6:], uint16(n))
	body := token[headerSize:]
	n %= len(body)
	copy(body, append(bytes.Clone(body[len(body)-n:]), body[:len(body)-n]...))
	return token
}

func TestRotatedTokenIsUnwrapped(t *testing.T) {
	for kind := range suites {
		client, service := contexts(t, kind)
		for _, sealed := range []bool{false, true} {
			for _, n := range []int{0, 1, 12, 16, 28, 40, 100, 65535} {
				token, err := client.Wrap(nil, []byte("a message"), sealed, seeded(5))
				if err != nil {
					t.Fatal(err)
				}
				got, s, err := service.Unwrap(rotated(token, n))
				if err != nil || string(got) != "a message" || s != sealed {
					t.Errorf("type %d, rotation %d, sealed %v: %q, %v, %v", kind, n, sealed, got, s, err)
				}
			}
		}
	}
}

func TestTokenOutOfOrderIsRejected(t *testing.T) {
	client, service := contexts(t, 18)
	wrap := func(c *Context, text string, sealed bool) []byte {
		token, err := c.Wrap(nil, []byte(text), sealed, seeded(5))
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	first, second := wrap(client, "1", true), wrap(client, "2", false)
	if _, _, err := service.Unwrap(bytes.Clone(second)); err == nil {
		t.Error("the second token came first")
	}
	if _, _, err := service.Unwrap(bytes.Clone(first)); err != nil {
		t.Error(err)
	}
	if _, _, err := service.Unwrap(bytes.Clone(first)); err == nil {
		t.Error("a token was accepted twice")
	}
	if _, _, err := client.Unwrap(bytes.Clone(second)); err == nil {
		t.Error("a reflected token was accepted")
	}
	if _, _, err := service.Unwrap(second); err != nil {
		t.Error(err)
	}
}

func TestChangedTokenIsRejected(t *testing.T) {
	for kind := range suites {
		client, service := contexts(t, kind)
		for _, sealed := range []bool{false, true} {
			token, err := client.Wrap(nil, []byte("a message"), sealed, seeded(5))
			if err != nil {
				t.Fatal(err)
			}
			for i := range token {
				for _, bit := range []byte{1, 2, 0x80} {
					changed := bytes.Clone(token)
					changed[i] ^= bit
					if got, _, err := service.Unwrap(changed); err == nil {
						t.Errorf("type %d, sealed %v: byte %d was changed: %q", kind, sealed, i, got)
					}
				}
				if _, _, err := service.Unwrap(bytes.Clone(token[:i])); err == nil {
					t.Errorf("type %d, sealed %v: %d bytes were accepted", kind, sealed, i)
				}
			}
			if _, _, err := service.Unwrap(token); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A peer that agreed to encryption cannot fall back to plain text.
func TestLayerRejectsWeakerMessages(t *testing.T) {
	client, service := contexts(t, 18)
	l, err := agree(service, Privacy, maxBuffer, seeded(1))
	if err != nil {
		t.Fatal(err)
	}
	token, err := client.Wrap(nil, []byte("plain"), false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Open(token); err == nil {
		t.Error("a message without encryption was accepted")
	}
	if _, err := agree(service, Integrity, minBuffer-1, seeded(1)); err == nil {
		t.Error("a tiny buffer was accepted")
	}
}

func TestReplayCacheIsBounded(t *testing.T) {
	r := NewReplays(3)
	id := func(n byte) replay { return replay{n} }
	for n := range byte(3) {
		if err := r.add(id(n), noon.Add(time.Duration(n)*time.Minute), 10*time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		at   time.Duration
		id   byte
		want error
	}{
		{3 * time.Minute, 0, errReplay},
		{3 * time.Minute, 9, ErrBusy},
		{10 * time.Minute, 9, ErrBusy}, // the first one expires after ten minutes
		{10*time.Minute + 1, 9, nil},
		{10*time.Minute + 2, 9, errReplay},
		{12*time.Minute + 1, 8, nil},
		{12*time.Minute + 1, 7, nil},
		{12*time.Minute + 1, 6, ErrBusy},
		{time.Hour, 0, nil},
	} {
		if err := r.add(id(step.id), noon.Add(step.at), 10*time.Minute); err != step.want {
			t.Errorf("%d after %s: %v, want %v", step.id, step.at, err, step.want)
		}
	}
	for n := range 10_000 {
		if err := r.add(replay{1, byte(n), byte(n >> 8)}, noon.Add(time.Duration(n+2)*time.Hour), time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	if len(r.order) > 10 || len(r.until) > 3 {
		t.Errorf("%d and %d entries are left", len(r.order), len(r.until))
	}
}

func TestPrincipalsAreParsed(t *testing.T) {
	for text, want := range map[string]string{
		"alice": "alice", "alice@R": "alice@R", "yarn/host@R": "yarn/host@R", `a\/b/c\@d@R\@S`: `a\/b/c\@d@R\@S`,
		"a/b/c@R": "a/b/c@R", `a\b`: "ab",
		"": "", "@R": "", "a@": "", "a@b@c": "", "a//b@R": "", `a\`: "", "/a@R": "",
	} {
		p, err := ParsePrincipal(text)
		if err != nil && want != "" || err == nil && p.String() != want {
			t.Errorf("%q: %s, %v", text, p, err)
		}
	}
}

func TestHostReplacesPattern(t *testing.T) {
	for _, c := range [][3]string{
		{"yarn/_HOST@R", "RM1.Example.COM", "yarn/rm1.example.com@R"},
		{"yarn/other@R", "host", "yarn/other@R"},
		{"_HOST@R", "host", "_HOST@R"},
		{"yarn/_HOST@R", "", "an error"},
		{"yarn/_HOST@R", "0.0.0.0", "an error"},
		{"yarn/_HOST@R", "a/b", "an error"},
	} {
		got, err := principal(t, c[0]).WithHost(c[1])
		if err == nil && got.String() != c[2] || err != nil && c[2] != "an error" {
			t.Errorf("%v: %s, %v", c, got, err)
		}
	}
}

func TestProtectionsAreParsed(t *testing.T) {
	if got, err := ParseProtections("privacy, Integrity,authentication"); err != nil || len(got) != 3 ||
		got[0] != Privacy || got[1] != Integrity || got[2] != Authentication {
		t.Error(got, err)
	}
	for _, bad := range []string{"", "none", "privacy,"} {
		if got, err := ParseProtections(bad); err == nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
}

func FuzzPrincipal(t *testing.F) {
	f := propertytest.Fuzz(t)
	f.Add(`yarn/_HOST@CREEL.TEST`)
	f.Add(`a\/b/c\@d@R\@S`)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePrincipal(text)
		if err != nil {
			return
		}
		if again, err := ParsePrincipal(p.String()); len(p.String()) <= maxPrincipal && (err != nil || !again.Equal(p)) {
			t.Errorf("%q became %q, %v", p, again, err)
		}
	})
}

// Any bytes in the place of each token are rejected or understood, and nothing panics.
func FuzzTokens(t *testing.F) {
	f := propertytest.Fuzz(t)
	for kind := range suites {
		c, s := ends(f, grant{kind: kind})
		if err := negotiate(c, s, noon, func(step int, token []byte) []byte {
			f.Add(step, bytes.Clone(token))
			return token
		}); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, step int, token []byte) {
		c, s := ends(t, grant{})
		negotiate(c, s, noon, func(at int, original []byte) []byte {
			if at == step {
				return bytes.Clone(token)
			}
			return original
		})
	})
}

// The contents of a ticket, an authenticator and a reply, encrypted by the right key.
func FuzzContents(t *testing.F) {
	f := propertytest.Fuzz(t)
	a := acceptor(f)
	c := &Client{Ticket: issue(f, grant{kind: 17}), Random: seeded(2)}
	first, _, err := c.Step(nil, noon)
	if err != nil {
		f.Fatal(err)
	}
	request, err := parseRequest(first)
	if err != nil {
		f.Fatal(err)
	}
	ticket, err := open(request.Ticket.EncPart, keyOf(17), usageTicket)
	if err != nil {
		f.Fatal(err)
	}
	authenticator, err := open(request.EncryptedAuthenticator, c.Ticket.Key, usageAuthenticator)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(ticket)
	f.Add(authenticator)
	f.Fuzz(func(t *testing.T, plain []byte) {
		request := request
		if request.Ticket.EncPart, err = shut(plain, keyOf(17), usageTicket, seeded(1)); err != nil {
			t.Fatal(err)
		}
		if part, err := a.openTicket(&request.Ticket); err == nil {
			a.checkTicket(part, noon)
		}
		sealed, err := shut(plain, c.Ticket.Key, usageAuthenticator, seeded(1))
		if err != nil {
			t.Fatal(err)
		}
		if part, err := openAuthenticator(sealed, c.Ticket.Key); err == nil {
			_, _ = a.checkAuthenticator(part, c.Ticket.Client, noon)
		}
		decode(func() error { return serviceError(plain) })
	})
}

func FuzzUnwrap(t *testing.F) {
	f := propertytest.Fuzz(t)
	client, _ := contexts(f, 18)
	for _, sealed := range []bool{false, true} {
		token, err := client.Wrap(nil, []byte("a message"), sealed, seeded(5))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(token)
		f.Add(rotated(token, 28))
	}
	f.Fuzz(func(t *testing.T, token []byte) {
		_, service := contexts(t, 18)
		original := bytes.Clone(token)
		if got, _, err := service.Unwrap(token); err == nil && !bytes.Equal(got, []byte("a message")) {
			t.Errorf("%x was accepted as %q", original, got)
		}
	})
}

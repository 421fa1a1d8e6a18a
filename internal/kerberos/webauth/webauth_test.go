// SPDX-License-Identifier: Apache-2.0

package webauth

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jcmturner/gofork/encoding/asn1"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/creelrm/creel/internal/gssapi"
	"github.com/creelrm/creel/internal/kerberos"
	"github.com/creelrm/creel/internal/spnego"
)

const (
	realm  = "CREEL.TEST"
	aes256 = 18
)

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// keys is the keytab of the web server on 127.0.0.1.
func keys(t *testing.T, secret string) *keytab.Keytab {
	k := keytab.New()
	if err := k.AddEntry("HTTP/127.0.0.1", realm, secret, time.Now(), 1, aes256); err != nil {
		t.Fatal(err)
	}
	return k
}

// cache writes the ticket cache of alice, with a ticket for the web server.
func cache(t *testing.T, end time.Time) string {
	start := time.Now().Add(-time.Minute)
	who, what := types.NewPrincipalName(1, "alice"), types.NewPrincipalName(2, "HTTP/127.0.0.1")
	ticket, key, err := messages.NewTicket(who, realm, what, realm, asn1.BitString{Bytes: make([]byte, 4), BitLength: 32},
		keys(t, "right"), aes256, 1, start, start, end, end)
	if err != nil {
		t.Fatal(err)
	}
	encoded := must[[]byte](t)(ticket.Marshal())
	u32 := func(b []byte, v ...uint32) []byte {
		for _, v := range v {
			b = binary.BigEndian.AppendUint32(b, v)
		}
		return b
	}
	data := func(b []byte, text string) []byte { return append(u32(b, uint32(len(text))), text...) }
	name := func(b []byte, names ...string) []byte {
		b = data(u32(b, 1, uint32(len(names))), realm)
		for _, n := range names {
			b = data(b, n)
		}
		return b
	}
	b := name([]byte{5, 4, 0, 0}, "alice")
	b = name(name(b, "alice"), "HTTP", "127.0.0.1")
	b = data(binary.BigEndian.AppendUint16(b, aes256), string(key.KeyValue))
	b = u32(b, uint32(start.Unix()), uint32(start.Unix()), uint32(end.Unix()), 0)
	b = u32(append(b, 0), 0, 0, 0)
	b = data(data(b, string(encoded)), "")
	path := filepath.Join(t.TempDir(), "cache")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// client logs in by a ticket cache. It keeps cookies.
func client(t *testing.T, cache string) *http.Client {
	conf := must[*kerberos.Config](t)(kerberos.ParseConfig("[libdefaults]\ndefault_realm = " + realm + "\n"))
	return &http.Client{
		Jar: must[*cookiejar.Jar](t)(cookiejar.New(nil)),
		Transport: New(http.DefaultTransport, func() (*kerberos.Login, error) {
			return conf.LoginUser(kerberos.Environment{Cache: cache})
		}),
	}
}

// server counts its requests, and serves them by the login.
type server struct {
	*httptest.Server
	requests int
	alter    func(http.Header) // of each answer
}

func newServer(t *testing.T, secret string) *server {
	service := must[gssapi.Principal](t)(gssapi.ParsePrincipal("HTTP/127.0.0.1@" + realm))
	k, _, err := keys(t, secret).GetEncryptionKey(types.NewPrincipalName(2, "HTTP/127.0.0.1"), realm, 1, aes256)
	if err != nil {
		t.Fatal(err)
	}
	login := spnego.New(spnego.Config{
		Acceptor: &gssapi.Acceptor{
			Service: service, Skew: 5 * time.Minute, Replays: gssapi.NewReplays(0), OneWay: true,
			Keys: []gssapi.ServiceKey{{Version: 1, Key: gssapi.Key{Type: k.KeyType, Value: k.KeyValue}}},
		},
		Short:  func(p string) (string, error) { name, _, _ := strings.Cut(p, "@"); return name, nil },
		Signer: spnego.NewSigner([]byte("a secret")), Valid: time.Hour, Now: time.Now, Random: rand.Reader,
	})
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests++
		who, ok := login.User(w, r)
		if s.alter != nil {
			s.alter(w.Header())
		}
		if !ok {
			return
		}
		body, err := io.ReadAll(r.Body)
		fmt.Fprint(w, who.User, " sends ", string(body), err)
	}))
	t.Cleanup(s.Close)
	return s
}

func TestTicketLogsInOnceThenCookie(t *testing.T) {
	s := newServer(t, "right")
	c := client(t, cache(t, time.Now().Add(time.Hour)))
	for range 3 {
		answer, err := c.Post(s.URL, "text/plain", strings.NewReader("this body"))
		if err != nil {
			t.Fatal(err)
		}
		body := must[[]byte](t)(io.ReadAll(answer.Body))
		answer.Body.Close()
		if answer.StatusCode != 200 || string(body) != "alice sends this body<nil>" {
			t.Errorf("%s: %s", answer.Status, body)
		}
	}
	if s.requests != 4 { // the first one was asked for a ticket
		t.Errorf("%d requests", s.requests)
	}
}

func TestFailedLoginsAreReported(t *testing.T) {
	good := cache(t, time.Now().Add(time.Hour))
	for name, c := range map[string]struct {
		secret, cache, want string
		alter               func(http.Header)
	}{
		"no cache":        {"right", "/nowhere/cache", "ticket cache /nowhere/cache does not exist; log in by kinit", nil},
		"an expired one":  {"right", cache(t, time.Now().Add(-time.Second)), "the login of alice@CREEL.TEST has expired", nil},
		"no proof":        {"right", good, "does not prove its own identity", func(h http.Header) { proof(h, "") }},
		"a forged proof":  {"right", good, "no token of SPNEGO", func(h http.Header) { proof(h, "Negotiate YQ==") }},
		"no base64":       {"right", good, "no token of SPNEGO", func(h http.Header) { proof(h, "Negotiate !") }},
		"an echoed token": {"right", good, "", func(h http.Header) { proof(h, "Negotiate YIIBAA==") }},
	} {
		s := newServer(t, c.secret)
		s.alter = c.alter
		answer, err := client(t, c.cache).Get(s.URL)
		var login *LoginError
		if !errors.As(err, &login) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v", name, answer, err)
		}
	}
	// The server's own reason is passed on.
	answer, err := client(t, good).Get(newServer(t, "another").URL)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if b := must[[]byte](t)(io.ReadAll(answer.Body)); answer.StatusCode != 403 || !strings.Contains(string(b), "does not fit the key") {
		t.Errorf("%s: %s", answer.Status, b)
	}
}

// proof replaces the proof of a server that has accepted a ticket.
func proof(h http.Header, value string) {
	if h.Get("WWW-Authenticate") != "Negotiate" {
		h.Set("WWW-Authenticate", value)
	}
}

// A client logs in only where a server asks for a ticket, and with its own login only.
func TestTicketsAreSentOnlyWhereAsked(t *testing.T) {
	for name, c := range map[string]struct {
		status          int
		challenge, sent string
	}{
		"another status":   {403, "Negotiate", ""},
		"another scheme":   {401, "Basic realm=x", ""},
		"an own login":     {401, "Negotiate", "Basic YTph"},
		"no challenge":     {401, "", ""},
		"a similar scheme": {401, "NegotiateX", ""},
	} {
		requests := 0
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests++
			if got := r.Header.Get("Authorization"); got != c.sent {
				t.Errorf("%s: sent %q", name, got)
			}
			w.Header().Set("WWW-Authenticate", c.challenge)
			w.WriteHeader(c.status)
		}))
		r := must[*http.Request](t)(http.NewRequest("GET", s.URL, nil))
		if c.sent != "" {
			r.Header.Set("Authorization", c.sent)
		}
		answer, err := client(t, cache(t, time.Now().Add(time.Hour))).Do(r)
		if err != nil || answer.StatusCode != c.status || requests != 1 {
			t.Errorf("%s: %v, %v, %d requests", name, answer, err, requests)
		}
		s.Close()
	}
}

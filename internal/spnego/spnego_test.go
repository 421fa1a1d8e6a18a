// SPDX-License-Identifier: Apache-2.0

package spnego

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jcmturner/gofork/encoding/asn1"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/spnego"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/creelrm/creel/internal/gssapi"
	"github.com/creelrm/creel/internal/httpguard"
	"github.com/creelrm/creel/internal/propertytest"
)

const (
	realm   = "CREEL.TEST"
	aes256  = 18
	service = "HTTP/localhost"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func seeded(seed byte) io.Reader { return rand.NewChaCha8([32]byte{seed}) }

func principal(t testing.TB, text string) gssapi.Principal {
	t.Helper()
	p, err := gssapi.ParsePrincipal(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// keys is the keytab of a service.
func keys(t testing.TB, name string) *keytab.Keytab {
	t.Helper()
	k := keytab.New()
	if err := k.AddEntry(name, realm, "secret of "+name, noon, 1, aes256); err != nil {
		t.Fatal(err)
	}
	return k
}

// ticket issues a ticket for a service, as a KDC.
func ticket(t testing.TB, client, service string) gssapi.Ticket {
	t.Helper()
	who, what := types.NewPrincipalName(1, client), types.NewPrincipalName(2, service)
	wire, key, err := messages.NewTicket(who, realm, what, realm, asn1.BitString{Bytes: make([]byte, 4), BitLength: 32},
		keys(t, service), aes256, 1, noon, noon, noon.Add(time.Hour), noon.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := wire.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return gssapi.Ticket{
		Client: principal(t, client+"@"+realm), Service: principal(t, service+"@"+realm), Encoded: encoded,
		Key: gssapi.Key{Type: key.KeyType, Value: key.KeyValue}, End: noon.Add(time.Hour),
	}
}

// login is the login of a web server on localhost.
func login(t testing.TB) *Login {
	t.Helper()
	k, _, err := keys(t, service).GetEncryptionKey(types.NewPrincipalName(2, service), realm, 1, aes256)
	if err != nil {
		t.Fatal(err)
	}
	return New(Config{
		Acceptor: &gssapi.Acceptor{
			Service: principal(t, service+"@"+realm), Skew: time.Minute, Replays: gssapi.NewReplays(0), OneWay: true,
			Keys: []gssapi.ServiceKey{{Version: 1, Key: gssapi.Key{Type: k.KeyType, Value: k.KeyValue}}},
		},
		Short: func(p string) (string, error) {
			short, of, _ := strings.Cut(p, "@")
			if of != realm || strings.Contains(short, "/") {
				return "", fmt.Errorf("no rule of hadoop.security.auth_to_local applies to %s", p)
			}
			return short, nil
		},
		Signer: NewSigner([]byte("a secret")), Valid: time.Hour,
		Now: func() time.Time { return noon }, Random: seeded(3),
	})
}

// wrap makes a client's first token of SPNEGO.
func wrap(t testing.TB, token []byte, mechanisms ...asn1.ObjectIdentifier) []byte {
	t.Helper()
	s := spnego.SPNEGOToken{Init: true, NegTokenInit: spnego.NegTokenInit{MechTypes: mechanisms, MechTokenBytes: token}}
	b, err := s.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// ask makes a request and returns its user and the answer.
func ask(l *Login, header string, cookies ...*http.Cookie) (string, *http.Response) {
	r := httptest.NewRequest("GET", "http://localhost/ws/v1/cluster?user.name=root", nil)
	if header != "" {
		r.Header.Set("Authorization", header)
	}
	for _, c := range cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	who, ok := l.User(w, r)
	if ok != (who.User != "") || ok != who.Ticket {
		who.User = "without a name or a ticket"
	}
	return who.User, w.Result()
}

func negotiate(token []byte) string { return "Negotiate " + base64.StdEncoding.EncodeToString(token) }

func begin(t testing.TB, client, service string) (*gssapi.Initiator, []byte) {
	t.Helper()
	i, token, err := gssapi.Initiate(ticket(t, client, service), noon, seeded(2))
	if err != nil {
		t.Fatal(err)
	}
	return i, token
}

// A ticket names its user, with the service's proof in the answer, and the cookie names the user afterwards.
func TestTicketThenCookieNamesUser(t *testing.T) {
	for name, mechanism := range map[string]asn1.ObjectIdentifier{"Kerberos": kerberos5, "Windows": msKerberos, "bare": nil} {
		l := login(t)
		i, token := begin(t, "alice", service)
		if mechanism != nil {
			token = wrap(t, token, mechanism)
		}
		user, answer := ask(l, negotiate(token))
		if user != "alice" || len(answer.Cookies()) != 1 {
			t.Fatalf("%s: the user is %q, %s", name, user, answer.Header)
		}
		reply, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(answer.Header.Get("WWW-Authenticate"), "Negotiate "))
		if err != nil {
			t.Fatal(err)
		}
		if mechanism != nil {
			var resp spnego.NegTokenResp
			if err := resp.Unmarshal(reply); err != nil || resp.State() != spnego.NegStateAcceptCompleted {
				t.Fatalf("%s: the answer is %+v, %v", name, resp, err)
			}
			reply = resp.ResponseToken
		}
		if _, err := i.Finish(reply); err != nil {
			t.Errorf("%s: the service does not prove itself: %v", name, err)
		}
		cookie := answer.Cookies()[0]
		if user, again := ask(l, "", cookie); user != "alice" || len(again.Cookies()) != 0 {
			t.Errorf("%s: by its cookie the user is %q", name, user)
		}
		if !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.Secure || !cookie.Expires.Equal(noon.Add(time.Hour)) {
			t.Errorf("%s: the cookie is %v", name, cookie)
		}
	}
}

func TestRequestsWithoutTicketAreAsked(t *testing.T) {
	l := login(t)
	for _, header := range []string{"", "Basic YWxpY2U6YWxpY2U="} {
		user, answer := ask(l, header)
		if user != "" || answer.StatusCode != 401 || answer.Header.Get("WWW-Authenticate") != "Negotiate" {
			t.Errorf("%q: %q, %d, %v", header, user, answer.StatusCode, answer.Header)
		}
	}
}

func TestHostileLoginsAreRejected(t *testing.T) {
	_, good := begin(t, "alice", service)
	_, other := begin(t, "alice", "yarn/localhost")
	_, daemon := begin(t, "nm/h1", service)
	_, odd := begin(t, "a&u=root", service)
	ntlm := asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 311, 2, 2, 10}
	replayed := login(t)
	if user, _ := ask(replayed, negotiate(good)); user != "alice" {
		t.Fatal(user)
	}
	for name, c := range map[string]struct {
		l      *Login
		header string
		why    string
	}{
		"a ticket for another service": {login(t), negotiate(other), "the ticket is for yarn/localhost"},
		"a replayed token":             {replayed, negotiate(good), "used before"},
		"a name that no rule allows":   {login(t), negotiate(daemon), "no rule"},
		"a name that ends a field":     {login(t), negotiate(odd), "characters"},
		"another mechanism first":      {login(t), negotiate(wrap(t, good, ntlm, kerberos5)), "kinit"},
		"no token":                     {login(t), "Negotiate", "no token"},
		"no base64":                    {login(t), "Negotiate !!!", "no token"},
		"half a token":                 {login(t), negotiate(good[:len(good)/2]), "no token"},
	} {
		user, answer := ask(c.l, c.header)
		body, _ := io.ReadAll(answer.Body)
		if user != "" || answer.StatusCode != 403 || !strings.Contains(string(body), c.why) {
			t.Errorf("%s: %q, %d, %s", name, user, answer.StatusCode, body)
		}
	}
}

func TestForgedCookiesNameNobody(t *testing.T) {
	l := login(t)
	good := l.Signer.Sign("alice", "alice@"+realm, noon.Add(time.Minute))
	mallory := NewSigner([]byte("another secret"))
	for name, value := range map[string]string{
		"changed user":   strings.Replace(good, "u=alice", "u=root", 1),
		"later end":      strings.Replace(good, "&e=", "&e=9", 1),
		"no signature":   good[:strings.LastIndex(good, "&s=")],
		"another secret": mallory.Sign("root", "root@"+realm, noon.Add(time.Minute)),
		"expired":        l.Signer.Sign("alice", "alice@"+realm, noon),
		"simple login":   "u=root&p=root&t=simple&e=99999999999999",
		"two users":      l.Signer.Sign("alice&u=root", "alice@"+realm, noon.Add(time.Minute)),
		"empty":          "",
	} {
		if user := l.Signer.User(value, noon); user != "" {
			t.Errorf("%s: the cookie names %q", name, user)
		}
		if user, answer := ask(l, "", &http.Cookie{Name: CookieName, Value: value, Quoted: true}); user != "" || answer.StatusCode != 401 {
			t.Errorf("%s: the request is %q's, %d", name, user, answer.StatusCode)
		}
	}
	if user := l.Signer.User(good, noon); user != "alice" {
		t.Errorf("the good cookie names %q", user)
	}
}

// The cookie that Hadoop 3.4.2's Signer and AuthenticationToken make of the same content and secret.
func TestCookieIsHadoops(t *testing.T) {
	const hadoops = "u=alice&p=alice@CREEL.TEST&t=kerberos&e=1772370000000&s=" +
		"pNnxQYQTahdAxU+6EVvAf3n+Fd+w02gPi1Es8AuZIiY="
	s := NewSigner([]byte("a secret"))
	if got := s.Sign("alice", "alice@CREEL.TEST", time.UnixMilli(1772370000000)); got != hadoops {
		t.Errorf("creel's cookie is\n%s, Hadoop's\n%s", got, hadoops)
	}
}

// A delegation token is the login of its owner, and a rejected one is decisive beside a cookie and a ticket.
func TestTokenNamesOwnerWithoutCookie(t *testing.T) {
	l := login(t)
	l.Tokens = func(text string) (httpguard.Login, error) {
		switch text {
		case "good":
			return httpguard.Login{User: "alice", RealUser: "oozie", Ticket: true}, nil
		case "ownerless":
			return httpguard.Login{}, nil
		}
		return httpguard.Login{}, errors.New("token refused: " + text)
	}
	cookie := l.Signer.Sign("root", "root@"+realm, noon.Add(time.Minute))
	for _, c := range []struct{ header, query, want string }{
		{"X-Hadoop-Delegation-Token: good", "", "alice"},
		{"x-hadoop-delegation-token: good", "?delegation=bad", "alice"},
		{"Hadoop-YARN-Auth-Delegation-Token: good", "", "alice"},
		{"Accept: */*", "?delegation=good", "alice"},
		{"Accept: */*", "?a=1&%64elegation=good&delegation=bad&user.name=root", "alice"},
		{"X-Hadoop-Delegation-Token: bad", "?delegation=good", ""},
		{"X-Hadoop-Delegation-Token:", "", ""},
		{"X-Hadoop-Delegation-Token: ownerless", "", ""},
		{"Accept: */*", "?delegation", ""},
		{"Accept: */*", "?delegation=bad", ""},
		{"Accept: */*", "?DELEGATION=good", "root"}, // no token of Hadoop's
	} {
		_, ticket := begin(t, "alice", service)
		r := httptest.NewRequest("GET", "http://localhost/ws"+c.query, nil)
		name, value, _ := strings.Cut(c.header, ":")
		r.Header.Set(name, strings.TrimSpace(value))
		r.Header.Set("Authorization", negotiate(ticket))
		r.AddCookie(&http.Cookie{Name: CookieName, Value: cookie, Quoted: true})
		w := httptest.NewRecorder()
		who, ok := l.User(w, r)
		if who.User != c.want || ok != (c.want != "") || who.Ticket != (c.want == "root") {
			t.Errorf("%s %s: the login is %+v", c.header, c.query, who)
		}
		if !ok && (w.Code != 403 || !strings.Contains(w.Body.String(), `"exception":"AuthenticationException"`)) {
			t.Errorf("%s %s: %d %s", c.header, c.query, w.Code, w.Body)
		}
		if len(w.Result().Cookies()) != 0 {
			t.Errorf("%s %s sets a cookie", c.header, c.query)
		}
	}
}

func FuzzTokens(t *testing.F) {
	f := propertytest.Fuzz(t)
	_, token := begin(t, "alice", service)
	f.Add(token)
	f.Add(wrap(t, token, kerberos5))
	f.Add(wrap(t, token, msKerberos, kerberos5))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, _, err := mechToken(b); err != nil {
			return
		}
		if user, _ := ask(login(t), negotiate(b)); user != "" && user != "alice" {
			t.Errorf("the user is %q", user)
		}
	})
}

func FuzzCookies(t *testing.F) {
	f := propertytest.Fuzz(t)
	s := NewSigner([]byte("a secret"))
	f.Add(s.Sign("alice", "alice@"+realm, noon.Add(time.Minute)))
	f.Fuzz(func(t *testing.T, value string) {
		if user := s.User(value, noon); user != "" && user != "alice" {
			t.Errorf("a value of no holder of the secret names %q", user)
		}
	})
}

// Only a server with the key of the ticket proves itself, and only for this login.
func TestClientVerifiesServersProof(t *testing.T) {
	c, header, err := Begin(ticket(t, "alice", service), noon, seeded(2))
	if err != nil {
		t.Fatal(err)
	}
	other, otherHeader, err := Begin(ticket(t, "bob", service), noon, seeded(4))
	if err != nil {
		t.Fatal(err)
	}
	user, answer := ask(login(t), header)
	if user != "alice" || c.Finish(answer.StatusCode, answer.Header) != nil {
		t.Fatalf("%q: %v", user, c.Finish(answer.StatusCode, answer.Header))
	}
	if other.Finish(answer.StatusCode, answer.Header) == nil {
		t.Error("the proof for another client is accepted")
	}
	for _, text := range []string{
		"Negotiate", "Negotiate !", "Negotiate YQ==", "Basic YQ==", otherHeader, header, answer.Header.Get("WWW-Authenticate") + "YQ==",
	} {
		if err := c.Finish(200, http.Header{"Www-Authenticate": {text}}); err == nil {
			t.Errorf("%.40s is a proof", text)
		}
	}
	if err := c.Finish(403, http.Header{"Www-Authenticate": {"Negotiate"}}); err != nil {
		t.Errorf("a rejected login: %v", err)
	}
	if !Asks(401, http.Header{"Www-Authenticate": {"Basic x", " negotiate"}}) || Asks(401, http.Header{}) ||
		Asks(200, http.Header{"Www-Authenticate": {"Negotiate"}}) {
		t.Error("a demand for a ticket is not recognised, or invented")
	}
}

func FuzzReplies(t *testing.F) {
	f := propertytest.Fuzz(t)
	_, header, err := Begin(ticket(t, "alice", service), noon, seeded(2))
	if err != nil {
		t.Fatal(err)
	}
	_, answer := ask(login(t), header)
	good, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(answer.Header.Get("WWW-Authenticate"), "Negotiate "))
	if err != nil {
		t.Fatal(err)
	}
	f.Add(good)
	f.Fuzz(func(t *testing.T, b []byte) {
		if token, err := replyToken(b); err == nil && len(token) > len(b) {
			t.Errorf("%d bytes in %d", len(token), len(b))
		}
	})
}

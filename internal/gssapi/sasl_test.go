// SPDX-License-Identifier: Apache-2.0

package gssapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jcmturner/gofork/encoding/asn1"
	"github.com/jcmturner/gokrb5/v8/asn1tools"
	"github.com/jcmturner/gokrb5/v8/iana/asnAppTag"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)

func principal(t testing.TB, text string) Principal {
	t.Helper()
	p, err := ParsePrincipal(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func seeded(seed byte) io.Reader { return rand.NewChaCha8([32]byte{seed}) }

// grant is a ticket that a test's KDC issues.
type grant struct {
	client, service string
	kind            int32
	start, end      time.Time
	invalid         bool
	transited       string
	version         int
}

// issue makes the ticket, for the key of keyOf.
func issue(t testing.TB, g grant) Ticket {
	t.Helper()
	if g.kind == 0 {
		g.kind = 18
	}
	if g.end.IsZero() {
		g.end = noon.Add(time.Hour)
	}
	if g.client == "" {
		g.client = "alice@CREEL.TEST"
	}
	if g.service == "" {
		g.service = "yarn/localhost@CREEL.TEST"
	}
	client, service := principal(t, g.client), principal(t, g.service)
	session := Key{g.kind, drawn(7, suites[g.kind].size)}
	part := messages.EncTicketPart{
		Flags: asn1.BitString{Bytes: make([]byte, 4), BitLength: 32}, Key: toWire(session),
		CRealm: client.Realm, CName: types.PrincipalName{NameType: 1, NameString: client.Names},
		Transited: messages.TransitedEncoding{TRType: 1, Contents: []byte(g.transited)},
		AuthTime:  noon.Add(-time.Hour).Truncate(time.Second), StartTime: g.start, EndTime: g.end.Truncate(time.Second),
	}
	if g.invalid {
		part.Flags.Bytes[0] |= 1
	}
	plain, err := asn1.Marshal(part)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := shut(asn1tools.AddASNAppTag(plain, asnAppTag.EncTicketPart), keyOf(g.kind), usageTicket, seeded(1))
	if err != nil {
		t.Fatal(err)
	}
	sealed.KVNO = g.version
	wire := messages.Ticket{
		TktVNO: 5, Realm: service.Realm, EncPart: sealed,
		SName: types.PrincipalName{NameType: 2, NameString: service.Names},
	}
	encoded, err := wire.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return Ticket{Client: client, Service: service, Encoded: encoded, Key: session, End: g.end}
}

// acceptor is a service yarn/localhost with a key of each type.
func acceptor(t testing.TB) *Acceptor {
	t.Helper()
	a := &Acceptor{Service: principal(t, "yarn/localhost@CREEL.TEST"), Skew: 5 * time.Minute, Replays: NewReplays(0)}
	for kind := range suites {
		a.Keys = append(a.Keys, ServiceKey{1, keyOf(kind)})
	}
	return a
}

// negotiate runs an exchange. change may replace each message: 1 is the client's first, 2 the server's answer.
func negotiate(c *Client, s *Server, now time.Time, change func(step int, token []byte) []byte) error {
	return negotiateAt(c, s, now, now, change)
}

// negotiateAt runs an exchange of ends whose clocks differ.
func negotiateAt(c *Client, s *Server, clientNow, now time.Time, change func(int, []byte) []byte) error {
	if change == nil {
		change = func(_ int, token []byte) []byte { return token }
	}
	var token []byte
	for step := 1; step < 10; step += 2 {
		reply, clientDone, err := c.Step(token, clientNow)
		if err != nil {
			return fmt.Errorf("client: %w", err)
		}
		var serverDone bool
		if token, serverDone, err = s.Step(change(step, reply), now); err != nil {
			return fmt.Errorf("server: %w", err)
		}
		if clientDone != serverDone {
			return fmt.Errorf("step %d: one end alone is done", step)
		}
		if serverDone {
			return nil
		}
		token = change(step+1, token)
	}
	return errors.New("the exchange does not end")
}

var everything = []Protection{Privacy, Integrity, Authentication}

// ends returns both ends of an exchange.
func ends(t testing.TB, g grant) (*Client, *Server) {
	t.Helper()
	return &Client{Ticket: issue(t, g), Accepts: everything, Random: seeded(2)},
		&Server{Acceptor: acceptor(t), Offers: everything, Random: seeded(3)}
}

func TestExchangeAgreesOnEachProtection(t *testing.T) {
	for kind := range suites {
		for _, p := range everything {
			c, s := ends(t, grant{kind: kind})
			c.Accepts = []Protection{p}
			if err := negotiate(c, s, noon, nil); err != nil {
				t.Fatalf("type %d, %s: %v", kind, p, err)
			}
			if got := s.Client().String(); got != "alice@CREEL.TEST" {
				t.Errorf("the client is %s", got)
			}
			if (c.Layer() == nil) != (p == Authentication) || (s.Layer() == nil) != (p == Authentication) {
				t.Fatalf("type %d, %s: layers %v, %v", kind, p, c.Layer(), s.Layer())
			}
			if p != Authentication {
				talk(t, c.Layer(), s.Layer(), p == Privacy)
				talk(t, s.Layer(), c.Layer(), p == Privacy)
			}
		}
	}
}

// talk sends messages of several sizes from one layer to the other.
func talk(t *testing.T, from, to *Layer, secret bool) {
	t.Helper()
	for n := range 50 {
		message := bytes.Repeat([]byte("secret"), n)
		token := from.Seal(nil, message)
		if len(token) != len(message)+from.Overhead() {
			t.Errorf("%d bytes became %d, the overhead is %d", len(message), len(token), from.Overhead())
		}
		if n > 0 && secret == bytes.Contains(token, []byte("secret")) {
			t.Errorf("the message is readable: %v", !secret)
		}
		if got, err := to.Open(token); err != nil || !bytes.Equal(got, message) {
			t.Fatalf("message %d: %q, %v", n, got, err)
		}
	}
}

func TestStrongestAcceptedProtectionIsChosen(t *testing.T) {
	c, s := ends(t, grant{})
	c.Accepts, s.Offers = []Protection{Privacy, Integrity}, []Protection{Authentication, Integrity}
	if err := negotiate(c, s, noon, nil); err != nil {
		t.Fatal(err)
	}
	if c.Layer() == nil || c.Layer().sealed || s.Layer() == nil || s.Layer().sealed {
		t.Errorf("layers %+v, %+v", c.Layer(), s.Layer())
	}
}

func TestDisjointProtectionsFail(t *testing.T) {
	c, s := ends(t, grant{})
	c.Accepts, s.Offers = []Protection{Privacy}, []Protection{Authentication}
	err := negotiate(c, s, noon, nil)
	if err == nil ||
		err.Error() != "client: the server offers none of the protections [privacy]: see hadoop.rpc.protection" {
		t.Error(err)
	}
}

// A client that chooses a protection outside the offer is rejected, though its choice is signed.
func TestChoiceOutsideOfferIsRejected(t *testing.T) {
	c, s := ends(t, grant{})
	s.Offers = []Protection{Privacy}
	err := negotiate(c, s, noon, func(step int, token []byte) []byte {
		if step != 5 {
			return token
		}
		c.context.send.sequence--
		weak, err := c.context.Wrap(nil, offer(Authentication), false, c.Random)
		if err != nil {
			t.Fatal(err)
		}
		return weak
	})
	if err == nil || err.Error() != "server: the client chose authentication, which is not offered" {
		t.Error(err)
	}
}

// The hostile cases: each has the words that a person reads.
func TestHostileLoginsAreRejected(t *testing.T) {
	for _, c := range []struct {
		name, want string
		grant      grant
		now        time.Duration
		server     func(*Server)
		change     func(step int, token []byte) []byte
	}{
		{
			name: "another service", grant: grant{service: "hdfs/localhost@CREEL.TEST"},
			want: "server: the ticket is for hdfs/localhost@CREEL.TEST; this service is yarn/localhost@CREEL.TEST",
		},
		{
			name: "another realm's service", grant: grant{service: "yarn/localhost@EVIL.TEST"},
			want: "server: the ticket is for yarn/localhost@EVIL.TEST; this service is yarn/localhost@CREEL.TEST",
		},
		{
			name: "expired", grant: grant{end: noon.Add(-6 * time.Minute)},
			want: "client: the ticket for yarn/localhost@CREEL.TEST expired at 2026-03-01T11:54:00Z",
		},
		{
			name: "clock ahead", now: 6 * time.Minute,
			want: "server: the clock of alice@CREEL.TEST is 6m0s ahead of this service's, at most 5m0s is allowed: " +
				"synchronise the clocks",
		},
		{
			name: "clock behind", now: -6 * time.Minute,
			want: "server: the clock of alice@CREEL.TEST is 6m0s behind this service's, at most 5m0s is allowed: " +
				"synchronise the clocks",
		},
		{
			name: "invalid ticket", grant: grant{invalid: true},
			want: "server: the ticket of alice@CREEL.TEST is not valid before 2026-03-01T11:00:00Z",
		},
		{
			name: "later ticket", grant: grant{start: noon.Add(time.Hour).Truncate(time.Second)},
			want: "server: the ticket of alice@CREEL.TEST is not valid before 2026-03-01T13:00:00Z",
		},
		{
			name: "unchecked realms", grant: grant{client: "alice@FAR.TEST", transited: "MIDDLE.TEST"},
			want: "server: the KDC has not checked the realms between alice@FAR.TEST and yarn/localhost@CREEL.TEST",
		},
		{
			name: "old key", grant: grant{version: 2},
			want: "server: the keytab of yarn/localhost@CREEL.TEST has no key of type 18 and version 2: " +
				"the keytab is old, or the ticket is",
		},
		{
			name: "forged ticket", want: "server: the ticket does not fit the key of yarn/localhost@CREEL.TEST: " +
				"the keytab is old, or the ticket is",
			server: func(s *Server) { s.Acceptor.Keys = []ServiceKey{{1, Key{18, drawn(1234, 32)}}} },
		},
		{
			name: "stripped protections", want: "client: a wrapped message fails its integrity check",
			change: func(step int, token []byte) []byte {
				if step == 4 {
					token[headerSize] = byte(Authentication)
				}
				return token
			},
		},
		{
			name: "changed choice", want: "server: a wrapped message fails its integrity check",
			change: func(step int, token []byte) []byte {
				if step == 5 {
					token[headerSize] = byte(Authentication)
				}
				return token
			},
		},
		{
			name: "no AP-REP", want: "client: malformed Kerberos token",
			change: func(step int, token []byte) []byte {
				if step == 2 {
					return nil
				}
				return token
			},
		},
	} {
		client, server := ends(t, c.grant)
		if c.server != nil {
			c.server(server)
		}
		err := negotiateAt(client, server, noon.Add(c.now), noon, c.change)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: %v\nwant %s", c.name, err, c.want)
		}
	}
}

func TestTicketWithoutItsKeyIsRejected(t *testing.T) {
	client, server := ends(t, grant{})
	client.Ticket.Key = Key{18, drawn(55, 32)}
	err := negotiate(client, server, noon, nil)
	if err == nil || err.Error() != "server: the client does not have the key of its ticket" {
		t.Error(err)
	}
}

// The server rejects an expired ticket too, of a client that does not look at its time.
func TestServerRejectsExpiredTicket(t *testing.T) {
	client, server := ends(t, grant{end: noon.Add(-6 * time.Minute)})
	client.Ticket.End = noon.Add(time.Hour)
	err := negotiate(client, server, noon, nil)
	if err == nil ||
		err.Error() != "server: the ticket of alice@CREEL.TEST expired at 2026-03-01T11:54:00Z: log in again" {
		t.Error(err)
	}
}

func TestReplayedAuthenticatorIsRejected(t *testing.T) {
	client, server := ends(t, grant{})
	var first []byte
	if err := negotiate(client, server, noon, func(step int, token []byte) []byte {
		if step == 1 {
			first = bytes.Clone(token)
		}
		return token
	}); err != nil {
		t.Fatal(err)
	}
	again := &Server{Acceptor: server.Acceptor, Offers: everything, Random: seeded(9)}
	if _, _, err := again.Step(first, noon.Add(time.Second)); err != errReplay {
		t.Error(err)
	}
}

// After a restart the cache is empty. A replay of a whole recorded exchange still fails, at the first wrapped message:
// the new context has another key.
func TestReplayAfterRestartFailsAtChoice(t *testing.T) {
	client, server := ends(t, grant{})
	var recorded [][]byte
	if err := negotiate(client, server, noon, func(step int, token []byte) []byte {
		if step%2 == 1 {
			recorded = append(recorded, bytes.Clone(token))
		}
		return token
	}); err != nil {
		t.Fatal(err)
	}
	again := &Server{Acceptor: acceptor(t), Offers: everything, Random: seeded(9)}
	var err error
	for _, token := range recorded {
		if _, _, err = again.Step(token, noon); err != nil {
			break
		}
	}
	if err != errSeal {
		t.Error(err)
	}
}

func TestOneWayAuthenticationIsRejected(t *testing.T) {
	ticket := issue(t, grant{})
	a := types.Authenticator{
		AVNO: 5, CRealm: "CREEL.TEST", CName: types.PrincipalName{NameType: 1, NameString: []string{"alice"}},
		CTime: noon.Truncate(time.Second), Cksum: writeFlags(wantIntegrity),
	}
	if _, err := acceptor(t).checkAuthenticator(&a, ticket.Client, noon); err == nil ||
		err.Error() != "the client does not ask for mutual authentication, which this service requires" {
		t.Error(err)
	}
	a.CName.NameString[0] = "mallory"
	if _, err := acceptor(t).checkAuthenticator(&a, ticket.Client, noon); err == nil ||
		err.Error() != "the ticket belongs to alice@CREEL.TEST, not to mallory@CREEL.TEST" {
		t.Error(err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package secure

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/creelrm/creel/internal/gssapi"
	"github.com/creelrm/creel/internal/kerberos"
)

func principal(t testing.TB, text string) gssapi.Principal {
	t.Helper()
	p, err := gssapi.ParsePrincipal(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// config reads the realm's krb5.conf.
func (k *KDC) config(t testing.TB) *kerberos.Config {
	t.Helper()
	c, err := kerberos.LoadConfig(k.ConfigFile())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// keytabLogin logs in by a keytab.
func keytabLogin(t testing.TB, c *kerberos.Config, name, path string) *kerberos.Login {
	t.Helper()
	keytab, err := kerberos.LoadKeytab(path)
	if err != nil {
		t.Fatal(err)
	}
	l, err := c.LoginKeytab(principal(t, name), keytab)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// acceptor makes a service of a keytab.
func acceptor(t testing.TB, name, path string) *gssapi.Acceptor {
	t.Helper()
	keytab, err := kerberos.LoadKeytab(path)
	if err != nil {
		t.Fatal(err)
	}
	p := principal(t, name)
	return &gssapi.Acceptor{
		Service: p, Keys: keytab.Keys(p), Skew: 5 * time.Minute, Replays: gssapi.NewReplays(0),
	}
}

// accept establishes a context by a ticket.
func accept(ticket gssapi.Ticket, a *gssapi.Acceptor) (*gssapi.Context, error) {
	i, token, err := gssapi.Initiate(ticket, time.Now(), rand.Reader)
	if err != nil {
		return nil, err
	}
	c, reply, err := a.Accept(token, time.Now(), rand.Reader)
	if err != nil {
		return nil, err
	}
	_, err = i.Finish(reply)
	return c, err
}

func TestTicketsFitServiceForEachKeyType(t *testing.T) {
	for _, enctypes := range []string{
		"aes256-cts-hmac-sha1-96 aes128-cts-hmac-sha1-96", "aes128-cts-hmac-sha1-96",
		"aes128-cts-hmac-sha256-128", "aes256-cts-hmac-sha384-192",
	} {
		kdc := StartKDC(t, Realm{Enctypes: enctypes})
		alice, service := kdc.AddPrincipal(t, "alice"), kdc.AddPrincipal(t, "yarn/localhost")
		conf := kdc.config(t)
		byCache, err := conf.LoginCache("FILE:" + kdc.Login(t, "alice", alice))
		if err != nil {
			t.Fatal(err)
		}
		for way, login := range map[string]*kerberos.Login{
			"keytab": keytabLogin(t, conf, "alice@CREEL.TEST", alice), "cache": byCache,
		} {
			ticket, err := login.Ticket(t.Context(), principal(t, "yarn/localhost"))
			if err != nil {
				t.Fatalf("%s, %s: %v", enctypes, way, err)
			}
			c, err := accept(ticket, acceptor(t, "yarn/localhost@CREEL.TEST", service))
			if err != nil {
				t.Fatalf("%s, %s: %v", enctypes, way, err)
			}
			if got := c.Client.String(); got != "alice@CREEL.TEST" {
				t.Errorf("%s, %s: the client is %s", enctypes, way, got)
			}
			again, err := login.Ticket(t.Context(), principal(t, "yarn/localhost@CREEL.TEST"))
			if err != nil || string(again.Encoded) != string(ticket.Encoded) {
				t.Errorf("%s, %s: the ticket is not cached: %v", enctypes, way, err)
			}
		}
	}
}

func TestFailedLoginsNameTheReason(t *testing.T) {
	kdc := StartKDC(t, Realm{})
	alice := kdc.AddPrincipal(t, "alice")
	kdc.AddPrincipal(t, "yarn/localhost")
	conf := kdc.config(t)
	service := principal(t, "yarn/localhost")

	// Another realm has the same name and other keys.
	other := StartKDC(t, Realm{})
	stranger := other.AddPrincipal(t, "alice")
	bob := other.AddPrincipal(t, "bob")

	late := kdc.config(t)
	late.Now = func() time.Time { return time.Now().Add(time.Hour) }
	fails := func(l *kerberos.Login, service gssapi.Principal, want string) {
		t.Helper()
		if _, err := l.Ticket(t.Context(), service); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
	fails(keytabLogin(t, conf, "alice", stranger), service,
		"the KDC has another key of alice@CREEL.TEST: the keytab is old")
	fails(keytabLogin(t, conf, "bob", bob), service, "the KDC does not know bob@CREEL.TEST")
	fails(keytabLogin(t, conf, "alice", alice), principal(t, "hdfs/localhost"),
		"the KDC does not know the service hdfs/localhost@CREEL.TEST")
	fails(keytabLogin(t, late, "alice", alice), service, "the KDC's: synchronise the clocks")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := keytabLogin(t, conf, "alice", alice).Ticket(ctx, service); err == nil ||
		!strings.Contains(err.Error(), "asking the KDC of realm CREEL.TEST") {
		t.Error(err)
	}
	kdc.process.Stop()
	fails(keytabLogin(t, conf, "alice", alice), service, "no KDC of realm CREEL.TEST answers")
	if _, err := conf.LoginCache(alice); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Error(err)
	}
}

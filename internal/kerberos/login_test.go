// SPDX-License-Identifier: Apache-2.0

package kerberos

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/creelrm/creel/internal/gssapi"
)

// silent makes a login by a ticket cache, with a ticket for yarn/localhost, whose KDC answers when the test says so.
// asked has an element for each message that the KDC gets.
func silent(t *testing.T) (l *Login, asked, answer chan struct{}) {
	t.Helper()
	conf, err := ParseConfig("[libdefaults]\ndefault_realm = CREEL.TEST\n[realms]\nCREEL.TEST = {\nkdc = kdc.example.org\n}\n")
	if err != nil {
		t.Fatal(err)
	}
	conf.Now = func() time.Time { return time.Unix(1700000000, 0) }
	asked, answer = make(chan struct{}, 10), make(chan struct{})
	conf.send = func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
		asked <- struct{}{}
		select {
		case <-answer:
			return nil, errors.New("no answer")
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	path := filepath.Join(t.TempDir(), "cache")
	if err := os.WriteFile(path, goodCache(), 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err = conf.LoginCache(path); err != nil {
		t.Fatal(err)
	}
	// The cache's tickets are no messages of a KDC, and one is enclosed in a request for another.
	l.granted.ticket.Encoded = encodedTicket(t)
	return l, asked, answer
}

func TestSilentKDCDelaysOnlyCallersThatNeedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, asked, answer := silent(t)
		other := gssapi.Principal{Names: []string{"hdfs", "localhost"}, Realm: "CREEL.TEST"}
		fails := make(chan error, 2)
		ask := func(ctx context.Context) {
			_, err := l.Ticket(ctx, other)
			fails <- err
		}
		first, end := context.WithCancel(t.Context())
		go ask(first)
		<-asked

		cached := gssapi.Principal{Names: []string{"yarn", "localhost"}, Realm: "CREEL.TEST"}
		if ticket, err := l.Ticket(t.Context(), cached); err != nil || !ticket.Service.Equal(cached) {
			t.Errorf("%v, %v: a cached ticket needs no KDC", ticket.Service, err)
		}
		// The first caller cannot wait longer. The exchange goes on for the next one.
		go ask(t.Context())
		synctest.Wait()
		end()
		if err := <-fails; !errors.Is(err, context.Canceled) {
			t.Errorf("%v: the caller's context has ended", err)
		}
		synctest.Wait()
		close(answer)
		if err := <-fails; err == nil || !strings.Contains(err.Error(), "no KDC of realm CREEL.TEST answers") {
			t.Error(err)
		}
		if n := len(asked); n != 0 {
			t.Errorf("%d more messages for the same service, its callers share one", n)
		}
	})
}

// A ticket that is still valid serves while the KDC is away. No caller waits for its replacement, which is requested
// once, and again after a pause.
func TestValidTicketServesWithoutKDC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, asked, answer := silent(t)
		service := gssapi.Principal{Names: []string{"yarn", "localhost"}, Realm: "CREEL.TEST"}
		begin := time.Unix(1700000000, 0)
		now := begin
		l.conf.Now = func() time.Time { return now }
		ticket := l.tickets[service.String()].ticket
		l.tickets[service.String()] = obtained(ticket, now)
		get := func(after time.Duration, messages int, want string) {
			t.Helper()
			now = begin.Add(after)
			got, err := l.Ticket(t.Context(), service)
			if want == "" && (err != nil || !got.Service.Equal(service)) {
				t.Errorf("after %v: %v, %v", after, got.Service, err)
			}
			if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("after %v: %v, want %s", after, err, want)
			}
			synctest.Wait()
			if n := len(asked); n != messages {
				t.Errorf("after %v: %d messages to the KDC, want %d", after, n, messages)
			}
		}
		whole := ticket.End.Sub(begin)
		get(whole*4/5-time.Second, 0, "")
		get(whole*4/5, 1, "")
		get(whole*4/5+retryTime*2, 1, "") // the first exchange still runs
		close(answer)
		synctest.Wait()
		get(whole*4/5+retryTime*3-time.Second, 1, "")
		get(whole*4/5+retryTime*3, 2, "")
		get(whole-time.Second, 3, "")
		get(whole, 3, "the login of alice@CREEL.TEST has expired")
	})
}

// encodedTicket is a ticket in its form on the wire.
func encodedTicket(t *testing.T) []byte {
	t.Helper()
	ticket := messages.Ticket{
		TktVNO: 5, Realm: "CREEL.TEST", SName: wireName(grantingService("CREEL.TEST", "CREEL.TEST"), nameService),
		EncPart: types.EncryptedData{EType: 18, KVNO: 1, Cipher: []byte("sealed")},
	}
	b, err := ticket.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// SPDX-License-Identifier: Apache-2.0

package renewal

import (
	"testing"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/token"
)

var start = time.UnixMilli(1_700_000_000_000)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

func appOf(n int32) creel.ApplicationID { return creel.ApplicationID{ClusterTimestamp: 1, ID: n} }

func tokenOf(id string) token.Token {
	return token.Token{Kind: KindHDFS, Service: "10.0.0.1:8020", Identifier: []byte(id)}
}

// dueAt takes a token, which must be due at a time and not a second earlier.
func dueAt(t *testing.T, b *Book, seconds int) {
	t.Helper()
	if early, ok := b.Due(at(seconds - 1)); ok {
		t.Fatalf("%s is due before %d s", early.Identifier, seconds)
	}
	if _, ok := b.Due(at(seconds)); !ok {
		next, _ := b.Next()
		t.Fatalf("no token is due at %d s, the next is at %v", seconds, next.Sub(start))
	}
}

func TestTokenIsRenewedBeforeItEnds(t *testing.T) {
	b := NewBook()
	b.Hold(at(0), appOf(1), []token.Token{tokenOf("a")}, true)
	dueAt(t, b, 0)
	b.Renewed(at(0), tokenOf("a"), at(100))
	dueAt(t, b, 90)
	if b.Renewed(at(92), tokenOf("a"), at(192)) {
		t.Error("it was extended")
	}
	dueAt(t, b, 182)
	if !b.Renewed(at(182), tokenOf("a"), at(192)) {
		t.Error("it was not extended, so its lifetime is over")
	}
	if next, ok := b.Next(); ok {
		t.Errorf("it is due again at %v", next)
	}
}

func TestSilentServerIsAskedAgain(t *testing.T) {
	b := NewBook()
	b.Hold(at(0), appOf(1), []token.Token{tokenOf("a")}, true)
	due := 0
	for _, pause := range []int{10, 20, 40, 80, 160, 320, 600, 600} {
		dueAt(t, b, due)
		b.Failed(at(due), tokenOf("a"))
		due += pause
	}
	dueAt(t, b, due)
	b.Renewed(at(due), tokenOf("a"), at(due+10))
	dueAt(t, b, due+9)
	b.Failed(at(due+9), tokenOf("a"))
	dueAt(t, b, due+19) // from the shortest pause again
}

func TestTokenIsCancelledAfterItsLastHolder(t *testing.T) {
	b := NewBook()
	shared, kept, own := tokenOf("shared"), tokenOf("kept"), tokenOf("own")
	b.Hold(at(0), appOf(1), []token.Token{shared, kept, own, own}, true)
	b.Hold(at(0), appOf(1), []token.Token{shared}, true) // an application is added once
	b.Hold(at(0), appOf(2), []token.Token{shared}, true)
	b.Hold(at(0), appOf(3), []token.Token{kept}, false)
	names := func(tokens []token.Token) (all string) {
		for _, t := range tokens {
			all += string(t.Identifier) + " "
		}
		return all
	}
	for i, want := range []string{"own ", "shared ", ""} {
		if got := names(b.Release(appOf(int32(i + 1)))); got != want {
			t.Errorf("at the end of application %d: %q, want %q", i+1, got, want)
		}
	}
	if _, ok := b.Next(); ok || b.Len() != 0 {
		t.Errorf("%d tokens are left", b.Len())
	}
	if got := b.Release(appOf(1)); got != nil {
		t.Errorf("cancelled twice: %q", names(got))
	}
}

// A result that comes after the end of the application changes nothing.
func TestLateResultIsIgnored(t *testing.T) {
	b := NewBook()
	b.Hold(at(0), appOf(1), []token.Token{tokenOf("a")}, true)
	dueAt(t, b, 0)
	b.Release(appOf(1))
	b.Renewed(at(1), tokenOf("a"), at(100))
	b.Failed(at(1), tokenOf("a"))
	if _, ok := b.Next(); ok {
		t.Error("a token without an application is due")
	}
	b.Hold(at(2), appOf(2), []token.Token{tokenOf("a")}, true)
	b.Failed(at(3), tokenOf("a")) // of the call for the earlier application
	dueAt(t, b, 2)
}

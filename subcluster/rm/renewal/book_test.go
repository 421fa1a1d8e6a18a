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

// appWith is an application of alice with tokens.
func appWith(n int32, cancel bool, tokens ...token.Token) App {
	app := App{ID: appOf(n), User: "alice", Cancel: cancel, Renew: func(token.Token) bool { return true }}
	for _, t := range tokens {
		app.Tokens = append(app.Tokens, token.AliasedToken{Alias: "of " + string(t.Identifier), Token: t})
	}
	return app
}

// dueAt takes a token, which must be due at a time and not a second earlier.
func dueAt(t *testing.T, b *Book, seconds int) Job {
	t.Helper()
	if early, ok := b.Due(at(seconds - 1)); ok {
		t.Fatalf("%s is due before %d s", early.Token.Identifier, seconds)
	}
	job, ok := b.Due(at(seconds))
	if !ok {
		next, _ := b.Next()
		t.Fatalf("no token is due at %d s, the next is at %v", seconds, next.Sub(start))
	}
	return job
}

// cancels takes the tokens to cancel at a time at which nothing else is due.
func cancels(t *testing.T, b *Book, seconds int) (names string) {
	t.Helper()
	for job, ok := b.Due(at(seconds)); ok; job, ok = b.Due(at(seconds)) {
		if job.Act != Cancel {
			t.Fatalf("due at %d s: %+v", seconds, job)
		}
		names += string(job.Token.Identifier) + " "
	}
	return names
}

func TestTokenIsRenewedBeforeItEnds(t *testing.T) {
	b := NewBook()
	b.Hold(at(0), appWith(1, true, tokenOf("a")))
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
	b.Hold(at(0), appWith(1, true, tokenOf("a")))
	due := 0
	for _, pause := range []int{10, 20, 40, 80, 160, 320, 600, 600} {
		dueAt(t, b, due)
		b.Failed(at(due), Job{Token: tokenOf("a")})
		due += pause
	}
	dueAt(t, b, due)
	b.Renewed(at(due), tokenOf("a"), at(due+10))
	dueAt(t, b, due+9)
	b.Failed(at(due+9), Job{Token: tokenOf("a")})
	dueAt(t, b, due+19) // from the shortest pause again
}

func TestTokenIsCancelledAfterItsLastHolder(t *testing.T) {
	b := NewBook()
	shared, kept, own := tokenOf("shared"), tokenOf("kept"), tokenOf("own")
	b.Hold(at(0), appWith(1, true, shared, kept, own, own))
	b.Hold(at(0), appWith(1, true, shared)) // an application is added once
	b.Hold(at(0), appWith(2, true, shared))
	b.Hold(at(0), appWith(3, false, kept))
	for range 3 { // are renewed
		b.Due(at(0))
	}
	for i, want := range []string{"own ", "shared ", ""} {
		b.End(at(0), appOf(int32(i+1)), 0)
		if got := cancels(t, b, 0); got != want {
			t.Errorf("at the end of application %d: %q, want %q", i+1, got, want)
		}
	}
	if _, ok := b.Next(); ok || b.Len() != 0 {
		t.Errorf("%d tokens are left", b.Len())
	}
	b.End(at(0), appOf(1), 0)
	if got := cancels(t, b, 0); got != "" {
		t.Errorf("cancelled twice: %q", got)
	}
}

// A result that comes after the end of the application changes nothing.
func TestLateResultIsIgnored(t *testing.T) {
	b := NewBook()
	b.Hold(at(0), appWith(1, true, tokenOf("a")))
	dueAt(t, b, 0)
	b.Forget(appOf(1))
	b.Renewed(at(1), tokenOf("a"), at(100))
	b.Failed(at(1), Job{Token: tokenOf("a")})
	if _, ok := b.Next(); ok {
		t.Error("a token without an application is due")
	}
	b.Hold(at(2), appWith(2, true, tokenOf("a")))
	b.Failed(at(3), Job{Token: tokenOf("a")}) // of the call for the earlier application
	dueAt(t, b, 2)
}

// replacing is a Book that replaces tokens of HDFS.
func replacing() *Book {
	b := NewBook()
	b.Obtains = func(kind string) bool { return kind == KindHDFS }
	return b
}

// ending returns a token whose maximum lifetime ends after some seconds.
func ending(name string, seconds int) token.Token {
	id := token.AppendText(token.AppendText(token.AppendText([]byte{0}, name), "yarn"), "")
	id = token.AppendVLong(token.AppendVLong(id, start.UnixMilli()), at(seconds).UnixMilli())
	return token.Token{Kind: KindHDFS, Service: "10.0.0.1:8020", Identifier: id}
}

func TestTokenAtItsMaximumIsReplaced(t *testing.T) {
	b := replacing()
	old, fresh := ending("old", 300), ending("fresh", 570)
	b.Hold(at(0), appWith(1, true, old))
	dueAt(t, b, 0)
	b.Renewed(at(0), old, at(100))
	dueAt(t, b, 90)
	b.Renewed(at(90), old, at(190))
	dueAt(t, b, 180)
	b.Renewed(at(180), old, at(280))
	dueAt(t, b, 270)
	if b.Renewed(at(270), old, at(300)) {
		t.Error("its end is the end of its applications' tokens")
	}
	job := dueAt(t, b, 297)
	if job.Act != Obtain || job.User != "alice" || string(job.Token.Identifier) != string(old.Identifier) {
		t.Fatalf("%+v", job)
	}
	b.Obtained(at(297), job, fresh)
	if job = dueAt(t, b, 297); job.Act != Renew || string(job.Token.Identifier) != string(fresh.Identifier) {
		t.Fatalf("%+v", job)
	}
	system := b.System()
	if len(system) != 1 || len(system[0].Tokens) != 1 || system[0].Tokens[0].Alias != "of "+string(old.Identifier) ||
		string(system[0].Tokens[0].Token.Identifier) != string(fresh.Identifier) {
		t.Errorf("%+v", system)
	}
	b.End(at(300), appOf(1), 0)
	if got := cancels(t, b, 300); got != string(fresh.Identifier)+" " || b.Len() != 0 {
		t.Errorf("cancelled %q, %d left", got, b.Len())
	}
}

// With the defaults of HDFS, a day and a week, there is time for more than one attempt.
func TestTokenIsReplacedBeforeItsMaximum(t *testing.T) {
	const day, week = 24 * 3600, 7 * 24 * 3600
	for begin := 0; begin < day; begin += 600 {
		b := replacing()
		old := ending("old", week)
		b.Hold(at(begin), appWith(1, true, old))
		for now := begin; ; {
			job, ok := b.Due(at(now))
			if !ok {
				t.Fatalf("nothing is due at %d s", now)
			}
			if job.Act == Obtain {
				if left := week - now; left < 1800 {
					t.Errorf("begun at %d s: replaced %d s before its end", begin, left)
				}
				break
			}
			b.Renewed(at(now), old, at(min(now+day, week)))
			next, _ := b.Next()
			now = int(next.Sub(start)/time.Second) + 1
		}
	}
}

func TestRejectedTokenIsReplacedAtOnce(t *testing.T) {
	b := replacing()
	old := tokenOf("old")
	b.Hold(at(0), appWith(1, true, old))
	dueAt(t, b, 0)
	if !b.Rejected(at(0), old) {
		t.Error("it is not replaced")
	}
	due := 0
	for i, pause := range []int{0, 10, 20, 40} { // its server rejects the others, too
		due += pause
		job := dueAt(t, b, due)
		if job.Act != Obtain {
			t.Fatalf("%+v", job)
		}
		fresh := tokenOf("fresh " + string(rune('0'+i)))
		b.Obtained(at(due), job, fresh)
		dueAt(t, b, due)
		b.Rejected(at(due), fresh)
	}
	if b = NewBook(); b.Rejected(at(0), old) {
		t.Error("it is replaced although no token is")
	}
}

// Two users hold one token. Each gets one of its own, and a failure for one of them does not delay the other.
func TestEachUserGetsTokenOfItsOwn(t *testing.T) {
	b := replacing()
	old := tokenOf("old")
	bobs := appWith(3, true, old)
	bobs.User = "bob"
	b.Hold(at(0), appWith(1, true, old))
	b.Hold(at(0), appWith(2, true, old))
	b.Hold(at(0), bobs)
	dueAt(t, b, 0)
	b.Rejected(at(0), old)
	for range 2 {
		job := dueAt(t, b, 0)
		if job.Act != Obtain {
			t.Fatalf("%+v", job)
		}
		if job.User == "bob" {
			b.Failed(at(0), job)
			continue
		}
		b.Obtained(at(0), job, tokenOf("alice's"))
	}
	if job := dueAt(t, b, 0); string(job.Token.Identifier) != "alice's" {
		t.Fatalf("%+v", job)
	}
	b.Renewed(at(0), tokenOf("alice's"), at(1000))
	if system := b.System(); len(system) != 2 || system[0].ID != appOf(1) || system[1].ID != appOf(2) {
		t.Errorf("%+v", system)
	}
	if job := dueAt(t, b, 10); job.User != "bob" {
		t.Errorf("%+v", job)
	}
}

func TestApplicationWithoutTokenGetsDefault(t *testing.T) {
	b := replacing()
	b.Default = token.Token{Kind: KindHDFS, Service: "nn:8020"}
	other := token.Token{Kind: "kms-dt", Service: "kms:9600"}
	without := appWith(1, true, other)
	without.Renew = func(token.Token) bool { return false }
	b.Hold(at(0), without)
	b.Hold(at(0), appWith(2, true, tokenOf("own")))
	var obtained []Job
	for job, ok := b.Due(at(0)); ok; job, ok = b.Due(at(0)) {
		if job.Act == Obtain {
			obtained = append(obtained, job)
		}
	}
	if len(obtained) != 1 || obtained[0].Token.Service != "nn:8020" || obtained[0].User != "alice" {
		t.Fatalf("%+v", obtained)
	}
	b.Obtained(at(0), obtained[0], tokenOf("fresh"))
	system := b.System()
	if len(system) != 1 || len(system[0].Tokens) != 2 || system[0].Tokens[1].Alias != tokenOf("").Service {
		t.Errorf("%+v", system)
	}
	dueAt(t, b, 0)
	b.End(at(0), appOf(1), 0)
	if got := cancels(t, b, 0); got != "fresh " {
		t.Errorf("cancelled %q", got)
	}
}

func TestTokenObtainedTooLateIsCancelled(t *testing.T) {
	b := replacing()
	b.Hold(at(0), appWith(1, true, tokenOf("old")))
	dueAt(t, b, 0)
	b.Rejected(at(0), tokenOf("old"))
	job := dueAt(t, b, 0)
	b.Forget(appOf(1))
	b.Obtained(at(1), job, tokenOf("fresh"))
	if got := cancels(t, b, 1); got != "fresh " || b.Len() != 0 {
		t.Errorf("cancelled %q, %d left", got, b.Len())
	}
}

// Nodes upload the logs of an ended application by its tokens.
func TestTokensOutliveTheirApplicationForItsLogs(t *testing.T) {
	b := NewBook()
	b.Hold(at(0), appWith(1, true, tokenOf("a")))
	dueAt(t, b, 0)
	b.Renewed(at(0), tokenOf("a"), at(1000))
	b.KeepAlive(at(5), appOf(1), 30*time.Second) // it runs
	b.End(at(10), appOf(1), 30*time.Second)
	b.KeepAlive(at(35), appOf(1), 30*time.Second)
	b.End(at(50), appOf(1), 30*time.Second) // ends once
	if got := cancels(t, b, 64); got != "" {
		t.Errorf("%q cancelled while a node uploads", got)
	}
	if got := cancels(t, b, 65); got != "a " {
		t.Errorf("cancelled %q", got)
	}
	b.KeepAlive(at(66), appOf(1), 30*time.Second) // too late
	if _, ok := b.Next(); ok || b.Len() != 0 {
		t.Errorf("%d tokens are left", b.Len())
	}
}

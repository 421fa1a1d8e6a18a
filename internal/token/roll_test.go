// SPDX-License-Identifier: Apache-2.0

package token_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/internal/yarnpb"
)

var start = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)

func seeded() *rand.Rand { return rand.New(rand.NewPCG(7, 11)) }

// A day in the life of AMRM tokens: a key is made, living masters get the replacement, and then the old key goes.
func TestAMRMKeysRoll(t *testing.T) {
	rnd := seeded()
	k := token.NewKeys(token.Rolling{}, start, rnd)
	first := k.Newest().AMRM(attempt)
	held, err := token.ParseAMRM(first.Identifier)
	if err != nil {
		t.Fatal(err)
	}
	accepted := func(tok token.Token) bool {
		id, err := token.ParseAMRM(tok.Identifier)
		if err != nil {
			t.Fatal(err)
		}
		p, err := k.Accepted().Password(id.KeyID, tok.Identifier)
		if err != nil && !errors.Is(err, creel.ErrInvalidToken) {
			t.Fatalf("refused with %v", err)
		}
		return err == nil && string(p) == string(tok.Password)
	}
	if !accepted(first) || len(first.Identifier) == 0 || first.Service != "" {
		t.Fatalf("the first token is not accepted: %v", first)
	}
	if _, ok := k.ReplaceAMRM(held); ok {
		t.Fatal("a replacement without need")
	}
	if k.Step(start.Add(24*time.Hour-1), rnd) {
		t.Fatal("rolled early")
	}
	if !k.Deadline().Equal(start.Add(24 * time.Hour)) {
		t.Fatalf("wakes at %v", k.Deadline())
	}

	day := start.Add(24 * time.Hour)
	if !k.Step(day, rnd) {
		t.Fatal("did not roll after a day")
	}
	second, ok := k.ReplaceAMRM(held)
	if !ok || !accepted(first) || !accepted(second) || string(first.Password) == string(second.Password) {
		t.Fatal("both tokens have to be accepted while the next key is pending")
	}
	newHeld, err := token.ParseAMRM(second.Identifier)
	if err != nil || newHeld.KeyID != held.KeyID+1 || newHeld.Attempt != attempt {
		t.Fatalf("the replacement is %+v after %+v (%v)", newHeld, held, err)
	}
	if _, ok := k.ReplaceAMRM(newHeld); ok {
		t.Fatal("a second replacement")
	}
	if minted := k.Newest().AMRM(attempt); string(minted.Password) != string(second.Password) {
		t.Fatal("new tokens have to use the next key")
	}
	if k.Step(day.Add(15*time.Minute-1), rnd) || !k.Step(day.Add(15*time.Minute), rnd) {
		t.Fatal("the next key has to come into use after 15 minutes")
	}
	if accepted(first) || !accepted(second) {
		t.Fatal("after the change only the new key is accepted")
	}
	if !k.Deadline().Equal(start.Add(48 * time.Hour)) {
		t.Fatalf("the period drifted: next change at %v", k.Deadline())
	}
}

// What is kept over a restart is all there is: a restored machine goes on as the old one would have.
func TestKeysSurviveARestart(t *testing.T) {
	rnd := seeded()
	k := token.NewKeys(token.Rolling{Every: time.Hour, Delay: time.Minute}, start, rnd)
	for step := range 5 {
		now := k.Deadline()
		r := token.RestoreKeys(token.Rolling{Every: time.Hour, Delay: time.Minute}, k.State())
		if !reflect.DeepEqual(r.State(), k.State()) ||
			string(r.Newest().AMRM(attempt).Password) != string(k.Newest().AMRM(attempt).Password) {
			t.Fatalf("step %d: restored %v of %v", step, r.State(), k.State())
		}
		k.Step(now, rnd)
		rest := r
		rest.Step(now, seeded())
		if rest.Deadline() != k.Deadline() {
			t.Fatalf("step %d: the restored one wakes at %v, the old one at %v", step, rest.Deadline(), k.Deadline())
		}
	}
}

// An AMRM token is accepted for at least the delay after it was minted; ids only grow by one; at no moment are more than
// two keys accepted.
func TestKeysLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		rolling := token.Rolling{Every: time.Hour, Delay: 10 * time.Minute}
		k := token.NewKeys(rolling, start, rnd)
		now, id := start, k.Current().Key().ID
		type minted struct {
			at time.Time
			id int32
		}
		var last []minted
		for range 50 {
			now = now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "minutes")) * time.Minute)
			if rapid.IntRange(0, 9).Draw(t, "operator") == 0 {
				k.Roll(now, rnd)
			}
			k.Step(now, rnd)
			if got := k.Current().Key().ID; got != id && got != id+1 {
				t.Fatalf("key %d follows %d", got, id)
			}
			id = k.Current().Key().ID
			if len(k.Accepted()) > 2 {
				t.Fatalf("%d keys are accepted", len(k.Accepted()))
			}
			for _, m := range last {
				if _, ok := k.Accepted().Find(m.id); !ok && now.Sub(m.at) < rolling.Delay {
					t.Fatalf("a token of %v is refused at %v", m.at, now)
				}
			}
			last = append(last, minted{now, k.Newest().Key().ID})
		}
	})
}

// A node hears of keys in heartbeats; a master started before keeps working; strangers do not.
func TestNodeAcceptsNMTokens(t *testing.T) {
	rnd := seeded()
	rm := token.NewKeys(token.Rolling{}, start, rnd)
	n := token.NewNodeKeys(node)
	id := token.NM{Attempt: attempt, Node: node, User: "alice"}
	old := rm.Current().NM(id, "127.0.0.1:21045")
	if _, _, err := n.Password(old.Identifier); !errors.Is(err, creel.ErrInvalidToken) {
		t.Fatalf("a node without keys said %v", err)
	}
	n.Told(rm.Current().Key())
	p, who, err := n.Password(old.Identifier)
	if err != nil || string(p) != string(old.Password) || who.Attempt != attempt || who.User != "alice" {
		t.Fatalf("the node made %x of %+v (%v)", p, who, err)
	}
	other := id
	other.Node.Port++
	if _, _, err := n.Password(
		rm.Current().NM(other, "").Identifier,
	); !errors.Is(err, creel.ErrInvalidToken) ||
		!strings.Contains(err.Error(), "localhost:21046") {
		t.Fatalf("a token for another node: %v", err)
	}

	// Two keys later the token is too old, unless its master has started containers here.
	told := func() {
		rm.Step(rm.Deadline(), rnd)
		if next := rm.ForNode(n.Current().ID); next.IsZero() {
			t.Fatal("the ResourceManager has nothing to tell though its key rolled")
		} else {
			n.Told(next)
		}
		rm.Step(rm.Deadline(), rnd)
		if next := rm.ForNode(n.Current().ID); !next.IsZero() {
			t.Fatalf("told %d again", next.ID)
		}
	}
	told()
	n.Told(rm.Current().Key()) // told twice: the one before must stay
	if _, _, err := n.Password(old.Identifier); err != nil {
		t.Fatalf("the previous key has to be accepted: %v", err)
	}
	n.Started(who)
	told()
	if _, _, err := n.Password(old.Identifier); err != nil {
		t.Fatalf("a master at work was locked out: %v", err)
	}
	stranger := attempt
	stranger.Attempt = 2
	forged := token.NewMac(mustKey(t, n, attempt)).NM(token.NM{Attempt: stranger, Node: node, User: "alice"}, "")
	if _, _, err := n.Password(forged.Identifier); !errors.Is(err, creel.ErrInvalidToken) {
		t.Fatalf("another attempt used the remembered key: %v", err)
	}
	restored := token.RestoreNodeKeys(node, n.State())
	if !reflect.DeepEqual(restored.State(), n.State()) {
		t.Fatalf("restored %v of %v", restored.State(), n.State())
	}
	if _, _, err := restored.Password(old.Identifier); err != nil {
		t.Fatalf("after a restart of the node: %v", err)
	}
	n.Forget(attempt.Application)
	if _, _, err := n.Password(old.Identifier); !errors.Is(err, creel.ErrInvalidToken) {
		t.Fatalf("after the application ended: %v", err)
	}
}

func mustKey(t *testing.T, n *token.NodeKeys, a creel.AttemptID) token.Key {
	for _, s := range n.State().Started {
		if s.Attempt == a {
			return s.Key
		}
	}
	t.Fatal("nothing is remembered")
	return token.Key{}
}

// Each reason for which a node refuses to start a container.
func TestNodeChecksContainerTokens(t *testing.T) {
	rnd := seeded()
	rm := token.NewKeys(token.Rolling{}, start, rnd)
	n := token.NewNodeKeys(node)
	n.Told(rm.Current().Key())
	id := recordedContainer()
	id.Expires, id.Created = start.Add(10*time.Minute), start
	good := rm.Current().Container(id, "127.0.0.1:21045")
	got, err := n.Start(good, id.RMIdentifier, start.Add(10*time.Minute))
	if err != nil || got.ID != id.ID || got.User != "root" || !got.Resource.Equal(id.Resource) {
		t.Fatalf("a good token gave %+v (%v)", got, err)
	}
	elsewhere := id
	elsewhere.Node.Host = "127.0.0.1" // the same machine, another text
	tampered := good
	tampered.Identifier = append([]byte(nil), good.Identifier...)
	tampered.Identifier[len(tampered.Identifier)-1] = 1
	unknown := token.NewMac(token.Key{ID: 1, Secret: []byte("12345678")})
	for name, c := range map[string]struct {
		token token.Token
		rm    int64
		now   time.Time
		why   string
	}{
		"expired":            {good, id.RMIdentifier, start.Add(10*time.Minute + 1), "had to be started before"},
		"another life":       {good, id.RMIdentifier + 1, start, "registered with the one started at"},
		"another node":       {rm.Current().Container(elsewhere, ""), id.RMIdentifier, start, "it is for node 127.0.0.1:21045"},
		"tampered":           {tampered, id.RMIdentifier, start, "does not belong to its identifier"},
		"an unknown key":     {unknown.Container(id, ""), id.RMIdentifier, start, "master key 1 is not accepted"},
		"garbage":            {token.Token{Identifier: []byte{0xff}}, id.RMIdentifier, start, "cannot be read"},
		"no identifier":      {token.Token{}, id.RMIdentifier, start, "cannot be read"},
		"password cut short": {token.Token{Identifier: good.Identifier, Password: good.Password[:19]}, id.RMIdentifier, start, "does not belong"},
		"no password at all": {token.Token{Identifier: good.Identifier}, id.RMIdentifier, start, "does not belong"},
	} {
		_, err := n.Start(c.token, c.rm, c.now)
		if !errors.Is(err, creel.ErrInvalidToken) || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v, want %q", name, err, c.why)
		}
		var restarted *token.RestartedError
		if errors.As(err, &restarted) != (name == "another life") {
			t.Errorf("%s: told apart wrongly: %v", name, err)
		}
	}
	if _, err := n.Verify(good); err != nil {
		t.Errorf("an update of a running container may come with an old token: %v", err)
	}
}

// A node of ours accepts what Hadoop's ResourceManager minted, with the keys Hadoop told its nodes.
func TestNodeAcceptsRecordedTokens(t *testing.T) {
	containers, masters := token.NewNodeKeys(node), token.NewNodeKeys(node)
	containers.Told(token.KeyFrom(&yarnpb.MasterKeyProto{KeyId: proto.Int32(694067528), Bytes: unhex(t, containerKey)}))
	masters.Told(token.KeyFrom(&yarnpb.MasterKeyProto{KeyId: proto.Int32(-1431259851), Bytes: unhex(t, nmKey)}))
	tok := token.Token{
		Identifier: unhex(t, containerIdentifier),
		Password:   unhex(t, containerPassword),
		Kind:       token.KindContainer,
	}
	got, err := containers.Start(tok, 1795254163125, time.UnixMilli(1795254190000))
	if err != nil || got.ID.String() != "container_1795254163125_0001_01_000001" || got.User != "root" {
		t.Errorf("started %+v (%v)", got, err)
	}
	password, who, err := masters.Password(unhex(t, nmIdentifier))
	if err != nil || !bytes.Equal(password, unhex(t, nmPassword)) || who.Attempt != attempt {
		t.Errorf("the master is %+v with %x (%v)", who, password, err)
	}
}

// A client's token for a master: the master verifies it with the key its registration gave it.
func TestClientToAM(t *testing.T) {
	key := token.Key{Secret: token.NewSecret(seeded())}
	if len(key.Secret) != 8 {
		t.Fatalf("a secret of %d bytes", len(key.Secret))
	}
	tok := token.NewMac(key).ClientToAM(token.ClientToAM{Attempt: attempt, Client: "alice"})
	if !key.Verify(tok.Identifier, tok.Password) || tok.Kind != "YARN_CLIENT_TOKEN" ||
		len(tok.Password) != token.PasswordSize {
		t.Errorf("minted %v", tok)
	}
	if (token.Key{Secret: []byte("other")}).Verify(tok.Identifier, tok.Password) {
		t.Error("verified with another key")
	}
}

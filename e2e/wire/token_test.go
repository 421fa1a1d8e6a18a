// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/e2e/hadoop"
	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/internal/hrpc"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/internal/yarnpb"
)

// tokenLine is a line of TokenTool.
type tokenLine struct {
	Error, Kind, User, Again, Password, Service, Identifier string

	Owner, Renewer, RealUser, Attempt, Node, Container, Resource, Type, Execution string
	Issued, Max, RM                                                               int64
	Sequence, KeyID, Priority                                                     int32

	Alias              string
	Tokens             []tokenLine
	Writable, Protobuf string
	States             map[string]string
}

// ask has Hadoop's own classes answer all commands in one JVM.
func ask(t *testing.T, version hadoop.Version, conf hadoop.Conf, commands []string) []tokenLine {
	t.Helper()
	r := hadoop.Client{
		Version: version,
		Conf:    conf,
		Stdin:   strings.NewReader(strings.Join(commands, "\n") + "\n"),
	}.Run(t, "TokenTool").
		OK(t)
	var out []tokenLine
	for line := range strings.Lines(r.Stdout) {
		var a tokenLine
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if a.Error != "" {
			t.Errorf("%s: %s", commands[len(out)], a.Error)
		}
		out = append(out, a)
	}
	if len(out) != len(commands) {
		t.Fatalf("%d answers to %d commands\n%s", len(out), len(commands), r.All)
	}
	return out
}

// Hadoop's classes read creel's tokens with the same meaning, compute the same password and write the same bytes; and
// the other way round.
func TestHadoopsClassesReadOurTokens(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	now := time.UnixMilli(1_795_254_163_125)
	key := token.Key{ID: -1431259851, Secret: token.NewSecret(rnd)}
	mac := token.NewMac(key)
	app := creel.ApplicationID{ClusterTimestamp: now.UnixMilli(), ID: 7}
	attempt := creel.AttemptID{Application: app, Attempt: 2}
	node := creel.NodeID{Host: "host-1.example", Port: 45454}
	container := token.Container{
		ID: creel.NewContainerID(
			attempt,
			17,
			5,
		),
		Node:         node,
		User:         "alice",
		Resource:     creel.NewResource(1024, 2),
		Expires:      now.Add(time.Minute),
		KeyID:        key.ID,
		RMIdentifier: now.UnixMilli(),
		Priority:     3,
		Created:      now,
		AM:           true,
		Execution:    creel.Opportunistic,
	}
	delegations := token.NewDelegations(token.Lifetimes{}, now, rnd)
	delegated, record, err := delegations.Issue(now, "alice", "bob", "oozie")
	if err != nil {
		t.Fatal(err)
	}
	masterKey := delegations.State().Keys[0]
	ours := []token.Token{
		mac.AMRM(attempt),
		mac.NM(token.NM{Attempt: attempt, Node: node, User: "alice", KeyID: key.ID}, "10.0.0.1:45454"),
		mac.Container(
			container,
			"10.0.0.1:45454",
		),
		mac.ClientToAM(token.ClientToAM{Attempt: attempt, Client: "alice"}),
		delegated,
	}

	var commands []string
	say := func(format string, args ...any) { commands = append(commands, fmt.Sprintf(format, args...)) }
	var credentials token.Credentials
	for i, k := range ours {
		secret := key.Secret
		if k.Kind == token.KindDelegation {
			secret = masterKey.Secret
		}
		say("read %s %x %x", k.Kind, k.Identifier, secret)
		credentials = credentials.With(fmt.Sprintf("alias %d", i), k)
	}
	say("token %s", ours[1].URLString())
	say("credentials %x", credentials.Append(nil))
	message, err := credentials.AppendMessage(nil)
	if err != nil {
		t.Fatal(err)
	}
	say("credentials %x", message)
	say("key %x", masterKey.Append(nil))
	numbers := []int64{
		0,
		1,
		-1,
		127,
		128,
		-112,
		-113,
		255,
		256,
		1 << 31,
		-1 << 31,
		1_700_000_000_000,
		1<<63 - 1,
		-1 << 63,
	}
	text, written := "", []byte(nil)
	for _, n := range numbers {
		text += fmt.Sprintf(" %d", n)
		written = token.AppendVLong(written, n)
	}
	say("vlong%s", text)
	say(
		"delegation alice bob oozie %d %d %d %d %x",
		record.Issued.UnixMilli(),
		record.Max.UnixMilli(),
		record.Sequence,
		record.KeyID,
		masterKey.Secret,
	)
	say("delegation carol - - 1 2 3 4 %x", masterKey.Secret)

	for _, version := range []hadoop.Version{hadoop.V342, hadoop.V336} {
		t.Run(string(version), func(t *testing.T) {
			answers := ask(t, version, nil, commands)
			next := func() tokenLine { a := answers[0]; answers = answers[1:]; return a }
			for _, k := range ours {
				a := next()
				if a.Kind != k.Kind || a.Again != hex.EncodeToString(k.Identifier) ||
					a.Password != hex.EncodeToString(k.Password) {
					t.Errorf("%s %x, password %x: Hadoop says %+v", k.Kind, k.Identifier, k.Password, a)
				}
				var want tokenLine
				switch k.Kind {
				case token.KindAMRM:
					want = tokenLine{User: attempt.String(), Owner: attempt.String(), KeyID: key.ID}
				case token.KindNM:
					want = tokenLine{
						User:    attempt.String(),
						Owner:   "alice",
						Attempt: attempt.String(),
						Node:    node.String(),
						KeyID:   key.ID,
					}
				case token.KindContainer:
					want = tokenLine{
						User:      container.ID.String(),
						Owner:     "alice",
						Container: container.ID.String(),
						Node:      node.String(),
						Resource:  "<memory:1024, vCores:2>",
						Max:       container.Expires.UnixMilli(),
						Issued:    now.UnixMilli(),
						KeyID:     key.ID,
						Priority:  3,
						RM:        now.UnixMilli(),
						Type:      "APPLICATION_MASTER",
						Execution: "OPPORTUNISTIC",
					}
				case token.KindClientToAM:
					want = tokenLine{User: "alice", Owner: "alice", Attempt: attempt.String()}
				case token.KindDelegation:
					want = tokenLine{
						User:     "alice",
						Owner:    "alice",
						Renewer:  "bob",
						RealUser: "oozie",
						Issued:   now.UnixMilli(),
						Max:      record.Max.UnixMilli(),
						Sequence: record.Sequence,
						KeyID:    record.KeyID,
					}
				}
				want.Kind, want.Again, want.Password = a.Kind, a.Again, a.Password
				if fmt.Sprint(a) != fmt.Sprint(want) {
					t.Errorf("%s reads\n%+v, want\n%+v", k.Kind, a, want)
				}
			}
			if a := next(); a.Again != ours[1].URLString() || a.Service != ours[1].Service ||
				a.Password != hex.EncodeToString(ours[1].Password) {
				t.Errorf("the text form reads %+v", a)
			}
			for range 2 {
				a := next()
				if len(a.Tokens) != len(ours) {
					t.Fatalf("%d tokens of the file are read", len(a.Tokens))
				}
				for _, form := range []string{a.Writable, a.Protobuf} {
					b, err := hex.DecodeString(form)
					if err != nil {
						t.Fatal(err)
					}
					read, err := token.ParseCredentials(b)
					if err != nil {
						t.Fatalf("Hadoop's token file: %v", err)
					}
					byAlias := map[string]token.Token{}
					for _, a := range read.Tokens {
						byAlias[a.Alias] = a.Token
					}
					for i, k := range ours {
						if got, ok := byAlias[fmt.Sprintf("alias %d", i)]; !ok || fmt.Sprint(got) != fmt.Sprint(k) {
							t.Errorf("from Hadoop's token file: %v, want %v", got, k)
						}
					}
				}
			}
			a := next()
			if a.KeyID != masterKey.ID || a.Max != masterKey.Expires.UnixMilli() ||
				a.Password != hex.EncodeToString(masterKey.Secret) ||
				a.Again != hex.EncodeToString(masterKey.Append(nil)) {
				t.Errorf("the master key reads %+v", a)
			}
			if a := next(); a.Again != hex.EncodeToString(written) {
				t.Errorf("numbers are written %s, ours are %x", a.Again, written)
			}
			a = next()
			if a.Again != hex.EncodeToString(delegated.Identifier) ||
				a.Password != hex.EncodeToString(delegated.Password) {
				t.Errorf("Hadoop makes %+v, we made %x with %x", a, delegated.Identifier, delegated.Password)
			}
			b, err := hex.DecodeString(next().Again)
			if err != nil {
				t.Fatal(err)
			}
			want := token.Delegation{
				Owner:    "carol",
				Issued:   time.UnixMilli(1),
				Max:      time.UnixMilli(2),
				Sequence: 3,
				KeyID:    4,
			}
			if id, err := token.ParseDelegation(
				b,
			); err != nil || fmt.Sprint(id) != fmt.Sprint(want) ||
				!bytes.Equal(id.Append(nil), b) {
				t.Errorf("what Hadoop made reads %+v, %v", id, err)
			}
		})
	}
}

// delegatingHandler hands out delegation tokens.
type delegatingHandler struct {
	handler
	mu     sync.Mutex
	tokens *token.Delegations
}

func (d *delegatingHandler) GetDelegationToken(
	ctx context.Context,
	req *yarnpb.GetDelegationTokenRequestProto,
) (*yarnpb.GetDelegationTokenResponseProto, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	made, _, err := d.tokens.Issue(time.Now(), hrpc.CallFrom(ctx).Identity.User, req.GetRenewer(), "")
	if err != nil {
		return nil, err
	}
	return &yarnpb.GetDelegationTokenResponseProto{Token: made.Proto()}, nil
}

func (d *delegatingHandler) RenewDelegationToken(
	ctx context.Context,
	req *yarnpb.RenewDelegationTokenRequestProto,
) (*yarnpb.RenewDelegationTokenResponseProto, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, err := d.tokens.Renew(time.Now(), token.FromProto(req.GetToken()), hrpc.CallFrom(ctx).Identity.User)
	if err != nil {
		return nil, err
	}
	return &yarnpb.RenewDelegationTokenResponseProto{NewExpiryTime: proto.Uint64(uint64(r.Expires.UnixMilli()))}, nil
}

func (d *delegatingHandler) CancelDelegationToken(
	ctx context.Context,
	req *yarnpb.CancelDelegationTokenRequestProto,
) (*yarnpb.CancelDelegationTokenResponseProto, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.tokens.Cancel(token.FromProto(req.GetToken()), hrpc.CallFrom(ctx).Identity.User); err != nil {
		return nil, err
	}
	return &yarnpb.CancelDelegationTokenResponseProto{}, nil
}

func (d *delegatingHandler) who(identifier []byte) ([]byte, hrpc.Identity, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	password, id, err := d.tokens.Password(time.Now(), identifier)
	return password, hrpc.Identity{User: id.Owner, TokenKind: token.KindDelegation}, err
}

// Hadoop's client gets a delegation token from creel and authenticates with it as a user that the name alone would
// not admit. It has the token renewed and cancelled, and is refused with it afterwards.
func TestHadoopClientUsesOurDelegationToken(t *testing.T) {
	address := process.FreeAddress(t, "127.0.0.1")
	d := &delegatingHandler{tokens: token.NewDelegations(token.Lifetimes{}, time.Now(), rand.New(rand.NewPCG(3, 4)))}
	_, stop := serveWith(t, address, d, hrpc.Config{Simple: true, Tokens: d.who})
	defer stop()
	c := startDriver(t, hadoop.Client{Conf: hadoop.Addresses{Client: address}.Conf(), User: "alice"})
	if a := c.do(
		t,
		"delegate alice",
	); !a.OK || a.User != "alice" || a.Name != "alice" ||
		a.Ms != (7*24*time.Hour).Milliseconds() {
		t.Fatalf("delegate: %+v", a)
	}
	if a := c.do(t, "by-token stranger "+app(5)); !a.OK || a.User != "alice" {
		t.Errorf("with the token: %+v", a)
	}
	if a := c.do(t, "renew"); !a.OK || a.Progress < 23*3600 || a.Progress > 25*3600 {
		t.Errorf("renew: %+v", a)
	}
	if a := c.do(t, "cancel"); !a.OK {
		t.Errorf("cancel: %+v", a)
	}
	if a := c.do(t, "by-token another "+app(5)); a.OK || a.Class != hrpc.ClassInvalidToken {
		t.Errorf("with the cancelled token: %+v", a)
	}
}

// SPDX-License-Identifier: Apache-2.0

package token_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/internal/yarnpb"
)

// Data that Hadoop 3.4.2 created in a recorded run: the keys it sent to a node, and the tokens it made with them.
const (
	containerKey = "a2c2bea6e72d6ca5" // id 694067528
	nmKey        = "eaa66a3c3eb8ca8d" // id -1431259851

	containerIdentifier = "0a1112" + "0d0a09080110b5adf2eb9f341001" + "1801" + "120f6c6f63616c686f73743a3231303435" + "1a04726f6f74" +
		"222b" + "0880011001" + "1a140a096d656d6f72792d6d621080011a024d692000" + "1a0e0a0676636f72657310011a002000" +
		"28949798ec9f34" + "30c8c2faca02" + "38b5adf2eb9f34" + "42020807" + "48b5c6f3eb9f34" + "5a00" + "6002" + "6801" + "7000" + "7800"
	containerPassword = "3520ec2ea4c7723fb01906e1bb9f17f92f77bc54"

	nmIdentifier = "0a0d0a09080110b5adf2eb9f341001" + "120f0a096c6f63616c686f737410b5a401" + "1a04726f6f74" + "20b5eac2d5faffffffff01"
	nmPassword   = "8e55d679e4b8f9d9ec80eff67d7d4fd2baeb07a2"

	amrmIdentifier = "0a0d0a09080110b5adf2eb9f34100110ea99d4ed06"
)

var (
	attempt = creel.AttemptID{Application: creel.ApplicationID{ClusterTimestamp: 1795254163125, ID: 1}, Attempt: 1}
	node    = creel.NodeID{Host: "localhost", Port: 21045}
)

func recordedContainer() token.Container {
	return token.Container{
		ID:       creel.ContainerID{Attempt: attempt, ID: 1},
		Node:     node,
		User:     "root",
		Resource: creel.NewResource(128, 1),
		Expires: time.UnixMilli(
			1795254782868,
		),
		KeyID:        694067528,
		Execution:    creel.Guaranteed,
		RMIdentifier: 1795254163125,
		Priority:     7,
		Created:      time.UnixMilli(1795254182709),
	}
}

// creel's tokens equal Hadoop's, byte for byte.
func TestRecordedTokens(t *testing.T) {
	containers := token.NewMac(token.Key{ID: 694067528, Secret: unhex(t, containerKey)})
	want := recordedContainer()
	parsed, err := token.ParseContainer(unhex(t, containerIdentifier))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(parsed, want) {
		t.Errorf("read\n%+v\nwant\n%+v", parsed, want)
	}
	got := containers.Container(want, "127.0.0.1:21045")
	if hex.EncodeToString(got.Identifier) != containerIdentifier ||
		hex.EncodeToString(got.Password) != containerPassword ||
		got.Kind != "ContainerToken" {
		t.Errorf(
			"container token\n%x %x, want\n%s %s",
			got.Identifier,
			got.Password,
			containerIdentifier,
			containerPassword,
		)
	}

	ams := token.NewMac(token.Key{ID: -1431259851, Secret: unhex(t, nmKey)})
	id := token.NM{Attempt: attempt, Node: node, User: "root"}
	got = ams.NM(id, "127.0.0.1:21045")
	if hex.EncodeToString(got.Identifier) != nmIdentifier || hex.EncodeToString(got.Password) != nmPassword ||
		got.Kind != "NMToken" {
		t.Errorf("NM token\n%x %x, want\n%s %s", got.Identifier, got.Password, nmIdentifier, nmPassword)
	}

	am, err := token.ParseAMRM(unhex(t, amrmIdentifier))
	if err != nil || am.Attempt != attempt || hex.EncodeToString(am.Append(nil)) != amrmIdentifier {
		t.Errorf("AMRM identifier is %+v, written %x (%v)", am, am.Append(nil), err)
	}
}

// Identifiers are canonical: the appended bytes equal those that both codecs write for the parsed message, with
// lengths of one byte and of more.
func TestIdentifiersAreCanonical(t *testing.T) {
	propertytest.Check(t, func(t *rapid.T) {
		a := creel.AttemptID{
			Application: creel.ApplicationID{
				ClusterTimestamp: rapid.Int64().Draw(t, "ts"),
				ID:               rapid.Int32().Draw(t, "app"),
			},
			Attempt: rapid.Int32().Draw(t, "attempt"),
		}
		text := rapid.StringMatching(`[a-z]{0,300}`)
		n := creel.NodeID{
			Host: rapid.StringMatching(`[a-z]{1,300}`).Draw(t, "host"),
			Port: rapid.Int32Range(0, 65535).Draw(t, "port"),
		}
		moment := rapid.Custom(
			func(t *rapid.T) time.Time { return time.UnixMilli(rapid.Int64Range(0, 1<<45).Draw(t, "ms")) },
		)
		c := token.Container{
			ID:   creel.ContainerID{Attempt: a, ID: rapid.Int64().Draw(t, "id")},
			Node: n,
			User: text.Draw(t, "user"),
			Resource: creel.NewResource(
				rapid.Int64().Draw(t, "mb"),
				int64(rapid.Int32().Draw(t, "cores")),
				creel.Amount{
					Name:  "yarn.io/gpu-" + text.Draw(t, "type"),
					Value: 1 + rapid.Int64Range(0, 9).Draw(t, "gpus"),
				},
			),
			Expires: moment.Draw(
				t,
				"expires",
			),
			KeyID:        rapid.Int32().Draw(t, "key"),
			RMIdentifier: rapid.Int64().Draw(t, "rm"),
			Priority:     rapid.Int32().Draw(t, "priority"),
			Created:      moment.Draw(t, "created"),
			Label:        text.Draw(t, "label"),
			AM:           rapid.Bool().Draw(t, "AM"),
			Execution: creel.ExecutionType(
				rapid.IntRange(1, 2).Draw(t, "execution"),
			),
			Version:             rapid.Int32().Draw(t, "version"),
			AllocationRequestID: rapid.Int64().Draw(t, "request"),
			Tags:                rapid.SliceOfN(text, 0, 3).Draw(t, "tags"),
		}
		if len(c.Tags) == 0 {
			c.Tags = nil
		}
		if rapid.Bool().Draw(t, "logs") {
			c.Logs = &yarnpb.LogAggregationContextProto{IncludePattern: proto.String(text.Draw(t, "include"))}
		}
		written := c.Append(nil)
		message := new(yarnpb.ContainerTokenIdentifierProto)
		if err := message.UnmarshalVT(written); err != nil {
			t.Fatal(err)
		}
		if again, err := message.MarshalVT(); err != nil || !bytes.Equal(again, written) {
			t.Fatalf("we write\n%x\nthe codec\n%x (%v)", written, again, err)
		}
		back, err := token.ParseContainer(written)
		if err != nil || !bytes.Equal(back.Append(nil), written) || back.ID != c.ID ||
			!back.Resource.Equal(c.Resource) ||
			back.AM != c.AM {
			t.Fatalf("%+v came back as %+v (%v)", c, back, err)
		}

		nm := token.NM{Attempt: a, Node: n, User: c.User, KeyID: c.KeyID}
		if back, err := token.ParseNM(nm.Append(nil)); err != nil || back != nm {
			t.Fatalf("%+v came back as %+v (%v)", nm, back, err)
		}
		am := token.AMRM{Attempt: a, KeyID: c.KeyID}
		if back, err := token.ParseAMRM(am.Append(nil)); err != nil || back != am {
			t.Fatalf("%+v came back as %+v (%v)", am, back, err)
		}
		client := token.ClientToAM{Attempt: a, Client: c.User}
		if back, err := token.ParseClientToAM(client.Append(nil)); err != nil || back != client {
			t.Fatalf("%+v came back as %+v (%v)", client, back, err)
		}
		d := token.Delegation{
			Owner:    c.User,
			Renewer:  c.Label,
			RealUser: n.Host,
			Issued:   c.Created,
			Max:      c.Expires,
			Sequence: c.Version,
			KeyID:    c.KeyID,
		}
		if back, err := token.ParseDelegation(d.Append(nil)); err != nil || back != d {
			t.Fatalf("%+v came back as %+v (%v)", d, back, err)
		}
	})
}

// FuzzIdentifiers: no bytes make a parser fail otherwise than with ErrInvalidToken.
func FuzzIdentifiers(t *testing.F) {
	f := propertytest.Fuzz(t)
	for _, s := range []string{containerIdentifier, nmIdentifier, amrmIdentifier, ""} {
		f.Add(unhex(f, s))
	}
	f.Add(
		token.Delegation{
			Owner:    "alice",
			Renewer:  "yarn",
			Issued:   time.UnixMilli(1),
			Max:      time.UnixMilli(2),
			Sequence: 3,
			KeyID:    4,
		}.Append(
			nil,
		),
	)
	f.Fuzz(func(t *testing.T, b []byte) {
		check := func(err error) {
			if err != nil && !errors.Is(err, creel.ErrInvalidToken) {
				t.Fatalf("an error of another kind: %v", err)
			}
		}
		_, err := token.ParseAMRM(b)
		check(err)
		_, err = token.ParseNM(b)
		check(err)
		_, err = token.ParseClientToAM(b)
		check(err)
		_, err = token.ParseDelegation(b)
		check(err)
		c, err := token.ParseContainer(b)
		check(err)
		if err != nil {
			return
		}
		if _, err := token.ParseContainer(c.Append(nil)); err != nil {
			t.Fatalf("what was read cannot be read again: %v", err)
		}
	})
}

// BenchmarkContainerToken mints tokens; hmac is the part of it no implementation can save.
func BenchmarkContainerToken(b *testing.B) {
	mac := token.NewMac(token.Key{ID: 694067528, Secret: unhex(b, containerKey)})
	id, identifier := recordedContainer(), unhex(b, containerIdentifier)
	perOp := map[string]float64{}
	run := func(name string, f func()) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f()
			}
			perOp[name] = float64(b.Elapsed().Nanoseconds()) / float64(b.N)
		})
	}
	buf := make([]byte, 0, 64)
	run("mint", func() { mac.Container(id, "127.0.0.1:21045") })
	run("hmac", func() { mac.Append(buf, identifier) })
	run("unkeyed-hmac", func() { mac.Key().Password(identifier) })
	b.Logf("a token costs %.0f ns beside its HMAC", perOp["mint"]-perOp["hmac"])
}

// FuzzAMRMKeys checks that any file content yields keys or an error.
func FuzzAMRMKeys(t *testing.F) {
	f := propertytest.Fuzz(t)
	f.Add([]byte("\x0a\x0c\x08\x07\x12\x08abcdefgh"))
	f.Add([]byte("\x0a\x0c\x08\x07\x12\x08abcdefgh\x12\x0c\x08\x08\x12\x08ABCDEFGH"))
	f.Add([]byte("\x0a\x00\x08\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		ring, err := token.ParseAMRMKeys(b)
		if err != nil {
			return
		}
		if len(ring) == 0 || len(ring) > 2 {
			t.Fatalf("%d keys", len(ring))
		}
		for _, k := range ring {
			if k.IsZero() || len(k.Secret) == 0 {
				t.Fatal("a key without a secret is accepted: everybody could sign with it")
			}
			if found, ok := ring.Find(k.ID); !ok || found.IsZero() {
				t.Fatalf("key %d is not found", k.ID)
			}
		}
	})
}

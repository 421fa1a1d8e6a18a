// SPDX-License-Identifier: Apache-2.0

package token_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/propertytest"
	"github.com/creelrm/creel/internal/token"
)

func sample() token.Credentials {
	return token.Credentials{
		Tokens: []token.AliasedToken{
			{
				Alias: "",
				Token: token.Token{
					Identifier: []byte{1, 2, 3},
					Password:   bytes.Repeat([]byte{0xfe}, 200),
					Kind:       token.KindAMRM,
					Service:    "127.0.0.1:8030",
				},
			},
			{
				Alias: "ha-hdfs:nn",
				Token: token.Token{
					Identifier: []byte("id"),
					Password:   []byte("pw"),
					Kind:       "HDFS_DELEGATION_TOKEN",
					Service:    "ha-hdfs:nn",
				},
			},
		},
		Secrets: []token.Secret{{Alias: "MapReduceShuffleToken", Value: []byte{9, 8, 7}}},
	}
}

// The layout, byte by byte: magic, format, one token under the empty alias, no secret.
func TestCredentialsLayout(t *testing.T) {
	c := token.Credentials{}.With(
		"",
		token.Token{Identifier: []byte{0xaa}, Password: []byte{0xbb, 0xcc}, Kind: "K", Service: "s:1"},
	)
	want := "48445453" + "00" + "01" + "00" + "01aa" + "02bbcc" + "014b" + "03733a31" + "00"
	if got := hex.EncodeToString(c.Append(nil)); got != want {
		t.Errorf("written %s, want %s", got, want)
	}
}

func TestCredentialsInBothFormats(t *testing.T) {
	c := sample()
	message, err := c.AppendMessage(nil)
	if err != nil {
		t.Fatal(err)
	}
	for format, b := range map[string][]byte{"writable": c.Append(nil), "message": message} {
		got, err := token.ParseCredentials(b)
		if err != nil || !reflect.DeepEqual(got, c) {
			t.Errorf("%s: came back as %v (%v)", format, got, err)
		}
		for cut := range len(b) {
			if _, err := token.ParseCredentials(b[:cut]); !errors.Is(err, creel.ErrInvalidRequest) {
				t.Errorf("%s cut at %d of %d gave %v", format, cut, len(b), err)
			}
		}
	}
	if got, ok := c.OfKind(token.KindAMRM); !ok || got.Service != "127.0.0.1:8030" {
		t.Errorf("the AMRM token is %v", got)
	}
	if _, ok := named(c, "nobody"); ok {
		t.Error("a token nobody put there")
	}
	replaced := c.With("", token.Token{Kind: token.KindAMRM, Service: "new"})
	if got, _ := named(replaced, ""); got.Service != "new" || len(replaced.Tokens) != 2 {
		t.Errorf("after replacing: %v", replaced)
	}
	if got, _ := named(c, ""); got.Service != "127.0.0.1:8030" {
		t.Error("With changed its receiver")
	}
}

func TestBadCredentials(t *testing.T) {
	for name, b := range map[string][]byte{
		"empty": nil, "other magic": []byte("HDTX\x00\x00\x00"), "format 2": []byte("HDTS\x02"),
		"a token count that lies": append([]byte("HDTS\x00"), token.AppendVLong(nil, 1<<31-1)...),
		"a negative count":        append([]byte("HDTS\x00"), token.AppendVLong(nil, -5)...),
		"a length that lies":      []byte("HDTS\x01\xff\xff\xff\xff\x0f"),
		"a half message":          []byte("HDTS\x01\x02\x0a\x01"),
	} {
		if _, err := token.ParseCredentials(b); !errors.Is(err, creel.ErrInvalidRequest) {
			t.Errorf("%s gave %v", name, err)
		}
	}
}

func TestURLString(t *testing.T) {
	k := sample().Tokens[0].Token
	s := k.URLString()
	if strings.ContainsAny(s, "+/=") {
		t.Errorf("%s is not safe in a URL", s)
	}
	padded := s + strings.Repeat("=", (4-len(s)%4)%4)
	for _, text := range []string{s, padded} {
		got, err := token.ParseURLString(text)
		if err != nil || !reflect.DeepEqual(got, k) {
			t.Errorf("%s came back as %v (%v)", text, got, err)
		}
	}
	long := base64.RawURLEncoding.EncodeToString(append(k.Append(nil), 0))
	for _, bad := range []string{"", "!", s[:len(s)-3], long} {
		if _, err := token.ParseURLString(bad); !errors.Is(err, creel.ErrInvalidRequest) {
			t.Errorf("%q gave %v", bad, err)
		}
	}
}

func TestTokenAsMessage(t *testing.T) {
	k := sample().Tokens[0].Token
	b, err := proto.Marshal(k.Proto())
	if err != nil {
		t.Fatal(err)
	}
	p := (token.Token{}).Proto()
	if err := proto.Unmarshal(b, p); err != nil {
		t.Fatal(err)
	}
	if got := token.FromProto(p); !reflect.DeepEqual(got, k) {
		t.Errorf("came back as %v", got)
	}
	if _, err := proto.Marshal((token.Token{}).Proto()); err != nil {
		t.Errorf("an empty token cannot be written: %v", err)
	}
}

// FuzzCredentials checks that any bytes are rejected or read, and that a result is the same when written and read
// again.
func FuzzCredentials(t *testing.F) {
	f := propertytest.Fuzz(t)
	message, err := sample().AppendMessage(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(message)
	f.Add(sample().Append(nil))
	f.Add([]byte("HDTS\x00\x00\x00"))
	f.Add([]byte("HDTS\x01\x00"))
	f.Add([]byte("HDTS\x00\x01\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := token.ParseCredentials(b)
		if err != nil {
			if !errors.Is(err, creel.ErrInvalidRequest) {
				t.Fatalf("an error of another kind: %v", err)
			}
			return
		}
		again, err := token.ParseCredentials(c.Append(nil))
		if err != nil || !bytes.Equal(again.Append(nil), c.Append(nil)) {
			t.Fatalf("%v came back as %v (%v)", c, again, err)
		}
	})
}

// FuzzURLString: as FuzzCredentials, for a token as text.
func FuzzURLString(t *testing.F) {
	f := propertytest.Fuzz(t)
	f.Add(sample().Tokens[0].Token.URLString())
	f.Add("AAAAAA")
	f.Add("====")
	f.Fuzz(func(t *testing.T, s string) {
		k, err := token.ParseURLString(s)
		if err != nil {
			return
		}
		again, err := token.ParseURLString(k.URLString())
		if err != nil || !bytes.Equal(again.Append(nil), k.Append(nil)) {
			t.Fatalf("%v came back as %v (%v)", k, again, err)
		}
	})
}

// named finds the token with an alias.
func named(c token.Credentials, alias string) (t token.Token, ok bool) {
	for _, a := range c.Tokens {
		if a.Alias == alias {
			t, ok = a.Token, true
		}
	}
	return t, ok
}

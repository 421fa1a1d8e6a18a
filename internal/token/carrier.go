// SPDX-License-Identifier: Apache-2.0

package token

import (
	"encoding/base64"
	"encoding/binary"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel/internal/yarnpb"
)

// Kinds of tokens, as written in messages and files.
const (
	KindAMRM       = "YARN_AM_RM_TOKEN"
	KindNM         = "NMToken"
	KindContainer  = "ContainerToken"
	KindDelegation = "RM_DELEGATION_TOKEN"
	KindClientToAM = "YARN_CLIENT_TOKEN"
	KindTimeline   = "TIMELINE_DELEGATION_TOKEN"
)

// Token is a token as its bearer sees it.
type Token struct {
	Identifier []byte
	Password   []byte
	Kind       string
	Service    string // ip:port, a comma-joined list of them for HA, or "" until the bearer fills it
}

// FromProto converts the token in a message; it shares memory with the message. Nil becomes the zero Token.
func FromProto(p *yarnpb.TokenProto) Token {
	return Token{Identifier: p.GetIdentifier(), Password: p.GetPassword(), Kind: p.GetKind(), Service: p.GetService()}
}

// Proto converts the token to a message, in one allocation; it shares memory with t's slices.
func (t Token) Proto() *yarnpb.TokenProto {
	m := &struct {
		p             yarnpb.TokenProto
		kind, service string
	}{kind: t.Kind, service: t.Service}
	m.p.Identifier, m.p.Password, m.p.Kind, m.p.Service = t.Identifier, t.Password, &m.kind, &m.service
	if t.Identifier == nil {
		m.p.Identifier = []byte{} // the field is required
	}
	if t.Password == nil {
		m.p.Password = []byte{}
	}
	return &m.p
}

// Append appends the token as a Writable.
func (t Token) Append(b []byte) []byte {
	b = AppendBytes(b, t.Identifier)
	b = AppendBytes(b, t.Password)
	b = AppendText(b, t.Kind)
	return AppendText(b, t.Service)
}

// Read takes a Writable token from r. Its slices share memory with the input.
func Read(r *Reader) Token {
	return Token{Identifier: r.Bytes(), Password: r.Bytes(), Kind: r.Text(), Service: r.Text()}
}

// URLString returns the token as URL-safe base64 without padding, the form of delegation tokens in REST and on command
// lines.
func (t Token) URLString() string { return base64.RawURLEncoding.EncodeToString(t.Append(nil)) }

// ParseURLString is the inverse of URLString; padding is accepted.
func ParseURLString(s string) (Token, error) {
	for len(s) > 0 && s[len(s)-1] == '=' {
		s = s[:len(s)-1]
	}
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return Token{}, malformed("the text is not URL-safe base64: %v", err)
	}
	r := NewReader(b)
	t := Read(r)
	if len(r.Rest()) > 0 {
		r.Fail("%d bytes follow the token", len(r.Rest()))
	}
	return t, r.Err()
}

// Credentials are the tokens and secrets of a user: the file in a container, the tokens of a launch context. The order
// is preserved, so that reading and writing changes nothing. Among equal aliases the last one counts, as in Java.
type Credentials struct {
	Tokens  []AliasedToken
	Secrets []Secret
}

// AliasedToken is a token under its alias: usually its service, "" for the AMRM token.
type AliasedToken struct {
	Alias string
	Token Token
}

// Secret is a named secret.
type Secret struct {
	Alias string
	Value []byte
}

// OfKind finds the last token of a kind: the AMRM token, under any alias.
func (c Credentials) OfKind(kind string) (Token, bool) {
	for i := len(c.Tokens) - 1; i >= 0; i-- {
		if c.Tokens[i].Token.Kind == kind {
			return c.Tokens[i].Token, true
		}
	}
	return Token{}, false
}

// With returns a copy of c with a token set under an alias.
func (c Credentials) With(alias string, t Token) Credentials {
	tokens := make([]AliasedToken, 0, len(c.Tokens)+1)
	for _, n := range c.Tokens {
		if n.Alias != alias {
			tokens = append(tokens, n)
		}
	}
	return Credentials{Tokens: append(tokens, AliasedToken{alias, t}), Secrets: c.Secrets}
}

const (
	magic         = "HDTS"
	formatWrite   = 0 // Writables, as written by Java
	formatMessage = 1 // one delimited CredentialsProto
)

// Append appends the credentials in format 0, which Java writes into files, launch contexts and heartbeats.
func (c Credentials) Append(b []byte) []byte {
	b = append(b, magic...)
	b = append(b, formatWrite)
	b = AppendVLong(b, int64(len(c.Tokens)))
	for _, n := range c.Tokens {
		b = n.Token.Append(AppendText(b, n.Alias))
	}
	b = AppendVLong(b, int64(len(c.Secrets)))
	for _, s := range c.Secrets {
		b = AppendBytes(AppendText(b, s.Alias), s.Value)
	}
	return b
}

// AppendMessage appends the credentials in format 1.
func (c Credentials) AppendMessage(b []byte) ([]byte, error) {
	m := new(yarnpb.CredentialsProto)
	for _, n := range c.Tokens {
		m.Tokens = append(m.Tokens, &yarnpb.CredentialsKVProto{Alias: proto.String(n.Alias), Token: n.Token.Proto()})
	}
	for _, s := range c.Secrets {
		value := s.Value
		if value == nil {
			value = []byte{}
		}
		m.Secrets = append(m.Secrets, &yarnpb.CredentialsKVProto{Alias: proto.String(s.Alias), Secret: value})
	}
	b = append(b, magic...)
	b = append(b, formatMessage)
	b = binary.AppendUvarint(b, uint64(m.SizeVT()))
	body, err := m.MarshalVT()
	return append(b, body...), err
}

// ParseCredentials reads either format. Bytes after the credentials are ignored, as in Java. The result shares memory
// with b.
func ParseCredentials(b []byte) (Credentials, error) {
	if len(b) < len(magic)+1 || string(b[:len(magic)]) != magic {
		return Credentials{}, malformed("credentials do not begin with %s", magic)
	}
	switch format := b[len(magic)]; format {
	case formatWrite:
		return readCredentials(NewReader(b[len(magic)+1:]))
	case formatMessage:
		return readMessage(b[len(magic)+1:])
	default:
		return Credentials{}, malformed("format %d of credentials is neither 0 nor 1", format)
	}
}

func readCredentials(r *Reader) (c Credentials, err error) {
	for n := count(r); n > 0 && r.Err() == nil; n-- {
		c.Tokens = append(c.Tokens, AliasedToken{Alias: r.Text(), Token: Read(r)})
	}
	for n := count(r); n > 0 && r.Err() == nil; n-- {
		c.Secrets = append(c.Secrets, Secret{Alias: r.Text(), Value: r.Bytes()})
	}
	if r.Err() != nil {
		return Credentials{}, r.Err()
	}
	return c, nil
}

func count(r *Reader) int32 {
	n := r.VInt()
	if n < 0 {
		r.Fail("a list has %d entries", n)
	}
	return n
}

func readMessage(b []byte) (c Credentials, err error) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return c, malformed("the length of the credentials is missing or larger than the data")
	}
	m := new(yarnpb.CredentialsProto)
	if err := m.UnmarshalVT(b[n : n+int(size)]); err != nil {
		return c, malformed("%v", err)
	}
	for _, e := range m.Tokens {
		c.Tokens = append(c.Tokens, AliasedToken{Alias: e.GetAlias(), Token: FromProto(e.Token)})
	}
	for _, e := range m.Secrets {
		c.Secrets = append(c.Secrets, Secret{Alias: e.GetAlias(), Value: e.Secret})
	}
	return c, nil
}

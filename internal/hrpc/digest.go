// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// DIGEST-MD5 (RFC 2831), as Hadoop uses it for tokens. The user name is the base64 of the token identifier. The
// password is the base64 of the token's password.

const (
	digestRealm     = "default"
	digestURI       = "/default"
	qopAuth         = "auth"
	qopInt          = "auth-int"
	digestMaxBuffer = 65536
)

// digest is the input of both sides' computation in an exchange.
type digest struct {
	user, password string // base64 of identifier and password
	nonce, cnonce  string
	qop            string
}

func hexMD5(s string) string {
	sum := md5.Sum([]byte(s))
	return hex.EncodeToString(sum[:])
}

// a1 is H(A1), the secret of the session.
func (d *digest) a1() [md5.Size]byte {
	inner := md5.Sum([]byte(d.user + ":" + digestRealm + ":" + d.password))
	return md5.Sum([]byte(string(inner[:]) + ":" + d.nonce + ":" + d.cnonce))
}

// value computes the client's response (method "AUTHENTICATE") or the server's rspauth (method "").
func (d *digest) value(method string) string {
	a1 := d.a1()
	a2 := method + ":" + digestURI
	if d.qop != qopAuth {
		a2 += ":" + strings.Repeat("0", 32)
	}
	return hexMD5(hex.EncodeToString(a1[:]) + ":" + d.nonce + ":00000001:" + d.cnonce + ":" + d.qop + ":" + hexMD5(a2))
}

func (d *digest) response() string { return d.value("AUTHENTICATE") }
func (d *digest) rspauth() string  { return d.value("") }

// challengeText is the server's first message, in the order of a JDK.
func challengeText(nonce, qop string) string {
	return `realm="` + digestRealm + `",nonce="` + nonce + `",qop="` + qop + `",charset=utf-8,algorithm=md5-sess`
}

// responseText is the client's answer, in the order of a JDK.
func (d *digest) responseText() string {
	return fmt.Sprintf(
		`charset=utf-8,username="%s",realm="%s",nonce="%s",nc=00000001,cnonce="%s",digest-uri="%s",maxbuf=%d,response=%s,qop=%s`,
		d.user,
		digestRealm,
		d.nonce,
		d.cnonce,
		digestURI,
		digestMaxBuffer,
		d.response(),
		d.qop,
	)
}

var errDirectives = errors.New("malformed DIGEST-MD5 message")

// directives splits `key=value,key="quoted \" value"` and passes each pair to a function.
func directives(text string, each func(key, value string) error) error {
	for rest := text; ; {
		rest = strings.TrimLeft(rest, ", \t\r\n")
		if rest == "" {
			return nil
		}
		key, after, ok := strings.Cut(rest, "=")
		key = strings.ToLower(strings.TrimSpace(key))
		if !ok || key == "" || strings.ContainsAny(key, "\",") {
			return errDirectives
		}
		var value string
		after = strings.TrimLeft(after, " \t\r\n")
		if strings.HasPrefix(after, `"`) {
			var err error
			if value, rest, err = quoted(after[1:]); err != nil {
				return err
			}
		} else {
			end := strings.IndexByte(after, ',')
			if end < 0 {
				end = len(after)
			}
			value, rest = strings.TrimSpace(after[:end]), after[end:]
		}
		if err := each(key, value); err != nil {
			return err
		}
	}
}

// quoted reads a quoted string after its opening quote.
func quoted(s string) (value, rest string, err error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			return b.String(), s[i+1:], nil
		case '\\':
			if i++; i == len(s) {
				return "", "", errDirectives
			}
		}
		b.WriteByte(s[i])
	}
	return "", "", errDirectives
}

// challenge is the part of a server's first message that a client needs.
type challenge struct {
	nonce string
	qops  []string
}

func parseChallenge(text string) (c challenge, err error) {
	algorithm := ""
	err = directives(text, func(key, value string) error {
		switch key {
		case "nonce":
			if c.nonce != "" {
				return fmt.Errorf("%w: two nonces", errDirectives)
			}
			c.nonce = value
		case "qop":
			for q := range strings.SplitSeq(value, ",") {
				c.qops = append(c.qops, strings.TrimSpace(q))
			}
		case "algorithm":
			algorithm = value
		}
		return nil
	})
	if err == nil && (c.nonce == "" || algorithm != "md5-sess") {
		err = fmt.Errorf("%w: no nonce, or the algorithm is not md5-sess", errDirectives)
	}
	if len(c.qops) == 0 {
		c.qops = []string{qopAuth}
	}
	return c, err
}

// answer is the part of a client's response that a server needs.
type answer struct {
	digest
	identifier []byte
	response   string
}

// parseResponse checks a response as far as possible without a password.
func parseResponse(text, nonce, qop string) (a answer, err error) {
	a.qop = qopAuth
	uri, nc, realm := "", "", ""
	err = directives(text, func(key, value string) error {
		set := func(dst *string) error {
			if *dst != "" {
				return fmt.Errorf("%w: two of %s", errDirectives, key)
			}
			*dst = value
			return nil
		}
		switch key {
		case "username":
			return set(&a.user)
		case "realm":
			return set(&realm)
		case "nonce":
			return set(&a.nonce)
		case "cnonce":
			return set(&a.cnonce)
		case "nc":
			return set(&nc)
		case "digest-uri":
			return set(&uri)
		case "response":
			return set(&a.response)
		case "qop":
			a.qop = value
		}
		return nil
	})
	switch {
	case err != nil:
		return a, err
	case a.user == "" || a.cnonce == "" || a.response == "":
		return a, fmt.Errorf("%w: username, cnonce or response is missing", errDirectives)
	case a.nonce != nonce:
		return a, errors.New("DIGEST-MD5: the nonce is not the one of the challenge")
	case nc != "00000001":
		return a, errors.New("DIGEST-MD5: the nonce count is not 1")
	case realm != digestRealm || uri != digestURI:
		return a, fmt.Errorf(
			"DIGEST-MD5: realm %q and digest-uri %q are not ours (%q, %q)",
			realm,
			uri,
			digestRealm,
			digestURI,
		)
	case a.qop != qop:
		return a, fmt.Errorf("DIGEST-MD5: protection %q was not offered, %q was", a.qop, qop)
	}
	if a.identifier, err = base64.StdEncoding.DecodeString(a.user); err != nil {
		return a, fmt.Errorf("DIGEST-MD5: the user name is not base64 of a token identifier: %w", err)
	}
	return a, nil
}

// verify compares the response with the one computed from the password.
func (a *answer) verify(password []byte) bool {
	a.password = base64.StdEncoding.EncodeToString(password)
	return subtle.ConstantTimeCompare([]byte(a.digest.response()), []byte(a.response)) == 1
}

// integrity seals and opens the packets of one connection under auth-int:
// message, first 10 bytes of HMAC-MD5(key, seq + message), 00 01, seq.
type integrity struct {
	sealKey, openKey [md5.Size]byte
	sealSeq, openSeq uint32
}

const sealSize = 16

func (i *integrity) MaxPlain() int { return digestMaxBuffer - sealSize }
func (i *integrity) Overhead() int { return sealSize }

func newIntegrity(d *digest, client bool) *integrity {
	a1 := d.a1()
	toServer := md5.Sum(append(a1[:], "Digest session key to client-to-server signing key magic constant"...))
	toClient := md5.Sum(append(a1[:], "Digest session key to server-to-client signing key magic constant"...))
	if client {
		return &integrity{sealKey: toServer, openKey: toClient}
	}
	return &integrity{sealKey: toClient, openKey: toServer}
}

func mac(key *[md5.Size]byte, seq uint32, message []byte) [10]byte {
	h := hmac.New(md5.New, key[:])
	var s [4]byte
	binary.BigEndian.PutUint32(s[:], seq)
	h.Write(s[:])
	h.Write(message)
	var sum [md5.Size]byte
	h.Sum(sum[:0])
	return [10]byte(sum[:10])
}

// Seal, Open, MaxPlain and Overhead implement Layer.
func (i *integrity) Seal(dst, message []byte) []byte {
	m := mac(&i.sealKey, i.sealSeq, message)
	dst = append(dst, message...)
	dst = append(dst, m[:]...)
	dst = append(dst, 0, 1)
	dst = binary.BigEndian.AppendUint32(dst, i.sealSeq)
	i.sealSeq++
	return dst
}

var errSeal = errors.New("SASL: a wrapped packet fails its integrity check")

func (i *integrity) Open(token []byte) (message []byte, err error) {
	n := len(token) - sealSize
	if n < 0 {
		return nil, errSeal
	}
	m := mac(&i.openKey, i.openSeq, token[:n])
	tail := binary.BigEndian.AppendUint32(append(m[:], 0, 1), i.openSeq)
	if subtle.ConstantTimeCompare(tail, token[n:]) != 1 {
		return nil, errSeal
	}
	i.openSeq++
	return token[:n], nil
}

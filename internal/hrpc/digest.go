// SPDX-License-Identifier: Apache-2.0

package hrpc

import (
	"crypto/md5"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// DIGEST-MD5 (RFC 2831), as Hadoop uses it for tokens. The user name is the base64 of the token identifier. The
// password is the base64 of the token's password.

const (
	digestRealm = "default"
	digestURI   = "/default"
	// The largest wrapped message that this end announces and sends, and the smallest that a peer may announce.
	digestMaxBuffer = 65536
	digestMinBuffer = 1024
	// cipherOf3DES is the one cipher of this end: Java's clients prefer it, and RFC 2831 has no better one.
	cipherOf3DES = "3des"
)

// Protection is the protection of the packets after a login by token, as DIGEST-MD5 names it.
type Protection string

// The values of hadoop.rpc.protection.
const (
	Authentication Protection = "auth"      // nothing: authentication
	Integrity      Protection = "auth-int"  // a checksum: integrity
	Privacy        Protection = "auth-conf" // encryption: privacy
)

// protectionsOr returns the list, or Authentication alone.
func protectionsOr(list []Protection) []Protection {
	if len(list) == 0 {
		return []Protection{Authentication}
	}
	return list
}

// digest is the input of both sides' computation in an exchange.
type digest struct {
	user, password string // base64 of identifier and password
	nonce, cnonce  string
	qop            Protection
	maxBuffer      int // size of the largest wrapped message that the peer accepts
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
	if d.qop != Authentication {
		a2 += ":" + strings.Repeat("0", 32)
	}
	return hexMD5(hex.EncodeToString(a1[:]) + ":" + d.nonce + ":00000001:" + d.cnonce + ":" + string(d.qop) + ":" +
		hexMD5(a2))
}

func (d *digest) response() string { return d.value("AUTHENTICATE") }
func (d *digest) rspauth() string  { return d.value("") }

// challengeText is the server's first message, in the order of a JDK.
func challengeText(nonce string, offers []Protection) string {
	names, cipher := make([]string, len(offers)), ""
	for i, p := range offers {
		names[i] = string(p)
		if p == Privacy {
			cipher = `cipher="` + cipherOf3DES + `",`
		}
	}
	return `realm="` + digestRealm + `",nonce="` + nonce + `",qop="` + strings.Join(names, ",") + `",charset=utf-8,` +
		cipher + `algorithm=md5-sess`
}

// responseText is the client's answer, in the order of a JDK.
func (d *digest) responseText() string {
	text := fmt.Sprintf(
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
	if d.qop == Privacy {
		text += `,cipher="` + cipherOf3DES + `"`
	}
	return text
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
	nonce     string
	qops      []Protection
	ciphers   []string
	maxBuffer int
}

func parseChallenge(text string) (c challenge, err error) {
	algorithm, size := "", ""
	err = directives(text, func(key, value string) error {
		switch key {
		case "nonce":
			return once(&c.nonce, key, value)
		case "qop":
			for q := range strings.SplitSeq(value, ",") {
				c.qops = append(c.qops, Protection(strings.TrimSpace(q)))
			}
		case "cipher":
			for name := range strings.SplitSeq(value, ",") {
				c.ciphers = append(c.ciphers, strings.TrimSpace(name))
			}
		case "maxbuf":
			return once(&size, key, value)
		case "algorithm":
			algorithm = value
		}
		return nil
	})
	if err == nil && (c.nonce == "" || algorithm != "md5-sess") {
		err = fmt.Errorf("%w: no nonce, or the algorithm is not md5-sess", errDirectives)
	}
	if err == nil {
		c.maxBuffer, err = bufferSize(size)
	}
	if len(c.qops) == 0 {
		c.qops = []Protection{Authentication}
	}
	return c, err
}

// choose returns the first accepted protection that the server offers.
func (c *challenge) choose(accepts []Protection) (Protection, error) {
	for _, p := range accepts {
		if !slices.Contains(c.qops, p) {
			continue
		}
		if p == Privacy && !slices.Contains(c.ciphers, cipherOf3DES) {
			return "", fmt.Errorf("hrpc: the server encrypts by %q; here is %s only", c.ciphers, cipherOf3DES)
		}
		return p, nil
	}
	return "", fmt.Errorf("hrpc: the server wants protection %q; here %q is permitted: see hadoop.rpc.protection",
		c.qops, accepts)
}

// once sets a directive that may occur once.
func once(dst *string, key, value string) error {
	if *dst != "" {
		return fmt.Errorf("%w: two of %s", errDirectives, key)
	}
	*dst = value
	return nil
}

// bufferSize parses maxbuf.
func bufferSize(text string) (int, error) {
	if text == "" {
		return digestMaxBuffer, nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || n < digestMinBuffer {
		return 0, fmt.Errorf("%w: maxbuf is no number above %d", errDirectives, digestMinBuffer)
	}
	return min(int(n), digestMaxBuffer), nil
}

// answer is the part of a client's response that a server needs.
type answer struct {
	digest
	identifier []byte
	response   string
}

// parseResponse checks a response as far as possible without a password.
func parseResponse(text, nonce string, offers []Protection) (a answer, err error) {
	uri, nc, realm, qop, size, cipher := "", "", "", "", "", ""
	fields := map[string]*string{
		"username": &a.user, "realm": &realm, "nonce": &a.nonce, "cnonce": &a.cnonce, "nc": &nc,
		"digest-uri": &uri, "response": &a.response, "qop": &qop, "maxbuf": &size, "cipher": &cipher,
	}
	err = directives(text, func(key, value string) error {
		if dst := fields[key]; dst != nil {
			return once(dst, key, value)
		}
		return nil
	})
	if a.qop = Protection(qop); qop == "" {
		a.qop = Authentication
	}
	if err == nil {
		a.maxBuffer, err = bufferSize(size)
	}
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
	case !slices.Contains(offers, a.qop):
		return a, fmt.Errorf("DIGEST-MD5: protection %q was not offered, %q was", a.qop, offers)
	case a.qop == Privacy && cipher != cipherOf3DES:
		return a, fmt.Errorf("DIGEST-MD5: cipher %q was not offered, %q was", cipher, cipherOf3DES)
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

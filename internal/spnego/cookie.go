// SPDX-License-Identifier: Apache-2.0

package spnego

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"
)

// CookieName is the name of the cookie, as in Hadoop.
const CookieName = "hadoop.auth"

// kind is the kind of login in a cookie, as in Hadoop.
const kind = "kerberos"

// signature separates a cookie's content and its signature.
const signature = "&s="

// Signer signs the cookies of users who have shown a ticket (AuthenticationToken and Signer of Hadoop's hadoop-auth).
type Signer struct {
	secret []byte
}

// NewSigner makes the signer of a secret: the whole content of hadoop.http.authentication.signature.secret.file.
func NewSigner(secret []byte) *Signer { return &Signer{secret: append([]byte(nil), secret...)} }

// Sign makes a cookie's value: a user's short name and principal, and the time at which it expires.
func (s *Signer) Sign(user, principal string, expires time.Time) string {
	text := "u=" + user + "&p=" + principal + "&t=" + kind + "&e=" + strconv.FormatInt(expires.UnixMilli(), 10)
	return text + signature + base64.StdEncoding.EncodeToString(s.sum(text))
}

// User returns the user of a cookie's value, "" if its signature does not fit or it has expired.
func (s *Signer) User(value string, now time.Time) string {
	value = strings.Trim(value, `"`)
	at := strings.LastIndex(value, signature)
	if at < 0 {
		return ""
	}
	text := value[:at]
	sum, err := base64.StdEncoding.DecodeString(value[at+len(signature):])
	if err != nil || !hmac.Equal(sum, s.sum(text)) {
		return ""
	}
	fields := map[string]string{}
	for field := range strings.SplitSeq(text, "&") {
		name, content, _ := strings.Cut(field, "=")
		if _, twice := fields[name]; twice {
			return ""
		}
		fields[name] = content
	}
	expires, err := strconv.ParseInt(fields["e"], 10, 64)
	if err != nil || now.UnixMilli() >= expires || fields["t"] != kind {
		return ""
	}
	return fields["u"]
}

func (s *Signer) sum(text string) []byte {
	h := hmac.New(sha256.New, s.secret)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// fits reports whether a name may stand in a cookie. Hadoop rejects names with & too.
func fits(name string) bool {
	return name != "" && len(name) <= 256 &&
		!strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c >= 0x7f || strings.ContainsRune(`&",;\`, c) })
}

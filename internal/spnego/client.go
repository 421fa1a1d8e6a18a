// SPDX-License-Identifier: Apache-2.0

package spnego

import (
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/jcmturner/gofork/encoding/asn1"
	"github.com/jcmturner/gokrb5/v8/spnego"

	"github.com/creelrm/creel/internal/gssapi"
)

// scheme is the name of the scheme in HTTP's headers.
const scheme = "Negotiate"

// Asks reports whether a server's answer asks for a ticket.
func Asks(status int, h http.Header) bool {
	if status != http.StatusUnauthorized {
		return false
	}
	for _, v := range h.Values("WWW-Authenticate") {
		if word, _, _ := strings.Cut(strings.TrimSpace(v), " "); strings.EqualFold(word, scheme) {
			return true
		}
	}
	return false
}

// Client is a client that has sent its ticket.
type Client struct{ i *gssapi.Initiator }

// Begin makes the value of the header Authorization that shows a ticket.
func Begin(ticket gssapi.Ticket, now time.Time, random io.Reader) (*Client, string, error) {
	i, token, err := gssapi.Initiate(ticket, now, random)
	if err != nil {
		return nil, "", err
	}
	first := spnego.SPNEGOToken{Init: true, NegTokenInit: spnego.NegTokenInit{
		MechTypes: []asn1.ObjectIdentifier{kerberos5}, MechTokenBytes: token,
	}}
	b, err := first.Marshal()
	if err != nil {
		return nil, "", err
	}
	return &Client{i}, scheme + " " + base64.StdEncoding.EncodeToString(b), nil
}

// Finish verifies the proof of the server, which has the key of the ticket. An answer that rejects the login has none.
func (c *Client) Finish(status int, h http.Header) error {
	for _, v := range h.Values("WWW-Authenticate") {
		word, text, _ := strings.Cut(strings.TrimSpace(v), " ")
		if !strings.EqualFold(word, scheme) || text == "" {
			continue
		}
		b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
		if err != nil {
			return errProof
		}
		token, err := replyToken(b)
		if err != nil {
			return err
		}
		_, err = c.i.Finish(token)
		return err
	}
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		return nil
	}
	return errors.New("the server took the ticket and does not prove its own identity")
}

var errProof = errors.New("the server's answer has no token of SPNEGO or Kerberos")

// replyToken returns the Kerberos token in a server's token of SPNEGO. Some servers send the Kerberos token alone.
func replyToken(b []byte) (token []byte, err error) {
	defer func() {
		if recover() != nil { // the decoder panics on some malformed input
			token, err = nil, errProof
		}
	}()
	if len(b) > maxToken {
		return nil, errProof
	}
	if len(b) > 0 && b[0] == 0x60 { // the tag of GSS-API: a mechanism's own token
		return b, nil
	}
	var t spnego.NegTokenResp
	if err := t.Unmarshal(b); err != nil || t.State() != spnego.NegStateAcceptCompleted {
		return nil, errProof
	}
	return t.ResponseToken, nil
}

// SPDX-License-Identifier: Apache-2.0

package spnego

import (
	"errors"
	"fmt"

	"github.com/jcmturner/gofork/encoding/asn1"
	"github.com/jcmturner/gokrb5/v8/spnego"
)

// Object identifiers of mechanisms.
var (
	kerberos5  = asn1.ObjectIdentifier{1, 2, 840, 113554, 1, 2, 2}
	msKerberos = asn1.ObjectIdentifier{1, 2, 840, 48018, 1, 2, 2} // by which Windows names Kerberos too
)

// maxToken bounds a client's token, in bytes: tickets with many groups have about 12 KiB.
const maxToken = 64 << 10

// mechToken returns the Kerberos token in a client's first token. wrapped: it was in a token of SPNEGO, and so must be
// the answer. Some clients send the Kerberos token alone.
func mechToken(b []byte) (token []byte, wrapped bool, err error) {
	defer func() {
		if recover() != nil { // the decoder panics on some malformed input
			token, err = nil, errMalformed
		}
	}()
	var outer asn1.RawValue
	var mechanism asn1.ObjectIdentifier
	if _, err := asn1.Unmarshal(b, &outer); err != nil || len(b) > maxToken {
		return nil, false, errMalformed
	}
	if _, err := asn1.Unmarshal(outer.Bytes, &mechanism); err != nil {
		return nil, false, errMalformed
	}
	if mechanism.Equal(kerberos5) {
		return b, false, nil
	}
	var t spnego.SPNEGOToken
	if err := t.Unmarshal(b); err != nil || !t.Init {
		return nil, false, errMalformed
	}
	offers := t.NegTokenInit.MechTypes
	if len(offers) == 0 || !offers[0].Equal(kerberos5) && !offers[0].Equal(msKerberos) {
		return nil, false, fmt.Errorf("the client prefers another mechanism than Kerberos: get a ticket with kinit")
	}
	if len(t.NegTokenInit.MechTokenBytes) == 0 {
		return nil, false, errMalformed
	}
	return t.NegTokenInit.MechTokenBytes, true, nil
}

var errMalformed = errors.New("the header Authorization has no token of SPNEGO or Kerberos")

// completed makes the answer to an accepted token. reply is the Kerberos token of the answer, empty for none.
func completed(reply []byte, wrapped bool) ([]byte, error) {
	if !wrapped {
		return reply, nil
	}
	t := spnego.NegTokenResp{NegState: asn1.Enumerated(spnego.NegStateAcceptCompleted), SupportedMech: kerberos5,
		ResponseToken: reply}
	return t.Marshal()
}

// SPDX-License-Identifier: Apache-2.0

package gssapi

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jcmturner/gofork/encoding/asn1"
	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// Ticket is a client's ticket for a service, with its key.
type Ticket struct {
	Client, Service Principal
	Encoded         []byte // the ticket as the KDC sent it
	Key             Key
	End             time.Time
}

// Initiator is a client that has sent its first token.
type Initiator struct {
	ticket   Ticket
	seconds  time.Time
	micros   int
	sub      Key
	sequence uint32
}

// Initiate makes the client's first token. It always asks for mutual authentication.
func Initiate(ticket Ticket, now time.Time, random io.Reader) (i *Initiator, token []byte, err error) {
	i = &Initiator{ticket: ticket}
	if !now.Before(ticket.End) {
		return nil, nil, fmt.Errorf("the ticket for %s expired at %s",
			ticket.Service, ticket.End.UTC().Format(time.RFC3339))
	}
	i.seconds, i.micros = stamp(now)
	if i.sub, err = newKey(ticket.Key.Type, random); err != nil {
		return nil, nil, err
	}
	if i.sequence, err = newSequence(random); err != nil {
		return nil, nil, err
	}
	authenticator := types.Authenticator{
		AVNO: 5, CRealm: ticket.Client.Realm,
		CName: types.PrincipalName{NameType: 1, NameString: ticket.Client.Names},
		Cksum: writeFlags(wantMutual | wantReplay | wantSequence | wantConf | wantIntegrity),
		Cusec: i.micros, CTime: i.seconds, SubKey: toWire(i.sub), SeqNumber: int64(i.sequence),
	}
	plain, err := authenticator.Marshal()
	if err != nil {
		return nil, nil, errToken
	}
	request := messages.APReq{
		PVNO: 5, MsgType: 14, APOptions: asn1.BitString{Bytes: []byte{mutualRequired, 0, 0, 0}, BitLength: 32},
	}
	if decode(func() error { return request.Ticket.Unmarshal(ticket.Encoded) }) != nil {
		return nil, nil, errors.New("the ticket is malformed")
	}
	if request.EncryptedAuthenticator, err = shut(plain, ticket.Key, usageAuthenticator, random); err != nil {
		return nil, nil, err
	}
	message, err := request.Marshal()
	if err != nil {
		return nil, nil, errToken
	}
	return i, frame(tokenRequest, message), nil
}

// Finish verifies the service's token, which proves that the service has its key.
func (i *Initiator) Finish(token []byte) (*Context, error) {
	kind, message, err := unframe(token)
	switch {
	case err != nil:
		return nil, err
	case kind == tokenError:
		return nil, serviceError(message)
	case kind != tokenReply:
		return nil, errToken
	}
	var reply messages.APRep
	if err := decode(func() error { return reply.Unmarshal(message) }); err != nil {
		return nil, err
	}
	plain, err := open(reply.EncPart, i.ticket.Key, usageReply)
	if err != nil {
		return nil, errors.New("the service does not have the key of the ticket")
	}
	var part messages.EncAPRepPart
	if err := decode(func() error { return part.Unmarshal(plain) }); err != nil {
		return nil, err
	}
	if !part.CTime.Equal(i.seconds) || part.Cusec != i.micros {
		return nil, errors.New("the service answers another request: the times differ")
	}
	key, chosen := i.sub, false
	if len(part.Subkey.KeyValue) > 0 {
		key, chosen = Key{part.Subkey.KeyType, part.Subkey.KeyValue}, true
	}
	c, err := newContext(key, false, chosen, i.sequence, uint32(part.SequenceNumber))
	if err != nil {
		return nil, err
	}
	c.Client, c.Service = i.ticket.Client, i.ticket.Service
	return c, nil
}

// serviceError converts a KRB-ERROR that a service sent instead of its answer. Nobody has signed it.
func serviceError(message []byte) error {
	var e messages.KRBError
	if err := decode(func() error { return e.Unmarshal(message) }); err != nil {
		return err
	}
	reason := map[int32]string{
		errorcode.KRB_AP_ERR_SKEW:        "the clocks differ too much",
		errorcode.KRB_AP_ERR_REPEAT:      "the request is a replay",
		errorcode.KRB_AP_ERR_TKT_EXPIRED: "the ticket has expired",
		errorcode.KRB_AP_ERR_TKT_NYV:     "the ticket is not valid yet",
		errorcode.KRB_AP_ERR_MODIFIED:    "the service has another key than the ticket",
		errorcode.KRB_AP_ERR_NOKEY:       "the service has no key for the ticket",
	}[e.ErrorCode]
	if reason == "" {
		reason = fmt.Sprintf("Kerberos error %d", e.ErrorCode)
	}
	return fmt.Errorf("the service rejects the ticket: %s", reason)
}

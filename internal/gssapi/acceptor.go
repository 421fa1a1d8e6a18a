// SPDX-License-Identifier: Apache-2.0

package gssapi

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// Flags in the first byte of AP options and tickets.
const (
	useSessionKey  = 0x40 // user to user
	mutualRequired = 0x20
	ticketInvalid  = 7  // a bit's number
	transitChecked = 12 // a bit's number
)

// ServiceKey is a key of a keytab.
type ServiceKey struct {
	Version int
	Key     Key
}

// Acceptor is a service that accepts clients' tickets.
type Acceptor struct {
	Service Principal
	Keys    []ServiceKey
	Skew    time.Duration // the largest difference of the clocks
	Replays *Replays
	// OneWay accepts clients that do not ask for the service's proof, as browsers do not; they get no reply.
	OneWay bool
}

// Accept verifies a client's first token and makes the answer. The errors tell a person on the client's side what to
// do, and nothing about the keys.
func (a *Acceptor) Accept(token []byte, now time.Time, random io.Reader) (c *Context, reply []byte, err error) {
	request, err := parseRequest(token)
	if err != nil {
		return nil, nil, err
	}
	ticket, err := a.openTicket(&request.Ticket)
	if err != nil {
		return nil, nil, err
	}
	client, err := a.checkTicket(ticket, now)
	if err != nil {
		return nil, nil, err
	}
	ticketKey := Key{ticket.Key.KeyType, ticket.Key.KeyValue}
	authenticator, err := openAuthenticator(request.EncryptedAuthenticator, ticketKey)
	if err != nil {
		return nil, nil, err
	}
	mutual, err := a.checkAuthenticator(authenticator, client, now)
	if err != nil {
		return nil, nil, err
	}
	if err := a.Replays.add(sha256.Sum256(request.EncryptedAuthenticator.Cipher), now, 2*a.Skew); err != nil {
		return nil, nil, err
	}
	kind := ticketKey.Type
	if len(authenticator.SubKey.KeyValue) > 0 {
		kind = authenticator.SubKey.KeyType
	}
	key, err := newKey(kind, random)
	if err != nil {
		return nil, nil, err
	}
	sequence, err := newSequence(random)
	if err != nil {
		return nil, nil, err
	}
	if reply, err = replyTo(authenticator, ticketKey, key, sequence, random); err != nil {
		return nil, nil, err
	}
	if c, err = newContext(key, true, true, sequence, uint32(authenticator.SeqNumber)); err != nil {
		return nil, nil, err
	}
	c.Client, c.Service = client, a.Service
	if !mutual {
		return c, nil, nil
	}
	return c, reply, nil
}

// parseRequest decodes an AP-REQ.
func parseRequest(token []byte) (r messages.APReq, err error) {
	kind, message, err := unframe(token)
	if err != nil || kind != tokenRequest {
		return r, errToken
	}
	if err := decode(func() error { return r.Unmarshal(message) }); err != nil {
		return r, err
	}
	if len(r.APOptions.Bytes) == 0 || r.APOptions.Bytes[0]&useSessionKey != 0 {
		return r, errors.New("tickets for user-to-user authentication are not supported")
	}
	return r, nil
}

// openTicket decrypts the ticket with the service's key.
func (a *Acceptor) openTicket(t *messages.Ticket) (*messages.EncTicketPart, error) {
	service, err := fromWire(t.SName, t.Realm)
	if err != nil {
		return nil, errToken
	}
	if !service.Equal(a.Service) {
		return nil, fmt.Errorf("the ticket is for %s; this service is %s", service, a.Service)
	}
	found := false
	for _, k := range a.Keys {
		if k.Key.Type != t.EncPart.EType || t.EncPart.KVNO != 0 && k.Version != t.EncPart.KVNO {
			continue
		}
		found = true
		plain, err := open(t.EncPart, k.Key, usageTicket)
		if err != nil {
			continue
		}
		var part messages.EncTicketPart
		if err := decode(func() error { return part.Unmarshal(plain) }); err != nil {
			return nil, err
		}
		return &part, nil
	}
	if !found {
		return nil, fmt.Errorf("the keytab of %s has no key of type %d and version %d: the keytab is old, or the ticket is",
			a.Service, t.EncPart.EType, t.EncPart.KVNO)
	}
	return nil, fmt.Errorf("the ticket does not fit the key of %s: the keytab is old, or the ticket is", a.Service)
}

// checkTicket checks the times of a ticket and returns its client.
func (a *Acceptor) checkTicket(t *messages.EncTicketPart, now time.Time) (client Principal, err error) {
	if client, err = fromWire(t.CName, t.CRealm); err != nil {
		return client, errToken
	}
	start := t.StartTime
	if start.IsZero() {
		start = t.AuthTime
	}
	switch {
	case t.Flags.At(ticketInvalid) != 0 || start.Sub(now) > a.Skew:
		return client, fmt.Errorf("the ticket of %s is not valid before %s", client, start.UTC().Format(time.RFC3339))
	case now.Sub(t.EndTime) > a.Skew:
		return client, fmt.Errorf("the ticket of %s expired at %s: log in again",
			client, t.EndTime.UTC().Format(time.RFC3339))
	case client.Realm != a.Service.Realm && len(t.Transited.Contents) > 0 && t.Flags.At(transitChecked) == 0:
		return client, fmt.Errorf("the KDC has not checked the realms between %s and %s", client, a.Service)
	}
	return client, nil
}

func openAuthenticator(part types.EncryptedData, key Key) (*types.Authenticator, error) {
	plain, err := open(part, key, usageAuthenticator)
	if errors.Is(err, errKeyType) {
		return nil, err
	}
	if err != nil {
		return nil, errors.New("the client does not have the key of its ticket")
	}
	a := new(types.Authenticator)
	return a, decode(func() error { return a.Unmarshal(plain) })
}

// checkAuthenticator checks the client, the time and the flags of an authenticator. mutual: the client asks for the
// service's proof.
func (a *Acceptor) checkAuthenticator(
	t *types.Authenticator, client Principal, now time.Time,
) (mutual bool, err error) {
	name, err := fromWire(t.CName, t.CRealm)
	if err != nil {
		return false, errToken
	}
	if !name.Equal(client) {
		return false, fmt.Errorf("the ticket belongs to %s, not to %s", client, name)
	}
	ahead := t.CTime.Add(time.Duration(t.Cusec) * time.Microsecond).Sub(now)
	if ahead.Abs() > a.Skew {
		word := "ahead of"
		if ahead < 0 {
			word = "behind"
		}
		return false, fmt.Errorf("the clock of %s is %s %s this service's, at most %s is allowed: synchronise the clocks",
			client, ahead.Abs().Round(time.Second), word, a.Skew)
	}
	flags, err := readFlags(t.Cksum)
	if err != nil {
		return false, err
	}
	mutual = flags&wantMutual != 0
	if !mutual && !a.OneWay {
		return false, errors.New("the client does not ask for mutual authentication, which this service requires")
	}
	return mutual, nil
}

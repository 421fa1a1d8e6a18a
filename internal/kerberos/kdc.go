// SPDX-License-Identifier: Apache-2.0

package kerberos

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/jcmturner/gofork/encoding/asn1"
	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/creelrm/creel/internal/gssapi"
)

// Numbers of RFC 4120.
const (
	typeASRequest  = 10
	typeTGSRequest = 12
	typeAPRequest  = 14

	preTGSRequest = 1 // pre-authentication by a ticket
	preTimestamp  = 2 // pre-authentication by an encrypted time

	usageTimestamp     = 1
	usageASReply       = 3
	usageBodyChecksum  = 6
	usageAuthenticator = 7
	usageTGSReply      = 8

	nameUser    = 1
	nameService = 2
)

func wireName(p gssapi.Principal, kind int32) types.PrincipalName {
	return types.PrincipalName{NameType: kind, NameString: p.Names}
}

func wireKey(k gssapi.Key) types.EncryptionKey {
	return types.EncryptionKey{KeyType: k.Type, KeyValue: k.Value}
}

// body makes the body that both requests share.
func (c *Config) body(realm string, client, service gssapi.Principal, kinds []int32) messages.KDCReqBody {
	var nonce [4]byte
	rand.Read(nonce[:])
	d := &c.krb.LibDefaults
	options := types.NewKrbFlags()
	if d.Forwardable {
		types.SetFlag(&options, 1)
	}
	return messages.KDCReqBody{
		KDCOptions: options, Realm: realm,
		CName: wireName(client, nameUser), SName: wireName(service, nameService),
		Till: c.Now().UTC().Add(d.TicketLifetime), EType: kinds,
		Nonce: int(binary.BigEndian.Uint32(nonce[:]) & 0x7fffffff),
	}
}

// login obtains the ticket that grants others, by one of the keys.
func (c *Config) login(ctx context.Context, client gssapi.Principal, keys []gssapi.ServiceKey) (gssapi.Ticket, error) {
	service := grantingService(client.Realm, client.Realm)
	kinds := slices.DeleteFunc(slices.Clone(c.krb.LibDefaults.DefaultTktEnctypeIDs), func(id int32) bool {
		return !slices.ContainsFunc(keys, func(k gssapi.ServiceKey) bool { return k.Key.Type == id })
	})
	if len(kinds) == 0 {
		return gssapi.Ticket{}, fmt.Errorf("the keytab has no key of %s of a type in default_tkt_enctypes", client)
	}
	key := newest(keys, kinds[0])
	now := c.Now().UTC()
	stamp, err := asn1.Marshal(types.PAEncTSEnc{
		PATimestamp: now.Truncate(time.Second), PAUSec: now.Nanosecond() / 1000,
	})
	if err != nil {
		return gssapi.Ticket{}, errMessage
	}
	sealed, err := crypto.GetEncryptedData(stamp, wireKey(key.Key), usageTimestamp, key.Version)
	if err != nil {
		return gssapi.Ticket{}, fmt.Errorf("the key of %s in the keytab is unusable", client)
	}
	proof, err := sealed.Marshal()
	if err != nil {
		return gssapi.Ticket{}, errMessage
	}
	request := messages.ASReq{KDCReqFields: messages.KDCReqFields{
		PVNO: 5, MsgType: typeASRequest, PAData: types.PADataSequence{{PADataType: preTimestamp, PADataValue: proof}},
		ReqBody: c.body(client.Realm, client, service, kinds[:1]),
	}}
	b, err := request.Marshal()
	if err != nil {
		return gssapi.Ticket{}, errMessage
	}
	answer, err := c.exchange(ctx, client.Realm, b)
	if err != nil {
		return gssapi.Ticket{}, c.explain(err, client, service)
	}
	var reply messages.ASRep
	if err := decode(func() error { return reply.Unmarshal(answer) }); err != nil {
		return gssapi.Ticket{}, err
	}
	t, err := openReply(&reply.KDCRepFields, key.Key, usageASReply, request.ReqBody.Nonce)
	if err == nil && (!t.Client.Equal(client) || !t.Service.Equal(service)) {
		err = fmt.Errorf("the KDC answers with a ticket of %s for %s", t.Client, t.Service)
	}
	return t, err
}

// newest returns the key of a type with the highest version.
func newest(keys []gssapi.ServiceKey, kind int32) (key gssapi.ServiceKey) {
	for _, k := range keys {
		if k.Key.Type == kind && k.Version >= key.Version {
			key = k
		}
	}
	return key
}

// ask obtains a ticket for a service by another ticket. The KDC of a realm may answer with a ticket of another realm's
// granting service instead.
func (c *Config) ask(
	ctx context.Context, realm string, by gssapi.Ticket, service gssapi.Principal,
) (t gssapi.Ticket, err error) {
	body := c.body(realm, by.Client, service, c.krb.LibDefaults.DefaultTGSEnctypeIDs)
	proof, err := c.proof(&body, by)
	if err != nil {
		return t, err
	}
	request := messages.TGSReq{KDCReqFields: messages.KDCReqFields{
		PVNO: 5, MsgType: typeTGSRequest, ReqBody: body,
		PAData: types.PADataSequence{{PADataType: preTGSRequest, PADataValue: proof}},
	}}
	b, err := request.Marshal()
	if err != nil {
		return t, errMessage
	}
	answer, err := c.exchange(ctx, realm, b)
	if err != nil {
		return t, c.explain(err, by.Client, service)
	}
	var reply messages.TGSRep
	if err := decode(func() error { return reply.Unmarshal(answer) }); err != nil {
		return t, err
	}
	if t, err = openReply(&reply.KDCRepFields, by.Key, usageTGSReply, body.Nonce); err != nil {
		return t, err
	}
	referral := len(t.Service.Names) == 2 && t.Service.Names[0] == "krbtgt"
	if !t.Client.Equal(by.Client) || !t.Service.Equal(service) && !referral {
		return t, fmt.Errorf("the KDC answers with a ticket of %s for %s", t.Client, t.Service)
	}
	return t, nil
}

// proof makes the AP-REQ that accompanies a request for a ticket.
func (c *Config) proof(body *messages.KDCReqBody, by gssapi.Ticket) ([]byte, error) {
	text, err := body.Marshal()
	if err != nil {
		return nil, errMessage
	}
	kind, err := crypto.GetEtype(by.Key.Type)
	if err != nil {
		return nil, errors.New("the ticket has a key of an unknown type")
	}
	sum, err := kind.GetChecksumHash(by.Key.Value, text, usageBodyChecksum)
	if err != nil {
		return nil, errMessage
	}
	now := c.Now().UTC()
	a := types.Authenticator{
		AVNO: 5, CRealm: by.Client.Realm, CName: wireName(by.Client, nameUser),
		Cksum: types.Checksum{CksumType: kind.GetHashID(), Checksum: sum},
		CTime: now.Truncate(time.Second), Cusec: now.Nanosecond() / 1000,
	}
	plain, err := a.Marshal()
	if err != nil {
		return nil, errMessage
	}
	request := messages.APReq{PVNO: 5, MsgType: typeAPRequest, APOptions: types.NewKrbFlags()}
	if request.EncryptedAuthenticator, err = crypto.GetEncryptedData(
		plain, wireKey(by.Key), usageAuthenticator, 0,
	); err != nil {
		return nil, errMessage
	}
	if err := decode(func() error { return request.Ticket.Unmarshal(by.Encoded) }); err != nil {
		return nil, err
	}
	b, err := request.Marshal()
	if err != nil {
		return nil, errMessage
	}
	return b, nil
}

var errMessage = errors.New("malformed Kerberos message")

// decode runs a decoder of gokrb5, whose errors name Go's types, and some of which panic at wrong lengths.
func decode(decoder func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = errMessage
		}
	}()
	if decoder() != nil {
		return errMessage
	}
	return nil
}

// openReply decrypts the KDC's answer to a request with this nonce.
func openReply(r *messages.KDCRepFields, key gssapi.Key, usage uint32, nonce int) (t gssapi.Ticket, err error) {
	var part messages.EncKDCRepPart
	if decode(func() error {
		plain, err := crypto.DecryptEncPart(r.EncPart, wireKey(key), usage)
		if err != nil {
			return err
		}
		return part.Unmarshal(plain)
	}) != nil {
		return t, errors.New("the KDC's answer does not fit the key")
	}
	if part.Nonce != nonce || len(part.SName.NameString) == 0 || !part.SName.Equal(r.Ticket.SName) {
		return t, errors.New("the KDC answers another request")
	}
	encoded, err := r.Ticket.Marshal()
	if err != nil {
		return t, errMessage
	}
	return gssapi.Ticket{
		Client:  gssapi.Principal{Names: r.CName.NameString, Realm: r.CRealm},
		Service: gssapi.Principal{Names: part.SName.NameString, Realm: part.SRealm},
		Key:     gssapi.Key{Type: part.Key.KeyType, Value: part.Key.KeyValue},
		Encoded: encoded, End: part.EndTime,
	}, nil
}

// exchangeTime bounds a request to one KDC.
const exchangeTime = 5 * time.Second

// maxReply bounds a KDC's answer.
const maxReply = 1 << 20

// exchange sends a request to the KDCs of a realm in turn, until one answers. A KRB-ERROR is returned as an error.
func (c *Config) exchange(ctx context.Context, realm string, request []byte) ([]byte, error) {
	n, kdcs, err := c.krb.GetKDCs(realm, true)
	if err != nil || n == 0 {
		return nil, fmt.Errorf("no KDC of realm %s is known: see [realms] in krb5.conf", realm)
	}
	for i := 1; i <= n; i++ {
		var answer []byte
		if answer, err = c.send(ctx, withPort(kdcs[i]), request); err != nil {
			continue
		}
		var refusal messages.KRBError
		if decode(func() error { return refusal.Unmarshal(answer) }) == nil {
			return nil, refusal
		}
		return answer, nil
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("asking the KDC of realm %s: %w", realm, ctx.Err())
	}
	return nil, fmt.Errorf("no KDC of realm %s answers", realm)
}

func withPort(address string) string {
	if _, _, err := net.SplitHostPort(address); err == nil {
		return address
	}
	return net.JoinHostPort(strings.Trim(address, "[]"), "88")
}

// send sends one request by TCP.
func send(ctx context.Context, address string, request []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, exchangeTime)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(request))), request...)); err != nil {
		return nil, err
	}
	var size [4]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n == 0 || n > maxReply {
		return nil, errMessage
	}
	answer := make([]byte, n)
	_, err = io.ReadFull(conn, answer)
	return answer, err
}

// explain converts a KDC's refusal.
func (c *Config) explain(err error, client, service gssapi.Principal) error {
	var e messages.KRBError
	if !errors.As(err, &e) {
		return err
	}
	switch e.ErrorCode {
	case errorcode.KDC_ERR_C_PRINCIPAL_UNKNOWN:
		return fmt.Errorf("the KDC does not know %s", client)
	case errorcode.KDC_ERR_S_PRINCIPAL_UNKNOWN:
		return fmt.Errorf("the KDC does not know the service %s", service)
	case errorcode.KDC_ERR_PREAUTH_FAILED, errorcode.KRB_AP_ERR_BAD_INTEGRITY:
		return fmt.Errorf("the KDC has another key of %s: the keytab is old", client)
	case errorcode.KDC_ERR_CLIENT_REVOKED, errorcode.KDC_ERR_NAME_EXP, errorcode.KDC_ERR_KEY_EXPIRED:
		return fmt.Errorf("%s is locked, or has expired, at the KDC", client)
	case errorcode.KDC_ERR_ETYPE_NOSUPP:
		return fmt.Errorf("the KDC has no AES key of %s", client)
	case errorcode.KRB_AP_ERR_SKEW:
		ahead := c.Now().Sub(e.STime).Round(time.Second)
		word := "ahead of"
		if ahead < 0 {
			word = "behind"
		}
		return fmt.Errorf("this machine's clock is %s %s the KDC's: synchronise the clocks", ahead.Abs(), word)
	case errorcode.KRB_AP_ERR_TKT_EXPIRED:
		return fmt.Errorf("the login of %s has expired", client)
	}
	return fmt.Errorf("the KDC rejects the request of %s for %s: Kerberos error %d", client, service, e.ErrorCode)
}

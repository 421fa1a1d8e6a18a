// SPDX-License-Identifier: Apache-2.0

// Package tokens issues the delegation tokens of routers. A token is a Hadoop RM_DELEGATION_TOKEN. A token issued by
// one router of a federation is valid at all routers, also after restarts. Its validity is recorded in the state
// store, by the store's clock. The signing keys are a ring in the store, sealed with the cluster's secret.
package tokens

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/creelrm/creel"
	"github.com/creelrm/creel/internal/token"
	"github.com/creelrm/creel/statestore"
)

// Ring is the name of the ring with the signing keys.
const Ring = "router-delegation"

// keySize is the length of a key in bytes.
const keySize = 32

// Store is the part of the state store that tokens need.
type Store interface {
	statestore.Tokens
	Keys(ctx context.Context, ring string) ([]statestore.Key, error)
	RotateKey(ctx context.Context, ring string, expect int32, secret []byte, keep time.Duration) (statestore.Key, error)
}

// Tokens issues and checks tokens. It is stateless and safe for concurrent use.
type Tokens struct {
	store     Store
	secrets   func(context.Context) ([]statestore.Key, error)
	lifetimes token.Lifetimes
	random    io.Reader
	names     Names
}

// Names returns the short name of a principal, hadoop.security.auth_to_local.
type Names func(principal string) (string, error)

// ByTicket makes tokens for callers with a ticket only, as Hadoop does with Kerberos: a token that issued the next one
// would never expire. Renewers are named by their principals then.
func (t *Tokens) ByTicket(names Names) { t.names = names }

// Permits returns an error if a caller must log in by a ticket and has not, with Hadoop's message. done is the change:
// issued, renewed or cancelled.
func (t *Tokens) Permits(ticket bool, done string) error {
	if t.names == nil || ticket {
		return nil
	}
	return &creel.Error{
		Kind: creel.ErrNotPermitted, What: "Delegation Token can be " + done + " only with kerberos authentication",
	}
}

// New makes Tokens with a store. secrets returns the cluster's secrets, newest first; random is a cryptographic
// source (crypto/rand.Reader).
func New(
	store Store, secrets func(context.Context) ([]statestore.Key, error), lifetimes token.Lifetimes, random io.Reader,
) *Tokens {
	l := lifetimes.WithDefaults()
	l.Max = min(l.Max, statestore.MaxTTL-kept)
	l.Renew = min(l.Renew, l.Max)
	return &Tokens{store: store, secrets: secrets, lifetimes: l, random: random}
}

// kept is the time for which a key is stored after the last token that it signed expires.
const kept = time.Hour

// Issue makes a token for owner that renewer may renew. realUser requested it on behalf of owner, or is "". The
// token's service is empty; the client sets it.
func (t *Tokens) Issue(ctx context.Context, owner, renewer, realUser string) (token.Token, time.Time, error) {
	if realUser == owner {
		realUser = ""
	}
	if t.names != nil && renewer != "" {
		short, err := t.names(renewer)
		if err != nil {
			return token.Token{}, time.Time{}, &creel.Error{
				Kind: creel.ErrInvalidRequest, What: "the renewer is unknown", Why: err.Error(),
			}
		}
		renewer = short
	}
	r, err := t.store.IssueToken(
		ctx, statestore.Token{Owner: owner, Renewer: renewer, RealUser: realUser}, t.lifetimes.Renew, t.lifetimes.Max)
	if err != nil {
		return token.Token{}, time.Time{}, err
	}
	key, err := t.signing(ctx, r.Issued)
	if err != nil {
		return token.Token{}, time.Time{}, errors.Join(err, t.store.DropToken(ctx, r.Number))
	}
	id := identifier(r)
	id.KeyID = key.ID
	return token.NewMac(key).Delegation(id), r.Expires, nil
}

// identifier returns the identifier of a recorded token, except for its key.
func identifier(r statestore.Token) token.Delegation {
	return token.Delegation{
		Owner: r.Owner, Renewer: r.Renewer, RealUser: r.RealUser, Issued: r.Issued, Max: r.Most, Sequence: r.Number,
	}
}

// signing returns the newest key, or makes the next one if that is too old.
func (t *Tokens) signing(ctx context.Context, now time.Time) (token.Key, error) {
	for range 3 {
		ring, err := t.store.Keys(ctx, Ring)
		if err != nil {
			return token.Key{}, err
		}
		seal, err := t.secrets(ctx)
		if err != nil {
			return token.Key{}, err
		}
		newest := int32(0)
		if len(ring) > 0 {
			newest = ring[0].ID
			if now.Sub(ring[0].Created) < t.lifetimes.KeyUpdate {
				if key, err := open(seal, ring[0]); err == nil { // otherwise the cluster's secret has changed
					return key, nil
				}
			}
		}
		if len(seal) == 0 {
			return token.Key{}, noSecret()
		}
		secret := make([]byte, keySize)
		if _, err := io.ReadFull(t.random, secret); err != nil {
			return token.Key{}, err
		}
		sealed, err := statestore.Seal(t.random, seal[0], []byte(Ring), secret)
		if err != nil {
			return token.Key{}, err
		}
		made, err := t.store.RotateKey(ctx, Ring, newest, sealed, t.lifetimes.Max+kept)
		if err == nil {
			return token.Key{ID: made.ID, Secret: secret}, nil
		}
		if !errors.Is(err, creel.ErrConflict) { // another router was faster
			return token.Key{}, err
		}
	}
	return token.Key{}, &creel.Error{
		Kind: creel.ErrBusy,
		What: "no delegation token now",
		Why:  "the signing key changed at each read",
		Try:  "ask again; have all routers the same creel.cluster.secret-file?",
	}
}

func noSecret() error {
	return &creel.Error{
		Kind: creel.ErrUnavailable,
		What: "no delegation token now",
		Why:  "the cluster has no secret yet",
		Try:  "try again in a moment",
	}
}

func open(seal []statestore.Key, k statestore.Key) (token.Key, error) {
	secret, err := statestore.Open(seal, []byte(Ring), k.Secret)
	return token.Key{ID: k.ID, Secret: secret}, err
}

// find returns a recorded token and the key of its identifier.
func (t *Tokens) find(ctx context.Context, id token.Delegation) (statestore.Token, token.Key, error) {
	r, err := t.store.Token(ctx, id.Sequence)
	if err != nil {
		return r, token.Key{}, err
	}
	if is := (token.DelegationRecord{Delegation: identifier(r)}); !is.Is(withoutKey(id)) {
		return r, token.Key{}, token.Unknown(id)
	}
	ring, err := t.store.Keys(ctx, Ring)
	if err != nil {
		return r, token.Key{}, err
	}
	for _, k := range ring {
		if k.ID == id.KeyID {
			seal, err := t.secrets(ctx)
			if err != nil {
				return r, token.Key{}, err
			}
			key, err := open(seal, k)
			return r, key, err
		}
	}
	return r, token.Key{}, token.KeyGone(id)
}

func withoutKey(id token.Delegation) token.Delegation {
	id.KeyID = 0
	return id
}

// prove checks a token that a caller wants to change.
func (t *Tokens) prove(ctx context.Context, k token.Token) (token.Delegation, error) {
	id, err := token.ParseDelegation(k.Identifier)
	if err != nil {
		return id, err
	}
	_, key, err := t.find(ctx, id)
	if err != nil {
		return id, err
	}
	return id, key.Proves(id, k)
}

// Renew extends a token at its renewer's request, and returns its new expiry. Errors: creel.ErrInvalidToken for an
// unknown, expired or cancelled token, creel.ErrNotPermitted for another user or a wrong password.
func (t *Tokens) Renew(ctx context.Context, k token.Token, who string) (time.Time, error) {
	id, err := t.prove(ctx, k)
	if err == nil {
		err = id.MayRenew(who)
	}
	if err != nil {
		return time.Time{}, err
	}
	r, err := t.store.RenewToken(ctx, id.Sequence, t.lifetimes.Renew)
	return r.Expires, err
}

// Cancel ends a token at all routers, at the request of its owner or renewer. It returns the same errors as Renew.
func (t *Tokens) Cancel(ctx context.Context, k token.Token, who string) error {
	id, err := t.prove(ctx, k)
	if err == nil {
		err = id.MayCancel(who)
	}
	if err != nil {
		return err
	}
	return t.store.DropToken(ctx, id.Sequence)
}

// Login checks a token in the form of Token.URLString and returns its identifier. The caller is logged in as its
// owner. Errors: creel.ErrInvalidToken for a token that is damaged, unknown, expired or cancelled, or of another
// kind; creel.ErrUnavailable while the store cannot be read.
func (t *Tokens) Login(ctx context.Context, text string) (token.Delegation, error) {
	k, err := token.ParseURLString(text)
	if err != nil {
		return token.Delegation{}, notAccepted("it is damaged: it differs from the issued one")
	}
	if k.Kind != token.KindDelegation {
		return token.Delegation{}, notAccepted("it is a " + k.Kind + ", and not a " + token.KindDelegation)
	}
	id, err := t.prove(ctx, k)
	switch {
	case errors.Is(err, creel.ErrInvalidToken), errors.Is(err, creel.ErrNotPermitted):
		return token.Delegation{}, notAccepted(reason(err))
	case err != nil:
		return token.Delegation{}, err
	}
	return id, nil
}

func notAccepted(why string) error {
	return &creel.Error{
		Kind: creel.ErrInvalidToken,
		What: "the delegation token is not accepted",
		Why:  why,
		Try:  "get a new one from a router of this federation",
	}
}

// reason returns the reason why a token was rejected, without the rest of the error.
func reason(err error) string {
	var full *creel.Error
	switch {
	case !errors.As(err, &full):
		return "it cannot be verified"
	case full.Why != "":
		return full.Why
	}
	return full.What
}

// Password returns the SASL password for the identifier of a token, and the parsed identifier. The error is of kind
// creel.ErrInvalidToken, or creel.ErrUnavailable while the store cannot be read.
func (t *Tokens) Password(ctx context.Context, identifier []byte) ([]byte, token.Delegation, error) {
	id, err := token.ParseDelegation(identifier)
	if err != nil {
		return nil, id, err
	}
	_, key, err := t.find(ctx, id)
	if err != nil {
		return nil, id, err
	}
	return key.Password(identifier), id, nil
}

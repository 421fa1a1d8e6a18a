// SPDX-License-Identifier: Apache-2.0

package token

import (
	"cmp"
	"crypto/hmac"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/creelrm/creel"
)

// Lifetimes of delegation tokens. Zero values take Hadoop's defaults.
type Lifetimes struct {
	KeyUpdate time.Duration // yarn.resourcemanager.delegation.key.update-interval, 24 h: a new master key
	Renew     time.Duration // yarn.resourcemanager.delegation.token.renew-interval, 24 h: life without renewal
	Max       time.Duration // yarn.resourcemanager.delegation.token.max-lifetime, 7 d: life with renewals
}

// WithDefaults fills unset values.
func (l Lifetimes) WithDefaults() Lifetimes {
	if l.KeyUpdate <= 0 {
		l.KeyUpdate = 24 * time.Hour
	}
	if l.Renew <= 0 {
		l.Renew = 24 * time.Hour
	}
	if l.Max <= 0 {
		l.Max = 7 * 24 * time.Hour
	}
	return l
}

// DelegationKey is a master key of delegation tokens. It is stored until the last token that it may have signed is too
// old.
type DelegationKey struct {
	Key
	Expires time.Time
}

// Append appends the key as a Writable, as in Hadoop's state stores (DelegationKey).
func (k DelegationKey) Append(b []byte) []byte {
	b = AppendVLong(b, int64(k.ID))
	b = AppendVLong(b, k.Expires.UnixMilli())
	return AppendBytes(b, k.Secret)
}

// ParseDelegationKey is the inverse of Append.
func ParseDelegationKey(b []byte) (DelegationKey, error) {
	r := NewReader(b)
	k := DelegationKey{Key: Key{ID: r.VInt()}, Expires: time.UnixMilli(r.VLong())}
	k.Secret = slices.Clone(r.Bytes())
	return k, r.Err()
}

// DelegationRecord is the stored form of a live token: its whole identifier and its expiry.
type DelegationRecord struct {
	Delegation
	Expires time.Time
}

// DelegationState is the complete state of Delegations, in order, for a journal.
type DelegationState struct {
	Keys     []DelegationKey    // by id; the last one signs
	Tokens   []DelegationRecord // by sequence number
	Sequence int32              // of the last token issued
	Roll     time.Time          // time at which the next key is made
}

// Delegations is the list of live delegation tokens of one ResourceManager or Router: a state machine with one owner.
// It follows Hadoop's rules (AbstractDelegationTokenSecretManager). Each change returns the data that an owner must
// store for a restart.
type Delegations struct {
	lifetimes Lifetimes
	keys      map[int32]DelegationKey
	current   *Mac
	tokens    map[int32]DelegationRecord // by sequence number
	sequence  int32
	roll      time.Time
}

// NewDelegations begins with a first key, whose id is 1.
func NewDelegations(lifetimes Lifetimes, now time.Time, rnd *rand.Rand) *Delegations {
	d := RestoreDelegations(lifetimes, DelegationState{})
	d.newKey(now, rnd)
	return d
}

// RestoreDelegations continues from a stored state. If it contains no key, the first Step makes one, and no token is
// issued before that.
func RestoreDelegations(lifetimes Lifetimes, s DelegationState) *Delegations {
	d := &Delegations{
		lifetimes: lifetimes.WithDefaults(),
		keys:      map[int32]DelegationKey{},
		tokens:    map[int32]DelegationRecord{},
		sequence:  s.Sequence,
		roll:      s.Roll,
	}
	for _, k := range s.Keys {
		d.keys[k.ID] = k
		if d.current == nil || k.ID > d.current.Key().ID {
			d.current = NewMac(k.Key)
		}
	}
	for _, t := range s.Tokens {
		d.tokens[t.Sequence] = t
		d.sequence = max(d.sequence, t.Sequence)
	}
	return d
}

// State is the input of RestoreDelegations.
func (d *Delegations) State() DelegationState {
	return DelegationState{
		Keys: d.sortedKeys(),
		Tokens: slices.SortedFunc(
			maps.Values(d.tokens),
			func(a, b DelegationRecord) int { return cmp.Compare(a.Sequence, b.Sequence) },
		),
		Sequence: d.sequence,
		Roll:     d.roll,
	}
}

func (d *Delegations) sortedKeys() []DelegationKey {
	return slices.SortedFunc(maps.Values(d.keys), func(a, b DelegationKey) int { return cmp.Compare(a.ID, b.ID) })
}

// Issue makes a token for owner (requested by realUser, or "") that renewer may renew. It also returns the record,
// which must be stored before the token is issued. The token's service is empty; the client fills it.
func (d *Delegations) Issue(now time.Time, owner, renewer, realUser string) (Token, DelegationRecord, error) {
	if owner == "" {
		return Token{}, DelegationRecord{}, refused(creel.ErrInvalidRequest, "a delegation token needs an owner")
	}
	if d.current == nil {
		return Token{}, DelegationRecord{}, &creel.Error{
			Kind: creel.ErrUnavailable,
			What: "no master key for delegation tokens yet",
			Try:  "ask again",
		}
	}
	now = now.Truncate(time.Millisecond)
	d.sequence++
	r := DelegationRecord{
		Delegation: Delegation{
			Owner:    owner,
			Renewer:  renewer,
			RealUser: realUser,
			Issued:   now,
			Max:      now.Add(d.lifetimes.Max),
			Sequence: d.sequence,
			KeyID:    d.current.Key().ID,
		},
	}
	r.Expires = d.expiry(now, r.Max)
	d.tokens[r.Sequence] = r
	return d.current.Delegation(r.Delegation), r, nil
}

// Delegation makes the token of an identifier that names the Mac's key. Its service is empty; the client fills it.
func (m *Mac) Delegation(id Delegation) Token { return m.sealed(id.Append(nil), KindDelegation, "") }

func (d *Delegations) expiry(now, maximum time.Time) time.Time {
	if e := now.Add(d.lifetimes.Renew); e.Before(maximum) {
		return e
	}
	return maximum
}

// find checks a token's signature and compares it with the list.
func (d *Delegations) find(t Token) (DelegationRecord, error) {
	id, err := ParseDelegation(t.Identifier)
	if err != nil {
		return DelegationRecord{}, err
	}
	r, ok := d.tokens[id.Sequence]
	if !ok || !r.Is(id) {
		return r, Unknown(id)
	}
	k, ok := d.keys[id.KeyID]
	if !ok {
		return r, KeyGone(id)
	}
	return r, k.Proves(id, t)
}

// DelegationName names a delegation token in logs, without its secret; "" for other tokens.
func (t Token) DelegationName() string {
	id, err := ParseDelegation(t.Identifier)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("delegation token %d of %s", id.Sequence, id.Owner)
}

// Unknown is the error for a token that is not live.
func Unknown(id Delegation) error {
	return invalid("delegation token %d of %s is not known here: it expired or was cancelled", id.Sequence, id.Owner)
}

// KeyGone is the error for a token whose signing key is no longer stored.
func KeyGone(id Delegation) error { return invalid("its master key %d is gone", id.KeyID) }

// Proves returns nil if the key signed the token with this identifier. Otherwise the error is of kind
// creel.ErrNotPermitted.
func (k Key) Proves(id Delegation, t Token) error {
	if k.Verify(t.Identifier, t.Password) {
		return nil
	}
	return wrongPassword(id)
}

func wrongPassword(id Delegation) error {
	return refused(
		creel.ErrNotPermitted, "the password of delegation token %d does not belong to its identifier", id.Sequence)
}

// Is reports whether a token's content matches the record with its number.
func (r DelegationRecord) Is(id Delegation) bool {
	return r.Owner == id.Owner && r.Renewer == id.Renewer && r.RealUser == id.RealUser && r.KeyID == id.KeyID &&
		r.Issued.Equal(id.Issued) && r.Max.Equal(id.Max)
}

// Renew extends a token on request of its renewer and returns the record to store; its Expires is the answer. Errors:
// ErrInvalidToken for an unknown or expired token, ErrNotPermitted for another user or a wrong password.
func (d *Delegations) Renew(now time.Time, t Token, who string) (DelegationRecord, error) {
	r, err := d.find(t)
	switch {
	case err != nil:
		return r, err
	case r.Max.Before(now):
		return r, invalid(
			"delegation token %d reached its maximum age at %s",
			r.Sequence,
			r.Max.UTC().Format(time.RFC3339),
		)
	case r.Expires.Before(now):
		return r, invalid("delegation token %d expired at %s", r.Sequence, r.Expires.UTC().Format(time.RFC3339))
	}
	if err := r.MayRenew(who); err != nil {
		return r, err
	}
	r.Expires = d.expiry(now.Truncate(time.Millisecond), r.Max)
	d.tokens[r.Sequence] = r
	return r, nil
}

// MayRenew returns nil if a user may renew a token, as its renewer may. Otherwise the error is of kind
// creel.ErrNotPermitted.
func (d Delegation) MayRenew(who string) error {
	switch d.Renewer {
	case "":
		return refused(creel.ErrNotPermitted, "delegation token %d has no renewer", d.Sequence)
	case who:
		return nil
	}
	return refused(
		creel.ErrNotPermitted, "%s may not renew delegation token %d, only %s may", who, d.Sequence, d.Renewer)
}

// MayCancel returns nil if a user may cancel a token, as its owner and its renewer may. Otherwise the error is of kind
// creel.ErrNotPermitted.
func (d Delegation) MayCancel(who string) error {
	if who != "" && (who == d.Owner || who == d.Renewer) {
		return nil
	}
	return refused(
		creel.ErrNotPermitted,
		"%s may not cancel delegation token %d, only its owner %s and its renewer %s may",
		who,
		d.Sequence,
		d.Owner,
		d.Renewer,
	)
}

// Cancel ends a token on request of its owner or renewer and returns the record to delete. The errors are those of
// Renew.
func (d *Delegations) Cancel(t Token, who string) (DelegationRecord, error) {
	r, err := d.find(t)
	if err != nil {
		return r, err
	}
	if err := r.MayCancel(who); err != nil {
		return r, err
	}
	delete(d.tokens, r.Sequence)
	return r, nil
}

// Password returns the password that SASL needs for a delegation token's identifier, and the decoded identifier. The
// error is of kind ErrInvalidToken.
func (d *Delegations) Password(now time.Time, identifier []byte) ([]byte, Delegation, error) {
	id, err := ParseDelegation(identifier)
	if err != nil {
		return nil, id, err
	}
	r, ok := d.tokens[id.Sequence]
	if !ok || !r.Is(id) {
		return nil, id, Unknown(id)
	}
	if r.Expires.Before(now) {
		return nil, id, invalid("delegation token %d expired at %s", r.Sequence, r.Expires.UTC().Format(time.RFC3339))
	}
	k, ok := d.keys[id.KeyID]
	if !ok {
		return nil, id, KeyGone(id)
	}
	return k.Password(identifier), id, nil
}

// Holder verifies a token that a caller shows, password included, and returns its decoded identifier. Errors:
// ErrInvalidToken for a token that is of another kind, unknown, expired or cancelled, and ErrNotPermitted for a wrong
// password.
func (d *Delegations) Holder(now time.Time, t Token) (Delegation, error) {
	if t.Kind != KindDelegation {
		return Delegation{}, invalid("it is a %q, and not a %s", t.Kind, KindDelegation)
	}
	password, id, err := d.Password(now, t.Identifier)
	if err == nil && !hmac.Equal(password, t.Password) {
		err = wrongPassword(id)
	}
	return id, err
}

// StepChanges are the changes of a time step; an owner with a journal writes them.
type StepChanges struct {
	NewKey      *DelegationKey     // made in this step
	OldKey      *DelegationKey     // the previous key, now with the time of its removal
	DroppedKeys []DelegationKey    // by id
	Expired     []DelegationRecord // by sequence number
}

// Step advances time: it makes a new key when one is due, and drops expired keys and tokens. It checks every token. One
// call a minute suffices, because Password and Renew check the time themselves.
func (d *Delegations) Step(now time.Time, rnd *rand.Rand) (p StepChanges) {
	if d.current == nil || !now.Before(d.roll) {
		p.OldKey, p.NewKey = d.newKey(now, rnd)
	}
	for _, k := range d.sortedKeys() {
		if k.Expires.Before(now) && k.ID != d.current.Key().ID {
			delete(d.keys, k.ID)
			p.DroppedKeys = append(p.DroppedKeys, k)
		}
	}
	for n, r := range d.tokens {
		if r.Expires.Before(now) {
			delete(d.tokens, n)
			p.Expired = append(p.Expired, r)
		}
	}
	slices.SortFunc(p.Expired, func(a, b DelegationRecord) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return p
}

// newKey makes the next key. The previous key signs no more, and is removed when the last token it signed is too old.
func (d *Delegations) newKey(now time.Time, rnd *rand.Rand) (before, made *DelegationKey) {
	now = now.Truncate(time.Millisecond)
	id := int32(1)
	if d.current != nil {
		old := d.keys[d.current.Key().ID]
		old.Expires = now.Add(d.lifetimes.Max)
		d.keys[old.ID] = old
		id, before = old.ID+1, &old
	}
	k := DelegationKey{
		Key:     Key{ID: id, Secret: NewSecret(rnd)},
		Expires: now.Add(d.lifetimes.KeyUpdate + d.lifetimes.Max),
	}
	d.keys[id], d.current, d.roll = k, NewMac(k.Key), now.Add(d.lifetimes.KeyUpdate)
	return before, &k
}

func refused(kind error, format string, args ...any) error {
	return &creel.Error{Kind: kind, What: fmt.Sprintf(format, args...)}
}

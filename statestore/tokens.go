// SPDX-License-Identifier: Apache-2.0

package statestore

import (
	"cmp"
	"context"
	"time"

	"github.com/creelrm/creel"
)

// Tokens are the live delegation tokens of routers: every router rejects a token that is not stored here. The secrets
// that sign them are stored elsewhere (Keys).
type Tokens interface {
	// IssueToken stores a new token of owner, renewer and real user, and sets its number and times. It expires after
	// life; renewals extend it to at most most. Numbers rise. A repeat after a lost answer may leave an unused token
	// behind, which expires.
	//
	// A store that went back may issue the number of a lost token again. So callers must compare owner, renewer, real
	// user and times of the stored token too, as router/tokens does.
	IssueToken(ctx context.Context, t Token, life, most time.Duration) (Token, error)
	// Token returns a live token, or creel.ErrInvalidToken.
	Token(ctx context.Context, number int32) (Token, error)
	// RenewToken extends a live token by life from now, up to Token.Most; else creel.ErrInvalidToken.
	RenewToken(ctx context.Context, number int32, life time.Duration) (Token, error)
	// DropToken removes a token; a missing token is success.
	DropToken(ctx context.Context, number int32) error
}

// Token is a delegation token as stored. Times are by the store's clock, in milliseconds.
type Token struct {
	Number   int32     `json:"number"` // from 1
	Owner    string    `json:"owner"`
	Renewer  string    `json:"renewer,omitempty"`
	RealUser string    `json:"real_user,omitempty"`
	Issued   time.Time `json:"issued"`
	Most     time.Time `json:"most"`    // no renewal goes beyond it
	Expires  time.Time `json:"expires"` // it lives until then
}

// maxUser is the longest name of a user in a token, in bytes.
const maxUser = 256

// CheckToken rejects tokens that cannot be stored.
func CheckToken(t Token, life, most time.Duration) error {
	for _, name := range []string{t.Owner, t.Renewer, t.RealUser} {
		if len(name) > maxUser {
			return bad("invalid delegation token", "a user's name in it is longer than %d bytes", maxUser)
		}
	}
	if t.Owner == "" {
		return bad("invalid delegation token", "it has no owner")
	}
	return cmp.Or(CheckTTL(life), CheckTTL(most))
}

// NoToken returns the error for a delegation token that is not live.
func NoToken(number int32) error {
	return failf(creel.ErrInvalidToken, "get a new one",
		"delegation token refused", "number %d is not known: it expired or was cancelled", number)
}

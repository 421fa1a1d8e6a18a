// SPDX-License-Identifier: Apache-2.0

package httpguard

import (
	"context"

	"github.com/creelrm/creel/internal/audit"
)

// Login is the proof by which a web server knows the user of a request.
type Login struct {
	User     string
	RealUser string // the user that acts for User, if the login itself proves that, or ""
	Ticket   bool   // by Kerberos: a ticket, or the cookie that follows one
}

// Method returns the method of the login in the words of audit lines: SIMPLE for an empty one.
func (l Login) Method() string {
	switch {
	case l.User == "":
		return audit.Simple
	case l.Ticket:
		return audit.Kerberos
	}
	return audit.Token
}

// loginKey is the context key of a Login.
type loginKey struct{}

// WithLogin returns the context of a request with its login.
func WithLogin(ctx context.Context, l Login) context.Context {
	return context.WithValue(ctx, loginKey{}, l)
}

// LoginOf returns the login of a request. It is empty for a request that named its user without proof, or no user.
func LoginOf(ctx context.Context) Login {
	l, _ := ctx.Value(loginKey{}).(Login)
	return l
}

// SPDX-License-Identifier: Apache-2.0

// Package audit writes a line to a daemon's log for every change. RPC and REST of routers, ResourceManagers and AM-RM
// proxies use the same format, and so do the daemons' own actions.
//
// A line consists of the message "audit" and the known attributes of Line. Failures are warnings, except those of
// TrialUser: routers make its calls to learn which of them a member refuses. Hadoop writes the format of Hadoop's
// RMAuditLogger instead, for programs that parse it.
package audit

import (
	"context"
	"log/slog"
)

// Message is the message of each line.
const Message = "audit"

// TrialUser is the default of creel.router.trial-user. Its calls change nothing.
const TrialUser = "creel-trial"

// The methods by which a caller proved its user, in the names of Hadoop's UserGroupInformation.
const (
	Simple   = "SIMPLE"   // a name without proof
	Token    = "TOKEN"    // a delegation token, or the token of an application
	Kerberos = "KERBEROS" // a ticket, or the cookie that follows one
)

// The results of a call.
const (
	Success = "success"
	Failure = "failure" // rejected, or failed
	Busy    = "busy"    // rejected for now: clients retry
)

// Line is a change, or a rejected one. Empty fields are omitted.
type Line struct {
	User         string // the effective user; empty: the daemon itself
	RealUser     string // the user that impersonates User
	Auth         string // Simple, Token or Kerberos: how the caller proved User, or RealUser if there is one
	From         string // the address that the call came from
	ForwardedFor string // the client's address, as reported by a router
	Operation    string // a protocol's method, a REST route, or the name of a daemon's own action
	Target       string // the changed object
	Result       string // Success, Failure or Busy
	Error        string // reason of a Failure or Busy
	Request      string // the caller's id for the request
	Context      string // the caller's context, as sent by Hadoop's clients
	Trace        string // of the request, 32 hexadecimal digits
}

// Log writes the line, with further attributes of the operation.
func (l Line) Log(to *slog.Logger, more ...slog.Attr) {
	level := slog.LevelInfo
	if l.Result == Failure && l.User != TrialUser {
		level = slog.LevelWarn
	}
	attrs := make([]slog.Attr, 0, 12+len(more))
	for _, a := range [...]struct{ key, value string }{
		{"user", l.User}, {"real_user", l.RealUser}, {"from", l.From}, {"forwarded_for", l.ForwardedFor},
		{"operation", l.Operation}, {"target", l.Target}, {"result", l.Result}, {"error", l.Error}, {"auth", l.Auth},
		{"request", l.Request}, {"caller_context", l.Context}, {"trace_id", l.Trace},
	} {
		if a.value != "" {
			attrs = append(attrs, slog.String(a.key, a.value))
		}
	}
	to.LogAttrs(context.Background(), level, Message, append(attrs, more...)...)
}

// Of returns the result of an operation from its error.
func Of(err error) (result, why string) {
	if err != nil {
		return Failure, err.Error()
	}
	return Success, ""
}

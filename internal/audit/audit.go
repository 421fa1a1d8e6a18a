// SPDX-License-Identifier: Apache-2.0

// Package audit writes a line to a daemon's log for every change. The format is the same for RPC and REST of routers,
// ResourceManagers and AM-RM proxies, and for the daemons' own actions.
//
// A line has the message "audit" and the known attributes of Line. Failures are warnings. Hadoop writes the format of
// Hadoop's RMAuditLogger instead, for programs that parse it.
package audit

import (
	"context"
	"log/slog"
)

// Message is the message of each line.
const Message = "audit"

// The ends of a call.
const (
	Success = "success"
	Failure = "failure" // refused, or it did not work
	Busy    = "busy"    // not now: clients repeat it
)

// Line is a change, or a rejected one. Empty fields are left out.
type Line struct {
	User         string // the effective user; empty: the daemon itself
	RealUser     string // the user that impersonates User
	From         string // the address that the call came from
	ForwardedFor string // the client's address, by a router's word
	Operation    string // a protocol's method, a route of REST, or a daemon's own word
	Target       string // the changed object
	Result       string // Success, Failure or Busy
	Error        string // why it is not a success
	Request      string // the caller's id for the request
	Context      string // the caller's context, as Hadoop's clients send it
	Trace        string // of the request, 32 hexadecimal digits
}

// Log writes the line, with more attributes of that operation.
func (l Line) Log(to *slog.Logger, more ...slog.Attr) {
	level := slog.LevelInfo
	if l.Result == Failure {
		level = slog.LevelWarn
	}
	attrs := make([]slog.Attr, 0, 10+len(more))
	for _, a := range [...]struct{ key, value string }{
		{"user", l.User}, {"real_user", l.RealUser}, {"from", l.From}, {"forwarded_for", l.ForwardedFor},
		{"operation", l.Operation}, {"target", l.Target}, {"result", l.Result}, {"error", l.Error},
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

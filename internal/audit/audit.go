// SPDX-License-Identifier: Apache-2.0

// Package audit writes the line that every change leaves in a daemon's log, the same at
// each door: RPC and REST of routers, ResourceManagers and AM-RM proxies, and what daemons
// do by themselves.
//
// A line has the message "audit" and the attributes of Line that are known. Failures are
// warnings. Hadoop writes the form of its RMAuditLogger instead, for programs that read
// that.
package audit

import (
	"context"
	"log/slog"
)

// Message is that of each line.
const Message = "audit"

// The ends of a call.
const (
	Success = "success"
	Failure = "failure" // refused, or it did not work
	Busy    = "busy"    // not now: clients repeat it
)

// Line is a change, or one that was refused. What is empty is left out.
type Line struct {
	User         string // who it is done as; empty: the daemon itself
	RealUser     string // who acts for User
	From         string // the address that the call came from
	ForwardedFor string // the client's address, by a router's word
	Operation    string // a protocol's method, a route of REST, or a daemon's own word
	Target       string // what is changed
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

// Of is the result of what gave an error or none.
func Of(err error) (result, why string) {
	if err != nil {
		return Failure, err.Error()
	}
	return Success, ""
}
